//! Hosts on which somebody created our folder before us.

use wmco_core::protocol::Quarantined;

use super::*;
use crate::windows::EntryKind;

/// A foreign program.
const EVIL: &[u8] = b"theirs";

/// Plants what a local user can on a default Windows: programs and contents under our names and with their sizes,
/// libraries, settings, links.
fn plant(host: &FakeWindows) {
    let agent = staged_agent(Sha256::of(AGENT));
    let content = staged_content(Sha256::of(b"module"));
    for file in [host::AGENT, agent.as_str(), content.as_str(), r"C:\k\version.dll"] {
        host.put_file(&path(file), EVIL);
    }
    host.put_file(&path(r"C:\k\etc\kubernetes\manifests\pod.yaml"), EVIL);
    host.put_file(&path(r"C:\Users\them\scripts\hns.psm1"), EVIL);
    host.with_tree(|tree| {
        let theirs = Content::Link(path(r"C:\Users\them\scripts"));
        tree.insert(path(host::SCRIPTS), theirs, Access::Inherited);
    });
}

fn planted() -> FakeWindows {
    let bare = FakeWindows::new("winhost");
    plant(&bare);
    with_agent(&bare)
}

/// Returns a node of the original operator, with a library beside its programs and a link.
fn planted_node() -> FakeWindows {
    let bare = FakeWindows::new("winhost");
    original(&bare);
    bare.put_file(&path(r"C:\k\cni\win-overlay.exe"), "plugin");
    for file in [r"C:\k\version.dll", r"C:\k\cni\config\00-first.conf", r"C:\k\cni\evil.exe"] {
        bare.put_file(&path(file), EVIL);
    }
    bare.with_tree(|tree| {
        let theirs = Content::Link(path(r"C:\Users\them"));
        tree.insert(path(r"C:\k\containerd\registries\quay.io"), theirs, Access::Inherited);
    });
    with_agent(&bare)
}

fn look(host: &FakeWindows) -> Result<Probe, AgentError> {
    Agent::new(host, "1.0.0", NOW).probe()
}

/// Returns everything below a folder, by relative path.
fn below(host: &FakeWindows, folder: &str) -> BTreeMap<String, Content> {
    let folder = path(folder);
    let files = host.snapshot().files.into_iter();
    let inside = files.filter(|(at, _)| at.is_within(&folder) && *at != folder);
    inside.map(|(at, entry)| (at.as_str()[folder.as_str().len()..].into(), entry.content)).collect()
}

fn quarantined(probe: &Probe) -> Vec<Quarantined> {
    probe.state.as_ref().map(|state| state.quarantined.clone()).unwrap_or_default()
}

#[test]
fn nothing_that_was_planted_stays_in_its_place() {
    let host = planted();
    let before = below(&host, host::ROOT);
    let probe = look(&host).unwrap();
    assert_eq!((probe.root, probe.agent.installed), (RootAccess::Closed, None));
    assert_eq!(probe.staged, BTreeSet::from([Sha256::of(AGENT)]), "ours only");
    let found = quarantined(&probe);
    assert_eq!((found.len(), found[0].things), (1, before.len()));
    assert!(found[0].first.contains(&path(host::AGENT)), "{:?}", found[0].first);
    assert_eq!(below(&host, &format!(r"{}\k", found[0].folder)), before, "nothing was destroyed");
    let snapshot = host.snapshot();
    let ours: Vec<&str> = snapshot
        .files
        .keys()
        .filter(|at| at.is_within(&path(host::ROOT)) && !at.is_within(&path(host::QUARANTINE)))
        .map(WindowsPath::as_str)
        .collect();
    let agent = staged_agent(Sha256::of(AGENT));
    assert_eq!(ours, [host::ROOT, host::STAGING, agent.as_str(), host::STATE_FILE]);
    for closed in [host::ROOT, host::STAGING, host::QUARANTINE, found[0].folder.as_str()] {
        assert_eq!(snapshot.files[&path(closed)].access, Access::Administrators, "{closed}");
    }
    // A second probe changes nothing.
    host.clear_changes();
    look(&host).unwrap();
    assert_eq!(host.changes(), []);
}

