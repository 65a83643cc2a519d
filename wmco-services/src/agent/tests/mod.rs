//! The agent's steps on a host in memory.

mod closed;
mod foreign;
mod keys;
mod names;
mod planted;
mod restarts;
mod vacancy;

use std::collections::{BTreeMap, BTreeSet};

use wmco_core::digest::Sha256;
use wmco_core::names::{host, objects};
use wmco_core::protocol::{
    Access, FeatureState, HostState, PROTOCOL, RebootReason, RootAccess, ServiceRunState,
    ServicesData, staged_agent, staged_content, staged_plan,
};

use super::*;
use crate::fake::{Call, Content, FakeWindows, Fault, Snapshot};
use crate::manifest::{Manifest, Parts, Service};
use crate::owner::Owner;
use crate::windows::{Files as _, TEMPORARY_SUFFIX};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const AGENT: &[u8] = b"the agent";

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

/// Returns a new host to which our agent was uploaded, before the operator sends anything else.
fn fresh() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    upload(&host)
}

/// Uploads our agent and probes once; the agent then runs from the staging folder.
fn upload(host: &FakeWindows) -> FakeWindows {
    let brought = with_agent(host);
    Agent::new(&brought, "1.0.0", NOW).probe().unwrap();
    remove_agent(&brought);
    host.running_as(staged_agent(Sha256::of(AGENT)))
}

/// Folder of the uploaded agent.
fn fresh_folder() -> WindowsPath {
    path(r"C:\Users\me\wmco-0123456789abcdef0123456789abcdef")
}

/// Puts our agent into its own folder without running it.
fn with_agent(host: &FakeWindows) -> FakeWindows {
    let agent = fresh_folder().join(host::UPLOADED_AGENT).unwrap();
    host.put_file(&agent, AGENT);
    host.running_as(agent)
}

/// Removes the upload, as the operator does.
fn remove_agent(host: &FakeWindows) {
    host.with_tree(|tree| {
        tree.remove(&fresh_folder());
        if tree.children(&path(r"C:\Users\me")).next().is_none() {
            tree.remove(&path(r"C:\Users\me"));
        }
    });
}

fn stage(host: &FakeWindows, content: &[u8]) -> Sha256 {
    let sha256 = Sha256::of(content);
    host.put_file(&staged_content(sha256), zstd::encode_all(content, 3).unwrap());
    sha256
}

/// Stages the plan and applies it; returns the report.
fn apply(host: &FakeWindows, steps: &[HostStep]) -> Vec<ReportLine> {
    apply_plan(host, &HostPlan { protocol: PROTOCOL, vacant_since: None, steps: steps.to_vec() })
}

fn apply_plan(host: &FakeWindows, plan: &HostPlan) -> Vec<ReportLine> {
    let json = serde_json::to_vec(plan).unwrap();
    let file = staged_plan(Sha256::of(&json));
    host.put_file(&file, json);
    let lines = apply_file(host, &file);
    assert_eq!(host.file(&file), None, "the plan is deleted");
    lines
}

fn apply_file(host: &FakeWindows, file: &WindowsPath) -> Vec<ReportLine> {
    let mut lines = Vec::new();
    let _ = Agent::new(host, "1.0.0", NOW).apply(file, &mut |line| lines.push(line));
    lines
}

/// Returns the error of the failed step or of the refusal.
fn error(lines: &[ReportLine]) -> Option<&str> {
    lines.iter().find_map(|line| match line {
        ReportLine::Failed { error, .. } | ReportLine::Refused { error } => Some(error.as_str()),
        ReportLine::Started { .. }
        | ReportLine::Progress { .. }
        | ReportLine::Done { .. }
        | ReportLine::Probed(_) => None,
    })
}

fn changes(lines: &[ReportLine]) -> Vec<bool> {
    lines
        .iter()
        .filter_map(|line| match line {
            ReportLine::Done { changed, .. } => Some(*changed),
            _ => None,
        })
        .collect()
}

fn probed(lines: &[ReportLine]) -> &Probe {
    match lines.last() {
        Some(ReportLine::Probed(probe)) => probe,
        other => panic!("the last line is {other:?}"),
    }
}

