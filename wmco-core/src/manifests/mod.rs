//! The files that install the operator in a cluster.
//!
//! [`files`] makes them; `deploy/` holds a copy for users who do not have the program yet, and a test compares the
//! two. The Operator Lifecycle Manager gets the same rights and the same pod in a [`bundle`](crate::bundle).
//!
//! # Not here
//! The container image, and the objects that the running operator creates ([`cluster`](crate::cluster)).
//!
//! Source: `docs/contract/cluster.md`, CLU27 to CLU34.

mod components;
mod deployment;
mod grant;
mod grants;
mod policy;
mod rights;
mod text;

use serde_json::{Value, json};

pub use deployment::{ARGUMENTS, CACHE_FOLDER, POD_NAME, RUN, WATCH_NAMESPACE};
pub use grant::{Grant, Names, Place};
pub use grants::GRANTS;
pub use text::{Document, File};

use crate::cluster::rbac;
use crate::monitoring;
use crate::names;
use crate::names::monitoring::{
    CLUSTER_MONITORING_LABEL, EXPORTER, EXPORTER_PORT, SERVING_CERT_ANNOTATION,
};
use crate::names::objects::{DEFAULT_NAMESPACE, TLS_SECRET};
use crate::registries::{BadReference, ImageReference};
use crate::text::is_dns_label;

pub(crate) use deployment::{Watched, spec as deployment_spec};
pub(crate) use policy::file as secrets_policy;
pub(crate) use rights::rules;

/// Image in manifests without a chosen image; kustomize replaces it.
pub const IMAGE: &str = "wmco-operator";

/// Namespaces of others, besides those that begin with `kube-`, which Kubernetes keeps for itself, and with
/// [`OF_OPENSHIFT`].
const OF_OTHERS: [&str; 2] = ["default", "openshift"];

/// What the names of OpenShift's own namespaces begin with.
const OF_OPENSHIFT: &str = "openshift-";

/// Those of these that are ours.
const OURS: &str = "openshift-windows-";

/// Choices of the user for an installation.
#[derive(Clone, Copy, Debug)]
pub struct Installation<'a> {
    namespace: &'a str,
    image: &'a str,
    arguments: &'a str,
}

/// Why the manifests cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallationError {
    /// Not a valid image reference.
    #[error("image `{text}` cannot be used: {problem}")]
    Image {
        /// The input.
        text: String,
        /// Why the reference is invalid.
        problem: BadReference,
    },
    /// Not a valid name of a namespace.
    #[error("`{text}` is no namespace, write lower-case letters, digits and `-`")]
    Namespace {
        /// The input.
        text: String,
    },
    /// A namespace of the cluster itself, or of everybody.
    #[error(
        "namespace `{text}` belongs to the cluster, choose one for the operator alone, such as {DEFAULT_NAMESPACE}: its \
         labels restrict every pod there"
    )]
    NamespaceOfOthers {
        /// The input.
        text: String,
    },
}

impl<'a> Installation<'a> {
    /// An installation of `image` in `namespace`.
    ///
    /// # Errors
    /// The namespace's name or the image reference is invalid, or the namespace is one of others.
    pub fn new(namespace: &'a str, image: &'a str) -> Result<Self, InstallationError> {
        if !is_dns_label(namespace) {
            return Err(InstallationError::Namespace { text: namespace.to_owned() });
        }
        let is_openshift = namespace.starts_with(OF_OPENSHIFT) && !namespace.starts_with(OURS);
        if is_openshift || OF_OTHERS.contains(&namespace) || namespace.starts_with("kube-") {
            return Err(InstallationError::NamespaceOfOthers { text: namespace.to_owned() });
        }
        match image.parse::<ImageReference>() {
            Ok(_) => Ok(Self { namespace, image, arguments: "" }),
            Err(problem) => Err(InstallationError::Image { text: image.to_owned(), problem }),
        }
    }