#[test]
fn a_link_in_the_roots_place_is_not_followed() {
    let bare = FakeWindows::new("winhost");
    bare.put_file(&path(r"C:\Users\them\k\windows-instance-config-daemon.exe"), EVIL);
    let theirs = Content::Link(path(r"C:\Users\them\k"));
    bare.with_tree(|tree| tree.insert(path(host::ROOT), theirs.clone(), Access::Inherited));
    let outside = bare.snapshot().without(&path(host::ROOT));
    let host = upload(&bare);
    assert_eq!(host.kind(&path(host::ROOT)).unwrap(), Some(EntryKind::Directory));
    assert_eq!(host.snapshot().without(&path(host::ROOT)), outside);
    let probe = look(&host).unwrap();
    let found = &quarantined(&probe)[0];
    assert_eq!((found.things, found.first.as_slice()), (1, [path(host::ROOT)].as_slice()));
    assert_eq!(below(&host, found.folder.as_str()), [(r"\k".to_owned(), theirs)].into());
}

#[test]
fn an_empty_folder_in_the_roots_place_is_no_evidence() {
    let bare = FakeWindows::new("winhost");
    bare.with_tree(|tree| tree.make_folders(&path(host::ROOT)));
    let probe = look(&with_agent(&bare)).unwrap();
    assert_eq!((probe.root, probe.state), (RootAccess::Closed, None));
}

/// A user who keeps a file open could change it later, so the root does not count as closed.
#[test]
fn what_somebody_keeps_open_is_named_and_waited_for() {
    for (host, held) in [
        (planted(), r"C:\k\version.dll"),
        (planted_node(), r"C:\k\version.dll"),
        (planted_node(), r"C:\k\kubelet.exe"),
        (planted_node(), r"C:\k\cni"),
    ] {
        host.set_locked(&path(held), true);
        let text = chain(&look(&host).unwrap_err());
        assert!(
            text.contains(r"C:\k") && text.contains("end it") || text.contains("stop"),
            "{text}"
        );
        let installed = host.running_as(path(host::AGENT));
        host.put_file(&path(host::AGENT), AGENT);
        assert_eq!(look(&installed).unwrap().root, RootAccess::Open, "{held}");
        host.set_locked(&path(held), false);
        assert_eq!(look(&host).unwrap().root, RootAccess::Closed, "{held}");
    }
}

#[test]
fn a_node_that_is_taken_over_runs_on_without_what_was_planted() {
    let host = planted_node();
    let services = host.snapshot().services;
    let probe = look(&host).unwrap();
    assert_eq!(host.snapshot().services, services);
    assert!(!host.changes().iter().any(|(call, _)| *call == Call::ServicesStop));
    for gone in [
        r"C:\k\version.dll",
        r"C:\k\cni\evil.exe",
        r"C:\k\cni\config\00-first.conf",
        r"C:\k\containerd\registries\quay.io",
    ] {
        assert_eq!(host.kind(&path(gone)).unwrap(), None, "{gone}");
    }
    for (stays, content) in [
        (r"C:\k\kubelet.exe", "kubelet"),
        (r"C:\k\cni\win-overlay.exe", "plugin"),
        (r"C:\k\kubeconfig", "{}"),
        (r"C:\k\wicd-certs\wicd-client-current.pem", "no certificate"),
    ] {
        assert_eq!(*host.file(&path(stays)).unwrap(), content.as_bytes(), "{stays}");
        assert_eq!(host.access(&path(stays)).unwrap(), Access::Administrators, "{stays}");
    }
    let found = quarantined(&probe);
    assert_eq!((found.len(), found[0].things), (1, 4));
    let version = format!(r"{}\version.dll", found[0].folder);
    assert_eq!(*host.file(&path(&version)).unwrap(), EVIL);
}