fn manifest() -> ServicesData {
    let service = |name: &str, needs: &[&str], priority| Service {
        dependencies: needs.iter().map(|need| need.parse().unwrap()).collect(),
        bootstrap: true,
        priority,
        ..Service::new(name.parse().unwrap(), format!(r"C:\k\{name}.exe --run"))
    };
    let parts = Parts {
        services: vec![service("containerd", &[], 0), service("kubelet", &["containerd"], 1)],
        environment: BTreeMap::from([("HTTP_PROXY".to_owned(), "http://u:pw@p".to_owned())]),
        watched: host::PROXY_VARIABLES.map(str::to_owned).to_vec(),
        ..Parts::default()
    };
    Manifest::new(parts).unwrap().render()
}

fn place(host: &FakeWindows, at: &str, content: &[u8], access: Access) -> HostStep {
    HostStep::PlaceFile { path: path(at), sha256: stage(host, content), access }
}

/// Returns the steps of a first configuration.
fn join(host: &FakeWindows) -> Vec<HostStep> {
    let folder = |text: &str| HostStep::EnsureDirectory {
        path: path(text),
        access: Access::of_directory(&path(text)),
    };
    let mut steps: Vec<HostStep> = host::DIRECTORIES.into_iter().map(folder).collect();
    steps.push(HostStep::InstallAgent);
    for (at, content) in [
        (r"C:\k\containerd.exe", &b"containerd"[..]),
        (r"C:\k\kubelet.exe", b"kubelet"),
        (r"C:\k\copy-of-kubelet.exe", b"kubelet"),
        (r"C:\k\containerd\registries\quay.io\hosts.toml", b"[host]"),
    ] {
        steps.push(place(host, at, content, Access::Inherited));
    }
    for (at, content) in [(host::HNS_MODULE, &b"module"[..]), (r"C:\k\tls\certs\tls.key", b"key")] {
        steps.push(place(host, at, content, Access::Administrators));
    }
    steps.push(HostStep::Bootstrap { manifest: manifest() });
    steps.push(HostStep::EnsureDaemon { arguments: vec!["controller".to_owned()] });
    steps
}

fn leave() -> Vec<HostStep> {
    let networks = host::HNS_NETWORKS.map(|name| HostStep::RemoveNetwork { name: name.to_owned() });
    [
        vec![HostStep::RemoveDaemon, HostStep::RemoveServices { manifests: vec![manifest()] }],
        networks.to_vec(),
        vec![HostStep::RemoveInstallation],
    ]
    .concat()
}

/// Writes what services and people write on a host in use.
fn live(host: &FakeWindows) {
    for (file, content) in [
        (r"C:\var\lib\kubelet\pki\kubelet.key", "key"),
        (r"C:\var\lib\cni\networks\lock", ""),
        (r"C:\var\log\kubelet\kubelet.log", "many lines"),
        (r"C:\k\kubeconfig", "{}"),
        (r"C:\k\cni\config\cni.conf", "{}"),
        (r"C:\k\wicd-certs\wicd-client-current.pem", "no certificate"),
    ] {
        host.put_file(&path(file), content);
    }
    restarts::import(host);
    host.add_network(host::HNS_NETWORKS[0]);
    host.add_process(path(r"C:\k\containerd\containerd-shim-runhcs-v1.exe"));
}

/// Returns the host without the files that the operator removes after the agent has ended.
fn without_agent(host: &FakeWindows) -> Snapshot {
    let snapshot = host.snapshot();
    let ours: Vec<String> = snapshot
        .files
        .keys()
        .filter(|file| file.is_within(&path(host::ROOT)))
        .map(ToString::to_string)
        .collect();
    let agent = staged_agent(Sha256::of(AGENT));
    assert_eq!(ours, [host::ROOT, host::STAGING, agent.as_str()]);
    snapshot.without(&path(host::ROOT))
}

