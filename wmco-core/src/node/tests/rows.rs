//! One named line per decision.

use super::*;
use names::host::KUBELET_SERVICE;
use names::objects::WICD;

const REINSTALL: &str = "apply +remove-daemon +remove-services";

fn pod(leaving: bool) -> PodFacts {
    let leaves_by = leaving.then_some(NOW);
    let (namespace, name) = ("default".into(), "web".into());
    PodFacts { namespace, name, uid: "1".into(), created: None, leaves_by }
}

/// A leaving pod with a grace period.
fn graceful() -> PodFacts {
    PodFacts { leaves_by: Some(NOW + SignedDuration::from_secs(30)), ..pod(true) }
}

fn outdated(case: &mut Case) {
    case.annotate(names::VERSION_ANNOTATION, "1.0.0");
}

/// The ConfigMap of the same version got other content.
pub(super) fn other_services(case: &mut Case) {
    case.release().manifest.0.insert("services".into(), "[]".into());
}

/// The cluster trusts other authorities.
pub(super) fn other_roots(case: &mut Case) {
    case.release().roots = Sha256::of(b"other roots");
}

/// Somebody changed a file that services read once.
pub(super) fn tampered(case: &mut Case) {
    let file = open_file(b"other");
    case.probe().files.insert(path(r"C:\k\kubelet.exe"), file);
}

/// The host has the right script, closed to others or not.
fn script(case: &mut Case, protected: bool) {
    secret(case, r"C:\k\scripts\hns.psm1", true, protected);
}

fn secret(case: &mut Case, name: &str, live: bool, protected: bool) {
    let sha256 = Sha256::of(name.as_bytes());
    let file = DesiredFile { sha256, access: Access::Administrators, live };
    case.release().files.insert(path(name), file);
    case.probe().files.insert(path(name), FileState { sha256, protected, doubted: false });
}

fn unmarked(case: &mut Case) {
    case.node().annotations.remove(names::VERSION_ANNOTATION);
}

fn foreign_containerd() -> ForeignService {
    ForeignService { name: "containerd".into(), command: r"D:\containerd.exe".into() }
}

/// Marked and cordoned by us, and configured.
fn held(case: Case) -> Case {
    let mut case = case.emptied();
    case.desired.intent = Intent::Configure(None);
    case
}

fn stop(case: &mut Case, service: &str) {
    case.probe().services.get_mut(service).unwrap().state = ServiceRunState::Stopped;
}

/// Nothing on the host can register a Node, and nobody knows one.
fn quiet(case: &mut Case) {
    stop(case, KUBELET_SERVICE);
    stop(case, WICD);
    case.observed.node_sought = true;
}

/// There was a Node, and so often and so many seconds ago its kubelet was started.
fn gone(case: &mut Case, times: u32, seconds: i64) {
    let last = NOW - SignedDuration::from_secs(seconds);
    let starts = Some(Starts { times, last });
    case.observed.registration = Registration { node_seen: true, bootstrapped: None, starts };
}

macro_rules! rows {
    ($($name:ident: $case:expr => $expected:expr;)*) => {
        $(#[test]
        fn $name() {
            let case: Case = $case;
            case.gives($expected);
        })*
    };
}

/// The API server said that there is no Node.
fn sought(case: &mut Case) {
    case.observed.node_sought = true;
}

// After the macro that it uses.
mod emptied;

