//! Holds back new nodes while the cluster is not ready for new work.

use std::collections::BTreeSet;

use super::{Assignment, Because, Intent};

/// Leaves hosts that are not nodes yet; one that a removal waits for is looked at. Work in progress continues when the
/// cluster is ready again, since every step checks first. Existing nodes stay with their workers, which keep them as they
/// are.
pub(super) fn leave_new(instances: &mut [Assignment<'_>]) {
    let awaited: BTreeSet<String> = instances.iter().filter_map(look_due).collect();
    let is_new =
        |it: &&mut Assignment<'_>| matches!(it.intent, Intent::Configure(_)) && it.node.is_none();
    for instance in instances.iter_mut().filter(is_new) {
        let is_awaited = awaited.contains(&instance.address);
        instance.intent = if is_awaited { Intent::Look } else { Intent::Leave };
        instance.because = Because::ClusterUnfit;
    }
}

/// The entry that has to be looked at before this instance may leave.
fn look_due(instance: &Assignment<'_>) -> Option<String> {
    match &instance.because {
        Because::LookDue { address } => Some(address.clone()),
        _ => None,
    }
}