#[test]
fn a_host_joins_and_a_second_time_nothing_changes() {
    let host = fresh();
    let lines = apply(&host, &join(&host));
    assert_eq!(error(&lines), None);
    let probe = probed(&lines);
    assert_eq!(probe.agent.installed, Some(Sha256::of(AGENT)));
    assert_eq!(probe.directories.len(), host::DIRECTORIES.len());
    assert_eq!(probe.root, RootAccess::Closed);
    assert_eq!(probe.services["kubelet"].state, ServiceRunState::Running);
    assert_eq!(
        probe.services[objects::WICD].description,
        Owner::ours().description(&objects::WICD.parse().unwrap())
    );
    assert_eq!(probe.reboot, BTreeSet::from([RebootReason::Environment]));
    assert_eq!(probe.files[&path(host::HNS_MODULE)].sha256, Sha256::of(b"module"));
    assert!(!serde_json::to_string(probe).unwrap().contains("pw@p"));

    let before = host.snapshot();
    let again = apply(&host, &join(&host));
    assert!(changes(&again).iter().all(|changed| !changed), "{again:?}");
    assert_eq!(host.snapshot(), before);
}

#[test]
fn staged_content_goes_when_it_was_used() {
    let host = fresh();
    apply(&host, &join(&host));
    let left: Vec<String> =
        host.walk(&path(host::STAGING)).unwrap().iter().map(|e| e.path.to_string()).collect();
    assert_eq!(left, [staged_agent(Sha256::of(AGENT)).to_string()]);
}

#[test]
fn other_agents_and_old_content_are_swept() {
    let host = fresh();
    let other = staged_agent(Sha256::of(b"other"));
    host.put_file(&other, "other");
    let old = staged_content(stage(&host, b"1"));
    let now = NOW + crate::limits::STAGED_AGE + jiff::SignedDuration::from_secs(1);
    host.set_now(now);
    let new = staged_content(stage(&host, b"2"));
    let json =
        serde_json::to_vec(&HostPlan { protocol: PROTOCOL, vacant_since: None, steps: Vec::new() })
            .unwrap();
    let file = staged_plan(Sha256::of(&json));
    host.put_file(&file, json);
    Agent::new(&host, "1", now).apply(&file, &mut |_| {}).unwrap();
    assert_eq!((host.file(&other), host.file(&old)), (None, None));
    assert!(host.file(&new).is_some());
    assert!(host.file(&staged_agent(Sha256::of(AGENT))).is_some());
}

#[test]
fn a_left_host_is_as_it_was_first() {
    let bare = FakeWindows::new("winhost");
    bare.put_file(&path(r"C:\Temp\mine.txt"), "a user's");
    bare.put_file(&path(r"C:\Temp\hns.psm1"), "a user's");
    bare.put_file(&path(r"C:\var\mine\x.txt"), "a user's");
    let first = bare.snapshot();
    let host = upload(&bare);
    apply(&host, &join(&host));
    live(&host);
    let lines = apply(&host, &leave());
    assert_eq!(error(&lines), None);
    assert_eq!(without_agent(&host), first);
    assert!(host.processes().is_empty());
    // A second removal finds nothing.
    let again = apply(&host, &leave());
    assert_eq!(error(&again), None);
    assert!(changes(&again).iter().all(|changed| !changed));
}

#[test]
fn the_installed_agent_leaves_only_itself() {
    let host = fresh();
    apply(&host, &join(&host));
    let installed = host.running_as(path(host::AGENT));
    assert_eq!(error(&apply(&installed, &leave())), None);
    let left: Vec<String> =
        installed.walk(&path(host::ROOT)).unwrap().iter().map(|e| e.path.to_string()).collect();
    assert_eq!(left, [host::STAGING, host::AGENT]);
}

/// Makes a host as the original operator leaves it: no record, same paths.
fn original(host: &FakeWindows) {
    for folder in host::DIRECTORIES {
        host.with_tree(|tree| tree.make_folders(&path(folder)));
    }
    for name in ["gcp-get-hostname.ps1", "hns.psm1", "network-conf.ps1"] {
        host.put_file(&path(host::MANIFEST_SCRIPTS).join(name).unwrap(), "script");
    }
    host.put_file(&path(host::AGENT), "the original's daemon");
    host.put_file(&path(r"C:\k\kubelet.exe"), "kubelet");
    live(host);
    host.environment().set("NO_PROXY", "x").unwrap();
    for name in ["kubelet", objects::WICD] {
        let name = name.parse().unwrap();
        let config = crate::windows::ServiceConfig {
            command: format!(r"{} controller --cert-dir {}", host::AGENT, host::WICD_CERTIFICATES),
            description: Owner::ours().description(&name),
            dependencies: Vec::new(),
            start: crate::windows::StartType::Automatic,
            recovery: None,
        };
        host.add_service(&name, &config, ServiceRunState::Running);
    }
}