rows! {
    nothing_to_do: Case::new() => "settled";
    left_alone: Case::new().with(|c| c.desired.intent = Intent::Leave) => "settled";
    left_alone_though_unknown: Case::new().with(|c| {
        c.desired.intent = Intent::Leave;
        c.observed.host = HostSeen::Unknown;
    }) => "settled";

    // Hosts that no agent of ours answers for.
    unknown_host: Case::new().with(|c| c.observed.host = HostSeen::Unknown) => "probe";
    nothing_is_run_on_a_host_that_is_not_known_to_be_closed: Case::new().with(|c| {
        c.observed.host = HostSeen::Unknown;
        c.observed.known_closed = false;
    }) => "probe-with-ours";
    host_that_our_agent_found_closed_is_remembered: Case::new().with(|c| {
        c.observed.known_closed = false;
    }) => "record-root";
    host_is_not_remembered_before_ours_is_installed: Case::vacant().with(sought).with(|c| {
        c.observed.known_closed = false;
        c.probe().agent.installed = Some(Sha256::of(b"planted"));
    }) => "apply +install-agent";
    known_host_that_is_open_again_is_met_as_for_the_first_time: Case::new().with(|c| {
        c.probe().root = RootAccess::Open;
    }) => "record-root probe-with-ours";
    open_host_that_nobody_relies_on: Case::new().with(|c| {
        c.observed.known_closed = false;
        c.probe().root = RootAccess::Open;
    }) => "probe-with-ours";
    known_host_without_agent_may_have_lost_its_folder: Case::new().with(|c| {
        c.observed.host = HostSeen::NoAgent;
    }) => "record-root probe-with-ours";
    ours_that_waits_in_a_closed_folder_is_not_sent_again: Case::new().with(|c| {
        c.probe().agent.sha256 = Sha256::of(b"agent 1");
        let ours = c.desired.release.agent;
        c.probe().staged.insert(ours);
    }) => "probe-staged";
    what_waits_is_not_run_on_a_host_that_is_not_known: Case::new().with(|c| {
        c.probe().agent.sha256 = Sha256::of(b"agent 1");
        let ours = c.desired.release.agent;
        c.probe().staged.insert(ours);
        c.observed.known_closed = false;
    }) => "probe-with-ours";
    staged_content_is_not_sent_again: Case::vacant().with(sought).with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
        let content = c.desired.release.files[&path(names::host::KUBELET_CA)].sha256;
        c.probe().staged.insert(content);
    }) => "apply +place-file";
    unreachable_host: Case::new().with(|c| {
        c.observed.host = HostSeen::Unreachable { retry_at: NOW };
    }) => "await the host's answer";
    unreachable_host_keeps_its_node: Case::unlisted().with(|c| {
        c.observed.host = HostSeen::Unreachable { retry_at: NOW };
    }) => "await the host's answer";
    no_agent: Case::new().with(|c| {
        c.observed.host = HostSeen::NoAgent;
        c.observed.known_closed = false;
    }) => "probe-with-ours";
    other_agent: Case::new().with(|c| {
        c.probe().agent.sha256 = Sha256::of(b"agent 1");
    }) => "probe-with-ours";

    // Hosts without a Node.
    fresh_host: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().directories = observed_directories();
    }) => "upload apply +join-cluster +install-agent +place-file +place-file +bootstrap +ensure-daemon";
    fresh_host_with_a_containerd_of_others_waits: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().foreign_containerd = Some(foreign_containerd());
    }) => "await a host that is fit to become a node";
    fresh_host_with_another_windows_waits: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().os_build = "10.0.14393".into();
    }) => "await a host that is fit to become a node";
    fresh_host_with_an_overlay_that_its_windows_cannot_join_waits: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().os_build = "10.0.17763".into();
        c.release().vxlan_port = Some(9898);
    }) => "await a host that is fit to become a node";
    fresh_host_with_a_kubelet_of_others_waits: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().fitness.foreign_kubelet = Some(foreign_containerd());
    }) => "await a host that is fit to become a node";
    fresh_host_with_little_disk_goes_on: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().directories = observed_directories();
        c.probe().fitness.free_bytes = Some(3_000_000_000);
    }) => "upload apply +join-cluster +install-agent +place-file +place-file +bootstrap +ensure-daemon";
    what_has_begun_on_a_host_goes_on: Case::vacant().with(|c| {
        c.probe().fitness.free_bytes = Some(1);
        c.probe().os_build = "10.0.14393".into();
    }) => "await the node";
    node_that_is_unfit_stays: Case::new().with(|c| {
        c.probe().os_build = "10.0.14393".into();
        c.probe().fitness.free_bytes = Some(1);
    }) => "settled";
    containerd_of_others_beside_ours_is_left_alone: Case::vacant().with(|c| {
        c.probe().foreign_containerd = Some(foreign_containerd());
    }) => "await the node";
    node_with_a_containerd_of_others_stays: Case::new().with(|c| {
        c.probe().foreign_containerd = Some(foreign_containerd());
    }) => "settled";
    fresh_host_without_containers: Case::vacant().with(|c| {
        make_bare(c.probe());
        c.probe().containers = FeatureState::Disabled;
        c.release().files.clear();
        c.probe().agent.installed = Some(c.desired.release.agent);
        c.probe().directories = observed_directories();
    }) => "apply +join-cluster +enable-containers +restart await the host's return";
    vacant_host_with_another_name: Case::vacant().with(|c| {
        c.probe().services.clear();
        c.observed.node_sought = true;
        c.desired.host_name = Some("win-10".into());
    }) => "apply +rename-computer +restart await the host's return";
    vacant_host_whose_name_only_differs_in_case: Case::vacant().with(|c| {
        c.desired.host_name = Some("win-1".into());
    }) => "await the node";
    rename_is_ordered_once: Case::vacant().with(quiet).with(|c| {
        c.desired.host_name = Some("win-10".into());
        c.probe().reboot.insert(RebootReason::Rename);
    }) => "apply +restart await the host's return";
    vacant_host_that_wants_a_restart: Case::vacant().with(quiet).with(|c| {
        c.probe().reboot.insert(RebootReason::Feature);
    }) => "apply +restart await the host's return";
    vacant_host_with_other_files_is_torn_down: Case::vacant().with(quiet).with(tampered)
        => "upload apply +remove-daemon +remove-services +place-file +bootstrap +ensure-daemon";
    vacant_host_lacks_a_live_file: Case::vacant().with(sought).with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
    }) => "upload apply +place-file";
    host_whose_node_is_not_sought_yet_lacks_a_live_file: Case::vacant().with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
    }) => "seek-node";
    vacant_host_with_a_stopped_kubelet: Case::vacant().with(quiet)
        => "apply +bootstrap +ensure-daemon";
    kubelet_whose_node_may_be_there_runs_on: Case::vacant().with(tampered) => "seek-node";
    kubelet_stops_before_its_host_is_torn_down: Case::vacant().with(tampered)
        .with(|c| c.observed.node_sought = true)
        => "apply +stop-kubelet seek-node";
    daemon_that_may_start_the_kubelet_stops: Case::vacant().with(tampered).with(|c| {
        quiet(c);
        c.probe().services.get_mut(WICD).unwrap().state = ServiceRunState::Starting;
    }) => "apply +stop-kubelet seek-node";
    node_is_sought_before_its_host_is_torn_down: Case::vacant().with(tampered).with(|c| {
        quiet(c);
        c.observed.node_sought = false;
    }) => "seek-node";
    node_is_sought_after_a_half_done_join: Case::vacant().with(tampered).with(|c| {
        c.probe().services.clear();
    }) => "seek-node";
    kubelet_has_time_to_register: Case::vacant() => "await the node";
    kubelet_has_time_to_register_until_it_is_over: Case::vacant().with(|c| {
        c.waits(Awaited::NodeAppears, NOW - limits::NODE_APPEARS + SignedDuration::from_secs(1));
    }) => "await the node";
    overdue_node: Case::vacant().with(|c| {
        c.waits(Awaited::NodeAppears, NOW - limits::NODE_APPEARS);
    }).with(sought) => "apply +stop-kubelet";
    node_that_is_gone_registers_again_at_once: Case::vacant().with(|c| {
        c.observed.registration.node_seen = true;
    }).with(sought) => "apply +stop-kubelet";
    certificate_of_the_daemon_tells_of_a_node_too: Case::vacant().with(|c| {
        c.probe().daemon_certificate_valid = true;
    }).with(sought) => "apply +stop-kubelet";
    kubelet_that_was_just_started_has_time: Case::vacant().with(|c| gone(c, 1, 59)) => "await the node";
    kubelet_is_started_again_after_a_while: Case::vacant().with(|c| gone(c, 1, 60)).with(sought)
        => "apply +stop-kubelet";
    pauses_between_starts_grow: Case::vacant().with(|c| gone(c, 3, 239)) => "await the node";
    pauses_between_starts_end: Case::vacant().with(|c| gone(c, u32::MAX, 600)).with(sought)
        => "apply +stop-kubelet";
    starts_are_forgotten: Case::vacant().with(|c| gone(c, u32::MAX, 1200)).with(sought)
        => "apply +stop-kubelet";
    kubelet_whose_node_may_be_there_is_not_started_again: Case::vacant().with(|c| {
        c.observed.registration.node_seen = true;
    }) => "seek-node";
    another_wait_does_not_count: Case::vacant().with(|c| {
        c.waits(Awaited::HostBack, NOW - limits::NODE_APPEARS);
    }) => "await the node";

    // What a running node may get at any time.
    live_file: Case::new().with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
    }) => "upload apply +place-file";
    stale_file_that_we_recorded: Case::new().with(|c| {
        let old = path(r"C:\k\old.exe");
        c.probe().files.insert(old.clone(), open_file(b"old"));
        c.probe().state.as_mut().unwrap().files.insert(old);
    }) => "apply +remove-file";
    files_of_others_stay: Case::new().with(|c| {
        c.probe().files.insert(path(r"C:\Temp\owner.txt"), open_file(b"o"));
    }) => "settled";
    file_in_a_folder_that_is_wholly_ours: Case::new().with(|c| {
        let old = path(r"C:\k\containerd\registries\old.example\hosts.toml");
        c.probe().files.insert(old, open_file(b"old"));
    }) => "apply +remove-file";
    script_that_others_may_write_to: Case::new().with(|c| script(c, false)) => "upload apply +place-file";
    script_in_its_place: Case::new().with(|c| script(c, true)) => "settled";
    folder_that_others_may_write_to: Case::new().with(|c| {
        c.probe().directories.remove(&path(names::host::SCRIPTS));
    }) => "apply +ensure-directory";
    nobody_is_drained_to_close_a_file: Case::new().with(|c| {
        secret(c, names::host::CLOUD_CONFIG, false, false);
    }) => "settled";
    missing_folder_comes_with_those_above: Case::new().with(|c| {
        c.probe().directories.remove(&path(r"C:\var\log\kubelet"));
        c.probe().directories.remove(&path(names::host::LOGS));
    }) => "apply +ensure-directory +ensure-directory +ensure-directory";
    other_installed_agent: Case::new().with(|c| {
        c.probe().agent.installed = Some(Sha256::of(b"agent 1"));
    }) => "apply +install-agent";
    stopped_daemon: Case::new().with(|c| stop(c, WICD)) => "apply +ensure-daemon";
    daemon_with_other_arguments: Case::new().with(|c| {
        c.release().daemon_arguments.push("--verbose".into());
    }) => "apply +ensure-daemon";
    services_of_a_configured_node_are_the_daemons: Case::new().with(|c| stop(c, KUBELET_SERVICE))
        => "settled";
    services_are_the_daemons_once_it_follows_us: Case::new().with(|c| {
        unmarked(c);
        c.node().unschedulable = true;
        c.annotate(names::CORDONED_ANNOTATION, names::CORDONED_BY_US);
        stop(c, KUBELET_SERVICE);
    }) => "await the version mark";

    // What is written on a Node.
    new_node_is_marked_as_ours: Case::new().with(|c| {
        let node = c.node();
        node.labels.remove(names::BYOH_LABEL);
        node.annotations.clear();
    }) => "patch-node";
    node_is_ours_before_it_holds_a_slot: Case::new().with(tampered).permitted().with(|c| {
        c.node().labels.remove(names::BYOH_LABEL);
    }) => "patch-node";
    the_key_stays_in_the_config_map: Case::new().with(|c| c.observed.on_record = true)
        => "settled";
    node_that_joins_is_cordoned: Case::new().joining() => "patch-node";
    node_that_lost_its_version_mark_is_not_cordoned: Case::new().with(unmarked)
        => "await the version mark";
    cordon_that_comes_with_a_slot_is_put_back: held(Case::new()).with(unmarked)
        .with(|c| c.node().unschedulable = false) => "patch-node";
    leftover_label_goes: Case::new().with(|c| {
        c.node().labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
    }) => "patch-node";
    leftover_boot_goes: Case::new().with(|c| {
        unmarked(c);
        c.node().unschedulable = true;
        c.annotate(names::CORDONED_ANNOTATION, names::CORDONED_BY_US);
        c.annotate(names::RESTART_FROM_ANNOTATION, "boot 1");
    }) => "patch-node";
    version_mark_has_time: Case::new().with(|c| {
        unmarked(c);
        c.node().unschedulable = true;
        c.annotate(names::CORDONED_ANNOTATION, names::CORDONED_BY_US);
    }) => "await the version mark";
    version_mark_is_overdue: Case::new().with(|c| {
        unmarked(c);
        c.node().unschedulable = true;
        c.annotate(names::CORDONED_ANNOTATION, names::CORDONED_BY_US);
        c.waits(Awaited::VersionMark, NOW - limits::VERSION_MARK);
    }) => "probe await the version mark";
    configured_node_is_given_back: held(Case::new()) => "patch-node";
    node_that_is_not_ready_is_kept: held(Case::new().with(|c| c.node().ready = false))
        => "await the node's readiness";
    node_whose_kubelet_still_starts_is_kept: held(Case::new().with(|c| stop(c, KUBELET_SERVICE)))
        => "await the node's readiness";

    node_of_another_version_waits_with_all: Case::new().with(outdated).with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
    }) => "await a disruption slot";
    node_with_another_agent_waits_with_all: Case::new().with(tampered).with(|c| {
        c.probe().agent.installed = Some(Sha256::of(b"another"));
    }) => "await a disruption slot";
    other_roots_wait_for_a_slot: Case::new().with(other_roots) => "await a disruption slot";
    bundle_comes_before_the_release: Case::new().with(other_roots).emptied().with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
    }) => "upload apply +place-file";

    // Without a permit nothing is disturbed.
    other_services_wait_for_a_slot: Case::new().with(other_services)
        => "await a disruption slot";
    other_services_wait_for_a_slot_before_the_version_mark_too:
        Case::new().with(other_services).with(unmarked) => "await a disruption slot";
    upgrade_waits_for_a_slot: Case::new().with(outdated) => "await a disruption slot";
    repair_waits_for_a_slot: Case::new().with(tampered) => "await a disruption slot";
    restart_waits_for_a_slot: Case::new().with(|c| c.annotate(names::REBOOT_ANNOTATION, ""))
        => "await a disruption slot";
    roots_that_are_not_in_force_wait_for_a_slot: Case::new().with(|c| {
        c.probe().reboot.insert(RebootReason::Roots);
    }) => "await a disruption slot";
    pending_restart_waits_for_a_slot: Case::new().with(|c| {
        c.probe().reboot.insert(RebootReason::Environment);
    }) => "await a disruption slot";
    removal_waits_for_a_slot: Case::unlisted().with(|c| c.desired.intent = Intent::Remove(None))
        => "await a disruption slot";
    emptied_node_without_a_permit_waits: Case::new().with(outdated).emptied().with(|c| {
        c.desired.intent = Intent::Configure(None);
    }) => "await a disruption slot";

    // With a permit it is emptied, as `emptied` tells, and then disturbed.
    daemon_goes_before_its_mark: Case::new().with(outdated).emptied()
        => "apply +remove-daemon patch-node";
    mark_goes_though_the_daemon_is_gone: Case::new().with(outdated).emptied().with(|c| {
        c.probe().services.remove(WICD);
    }) => "patch-node";
    unmarked_node_is_reinstalled: Case::new().with(unmarked).with(tampered).emptied()
        => &format!("upload {REINSTALL} +place-file +bootstrap");
    daemon_of_another_version_is_torn_down: Case::new().with(unmarked).emptied().with(|c| {
        c.annotate(names::DESIRED_VERSION_ANNOTATION, "1.0.0");
    }) => &format!("{REINSTALL} +bootstrap");
    torn_down_node_is_told_the_version: Case::new().with(unmarked).emptied().with(|c| {
        c.annotate(names::DESIRED_VERSION_ANNOTATION, "1.0.0");
        c.probe().services.remove(WICD);
    }) => "patch-node";
    emptied_node_is_released: Case::new().with(other_services).emptied() => "patch-node";
    files_come_before_the_release: Case::new().with(other_services).with(tampered).emptied()
        => "apply +remove-daemon patch-node";
    release_comes_before_a_restart: Case::new().with(other_services).emptied().with(|c| {
        c.probe().reboot.insert(RebootReason::Environment);
    }) => "patch-node";
    released_node_awaits_its_mark: Case::new().with(other_services).with(unmarked).emptied()
        .with(|c| c.annotate(names::SERVICES_ANNOTATION, &c.desired.release.manifest.digest().to_string()))
        => "await the version mark";
    other_version_brings_its_own_services: Case::new().with(other_services).with(unmarked).emptied()
        .with(|c| {
            c.annotate(names::DESIRED_VERSION_ANNOTATION, "1.0.0");
            c.probe().services.remove(WICD);
        }) => "patch-node";
    node_without_containers_restarts: Case::new().with(unmarked).emptied().with(|c| {
        c.probe().containers = FeatureState::Disabled;
    }) => &format!("{REINSTALL} +enable-containers +restart await the host's return");
    boot_is_noted_before_a_restart: Case::new().emptied().with(|c| {
        c.annotate(names::REBOOT_ANNOTATION, "");
    }) => "patch-node";
    restart_that_the_host_wants_needs_no_note: Case::new().emptied().with(|c| {
        c.probe().reboot.insert(RebootReason::Environment);
    }) => "apply +restart await the host's return";
    restart_with_the_noted_boot: Case::new().emptied().with(|c| {
        c.annotate(names::REBOOT_ANNOTATION, "");
        c.annotate(names::RESTART_FROM_ANNOTATION, "boot 1");
    }) => "apply +restart await the host's return";
    restart_is_proven_by_another_boot: Case::new().emptied().with(|c| {
        c.annotate(names::REBOOT_ANNOTATION, "");
        c.annotate(names::RESTART_FROM_ANNOTATION, "boot 0");
    }) => "patch-node";

    // Nodes that nobody lists.
    removal_without_a_node_seeks_it_first: Case::unlisted().with(|c| c.observed.node = None)
        => "seek-node";
    removal_without_a_node_stops_the_kubelet: Case::unlisted().with(|c| {
        c.observed.node = None;
        c.observed.node_sought = true;
    }) => "apply +stop-kubelet seek-node";
    removal_without_a_node_cleans_the_host: Case::unlisted().with(quiet).with(|c| {
        c.observed.node = None;
        c.observed.node_sought = true;
    }) => "apply +remove-daemon +remove-services +remove-installation";
    removal_without_a_node_forgets_last: Case::unlisted().with(|c| {
        c.observed.node = None;
        make_bare(c.probe());
        c.observed.on_record = true;
    }) => "record-root remove-leftovers forget-host";
    removal_cordons_first: Case::unlisted() => "patch-node";
    removal_stops_the_daemon_first: Case::unlisted().emptied()
        => "apply +remove-daemon patch-node";
    removal_cleans_the_host: Case::unlisted().emptied().with(unmarked).with(|c| {
        c.probe().networks.extend(names::host::HNS_NETWORKS.map(str::to_owned));
    }) => &format!("{REINSTALL} +remove-network +remove-network +remove-installation");
    removal_cleans_what_no_record_tells_of: Case::unlisted().emptied().with(unmarked).with(|c| {
        c.probe().services.clear();
        c.probe().state = None;
    }) => &format!("{REINSTALL} +remove-installation");
    removal_restarts_for_variables: Case::unlisted().emptied().with(unmarked).with(|c| {
        make_bare(c.probe());
        c.probe().reboot.insert(RebootReason::Environment);
    }) => "apply +restart await the host's return";
    removal_restarts_for_roots: Case::unlisted().emptied().with(unmarked).with(|c| {
        make_bare(c.probe());
        c.probe().reboot.insert(RebootReason::Roots);
    }) => "apply +restart await the host's return";
    removal_does_not_restart_for_what_is_not_ours: Case::unlisted().emptied().with(unmarked).with(|c| {
        make_bare(c.probe());
        let others = [RebootReason::Feature, RebootReason::Rename, RebootReason::Other];
        c.probe().reboot.extend(others);
    }) => "record-root remove-leftovers delete-node";
    removal_of_a_clean_host: Case::unlisted().emptied().with(unmarked).with(|c| {
        make_bare(c.probe());
        let agent = FileState { sha256: c.desired.release.agent, protected: true, doubted: false };
        c.probe().files.insert(path(names::host::AGENT), agent);
        c.probe().files.insert(path(r"C:\Temp\owner.txt"), open_file(b"o"));
        c.observed.on_record = true;
    }) => "record-root remove-leftovers delete-node forget-host";
}

