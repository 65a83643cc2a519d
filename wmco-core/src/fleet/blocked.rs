//! Holds back new nodes while the cluster is not ready for new work.

use super::{Assignment, Because, Intent};

/// Leaves hosts that are not nodes yet. Work in progress continues when the cluster is ready again, since every
/// step checks first. Existing nodes stay with their workers, which keep them as they are.
pub(super) fn leave_new(instances: &mut [Assignment<'_>]) {
    let is_new =
        |it: &&mut Assignment<'_>| matches!(it.intent, Intent::Configure(_)) && it.node.is_none();
    for instance in instances.iter_mut().filter(is_new) {
        instance.intent = Intent::Leave;
        instance.because = Because::ClusterUnfit;
    }
}
