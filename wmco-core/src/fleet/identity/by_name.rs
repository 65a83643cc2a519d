//! Hosts by their names.

use std::collections::HashMap;

use crate::host_record::forms;

/// Numbers of hosts by the names of the Nodes that they may register: the first one, and whether there is no other.
#[derive(Default)]
pub(super) struct ByName(HashMap<String, (usize, bool)>);

impl ByName {
    pub(super) fn of<'a>(names: impl Iterator<Item = (&'a str, usize)>) -> Self {
        let mut hosts: HashMap<String, (usize, bool)> = HashMap::new();
        for (form, number) in names.flat_map(|(name, number)| forms(name).map(|it| (it, number))) {
            let (first, is_only) = hosts.entry(form.to_lowercase()).or_insert((number, true));
            *is_only &= *first == number;
        }
        Self(hosts)
    }

    pub(super) fn first(&self, node: &str) -> Option<usize> {
        self.0.get(&node.to_lowercase()).map(|(first, _)| *first)
    }

    /// Whether another host than this one has the name.
    pub(super) fn has_other(&self, node: &str, than: usize) -> bool {
        let found = self.0.get(&node.to_lowercase());
        found.is_some_and(|(first, is_only)| *first != than || !is_only)
    }
}
