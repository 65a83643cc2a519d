//! Files that only administrators may replace: `docs/contract/services.md`, SVC47.

use super::*;

fn access(host: &FakeWindows, text: &str) -> Access {
    host.files().access(&path(text)).unwrap()
}

fn written(host: &FakeWindows, text: &str) -> bool {
    host.changes().contains(&(Call::FilesWrite, text.to_owned()))
}

/// Returns a host of the original operator with our agent uploaded but not run yet.
fn taken_over() -> FakeWindows {
    let bare = FakeWindows::new("winhost");
    bare.put_file(&path(r"C:\Temp\mine.txt"), "a user's");
    original(&bare);
    with_agent(&bare)
}

#[test]
fn a_right_script_that_others_may_hold_open_is_written_anew() {
    let host = fresh();
    host.put_file(&path(host::HNS_MODULE), "module");
    let step = place(&host, host::HNS_MODULE, b"module", Access::Administrators);
    assert_eq!(changes(&apply(&host, &[step])), [true]);
    assert!(written(&host, host::HNS_MODULE), "its access alone was set");
    assert_eq!(access(&host, host::HNS_MODULE), Access::Administrators);

    host.clear_changes();
    let step = place(&host, host::HNS_MODULE, b"module", Access::Administrators);
    assert_eq!(changes(&apply(&host, &[step])), [false]);
    assert!(!written(&host, host::HNS_MODULE));
}

#[test]
fn a_link_to_the_right_script_is_replaced() {
    let host = fresh();
    let theirs = path(r"C:\Users\me\hns.psm1");
    host.put_file(&theirs, "module");
    host.with_tree(|tree| {
        tree.make_folders(&path(host::SCRIPTS));
        let link = Content::Link(theirs.clone());
        tree.insert(path(host::HNS_MODULE), link, Access::Administrators);
    });
    let step = place(&host, host::HNS_MODULE, b"module", Access::Administrators);
    assert_eq!(changes(&apply(&host, &[step])), [true]);
    host.put_file(&theirs, "evil");
    assert_eq!(*host.file(&path(host::HNS_MODULE)).unwrap(), b"module");
}

#[test]
fn a_probe_tells_what_others_may_exchange() {
    let host = fresh();
    apply(&host, &join(&host));
    let agent = host.running_as(path(host::AGENT));
    let probe = || Agent::new(&agent, "1", NOW).probe().unwrap();
    assert!(probe().files[&path(host::HNS_MODULE)].protected);
    assert!(!probe().files[&path(r"C:\k\kubelet.exe")].protected, "its folder protects it");
    assert!(probe().directories.contains(&path(host::SCRIPTS)));
    for text in [host::HNS_MODULE, host::SCRIPTS] {
        host.files().set_access(&path(text), Access::Inherited).unwrap();
    }
    assert!(!probe().files[&path(host::HNS_MODULE)].protected);
    assert!(!probe().directories.contains(&path(host::SCRIPTS)));
    assert!(probe().directories.contains(&path(host::LOGS)));
}

/// Closing a folder does not close files in it that others own.
#[test]
fn all_that_the_original_left_below_our_root_is_closed_before_anything_is_staged() {
    let host = taken_over();
    let outside = host.snapshot().without(&path(host::ROOT));
    let probe = Agent::new(&host, "1", NOW).probe().unwrap();
    assert_eq!(probe.root, RootAccess::Closed);
    let open: Vec<WindowsPath> = host
        .snapshot()
        .files
        .into_iter()
        .filter(|(at, entry)| at.is_within(&path(host::ROOT)) && entry.access == Access::Inherited)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(open, []);
    assert_eq!(host.snapshot().without(&path(host::ROOT)), outside);

    // Files that services write later are as open as their folder, and no reason for another takeover.
    host.put_file(&path(r"C:\k\kubeconfig"), "{}");
    host.clear_changes();
    Agent::new(&host, "1", NOW).probe().unwrap();
    assert_eq!(host.changes(), []);
}

#[test]
fn closing_may_die_anywhere() {
    let whole = taken_over();
    Agent::new(&whole, "1", NOW).probe().unwrap();
    for cut in 0.. {
        let host = taken_over();
        host.cut_after(cut);
        let died = Agent::new(&host, "1", NOW).probe().is_err();
        host.heal();
        Agent::new(&host, "1", NOW).probe().unwrap();
        assert_eq!(host.snapshot(), whole.snapshot(), "after a cut at {cut}");
        if !died {
            assert!(cut > 15, "{cut}");
            break;
        }
    }
}

#[test]
fn scripts_of_the_original_are_recorded_and_can_go() {
    let host = taken_over();
    let lines = apply(&host, &[HostStep::InstallAgent]);
    let state = probed(&lines).state.clone().unwrap();
    let theirs = path(r"C:\Temp\hns.psm1");
    assert!(state.files.contains(&theirs));
    assert!(!state.files.contains(&path(r"C:\Temp\mine.txt")));
    assert!(probed(&lines).files.contains_key(&theirs), "so the operator sees it");
    let lines = apply(&host, &[HostStep::RemoveFile { path: theirs.clone() }]);
    assert_eq!((error(&lines), changes(&lines)), (None, vec![true]));
    apply(&host, &leave());
    let left = |text: &str| host.file(&path(text)).is_some();
    assert!(left(r"C:\Temp\mine.txt"));
    assert!(!left(r"C:\Temp\gcp-get-hostname.ps1") && !left(r"C:\Temp\network-conf.ps1"));
}