fn observed_directories() -> std::collections::BTreeSet<WindowsPath> {
    Case::new().probe().directories.clone()
}

#[test]
fn own_cordon_is_lifted_and_a_persons_stays() {
    for (by, lifted) in [(names::CORDONED_BY_US, Some(false)), (names::CORDONED_BY_OTHERS, None)] {
        let case = held(Case::new()).with(|c| c.annotate(names::CORDONED_ANNOTATION, by));
        let plan = case.plan();
        let Action::PatchNode(patch) = &plan.steps[0].action else { panic!("{plan}") };
        assert_eq!(patch.unschedulable, lifted, "{by}");
        assert_eq!(patch.annotations.get(names::CORDONED_ANNOTATION), Some(&None));
    }
}

#[test]
fn cordon_notes_whose_it_is() {
    // Whether the node is unschedulable already, what is noted, and what is noted then.
    let (us, others) = (names::CORDONED_BY_US, names::CORDONED_BY_OTHERS);
    for (unschedulable, noted, expected) in [
        (false, None, Some(us)),
        (true, None, Some(others)),
        (true, Some(others), None),
        (true, Some(us), None),
        (false, Some(us), None),
        (false, Some(others), Some(us)),
    ] {
        let mut node = node();
        node.unschedulable = unschedulable;
        let noted = noted.map(|by| (names::CORDONED_ANNOTATION.to_owned(), by.to_owned()));
        node.annotations.extend(noted.clone());
        let patch = disrupt::cordon(&node, &DrainMarks::default());
        let written = patch.annotations.get(names::CORDONED_ANNOTATION);
        assert_eq!(written.and_then(Option::as_deref), expected, "{unschedulable} {noted:?}");
        assert_eq!(patch.unschedulable, (!unschedulable).then_some(true));
    }
}