#[test]
fn a_host_of_the_original_operator_is_cleaned() {
    let bare = FakeWindows::new("winhost");
    bare.put_file(&path(r"C:\Temp\mine.txt"), "a user's");
    let mut first = bare.snapshot();
    original(&bare);
    let host = upload(&bare);
    // Its files are taken over, also the daemon's while it runs.
    let lines = apply(&host, &[HostStep::InstallAgent]);
    assert_eq!(error(&lines), None);
    assert_eq!(*host.file(&path(host::AGENT)).unwrap(), AGENT);
    host.with_tree(|tree| tree.remove(&path(host::STATE_FILE)));
    assert_eq!(error(&apply(&host, &leave())), None);
    // The original does not record whether these existed before it.
    for folder in [r"C:\var", r"C:\var\lib"] {
        let entry = host.snapshot().files[&path(folder)].clone();
        assert_eq!(entry.content, Content::Directory);
        first.files.insert(path(folder), entry);
    }
    assert_eq!(without_agent(&host), first);
}

#[test]
fn damaged_content_is_named_and_removed_and_the_old_file_stays() {
    let host = fresh();
    host.put_file(&path(r"C:\k\a"), "old");
    let step = place(&host, r"C:\k\a", b"new content", Access::Inherited);
    let HostStep::PlaceFile { sha256, .. } = &step else { panic!() };
    let staged = staged_content(*sha256);
    for bytes in [zstd::encode_all(&b"other content"[..], 3).unwrap(), b"no zstd".to_vec(), {
        let mut cut = zstd::encode_all(&b"new content"[..], 3).unwrap();
        cut.truncate(cut.len() - 2);
        cut
    }] {
        host.put_file(&staged, bytes);
        let lines = apply(&host, std::slice::from_ref(&step));
        let text = error(&lines).unwrap();
        assert!(text.starts_with(r"the content staged for C:\k\a is damaged"), "{text}");
        assert_eq!(host.file(&staged), None);
        assert_eq!(*host.file(&path(r"C:\k\a")).unwrap(), b"old");
        assert_eq!(host.file(&path(&format!(r"C:\k\a{TEMPORARY_SUFFIX}"))), None);
    }
    let lines = apply(&host, &[step]);
    assert_eq!(error(&lines), Some(r"the content of C:\k\a is not staged, upload it again"));
}

#[test]
fn a_full_disk_and_a_locked_file_are_named() {
    let host = fresh();
    let step = place(&host, r"C:\k\a", &vec![7; 100_000], Access::Inherited);
    host.set_disk_bytes(Some(host.used_bytes() + 10_000));
    let lines = apply(&host, std::slice::from_ref(&step));
    assert_eq!(
        error(&lines),
        Some(r"no space left for C:\k\a.wmco-new, free space on its disk and try again")
    );
    host.set_disk_bytes(None);
    host.put_file(&path(r"C:\k\a"), "old");
    host.set_locked(&path(r"C:\k\a"), true);
    let lines = apply(&host, &[step]);
    let text = error(&lines).unwrap();
    assert_eq!(text, r"C:\k\a is in use by a running program, stop that program and try again");
    assert_eq!(*host.file(&path(r"C:\k\a")).unwrap(), b"old");
    probed(&lines);
}

#[test]
fn plans_of_others_and_cut_plans_are_refused() {
    let host = fresh();
    let json = br#"{"protocol":99,"steps":[{"step":"somethingNew"}]}"#;
    let file = staged_plan(Sha256::of(json));
    host.put_file(&file, *json);
    let lines = apply_file(&host, &file);
    assert_eq!(error(&lines), Some("the plan speaks protocol 99, this agent 1, replace the agent"));
    probed(&lines);
    host.put_file(&file, &json[..20]);
    let lines = apply_file(&host, &file);
    let text = error(&lines).unwrap();
    assert!(text.ends_with("is not what its name says, upload it again"), "{text}");
    assert_eq!(host.file(&file), None);
}

