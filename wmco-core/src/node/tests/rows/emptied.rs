//! With a permit a node is emptied first.

use super::*;

rows! {
    node_is_cordoned_first: Case::new().with(outdated).permitted() => "patch-node";
    content_goes_up_before_the_cordon: Case::new().with(outdated).with(tampered).permitted()
        => "upload patch-node";
    pods_are_listed: Case::new().with(outdated).emptied().with(|c| c.observed.pods = None)
        => "list-pods";
    pods_are_asked_to_leave: Case::new().with(outdated).emptied().with(|c| {
        c.observed.pods = Some(vec![pod(false), pod(true)]);
    }) => "evict await its pods' departure";
    pods_are_waited_for: Case::new().with(outdated).emptied().with(|c| {
        c.observed.pods = Some(vec![pod(true)]);
    }) => "await its pods' departure";
    lifted_cordon_is_put_back: Case::new().with(outdated).emptied().with(|c| {
        c.node().unschedulable = false;
    }) => "patch-node";
    pods_are_asked_to_leave_a_dead_kubelet_too: Case::new().with(outdated).emptied().with(|c| {
        stop(c, KUBELET_SERVICE);
        c.observed.pods = Some(vec![pod(false)]);
    }) => "evict await its pods' departure";
    nobody_waits_for_a_dead_kubelet: Case::new().with(outdated).emptied().with(|c| {
        stop(c, KUBELET_SERVICE);
        c.observed.pods = Some(vec![pod(true)]);
    }) => "apply +remove-daemon patch-node";
    kubelet_that_the_daemon_may_start_has_the_grace_period_of_its_pods: Case::new()
        .with(outdated)
        .emptied()
        .with(|c| {
            stop(c, KUBELET_SERVICE);
            c.observed.pods = Some(vec![graceful()]);
        }) => "await its pods' departure";
    nobody_waits_for_a_kubelet_that_nobody_starts: Case::new()
        .with(outdated)
        .emptied()
        .with(|c| {
            stop(c, KUBELET_SERVICE);
            c.probe().services.remove(WICD);
            c.observed.pods = Some(vec![graceful()]);
        }) => "patch-node";
}
