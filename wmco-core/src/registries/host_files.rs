//! containerd's files for registries, by their paths on hosts.

use std::collections::BTreeMap;

use super::Registries;
use crate::digest::Sha256;
use crate::names::host;
use crate::secret::Secret;
use crate::winpath::WindowsPath;

/// Files of containerd by their path on a host, rendered and digested once for all hosts.
///
/// ```
/// use wmco_core::registries::{MirrorSetFacts, RegistryInputs, configure};
///
/// let set = serde_json::json!({
///     "kind": "ImageTagMirrorSet",
///     "spec": {"imageTagMirrors": [{"source": "quay.io", "mirrors": ["cache.example"]}]},
/// });
/// let sets = [MirrorSetFacts::of(&set).unwrap()];
/// let registries = configure(&RegistryInputs { mirror_sets: &sets, ..RegistryInputs::default() });
/// let files = registries.host_files();
/// let (path, file) = files.iter().next().unwrap();
/// assert_eq!(path.as_str(), r"C:\k\containerd\registries\quay.io\hosts.toml");
/// assert!(file.content.expose().starts_with(b"server ="));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RegistryFiles(BTreeMap<WindowsPath, RegistryFile>);

/// A file for a registry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegistryFile {
    /// Digest of its content.
    pub sha256: Sha256,
    /// Its content, which may hold credentials.
    pub content: Secret,
}

impl RegistryFiles {
    /// All files, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&WindowsPath, &RegistryFile)> {
        self.0.iter()
    }
}

impl Registries {
    /// The files by their paths on hosts.
    pub fn host_files(&self) -> RegistryFiles {
        let file = |(path, content): (String, Secret)| {
            (on_host(&path), RegistryFile { sha256: Sha256::of(content.expose()), content })
        };
        RegistryFiles(self.files().into_iter().map(file).collect())
    }
}

#[expect(clippy::expect_used, reason = "a law over any objects parses the paths of all files")]
fn on_host(path: &str) -> WindowsPath {
    format!(r"{}\{path}", host::REGISTRIES).parse().expect("a folder of a registry is a valid name")
}