#[test]
fn nothing_of_others_is_removed() {
    let host = fresh();
    for text in
        [r"C:\Windows", "C:", host::MANIFEST_SCRIPTS, host::LOGS, host::ROOT, r"C:\Users\me"]
    {
        let lines = apply(&host, &[HostStep::RemoveDirectory { path: path(text) }]);
        assert!(error(&lines).is_some_and(|e| e.contains("is not in a folder of ours")), "{text}");
    }
    for text in [r"C:\Windows\x", r"C:\Temp\x.ps1"] {
        host.put_file(&path(text), "");
        let lines = apply(&host, &[HostStep::RemoveFile { path: path(text) }]);
        assert!(error(&lines).is_some(), "{text}");
        assert!(host.file(&path(text)).is_some());
    }
}

#[test]
fn the_folder_of_a_registry_goes_with_its_last_file() {
    let host = fresh();
    apply(&host, &join(&host));
    let registry = path(&format!(r"{}\a.test_5000_", host::REGISTRIES));
    let (file, note) = (registry.join("hosts.toml").unwrap(), registry.join("note.txt").unwrap());
    host.put_file(&file, "server = 'https://a.test:5000/v2'");
    host.put_file(&note, "of a person");
    assert_eq!(changes(&apply(&host, &[HostStep::RemoveFile { path: file.clone() }])), [true]);
    assert!(host.file(&note).is_some());
    assert_eq!(changes(&apply(&host, &[HostStep::RemoveFile { path: note }])), [true]);
    assert_eq!(host.files().kind(&registry).unwrap(), None);
    assert_eq!(changes(&apply(&host, &[HostStep::RemoveFile { path: file }])), [false]);
    let folder = path(host::REGISTRIES);
    let other = path(&format!(r"{}\x", host::REGISTRIES));
    assert_eq!(changes(&apply(&host, &[HostStep::RemoveFile { path: other }])), [false]);
    assert!(host.files().kind(&folder).unwrap().is_some());
}

#[test]
fn the_daemon_is_corrected_and_its_arguments_need_no_quotes() {
    let host = fresh();
    apply(&host, &join(&host));
    let daemon = |words: &[&str]| HostStep::EnsureDaemon {
        arguments: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let lines = apply(&host, &[daemon(&["controller", "--x=1"])]);
    assert_eq!(changes(&lines), [true]);
    let facts = &probed(&lines).services[objects::WICD];
    assert!(facts.command.ends_with("exe controller --x=1"), "{}", facts.command);
    assert_eq!(facts.state, ServiceRunState::Running);
    let lines = apply(&host, &[daemon(&["a b"])]);
    assert!(error(&lines).is_some_and(|text| text.contains("blanks or quotes")));
}

#[test]
fn feature_and_name_wait_for_a_restart() {
    let host = fresh();
    let steps = [HostStep::EnableContainers, HostStep::RenameComputer { name: "win-1".to_owned() }];
    let lines = apply(&host, &steps);
    assert_eq!(
        probed(&lines).reboot,
        BTreeSet::from([RebootReason::Feature, RebootReason::Rename])
    );
    let boot = probed(&lines).boot_id.clone();
    let lines = apply(&host, &[HostStep::Restart]);
    let probe = probed(&lines);
    assert_ne!(probe.boot_id, boot);
    assert_eq!((probe.containers, probe.host_name.as_str()), (FeatureState::Enabled, "win-1"));
    assert_eq!(changes(&apply(&host, &steps)), [false, false]);
}

#[test]
fn only_a_valid_certificate_counts() {
    let host = fresh();
    let agent = |now| Agent::new(&host, "1", now).probe().unwrap().daemon_certificate_valid;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 1, 2);
    let certificate = params.self_signed(&key).unwrap();
    assert!(!agent(NOW), "there is none");
    let file = format!("{}{}", certificate.pem(), key.serialize_pem());
    host.put_file(&path(r"C:\k\wicd-certs\wicd-client-1.pem"), file);
    host.with_tree(|tree| {
        let target = path(r"C:\k\wicd-certs\wicd-client-1.pem");
        let link = Content::Link(target);
        tree.insert(path(host::WICD_CURRENT_CERTIFICATE), link, Access::Inherited);
    });
    assert!(agent("2026-01-01T12:00:00Z".parse().unwrap()));
    assert!(!agent("2026-01-02T00:00:01Z".parse().unwrap()));
}