/// The right digest is no evidence in a file that somebody may hold open.
#[test]
fn programs_of_a_node_that_is_taken_over_are_written_anew() {
    let node = planted_node();
    node.put_file(&path(host::AGENT), AGENT);
    let probe = look(&node).unwrap();
    let kubelet = path(r"C:\k\kubelet.exe");
    assert!(probe.files[&kubelet].doubted && probe.files[&path(host::AGENT)].doubted);
    assert_eq!(probe.agent.installed, None, "what lies there is not believed");
    assert!(probe.staged.contains(&Sha256::of(AGENT)), "so ours is there for the work");

    let host = node.running_as(staged_agent(Sha256::of(AGENT)));
    apply(
        &host,
        &[HostStep::RemoveDaemon, HostStep::RemoveServices { manifests: vec![manifest()] }],
    );
    host.clear_changes();
    let step = place(&host, kubelet.as_str(), b"kubelet", Access::Inherited);
    let lines = apply(&host, &[HostStep::InstallAgent, step.clone()]);
    assert_eq!((error(&lines), changes(&lines)), (None, vec![true, true]));
    let probe = probed(&lines);
    assert!(!probe.files[&kubelet].doubted);
    assert_eq!(probe.agent.installed, Some(Sha256::of(AGENT)));
    let HostStep::PlaceFile { sha256, .. } = &step else { panic!() };
    stage(&host, b"kubelet");
    assert!(probed(&apply(&host, &[])).staged.contains(sha256));
    assert_eq!(changes(&apply(&host, &[step])), [false]);
}

#[test]
fn taking_over_may_die_anywhere() {
    for (fresh, node) in [(planted as fn() -> FakeWindows, false), (planted_node, true)] {
        let mut cut = 0;
        loop {
            let host = fresh();
            let files = host.snapshot().files.len();
            host.cut_after(cut);
            let died = look(&host).is_err();
            host.heal();
            let probe = look(&host).unwrap();
            assert_eq!(probe.root, RootAccess::Closed, "after a cut at {cut}");
            let left = below(&host, host::ROOT).into_iter();
            let left = left.filter(|(at, _)| !at.starts_with(r"\quarantine"));
            let evil = left.filter(|(_, content)| *content == Content::File(EVIL.to_vec().into()));
            assert_eq!(evil.count(), 0, "after a cut at {cut}");
            assert!(host.snapshot().files.len() > files, "nothing is destroyed, cut at {cut}");
            assert!(!quarantined(&probe).is_empty(), "it is told, cut at {cut}");
            if node {
                assert!(probe.files[&path(r"C:\k\kubelet.exe")].doubted, "after a cut at {cut}");
            }
            if !died {
                break;
            }
            cut += 1;
        }
        assert!(cut > 5, "{cut}");
    }
}

/// A forged record cannot make us remove foreign files.
#[test]
fn a_planted_record_leads_nowhere() {
    let host = planted_node();
    let theirs = path(r"C:\ProgramData\theirs\x.txt");
    host.put_file(&theirs, "a file of Windows");
    let state = HostState {
        files: [theirs.clone()].into(),
        directories: [theirs.parent().unwrap(), path(r"C:\Windows")].into(),
        ..HostState::default()
    };
    host.put_file(&path(host::STATE_FILE), serde_json::to_vec(&state).unwrap());
    let probe = look(&host).unwrap();
    assert!(!probe.files.contains_key(&theirs));
    let host = host.running_as(staged_agent(Sha256::of(AGENT)));
    assert_eq!(error(&apply(&host, &leave())), None);
    assert!(host.file(&theirs).is_some());
}

