//! With a permit a node is emptied first.

use super::*;

/// A host that was restarted in a drain of so many hours, with a pod that has a grace period of ten years.
fn ends_in_years(case: &mut Case, hours: i64) {
    case.annotate(names::RESTART_FROM_ANNOTATION, "boot 0");
    let leaves_by = Some(NOW + SignedDuration::from_hours(10 * 365 * 24));
    case.observed.pods = Some(vec![PodFacts { leaves_by, ..pod(true) }]);
    let since = Some(NOW - SignedDuration::from_hours(hours));
    case.observed.drain.marks.since = since;
    case.observed.drain.marks.cordoned = since;
}

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
    grace_period_of_years_is_waited_for_a_day: Case::new().with(outdated).emptied().with(|c| {
        stop(c, KUBELET_SERVICE);
        ends_in_years(c, 23);
    }) => "await its pods' departure";
    grace_period_of_years_is_not_waited_for_longer: Case::new().with(outdated).emptied().with(|c| {
        stop(c, KUBELET_SERVICE);
        ends_in_years(c, 24);
    }) => "apply +remove-daemon patch-node";
    grace_period_of_years_does_not_keep_a_host: Case::unlisted().emptied().with(|c| {
        stop(c, KUBELET_SERVICE);
        ends_in_years(c, 24);
    }) => "apply +remove-daemon patch-node";
    grace_period_of_years_that_a_kubelet_keeps_is_told: Case::new()
        .with(outdated)
        .emptied()
        .with(|c| ends_in_years(c, 24)) => "tell-drain await its pods' departure";
}
