//! Names of the objects that define where nodes pull images from.
//!
//! Source: `docs/contract/registries.md`, REG1, and OpenShift's documentation of image mirroring.

/// Kind of mirror sets for images that are pulled by digest.
pub const DIGEST_MIRROR_SET_KIND: &str = "ImageDigestMirrorSet";

/// Kind of mirror sets for images that are pulled by tag.
pub const TAG_MIRROR_SET_KIND: &str = "ImageTagMirrorSet";

/// Deprecated kind of mirror sets for images that are pulled by digest.
pub const CONTENT_SOURCE_POLICY_KIND: &str = "ImageContentSourcePolicy";

/// Kind of the cluster's settings for images; its group is [`CONFIG_GROUP`], its name
/// [`CLUSTER`](super::objects::CLUSTER).
pub const IMAGE_CONFIG_KIND: &str = "Image";

/// API group of the cluster's configuration.
pub const CONFIG_GROUP: &str = "config.openshift.io";

/// Version of the kinds of [`CONFIG_GROUP`].
pub const CONFIG_VERSION: &str = "v1";

/// API group of images in the cluster's own registry, whose kind is called like [`IMAGE_CONFIG_KIND`].
pub const IMAGE_GROUP: &str = "image.openshift.io";

/// API group of [`CONTENT_SOURCE_POLICY_KIND`].
pub const CONTENT_SOURCE_POLICY_GROUP: &str = "operator.openshift.io";

/// Version of [`CONTENT_SOURCE_POLICY_KIND`].
pub const CONTENT_SOURCE_POLICY_VERSION: &str = "v1alpha1";

/// Kind of [`PULL_SECRET`].
pub const SECRET_KIND: &str = "Secret";

/// Secret with the pull credentials of the whole cluster, in [`PULL_SECRET_NAMESPACE`].
pub const PULL_SECRET: &str = "pull-secret";

/// Namespace of [`PULL_SECRET`].
pub const PULL_SECRET_NAMESPACE: &str = "openshift-config";

/// Key of the JSON text in [`PULL_SECRET`].
pub const DOCKER_CONFIG_KEY: &str = ".dockerconfigjson";

/// Value of `mirrorSourcePolicy`: after the mirrors, the source may be contacted.
pub const ALLOW_SOURCE: &str = "AllowContactingSource";

/// Value of `mirrorSourcePolicy`: the source must not be contacted.
pub const NEVER_SOURCE: &str = "NeverContactSource";

/// Name of the file that containerd reads in the folder of a registry.
pub const HOSTS_FILE: &str = "hosts.toml";

/// Folder that containerd reads for registries without a folder of their own.
pub const DEFAULT_FOLDER: &str = "_default";

/// Registry of images without a registry in their name.
pub const DOCKER_HUB: &str = "docker.io";

/// Former name of [`DOCKER_HUB`]; runtimes replace it in names of images.
pub const DOCKER_HUB_INDEX: &str = "index.docker.io";

/// Host that serves the images of [`DOCKER_HUB`].
pub const DOCKER_HUB_SERVER: &str = "registry-1.docker.io";

/// Default first path segment of images of [`DOCKER_HUB`].
pub const DOCKER_HUB_LIBRARY: &str = "library";