    pub(crate) const fn namespace(&self) -> &'a str {
        self.namespace
    }

    pub(crate) const fn image(&self) -> &'a str {
        self.image
    }

    pub(crate) const fn arguments(&self) -> &'a str {
        self.arguments
    }

    /// Adds options of `run`, as one text with single blanks between them.
    #[must_use]
    pub const fn with_arguments(self, arguments: &'a str) -> Self {
        Self { arguments, ..self }
    }
}

impl Default for Installation<'_> {
    /// The default namespace, with an image that kustomize replaces.
    fn default() -> Self {
        Self { namespace: DEFAULT_NAMESPACE, image: IMAGE, arguments: "" }
    }
}

/// All files, for `kubectl apply -k`.
///
/// ```
/// use wmco_core::manifests::{Installation, files};
///
/// let files = files(&Installation::new("windows", "registry.example/wmco:1")?);
/// let deployment = files.iter().find(|file| file.path == "deployment.yaml");
/// assert!(deployment.is_some_and(|file| file.text().contains("image: registry.example/wmco:1")));
/// Ok::<(), wmco_core::manifests::InstallationError>(())
/// ```
pub fn files(installation: &Installation<'_>) -> Vec<File> {
    let namespace = installation.namespace;
    let applied = vec![
        File::new(
            "namespace.yaml",
            "The operator's namespace. OpenShift would set the label of the Pod Security Standard by what\n\
             ServiceAccounts here may use, so that is turned off.",
            [Document::of(self::namespace(namespace))],
        ),
        rights::of_operator(namespace),
        rights::beside_machines(namespace),
        policy::file(namespace),
        File::new(
            "wicd-rights.yaml",
            "What the daemon on each Windows node may do: with its ServiceAccount until it has a certificate,\n\
             then as a member of the group system:wicd-nodes. The operator itself binds the ServiceAccount, and\n\
             on Azure the role of the cloud node manager, which uses the daemon's kubeconfig there.",
            rbac::shipped(namespace).into_iter().map(Document::of),
        ),
        File::new(
            "exporter-certificate.yaml",
            "No selector: this Service exists so that the service CA issues the certificate that the exporters on\n\
             all Windows nodes serve with. Without that Secret no host can be configured.",
            [Document::of(exporter_service(namespace))],
        ),
        File::new(
            "monitoring.yaml",
            "What Prometheus and the console show of Windows nodes and of the operator. For clusters with\n\
             OpenShift's monitoring.",
            monitoring::shipped(namespace).into_iter().map(Document::of),
        ),
        deployment::file(installation),
    ];
    let list = components::kustomization(&applied);
    let mut files = vec![list];
    files.extend(applied);
    files.extend(components::cluster_api(namespace));
    files.extend(components::host_network());
    files
}

/// The [`files`] that a usual installation applies: all but kustomize's files and its components.
pub fn applied(installation: &Installation<'_>) -> Vec<File> {
    files(installation).into_iter().filter(is_applied).collect()
}

fn is_applied(file: &File) -> bool {
    !file.path.contains('/') && file.path != components::KUSTOMIZATION
}

/// The objects in the [`applied`] files.
pub fn objects(installation: &Installation<'_>) -> Vec<Value> {
    let documents = applied(installation).into_iter().flat_map(|file| file.documents);
    documents.map(|document| document.object).collect()
}

/// Labels of the operator's namespace.
pub(crate) fn namespace_labels() -> Value {
    json!({
        CLUSTER_MONITORING_LABEL: names::TRUE,
        "pod-security.kubernetes.io/enforce": "restricted",
        "security.openshift.io/scc.podSecurityLabelSync": "false",
    })
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": namespace_labels()},
    })
}

pub(crate) fn exporter_service(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": EXPORTER, "namespace": namespace,
            "labels": {"name": EXPORTER},
            "annotations": {SERVING_CERT_ANNOTATION: TLS_SECRET},
        },
        "spec": {"ports": [{
            "name": "metrics", "protocol": "TCP", "port": EXPORTER_PORT, "targetPort": EXPORTER_PORT,
        }]},
    })
}
