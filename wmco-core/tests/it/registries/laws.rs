//! A law that holds for any objects. The fuzz target asserts it, and so do tests of this crate.

use serde_json::Value;
use toml_edit::DocumentMut;
use wmco_core::registries::{
    ImageConfigFacts, MirrorSetFacts, PullSecret, PullSecretData, RegistryInputs, configure,
};
use wmco_core::winpath::WindowsPath;

/// A JSON list of objects, the first of which is the pull secret and the cluster's settings, too, gives
/// files that are TOML, in folders that Windows can hold, and findings of one line.
pub(crate) fn objects_become_files(bytes: &[u8]) {
    let Ok(Value::Array(objects)) = serde_json::from_slice(bytes) else { return };
    let sets: Vec<_> = objects.iter().filter_map(MirrorSetFacts::of).collect();
    let first = objects.first().cloned().unwrap_or_default();
    let pull_secret = PullSecret::read(PullSecretData::Text(first.to_string().as_bytes()));
    let found = configure(&RegistryInputs {
        mirror_sets: &sets,
        image_config: &ImageConfigFacts::of(&first),
        pull_secret: &pull_secret,
        pause_image: None,
    });
    for (path, text) in found.files() {
        let whole = format!("{}\\{path}", wmco_core::names::host::REGISTRIES);
        whole.parse::<WindowsPath>().expect("Windows can hold it");
        let text = std::str::from_utf8(text.expose()).expect("TOML is text");
        text.parse::<DocumentMut>().expect("the file is TOML");
    }
    for finding in found.findings() {
        assert!(!finding.to_string().contains(char::is_control), "{finding}");
    }
}