#[test]
fn desired_version_waits_until_the_host_is_right() {
    let case = Case::new().joining().with(|c| {
        c.node().annotations.remove(names::DESIRED_VERSION_ANNOTATION);
        c.probe().agent.installed = Some(Sha256::of(b"agent 1"));
    });
    let plan = case.plan();
    let Action::PatchNode(patch) = &plan.steps[0].action else { panic!("{plan}") };
    assert!(!patch.annotations.contains_key(names::DESIRED_VERSION_ANNOTATION), "{plan}");
    let right = case.with(|c| c.probe().agent.installed = Some(c.desired.release.agent)).plan();
    let Action::PatchNode(patch) = &right.steps[0].action else { panic!("{right}") };
    assert!(patch.annotations.contains_key(names::DESIRED_VERSION_ANNOTATION), "{right}");
}

/// The daemon starts to work on the first of them, so there must be no second.
#[test]
fn version_and_services_are_written_in_one_patch() {
    let digest = |c: &Case| Some(c.desired.release.manifest.digest().to_string());
    let joining = Case::new().with(|c| c.node().annotations.clear());
    let upgraded = Case::new().with(unmarked).with(other_services).emptied().with(|c| {
        c.annotate(names::DESIRED_VERSION_ANNOTATION, "1.0.0");
        c.probe().services.remove(WICD);
    });
    for case in [joining, upgraded] {
        let plan = case.plan();
        let Action::PatchNode(patch) = &plan.steps[0].action else { panic!("{plan}") };
        let written = |name| patch.annotations.get(name).cloned().flatten();
        assert_eq!(written(names::DESIRED_VERSION_ANNOTATION), Some("2.0.0".to_owned()));
        assert_eq!(written(names::SERVICES_ANNOTATION), digest(&case));
    }
    let released = Case::new().with(other_services).emptied();
    let plan = released.plan();
    let Action::PatchNode(patch) = &plan.steps[0].action else { panic!("{plan}") };
    let expected = [
        (names::SERVICES_ANNOTATION.to_owned(), digest(&released)),
        (names::VERSION_ANNOTATION.to_owned(), None),
    ];
    assert_eq!(patch.annotations, expected.into());
    // Variables and roots share one restart only if the daemon hears of both at once.
    let both = Case::new().with(other_services).with(other_roots).emptied();
    let plan = both.plan();
    let Action::PatchNode(patch) = &plan.steps[0].action else { panic!("{plan}") };
    let written = |name| patch.annotations.get(name).cloned().flatten();
    let roots = both.desired.release.roots.to_string();
    assert_eq!(written(names::SERVICES_ANNOTATION), digest(&both));
    assert_eq!(written(names::ROOTS_ANNOTATION), Some(roots));
}

