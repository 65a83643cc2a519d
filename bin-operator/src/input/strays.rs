//! Parts of a ConfigMap that nobody reads, because they stand at the wrong place.
//!
//! Who takes such a ConfigMap for what is left of it plans the removal of hosts that somebody listed.

use k8s_openapi::api::core::v1::ConfigMap;
use wmco_core::members::UnknownMember;
use wmco_core::text::printable;

use super::{Located, Objects};

/// A line for each part of `map` that nobody reads: object, field and what to write instead.
pub fn strays(objects: &Objects, map: &Located<ConfigMap>) -> Vec<String> {
    let name = map.object.metadata.name.as_deref().map(printable).unwrap_or_default();
    let told = |problem: String| format!("ConfigMap {name}: {problem}: {}", map.at);
    let unknown = objects.unknown.iter().filter(|unknown| unknown.at == map.at);
    let unknown = unknown.map(|Located { object: UnknownMember { path, right }, .. }| {
        let remedy = right.as_ref().map(|right| format!("write `{right}`"));
        let remedy = remedy.unwrap_or_else(|| "indent it below data".to_owned());
        format!("`{path}` is no member of a ConfigMap, {remedy}")
    });
    let binary =
        map.object.binary_data.iter().flatten().map(|(key, _)| {
            format!("`binaryData` is not read, write `{}` below data", printable(key))
        });
    unknown.chain(binary).map(told).collect()
}
