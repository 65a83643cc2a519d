//! Work on hosts without a Node.

use super::*;
use crate::windows::ServiceName;

fn name(text: &str) -> ServiceName {
    text.parse().unwrap()
}

/// Returns a host that was a node.
fn joined() -> FakeWindows {
    let host = fresh();
    assert_eq!(error(&apply(&host, &join(&host))), None);
    host
}

fn vacant_since(host: &FakeWindows) -> HostPlan {
    let boot_id = host.machine().boot_id().unwrap();
    let steps = vec![HostStep::RemoveDaemon];
    HostPlan { protocol: PROTOCOL, vacant_since: Some(boot_id), steps }
}

#[test]
fn a_kubelet_stops_with_what_needs_it_and_the_rest_runs_on() {
    let host = joined();
    let needs_kubelet = crate::windows::ServiceConfig {
        dependencies: vec![name("kubelet")],
        ..host.services().query(&name("kubelet")).unwrap().unwrap().config
    };
    host.add_service(&name("hybrid-overlay-node"), &needs_kubelet, ServiceRunState::Running);
    let lines = apply(&host, &[HostStep::StopKubelet]);
    assert_eq!((error(&lines), changes(&lines)), (None, vec![true]));
    let state = |service: &str| probed(&lines).services[service].state;
    assert_eq!(state("containerd"), ServiceRunState::Running);
    for stopped in ["kubelet", "hybrid-overlay-node", objects::WICD] {
        assert_eq!(state(stopped), ServiceRunState::Stopped, "{stopped}");
    }
    assert_eq!(changes(&apply(&host, &[HostStep::StopKubelet])), [false]);
    assert_eq!(error(&apply_plan(&host, &vacant_since(&host))), None);
}

#[test]
fn a_plan_for_a_vacant_host_is_refused_while_a_kubelet_runs() {
    let host = joined();
    let before = host.snapshot();
    let lines = apply_plan(&host, &vacant_since(&host));
    assert_eq!(
        error(&lines),
        Some("the plan is for a host without a node, but a kubelet runs; look at the host again")
    );
    assert_eq!(host.snapshot(), before);
}

#[test]
fn a_plan_for_a_vacant_host_is_refused_after_a_restart() {
    let host = joined();
    apply(&host, &[HostStep::StopKubelet]);
    let plan = vacant_since(&host);
    host.power_off();
    host.boot();
    host.set_service_state(&name("kubelet"), ServiceRunState::Stopped);
    assert_eq!(
        error(&apply_plan(&host, &plan)),
        Some(
            "the plan is for a host without a node, but the host has restarted; look at the host again"
        )
    );
}
