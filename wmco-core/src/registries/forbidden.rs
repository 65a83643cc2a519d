//! Sources that must not be asked, under any name of their registries.

use std::collections::{BTreeMap, BTreeSet};

use super::image_config::prefixes;
use super::location::ImageLocation;
use super::mirror_set::MirrorEntry;

/// Sources with `NeverContactSource`.
#[derive(Debug, Default)]
pub(super) struct ForbiddenSources {
    /// By their registry in its canonical form.
    sources: BTreeMap<String, Source>,
    /// Hosts for which any entry names mirrors, in lower case.
    mirrored: BTreeSet<String>,
}

/// What is forbidden of one registry.
#[derive(Debug)]
struct Source {
    /// The registry, as it is written first.
    registry: ImageLocation,
    paths: BTreeSet<String>,
}

impl ForbiddenSources {
    /// The sources that `entries` forbid: those with the policy, if any entry with that registry names mirrors.
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a MirrorEntry> + Clone) -> Self {
        let with_mirrors = entries.clone().filter(|entry| entry.has_mirrors);
        let mirrored: BTreeSet<String> =
            with_mirrors.map(|entry| entry.source.host_key()).collect();
        let mut sources = BTreeMap::new();
        for MirrorEntry { source, never, .. } in entries {
            if *never && mirrored.contains(&source.host_key()) {
                let known = sources.entry(registry(source)).or_insert_with(|| Source {
                    registry: ImageLocation::of_registry(source.host()),
                    paths: BTreeSet::new(),
                });
                known.paths.insert(source.path().to_owned());
            }
        }
        Self { sources, mirrored }
    }

    /// Whether any entry names mirrors for this host, in lower case.
    pub(super) fn has_mirrors(&self, host: &str) -> bool {
        self.mirrored.contains(host)
    }

    /// The name with which the registry of `location` is forbidden, if it is.
    pub(super) fn name_of(&self, location: &ImageLocation) -> Option<&ImageLocation> {
        self.sources.get(&registry(location)).map(|source| &source.registry)
    }

    /// Whether `location` has a forbidden source in it, or lies in one.
    pub(super) fn meet(&self, location: &ImageLocation) -> bool {
        let Some(Source { paths, .. }) = self.sources.get(&registry(location)) else {
            return false;
        };
        let path = location.path();
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let is_below = |first: &String| first.starts_with(&below);
        prefixes(path).any(|prefix| paths.contains(prefix))
            || paths.range(below.clone()..).next().is_some_and(is_below)
    }

    /// All names of their registries in names of images.
    pub(super) fn names(&self) -> impl Iterator<Item = ImageLocation> {
        self.sources.values().flat_map(|source| source.registry.names())
    }
}

/// Its registry in the form that all of its names have in common.
fn registry(location: &ImageLocation) -> String {
    location.canonical().host().to_owned()
}
