//! The served resources: built-in ones and those of CustomResourceDefinitions.

use std::sync::Arc;

use super::resources::{self, Resource};

/// The resources in discovery order.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    builtin: Vec<Arc<Resource>>,
    custom: Vec<Arc<Resource>>,
}

/// Which part of a group and version is served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Known {
    /// Neither the group nor the version.
    Nothing,
    /// The group has other versions.
    Group,
    /// Group and version.
    Version,
}

impl Registry {
    /// Makes a registry with the built-in resources only.
    pub(crate) fn builtin() -> Self {
        Self { builtin: resources::builtin(), custom: Vec::new() }
    }

    /// All resources.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.iter().chain(&self.custom)
    }

    /// The resource in paths like `/apis/{group}/{version}/{plural}`.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.all().find(|resource| {
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }

    /// The resource of a kind.
    pub(crate) fn find_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<&Arc<Resource>> {
        self.all().find(|resource| {
            resource.group == group && resource.version == version && resource.kind == kind
        })
    }

    /// Which part of a group and version is served.
    pub(crate) fn knows(&self, group: &str, version: &str) -> Known {
        let mut known = Known::Nothing;
        for resource in self.all().filter(|resource| resource.group == group) {
            known = Known::Group;
            if resource.version == version {
                return Known::Version;
            }
        }
        known
    }

    /// Whether all resources of a group come from CustomResourceDefinitions.
    pub(crate) fn is_custom(&self, group: &str) -> bool {
        !self.builtin.iter().any(|resource| resource.group == group)
    }

    /// Replaces the resources of a CustomResourceDefinition, named by group and plural.
    pub(crate) fn replace(&mut self, group: &str, plural: &str, by: Vec<Arc<Resource>>) {
        self.custom.retain(|resource| !resource.is(group, plural));
        self.custom.extend(by);
    }
}
