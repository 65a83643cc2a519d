//! The bundle's annotations, which its image also has as labels.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{CHANNELS, DEFAULT_CHANNEL, MANIFESTS, METADATA};
use crate::names::objects::OPERATOR;
use crate::support_matrix::SUPPORTED;

/// Prefix of the names of a bundle's annotations.
pub(super) const PREFIX: &str = "operators.operatorframework.io.bundle.";

/// Annotation with the releases of OpenShift that a bundle is for.
const OPENSHIFT_VERSIONS: &str = "com.redhat.openshift.versions";

/// Format of the bundle.
pub(super) const MEDIA_TYPE: &str = "registry+v1";

fn pairs() -> [(String, String); 7] {
    let of_bundle = |name: &str, value: &str| (format!("{PREFIX}{name}.v1"), value.to_owned());
    [
        of_bundle("mediatype", MEDIA_TYPE),
        of_bundle("manifests", MANIFESTS),
        of_bundle("metadata", METADATA),
        of_bundle("package", OPERATOR),
        of_bundle("channels", &CHANNELS.join(",")),
        of_bundle("channel.default", DEFAULT_CHANNEL),
        (OPENSHIFT_VERSIONS.to_owned(), SUPPORTED.openshift.clone()),
    ]
}

/// The file with the annotations.
pub(super) fn annotations() -> Value {
    json!({"annotations": serde_json::Map::from_iter(pairs().map(|(name, value)| (name, value.into())))})
}

/// The Dockerfile of the bundle's image, for the bundle's folder.
pub(super) fn dockerfile() -> String {
    let mut text = String::from("# podman build -t BUNDLE_IMAGE .\nFROM scratch\n");
    for (name, value) in pairs() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "LABEL {name}=\"{value}\"");
    }
    let _ = writeln!(text, "COPY {MANIFESTS} /{MANIFESTS}\nCOPY {METADATA} /{METADATA}");
    text
}