/// An entry at the path of the agent's record or folders is moved away.
#[test]
fn nothing_stands_in_the_way_of_the_record_and_the_quarantine() {
    let record_beside = format!("{}{TEMPORARY_SUFFIX}", host::STATE_FILE);
    for at in [host::STATE_FILE, &record_beside, host::QUARANTINE, host::STAGING] {
        for content in [Content::Directory, Content::Link(path(r"C:\Users\them"))] {
            let host = planted_node();
            let inside = path(at).join("theirs.txt").unwrap();
            if content == Content::Directory {
                host.put_file(&inside, EVIL);
            } else {
                host.with_tree(|tree| tree.insert(path(at), content, Access::Inherited));
            }
            let probe = look(&host).unwrap();
            assert_eq!(probe.root, RootAccess::Closed, "{at}");
            assert_eq!(quarantined(&probe)[0].things, 5, "{at}");
            assert!(probe.files[&path(r"C:\k\kubelet.exe")].doubted, "{at}");
        }
    }
}

#[test]
fn what_is_in_quarantine_outlives_the_node() {
    let bare = FakeWindows::new("winhost");
    plant(&bare);
    let host = upload(&bare);
    let folder = quarantined(&look(&host).unwrap())[0].folder.clone();
    let found = below(&host, folder.as_str());
    apply(&host, &join(&host));
    assert_eq!(error(&apply(&host, &leave())), None);
    assert_eq!(below(&host, folder.as_str()), found);
    assert_eq!(host.access(&path(host::QUARANTINE)).unwrap(), Access::Administrators);
}

#[test]
fn a_staged_file_with_other_content_is_removed_and_not_told() {
    let host = fresh();
    let right = stage(&host, b"right");
    let wrong = [Sha256::of(b"wrong"), Sha256::of(b"no zstd")];
    host.put_file(&staged_content(wrong[0]), zstd::encode_all(&b"right"[..], 3).unwrap());
    host.put_file(&staged_content(wrong[1]), b"no zstd".to_vec());
    host.put_file(&staged_agent(wrong[0]), b"theirs".to_vec());
    let installed = host.running_as(path(host::AGENT));
    host.put_file(&path(host::AGENT), AGENT);
    let probe = look(&installed).unwrap();
    assert_eq!(probe.staged, BTreeSet::from([right, Sha256::of(AGENT)]));
    for sha256 in wrong {
        assert_eq!(host.file(&staged_content(sha256)), None);
        assert_eq!(host.file(&staged_agent(sha256)), None);
    }
}

/// Only an uploaded agent takes over the root; a probe by an agent below it closes nothing.
#[test]
fn an_agent_that_lies_below_the_root_closes_nothing() {
    for at in [host::AGENT.to_owned(), staged_agent(Sha256::of(AGENT)).to_string()] {
        let host = FakeWindows::new("winhost");
        host.put_file(&path(&at), AGENT);
        host.clear_changes();
        let probe = look(&host.running_as(path(&at))).unwrap();
        assert_eq!((probe.root, probe.staged), (RootAccess::Open, [].into()));
        assert_eq!(host.changes(), []);
    }
}

/// No path of ours leads to an agent below the folder of a user with a blank in the name.
#[test]
fn an_agent_that_runs_from_a_place_without_a_usable_path_installs_itself() {
    let bare = with_agent(&FakeWindows::new("winhost"));
    let agent = fresh_folder().join(host::UPLOADED_AGENT).unwrap();
    let probe = look(&bare.running_as_if_elsewhere(agent)).unwrap();
    assert_eq!((probe.root, probe.agent.sha256), (RootAccess::Closed, Sha256::of(AGENT)));
    let host = bare.running_as(staged_agent(Sha256::of(AGENT)));
    let lines = apply(&host, &[HostStep::InstallAgent]);
    assert_eq!(probed(&lines).agent.installed, Some(Sha256::of(AGENT)));
}

#[test]
fn a_user_without_rights_is_told_before_anything_is_tried() {
    let host = planted();
    host.set_administrator(false);
    let before = host.snapshot().files;
    assert!(matches!(look(&host), Err(AgentError::NoRights)));
    assert_eq!(host.snapshot().files, before);
}