#[test]
fn claims() {
    let claims = |case: &Case| claims_slot(&case.desired, &case.observed, NOW);
    let left = |c: &mut Case| c.desired.intent = Intent::Leave;
    let asked = |c: &mut Case| c.annotate(names::REBOOT_ANNOTATION, "");
    let cases = [
        (Case::new(), false, "nothing to do"),
        (Case::new().with(outdated), true, "upgrade"),
        (Case::new().with(tampered), true, "repair"),
        (Case::new().with(asked), true, "restart"),
        (Case::new().with(other_services), true, "other services"),
        (Case::unlisted(), true, "removal"),
        (Case::vacant().with(tampered), false, "no node"),
        (Case::new().with(outdated).with(left), false, "left"),
    ];
    for (case, claimed, what) in cases {
        assert_eq!(claims(&case), Some(claimed), "{what}");
    }
    let other_agent = Case::new().with(|c| c.probe().agent.sha256 = Sha256::of(b"old"));
    let looks = [
        (HostSeen::Unknown, None),
        (HostSeen::NoAgent, None),
        (other_agent.observed.host.clone(), None),
        (HostSeen::Unreachable { retry_at: NOW }, Some(false)),
    ];
    for (host, claimed) in looks {
        for case in [Case::new().with(outdated), Case::unlisted()] {
            let case = case.with(|c| c.observed.host = host.clone());
            assert_eq!(claims(&case), claimed, "{host:?}");
        }
    }
}

