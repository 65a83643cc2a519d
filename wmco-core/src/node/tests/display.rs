//! What people read: plans as text.

use super::*;

fn upgrade() -> Case {
    let mut case = Case::new();
    case.annotate(names::VERSION_ANNOTATION, "1.0.0");
    case.annotate(names::DESIRED_VERSION_ANNOTATION, "1.0.0");
    let old = open_file(b"old");
    case.probe().files.insert(path(r"C:\k\kubelet.exe"), old);
    case
}

#[test]
fn first_join() {
    let mut case = Case::vacant();
    make_bare(case.probe());
    insta::assert_snapshot!(case.plan(), @r"
    upload 2 contents, because the content of 2 files differs
    apply join-cluster, install-agent, ensure-directory x20, place-file x2, bootstrap, ensure-daemon, because the host differs
    then look again
    ");
}

#[test]
fn registered_node() {
    let mut case = Case::new().joining();
    case.node().annotations.clear();
    case.node().labels.remove(names::BYOH_LABEL);
    insta::assert_snapshot!(case.plan(), @r"
    patch-node cordon +byoh +cordoned +desired-version +roots +services +ssh-host-key, because its metadata differs
    then look again
    ");
}

/// Its pods would notice a cordon, so that comes with a slot only.
#[test]
fn node_that_lost_its_marks() {
    let mut case = Case::new();
    case.node().annotations.clear();
    insta::assert_snapshot!(case.plan(), @r"
    patch-node +desired-version +roots +services +ssh-host-key, because its metadata differs
    then look again
    ");
}

#[test]
fn no_op() {
    insta::assert_snapshot!(Case::new().plan(), @"settled");
}

#[test]
fn removal() {
    insta::assert_snapshot!(Case::unlisted().emptied().plan(), @r"
    apply remove-daemon, because it is no longer listed
    patch-node -version, because it is no longer listed
    then look again
    ");
}

#[test]
fn removal_of_the_rest() {
    let mut case = Case::unlisted().emptied();
    case.node().annotations.remove(names::VERSION_ANNOTATION);
    insta::assert_snapshot!(case.plan(), @r"
    apply remove-daemon, remove-services, remove-installation, because it is no longer listed
    then look again
    ");
    make_bare(case.probe());
    insta::assert_snapshot!(case.plan(), @r"
    record-root open, because it is no longer listed
    remove-leftovers remove-installation, because it is no longer listed
    delete-node win-1, because it is no longer listed
    then look again
    ");
}

#[test]
fn unreachable_host() {
    let mut case = Case::new();
    case.observed.host = HostSeen::Unreachable { retry_at: NOW + limits::RETRY_FIRST };
    insta::assert_snapshot!(case.plan(), @"await the host's answer, until 1970-01-01T00:00:01Z");
}

#[test]
fn agent_of_another_version() {
    let mut case = Case::new();
    case.probe().agent.sha256 = Sha256::of(b"agent 1");
    case.probe().agent.version = "1.0.0".into();
    insta::assert_snapshot!(case.plan(), @r"
    probe-with-ours (brought in a fresh folder), because agent 1.0.0 answers
    then look again
    ");
}

#[test]
fn upgrade_begins() {
    insta::assert_snapshot!(upgrade().plan(), @"await a disruption slot, until 1970-01-01T00:30:00Z");
    insta::assert_snapshot!(upgrade().permitted().plan(), @r"
    upload 1 content, because the content of 1 file differs
    patch-node cordon +upgrading +cordoned +drain-since, because it is about to be disrupted for its upgrade
    then look again
    ");
}

#[test]
fn upgrade_of_an_empty_node() {
    let mut case = upgrade().emptied();
    insta::assert_snapshot!(case.plan(), @r"
    apply remove-daemon, because it runs 1.0.0
    patch-node -version, because it runs 1.0.0
    then look again
    ");
    case.node().annotations.remove(names::VERSION_ANNOTATION);
    insta::assert_snapshot!(case.plan(), @r"
    upload 1 content, because the content of 1 file differs
    apply remove-daemon, remove-services, place-file, bootstrap, because the host differs
    then look again
    ");
}

/// A services ConfigMap with other content under the same version, from the slot to the mark.
#[test]
fn changed_services() {
    let mut case = Case::new();
    case.release().manifest.0.insert("services".into(), "[]".into());
    insta::assert_snapshot!(case.plan(), @"await a disruption slot, until 1970-01-01T00:30:00Z");
    insta::assert_snapshot!(case.permitted().plan(), @r"
    patch-node cordon +upgrading +cordoned +drain-since, because it is about to be disrupted for other services or certificates
    then look again
    ");
    let mut case = Case::new().emptied();
    case.release().manifest.0.insert("services".into(), "[]".into());
    insta::assert_snapshot!(case.plan(), @r"
    patch-node +services -version, because the content of the services ConfigMap changed
    then look again
    ");
    case.node().annotations.remove(names::VERSION_ANNOTATION);
    case.annotate(names::SERVICES_ANNOTATION, &case.desired.release.manifest.digest().to_string());
    insta::assert_snapshot!(case.plan(), @"await the version mark, until 1970-01-01T00:10:00Z");
}

#[test]
fn restart() {
    let mut case = Case::new().emptied();
    let reasons = [RebootReason::Environment, RebootReason::Roots, RebootReason::Other];
    case.probe().reboot.extend(reasons);
    insta::assert_snapshot!(case.plan(), @r"
    apply restart, because a restart is pending for variables, trusted roots, another reason
    then await the host's return, until 1970-01-01T00:10:00Z
    ");
}

#[test]
fn configured() {
    let mut case = Case::new().emptied();
    case.desired.intent = Intent::Configure(None);
    insta::assert_snapshot!(case.plan(), @r"
    patch-node uncordon -upgrading -cordoned -cordoned-since -drain-since, because it is configured
    then look again
    ");
}
