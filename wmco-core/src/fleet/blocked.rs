//! Holds back new nodes while the cluster is not ready for new work.

use std::collections::BTreeSet;

use super::{Assignment, Because, Intent};

/// Leaves hosts that are not nodes yet. Work in progress continues when the cluster is ready again, since every step checks
/// first. Existing nodes stay with their workers, which keep them as they are. Those that a removal waits for are looked at
/// first, nodes or not: where nothing can be rendered, nobody else looks.
pub(super) fn leave_new(instances: &mut [Assignment<'_>]) {
    let awaited: BTreeSet<String> = instances.iter().filter_map(look_due).collect();
    for instance in instances.iter_mut().filter(|it| matches!(it.intent, Intent::Configure(_))) {
        if awaited.contains(&instance.address) {
            instance.intent = Intent::Look;
        } else if instance.node.is_none() {
            instance.intent = Intent::Leave;
        }
        if instance.node.is_none() {
            instance.because = Because::ClusterUnfit;
        }
    }
}

/// The entry that has to be looked at before this instance may leave.
fn look_due(instance: &Assignment<'_>) -> Option<String> {
    match &instance.because {
        Because::LookDue { address } => Some(address.clone()),
        _ => None,
    }
}