#[test]
fn every_reason() {
    let seen = |version: &str| Some(version.to_owned());
    Case::new().with(|c| c.observed.host = HostSeen::Unknown).because(&[Because::NeverProbed]);
    Case::new()
        .with(|c| {
            c.observed.host = HostSeen::Unknown;
            c.observed.known_closed = false;
        })
        .because(&[Because::NotKnownClosed]);
    Case::new()
        .with(|c| c.observed.host = HostSeen::NoAgent)
        .because(&[Because::NoAgent, Because::NoAgent]);
    Case::new()
        .with(|c| c.probe().root = RootAccess::Open)
        .because(&[Because::RootOpen, Because::RootOpen]);
    Case::new().with(|c| c.observed.known_closed = false).because(&[Because::RootClosed]);
    Case::new()
        .with(|c| {
            c.probe().agent.sha256 = Sha256::of(b"agent 1");
            c.probe().agent.version = "1.0.0".into();
        })
        .because(&[Because::OtherAgent { version: "1.0.0".into() }]);
    Case::vacant().with(tampered).because(&[Because::NodeMayCome]);
    Case::vacant()
        .with(quiet)
        .with(tampered)
        .because(&[Because::ContentDiffers { files: 1 }, Because::HostDiffers]);
    Case::new().with(outdated).emptied().because(&[
        Because::VersionDiffers { seen: seen("1.0.0") },
        Because::VersionDiffers { seen: seen("1.0.0") },
    ]);
    Case::new().with(other_services).emptied().because(&[Because::ServicesDiffer]);
    Case::new().with(other_roots).emptied().because(&[Because::RootsDiffer]);
    Case::new().with(tampered).emptied().because(&[Because::HostDiffers, Because::HostDiffers]);
    Case::new().with(|c| c.node().labels.clear()).because(&[Because::MetadataDiffers]);
    Case::vacant()
        .with(quiet)
        .with(|c| {
            c.probe().reboot.insert(RebootReason::Feature);
        })
        .because(&[Because::RestartPending { reasons: vec![RebootReason::Feature] }]);
    let asked = || Case::new().emptied().with(|c| c.annotate(names::REBOOT_ANNOTATION, ""));
    asked().because(&[Because::RestartAsked]);
    asked()
        .with(|c| c.annotate(names::RESTART_FROM_ANNOTATION, "boot 0"))
        .because(&[Because::Restarted]);
    Case::vacant()
        .with(|c| c.waits(Awaited::NodeAppears, NOW - limits::NODE_APPEARS))
        .because(&[Because::NodeOverdue]);
    held(Case::new())
        .with(unmarked)
        .with(|c| c.waits(Awaited::VersionMark, NOW - limits::VERSION_MARK))
        .because(&[Because::VersionOverdue]);
    let upgrade = Because::DisruptionDue { purpose: Purpose::Upgrade };
    Case::new().with(outdated).permitted().because(&[upgrade]);
    held(Case::new()).because(&[Because::Configured]);
    Case::unlisted().emptied().because(&[Because::Unlisted, Because::Unlisted]);
}

#[test]
fn a_host_name_counts_only_if_it_is_one() {
    let endless = "a".repeat(4_000_000);
    let texts = ["WIN-1", "win-1.corp.example", "", "win 1", "10.0.0.5", endless.as_str()];
    let mut case = Case::new();
    let counts = texts.map(|text| {
        text.clone_into(&mut case.probe().host_name);
        case.probe().valid_host_name().is_some()
    });
    assert_eq!(counts, [true, true, false, false, false, false]);
}
