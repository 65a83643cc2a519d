//! containerd's own configuration, [`host::CONTAINERD_CONFIG`](crate::names::host::CONTAINERD_CONFIG).
//!
//! Source: `docs/contract/node-files.md`, FILE16 and FILE17. Settings equal to containerd's default are left out,
//! unless containerd on Linux has another default, so that a test can check the effective settings there.

mod settings;
#[cfg(test)]
mod tests;

pub use settings::{
    BadContainerdSetting, ContainerdLogLevel, ContainerdSettings, ContainerdSettingsError,
    RuntimeHandler,
};

use toml_edit::{Array, DocumentMut, Item, Table, value};

const BASE: &str = include_str!("base.toml");
const CRI: &str = "io.containerd.grpc.v1.cri";

/// Text of containerd's configuration.
///
/// ```
/// use wmco_core::render::{ContainerdSettings, containerd_config};
///
/// let text = containerd_config(&ContainerdSettings::default());
/// assert!(text.contains(r"config_path = 'C:\k\containerd\registries'"));
/// ```
#[expect(clippy::indexing_slicing, reason = "the base has these tables, and others are made")]
pub fn containerd_config(settings: &ContainerdSettings) -> String {
    let mut document = base();
    if let Some(level) = settings.log_level {
        let mut debug = Table::new();
        debug.insert("level", value(level.as_str()));
        document.insert("debug", Item::Table(debug));
    }
    let cri = &mut document["plugins"][CRI];
    cri["sandbox_image"] = value(&settings.pause_image);
    let containerd = &mut cri["containerd"];
    containerd["default_runtime_name"] = value(&settings.default_runtime);
    containerd["snapshotter"] = value(&settings.snapshotter);
    for (name, handler) in &settings.runtimes {
        containerd["runtimes"][name] = Item::Table(runtime(handler));
    }
    document.to_string()
}

#[expect(clippy::expect_used, reason = "every test of this module parses it")]
fn base() -> DocumentMut {
    BASE.parse().expect("the base is TOML")
}

fn runtime(handler: &RuntimeHandler) -> Table {
    let mut table = Table::new();
    table.insert("runtime_type", value(&handler.runtime_type));
    // containerd on Windows could pass on some by default.
    for annotations in ["container_annotations", "pod_annotations"] {
        table.insert(annotations, value(Array::new()));
    }
    if !handler.options.is_empty() {
        table.insert("options", Item::Table(handler.options.iter().collect()));
    }
    table
}
