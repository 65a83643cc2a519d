use proptest::prelude::*;

use super::*;
use crate::fake::{Call, Content, FakeWindows, Fault};
use crate::windows::{FileIdentity, Windows as _};
use wmco_core::protocol::Access;

const LOG: &str = host::CONTAINERD_LOG;
const LINK: &str = r"C:\k\logs\containerd.log";
const BOUNDS: Bounds = Bounds { file_bytes: Some(100), age: None };

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

fn at(seconds: i64) -> Timestamp {
    // 2026-01-31T23:59:50Z
    Timestamp::from_second(1_769_903_990 + seconds).unwrap()
}

fn file(text: &str, bytes: u64, modified: i64) -> LogFile {
    LogFile {
        path: path(text),
        kind: EntryKind::File,
        identity: FileIdentity { volume: 0, index: 1 },
        bytes,
        hard_links: 1,
        modified: at(modified),
    }
}

fn rotated(seconds: i64, bytes: u64) -> LogFile {
    let stamp = at(seconds).strftime("%Y%m%d-%H%M%S");
    file(&format!(r"C:\var\log\containerd\containerd-{stamp}.log"), bytes, seconds)
}

/// Returns a log of this length, with the link that points to it.
fn observed(bytes: u64) -> Observed {
    let link = LogFile { kind: EntryKind::Link, ..file(LINK, 0, 0) };
    let current = Some(file(LOG, bytes, 0));
    Observed { current, link: Some(link), ..Observed::default() }
}

fn plan(observed: &Observed, bounds: Bounds) -> String {
    reconcile(&path(LOG), &path(LINK), observed, bounds, at(0)).to_string()
}

#[test]
fn a_log_is_cut_when_it_has_grown_to_its_size() {
    assert_eq!(plan(&observed(99), BOUNDS), "");
    insta::assert_snapshot!(plan(&observed(100), BOUNDS), @r"cut C:\var\log\containerd\containerd.log and keep containerd-20260131-235950.log, because it has grown to its size");
}

#[test]
fn a_size_of_0_is_no_limit() {
    let mut observed = observed(u64::MAX);
    observed.rotated = (1..9).map(|seconds| rotated(-seconds, 1000)).collect();
    assert_eq!(plan(&observed, Bounds::new(Some(0), None)), "");
}