#[test]
fn what_is_made_is_recorded_before() {
    let host = fresh();
    let step = place(&host, r"C:\Temp\deep\a", b"a", Access::Inherited);
    host.fail(Call::FilesMakeDirectory, r"C:\Temp", 1, Fault::Other);
    apply(&host, &[step]);
    let state: HostState =
        serde_json::from_slice(&host.file(&path(host::STATE_FILE)).unwrap()).unwrap();
    assert_eq!(state.files, BTreeSet::from([path(r"C:\Temp\deep\a")]));
    assert_eq!(state.directories, BTreeSet::from([path(r"C:\Temp"), path(r"C:\Temp\deep")]));
}

/// Carries out `steps` repeatedly, interrupting the first run after `cut` changes.
fn cut_short(
    host: &FakeWindows,
    steps: &dyn Fn(&FakeWindows) -> Vec<HostStep>,
    cut: usize,
) -> bool {
    let first = steps(host);
    host.cut_after(cut);
    let lines = apply_without_check(host, &first);
    let died = !matches!(lines.last(), Some(ReportLine::Probed(_)));
    host.heal();
    let again = steps(host);
    assert_eq!(error(&apply(host, &again)), None, "after a cut at {cut}");
    died
}

fn apply_without_check(host: &FakeWindows, steps: &[HostStep]) -> Vec<ReportLine> {
    let json = serde_json::to_vec(&HostPlan {
        protocol: PROTOCOL,
        vacant_since: None,
        steps: steps.to_vec(),
    })
    .unwrap();
    let file = staged_plan(Sha256::of(&json));
    host.put_file(&file, json);
    apply_file(host, &file)
}

/// Dies at every change of a join, joins again, and leaves: nothing is left behind.
#[test]
fn a_join_may_die_anywhere() {
    let whole = fresh();
    apply(&whole, &join(&whole));
    let goal = whole.snapshot();
    let mut deaths = 0;
    for cut in 0.. {
        let bare = FakeWindows::new("winhost");
        let first = bare.snapshot();
        let host = upload(&bare);
        let died = cut_short(&host, &join, cut);
        assert_eq!(host.snapshot(), goal, "after a cut at {cut}");
        apply(&host, &leave());
        assert_eq!(without_agent(&host), first, "after a cut at {cut}");
        if !died {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 40, "{deaths}");
}

/// Dies at every change of a join and leaves at once: the record is sufficient.
#[test]
fn a_half_joined_host_can_leave() {
    for cut in 0..200 {
        let bare = FakeWindows::new("winhost");
        let first = bare.snapshot();
        let host = upload(&bare);
        let steps = join(&host);
        host.cut_after(cut);
        let died =
            !matches!(apply_without_check(&host, &steps).last(), Some(ReportLine::Probed(_)));
        host.heal();
        assert_eq!(error(&apply(&host, &leave())), None);
        assert_eq!(without_agent(&host), first, "after a cut at {cut}");
        if !died {
            return;
        }
    }
    panic!("the join never ended");
}

/// Dies at every change of a removal, and then removes again.
#[test]
fn a_removal_may_die_anywhere() {
    for cut in 0..200 {
        let bare = FakeWindows::new("winhost");
        let first = bare.snapshot();
        let host = upload(&bare);
        apply(&host, &join(&host));
        live(&host);
        let died = cut_short(&host, &|_| leave(), cut);
        assert_eq!(without_agent(&host), first, "after a cut at {cut}");
        if !died {
            return;
        }
    }
    panic!("the removal never ended");
}

/// Fails each kind of call once or loses its result; the next try has the same outcome.
#[test]
fn any_call_may_fail_once() {
    let whole = fresh();
    apply(&whole, &join(&whole));
    let goal = whole.snapshot();
    for call in Call::ALL {
        for fault in [Fault::Other, Fault::Lost] {
            let host = fresh();
            let steps = join(&host);
            host.fail(call, "", 1, fault);
            apply_without_check(&host, &steps);
            let again = join(&host);
            host.heal();
            assert_eq!(error(&apply(&host, &again)), None, "{call:?} {fault:?}");
            assert_eq!(host.snapshot(), goal, "{call:?} {fault:?}");
        }
    }
}