#[test]
fn the_oldest_go_before_the_copy_is_made() {
    let mut observed = observed(100);
    observed.rotated = [-1, -4, -3, -2].map(|seconds| rotated(seconds, 100)).into();
    insta::assert_snapshot!(plan(&observed, BOUNDS), @r"
    remove C:\var\log\containerd\containerd-20260131-235946.log, because the log may take no more
    remove C:\var\log\containerd\containerd-20260131-235947.log, because the log may take no more
    remove C:\var\log\containerd\containerd-20260131-235948.log, because the log may take no more
    cut C:\var\log\containerd\containerd.log and keep containerd-20260131-235950.log, because it has grown to its size
    ");
    observed.current = None;
    insta::assert_snapshot!(plan(&observed, BOUNDS), @r"
    remove C:\var\log\containerd\containerd-20260131-235946.log, because the log may take no more
    remove C:\var\log\containerd\containerd-20260131-235947.log, because the log may take no more
    ");
}

#[test]
fn what_a_log_has_more_than_its_size_is_kept_and_costs_no_other_file() {
    let mut observed = observed(120);
    observed.rotated = vec![rotated(-1, 102)];
    let plan = reconcile(&path(LOG), &path(LINK), &observed, BOUNDS, at(0));
    let [Step { action: Action::Cut { most_bytes, most_growth, .. }, .. }] = plan.steps.as_slice()
    else {
        panic!("{plan}")
    };
    assert_eq!((*most_bytes, *most_growth), (150, 50));
}

#[test]
fn many_bytes_in_few_files_count_too() {
    let mut observed = observed(0);
    observed.rotated = vec![rotated(-2, 1), rotated(-1, 251)];
    insta::assert_snapshot!(plan(&observed, BOUNDS), @r"
    remove C:\var\log\containerd\containerd-20260131-235948.log, because the log may take no more
    remove C:\var\log\containerd\containerd-20260131-235949.log, because the log may take no more
    ");
}

#[test]
fn what_is_too_old_goes_whatever_the_size_is() {
    let mut observed = observed(0);
    observed.rotated = vec![rotated(-11, 1), rotated(-10, 1)];
    let bounds = Bounds::new(Some(0), Some(SignedDuration::from_secs(10)));
    insta::assert_snapshot!(plan(&observed, bounds), @r"remove C:\var\log\containerd\containerd-20260131-235939.log, because it is older than asked for");
    assert_eq!(plan(&observed, Bounds::new(Some(0), Some(SignedDuration::ZERO))), "");
}

#[test]
fn copies_of_one_second_have_names_of_their_own() {
    let mut observed = observed(100);
    observed.rotated = vec![rotated(0, 1)];
    assert!(plan(&observed, BOUNDS).contains("keep containerd-20260131-235951.log"));
}

#[track_caller]
fn left_alone(change: impl FnOnce(&mut Observed), why: &str) {
    let mut observed = observed(100);
    change(&mut observed);
    let plan = plan(&observed, BOUNDS);
    assert!(
        plan.starts_with("note: ") && plan.contains(why) && plan.lines().count() == 1,
        "{plan}"
    );
}

#[test]
fn a_link_in_the_logs_place_is_left_alone() {
    left_alone(|o| o.current.as_mut().unwrap().kind = EntryKind::Link, "it is a link");
}

#[test]
fn a_folder_in_the_logs_place_is_left_alone() {
    left_alone(|o| o.current.as_mut().unwrap().kind = EntryKind::Directory, "it is a folder");
}

#[test]
fn a_file_with_names_elsewhere_is_not_cut() {
    left_alone(|o| o.current.as_mut().unwrap().hard_links = 2, "names elsewhere");
}

#[test]
fn a_file_with_our_name_and_another_is_not_cut() {
    left_alone(
        |o| {
            o.current.as_mut().unwrap().hard_links = 3;
            o.link.as_mut().unwrap().kind = EntryKind::File;
        },
        "names elsewhere",
    );
}

#[test]
fn a_file_of_a_program_that_does_not_append_is_cut_some_times() {
    left_alone(|o| o.futile_truncations = limits::LOG_FUTILE_TRUNCATIONS, "comes back as zeros");
    let mut observed = observed(100);
    observed.futile_truncations = limits::LOG_FUTILE_TRUNCATIONS - 1;
    assert!(plan(&observed, BOUNDS).starts_with("cut "));
}

#[test]
fn our_own_name_of_the_file_does_not_count() {
    let mut observed = observed(100);
    observed.current.as_mut().unwrap().hard_links = 2;
    observed.link.as_mut().unwrap().kind = EntryKind::File;
    assert!(plan(&observed, BOUNDS).starts_with("cut "));
}

#[test]
fn links_and_folders_with_names_of_rotated_files_stay() {
    let mut observed = observed(0);
    observed.rotated = (1..9)
        .map(|n| LogFile {
            kind: if n % 2 == 0 { EntryKind::Link } else { EntryKind::Directory },
            ..rotated(-n, 1000)
        })
        .collect();
    assert_eq!(plan(&observed, BOUNDS), "");
}

#[test]
fn a_link_leads_to_the_log_of_today() {
    let linked = |change: fn(&mut Observed)| {
        let mut observed = observed(0);
        change(&mut observed);
        let plan = reconcile(&path(LOG), &path(LINK), &observed, BOUNDS, at(0));
        plan.steps.iter().map(|step| step.action.verb()).collect::<Vec<_>>().join(" ")
    };
    let name = |o: &mut Observed| o.link.as_mut().unwrap().kind = EntryKind::File;
    assert_eq!(linked(|_| {}), "");
    assert_eq!(linked(|o| o.link = None), "link-log");
    assert_eq!(linked(name), "");
    // The log runner has begun a new file.
    assert_eq!(
        linked(|o| {
            o.link.as_mut().unwrap().kind = EntryKind::File;
            o.current.as_mut().unwrap().identity.index = 2;
        }),
        "link-log"
    );
    assert_eq!(
        linked(|o| {
            o.link.as_mut().unwrap().kind = EntryKind::File;
            o.current = None;
        }),
        "unlink-log"
    );
    assert_eq!(linked(|o| o.current = None), "");
    assert_eq!(
        linked(|o| {
            o.current.as_mut().unwrap().kind = EntryKind::Link;
            o.link = None;
        }),
        ""
    );
}

#[test]
fn names_of_rotated_files_are_those_of_the_log_runner() {
    let is = |name: &str| is_rotated(&path(LOG), name);
    assert!(is("containerd-20260131-235959.log") && is("Containerd-20260131-235959.LOG"));
    assert!(is("containerd-2026-01-31T23-59-59.123.log"));
    assert!(is("containerd-2026-01-31T23-59-59.123.log.gz"));
    for name in [
        "containerd.log",
        "containerd-20260131-235959.txt",
        "containerd-20260131-2359590.log",
        "containerd-2026013a-235959.log",
        "containerd-20260131_235959.log",
        "containerd-2026-01-31T23-59-59.123.gz",
        "containerd-2026-01-31T23-59-59.log.gz",
        "containerd.log.gz",
        "kubelet-20260131-235959.log",
        "containerdx20260131-235959.log",
        "-20260131-235959.log",
        "containerd-é0260131-23595.log",
        "",
    ] {
        assert!(!is(name), "{name}");
    }
}

#[test]
fn each_log_has_a_folder_of_its_own_that_the_operator_makes() {
    let folders: std::collections::BTreeSet<WindowsPath> =
        host::SERVICE_LOGS.iter().filter_map(|log| path(log).parent()).collect();
    assert_eq!(folders.len(), host::SERVICE_LOGS.len());
    let made = host::DIRECTORIES.map(path);
    let logs = made
        .iter()
        .filter(|folder| folder.is_within(&path(host::LOGS)) && **folder != path(host::LOGS));
    let all: std::collections::BTreeSet<WindowsPath> =
        folders.into_iter().chain([path(host::WICD_LOGS)]).collect();
    assert_eq!(all, logs.cloned().collect());
}

/// Returns the bytes of all files in the log's folder.
fn bytes(host: &FakeWindows) -> u64 {
    let folder = path(LOG).parent().unwrap();
    host.with_tree(|tree| {
        let sizes = tree.below(&folder).map(|(_, node)| match &node.content {
            Content::File(bytes) => bytes.len() as u64,
            _ => 0,
        });
        sizes.sum()
    })
}

fn host() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    host.with_tree(|tree| tree.make_folders(&path(host::ROOT)));
    host
}

fn rotation() -> Rotation {
    Rotation::new(Bounds { file_bytes: Some(100), age: None })
}

/// Returns the time of the turn with this number.
fn turn(nth: i64) -> Timestamp {
    at(0) + limits::LOG_POLL * i32::try_from(nth).unwrap()
}

#[test]
fn a_storm_stays_within_the_bound_and_its_last_line_is_there() {
    let host = host();
    let mut rotation = rotation();
    for nth in 0..1000 {
        host.set_now(turn(nth));
        host.append(&path(LOG), format!("line {nth:34}\n").as_bytes()).unwrap();
        assert!(bytes(&host) <= 500, "{nth}: {}", bytes(&host));
        if rotation.is_due(&host, turn(nth)) {
            assert_eq!(rotation.rotate(&host, turn(nth)), [""; 0]);
        }
    }
    let last = host.file(&path(LOG)).unwrap();
    assert!(String::from_utf8_lossy(&last).ends_with(" 999\n"));
    // Two copies, the log, and a link to it.
    assert_eq!(host.logs().names(&path(LOG).parent().unwrap()).unwrap().len(), 3);
    assert_eq!(host.file(&path(LINK)), Some(last));
}

#[test]
fn what_the_log_runner_leaves_is_bounded_too() {
    let host = host();
    let mut rotation = rotation();
    for nth in 0..100 {
        host.set_now(turn(nth));
        host.append(&path(LOG), &[b'x'; 99]).unwrap();
        if rotation.is_due(&host, turn(nth)) {
            rotation.rotate(&host, turn(nth));
        }
        assert!(bytes(&host) <= 500, "{nth}: {}", bytes(&host));
        let stamp = at(nth).strftime("%Y%m%d-%H%M%S");
        let to = path(&format!(r"C:\var\log\containerd\containerd-{stamp}.log"));
        host.files().rename(&path(LOG), &to).unwrap();
    }
}

#[test]
fn a_program_that_does_not_append_is_told_of_once_and_not_fought() {
    let host = host();
    let mut rotation = rotation();
    host.append(&path(LOG), &[b'x'; 150]).unwrap();
    rotation.rotate(&host, turn(0));
    let mut told = Vec::new();
    for nth in 1..500 {
        host.with_tree(|tree| tree.write_at(&path(LOG), 150, b"x")).unwrap();
        told.extend(rotation.rotate(&host, turn(nth)));
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("zeros"));
    let cuts = host.changes().iter().filter(|(call, _)| *call == Call::LogsTruncate).count();
    assert_eq!(cuts, 8);
}

/// It writes at its own offset, so what is cut comes back as zeros and costs the copies.
#[test]
fn a_program_that_rotates_its_own_log_is_left_to_do_so() {
    let host = host();
    let mut rotation = Rotation::new(Bounds::default());
    let log = path(host::HYBRID_OVERLAY_LOG);
    let folder = log.parent().unwrap();
    // As long as it gets before its program begins another, which is more than ours have.
    host.append(&log, &vec![b'x'; 100 << 20]).unwrap();
    for nth in 0..5 {
        let name = format!("hybrid-overlay-2026-01-31T00-00-0{nth}.000.log.gz");
        host.set_now(turn(nth));
        host.append(&folder.join(&name).unwrap(), b"x").unwrap();
    }
    assert_eq!(rotation.rotate(&host, turn(5)), [""; 0]);
    assert_eq!(host.file(&log).unwrap().len(), 100 << 20);
    let mut left = host.logs().names(&folder).unwrap();
    left.sort();
    assert_eq!(
        left,
        [
            "hybrid-overlay-2026-01-31T00-00-03.000.log.gz",
            "hybrid-overlay-2026-01-31T00-00-04.000.log.gz",
            "hybrid-overlay.log"
        ]
    );
    // A program that does not is bounded all the same.
    host.append(&log, &vec![b'x'; 100 << 20]).unwrap();
    rotation.rotate(&host, turn(65));
    assert_eq!(host.file(&log).unwrap().len(), 0);
}

#[test]
fn nothing_is_touched_through_a_link() {
    let host = host();
    let victim = path(r"C:\Windows\victim");
    for name in ["containerd.log", "containerd-20200101-000000.log"] {
        host.put_file(&victim.join(name).unwrap(), vec![b'x'; 1000]);
    }
    let folder = path(LOG).parent().unwrap();
    host.with_tree(|tree| {
        tree.make_folders(&folder.parent().unwrap());
        tree.insert(folder.clone(), Content::Link(victim.clone()), Access::Inherited);
        // The files as a system shows them that follows the link.
        for name in ["containerd.log", "containerd-20200101-000000.log"] {
            let bytes = Content::File(std::sync::Arc::new(vec![b'x'; 1000]));
            tree.insert(folder.join(name).unwrap(), bytes, Access::Inherited);
        }
    });
    let before = host.snapshot();
    let told = rotation().rotate(&host, turn(0));
    assert_eq!(host.snapshot(), before);
    assert!(told.iter().any(|line| line.contains("a link")), "{told:?}");
}

#[test]
fn a_full_disk_costs_the_copy_and_not_the_disk() {
    let host = host();
    host.append(&path(LOG), &[b'x'; 150]).unwrap();
    host.set_disk_bytes(Some(150));
    let told = rotation().rotate(&host, turn(0));
    assert!(told.iter().any(|line| line.contains("without a copy")), "{told:?}");
    assert_eq!(bytes(&host), 0);
}

#[test]
fn a_log_that_fails_holds_up_no_other() {
    let host = host();
    for log in host::SERVICE_LOGS {
        host.append(&path(log), &[b'x'; 100]).unwrap();
    }
    host.fail(Call::LogsStat, LOG, usize::MAX, Fault::Locked);
    host.fail(Call::LogsTruncate, host::KUBELET_LOG, 1, Fault::Locked);
    let mut rotation = rotation();
    let told = rotation.rotate(&host, turn(0));
    assert_eq!(told.len(), 2, "{told:?}");
    let cut = |log: &str| host.file(&path(log)).unwrap().is_empty();
    assert!(!cut(LOG) && !cut(host::KUBELET_LOG) && cut(host::CSI_PROXY_LOG));
    // A repeated failure is reported once.
    assert_eq!(rotation.rotate(&host, turn(1)), [""; 0]);
    assert!(cut(host::KUBELET_LOG));
}

proptest! {
    /// Wherever the process dies, the next one brings the log back within its limit.
    #[test]
    fn it_may_die_anywhere(
        writes in proptest::collection::vec((1..99_usize, proptest::option::of(0..3_usize)), 1..60)
    ) {
        let host = host();
        let mut rotation = rotation();
        for (nth, (bytes_written, dies)) in writes.into_iter().enumerate() {
            let now = turn(i64::try_from(nth).unwrap());
            host.set_now(now);
            host.append(&path(LOG), &vec![b'x'; bytes_written]).unwrap();
            if let Some(changes) = dies {
                host.cut_after(changes);
            }
            rotation.rotate(&host, now);
            if host.is_cut() {
                host.heal();
                rotation = self::rotation();
                rotation.rotate(&host, now);
            }
            host.heal();
            prop_assert!(bytes(&host) <= 500, "{}", bytes(&host));
            prop_assert!(host.file(&path(LOG)).unwrap().len() < 100);
        }
    }
}
