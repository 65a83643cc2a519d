use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::SignedDuration;
use wmco_core::protocol::{Access, ServiceRunState};

use super::*;
use crate::windows::{Recovery, ServiceConfig, StartType, TEMPORARY_SUFFIX, Wait};

const LIMIT: Wait<'static> = Wait::at_most(SignedDuration::from_secs(1));

fn config(needs: &[&str]) -> ServiceConfig {
    ServiceConfig {
        command: "demo".to_owned(),
        description: String::new(),
        dependencies: needs.iter().map(|name| name.parse().unwrap()).collect(),
        start: StartType::Manual,
        recovery: None,
    }
}

fn name(text: &str) -> ServiceName {
    text.parse().unwrap()
}

/// Returns a host with services `a`, `b` that needs `a`, and `c` that needs `b`, all stopped.
fn chain() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    for (service, needs) in [("a", &[][..]), ("b", &["A"]), ("c", &["b"])] {
        host.services().create(&name(service), &config(needs)).unwrap();
    }
    host
}

fn state(host: &FakeWindows, service: &str) -> ServiceRunState {
    host.services().query(&name(service)).unwrap().unwrap().state
}

#[test]
fn start_brings_up_what_is_needed_first() {
    let host = chain();
    host.clear_changes();
    host.services().start(&name("c"), LIMIT).unwrap();
    for service in ["a", "b", "c"] {
        assert_eq!(state(&host, service), ServiceRunState::Running);
    }
}

#[test]
fn start_without_a_dependency_keeps_the_others_up() {
    let host = chain();
    host.services().create(&name("d"), &config(&["a", "nowhere"])).unwrap();
    let error = host.services().start(&name("d"), LIMIT).unwrap_err();
    assert!(matches!(error, WindowsError::MissingDependency { .. }), "{error}");
    assert_eq!(state(&host, "a"), ServiceRunState::Running);
    assert_eq!(state(&host, "d"), ServiceRunState::Stopped);
}

#[test]
fn stop_waits_for_dependents() {
    let host = chain();
    host.services().start(&name("b"), LIMIT).unwrap();
    let error = host.services().stop(&name("a"), LIMIT).unwrap_err();
    assert!(matches!(error, WindowsError::DependentsRun { .. }), "{error}");
    host.services().stop(&name("b"), LIMIT).unwrap();
    host.services().stop(&name("a"), LIMIT).unwrap();
    assert_eq!(state(&host, "a"), ServiceRunState::Stopped);
    assert_eq!(host.services().dependents(&name("A")).unwrap(), [name("b")]);
}

#[test]
fn only_stopped_services_are_deleted() {
    let host = chain();
    host.services().start(&name("a"), LIMIT).unwrap();
    assert!(host.services().delete(&name("a"), LIMIT).is_err());
    host.services().stop(&name("a"), LIMIT).unwrap();
    assert!(host.services().delete(&name("a"), LIMIT).unwrap());
    assert!(!host.services().delete(&name("a"), LIMIT).unwrap());
}

#[test]
fn recovery_has_rising_delays() {
    let host = FakeWindows::new("winhost");
    let recovery =
        Recovery { restart_delays_ms: vec![10, 20], reset_seconds: 1, on_error_exit: true };
    let config = ServiceConfig { recovery: Some(recovery), ..config(&[]) };
    host.add_service(&name("x"), &config, ServiceRunState::Running);
    for delay in [10, 20, 20] {
        assert_eq!(host.crash(&name("x"), 1), Some(SignedDuration::from_millis(delay)));
        assert_eq!(state(&host, "x"), ServiceRunState::Stopped);
        assert!(host.recover(&name("x")));
        assert_eq!(state(&host, "x"), ServiceRunState::Running);
    }
}

#[test]
fn a_running_program_is_not_overwritten() {
    let host = FakeWindows::new("winhost");
    let image = path(r"C:\k\a.exe");
    host.put_file(&image, "old");
    let config = ServiceConfig { command: r"C:\k\A.exe --x".to_owned(), ..config(&[]) };
    host.services().create(&name("a"), &config).unwrap();
    host.services().start(&name("a"), LIMIT).unwrap();
    let write = |host: &FakeWindows| {
        host.files().write(&image, Access::Inherited, &mut Cursor::new(b"new"))
    };
    assert!(matches!(write(&host), Err(WindowsError::Locked { .. })));
    host.services().stop(&name("a"), LIMIT).unwrap();
    write(&host).unwrap();
    assert_eq!(*host.file(&image).unwrap(), b"new");
}

#[test]
fn a_full_disk_changes_nothing() {
    let host = FakeWindows::new("winhost");
    host.put_file(&path(r"C:\k\a"), "1234");
    host.set_disk_bytes(Some(6));
    let before = host.snapshot();
    let write = host.files().write(&path(r"C:\k\a"), Access::Inherited, &mut Cursor::new(b"123"));
    assert!(matches!(write, Err(WindowsError::DiskFull { .. })));
    assert_eq!(host.snapshot(), before);
}

#[test]
fn a_cut_write_leaves_the_old_file_and_half_of_the_new_one_beside() {
    let host = FakeWindows::new("winhost");
    let file = path(r"C:\k\a");
    host.put_file(&file, "old");
    host.cut_after(0);
    host.files().write(&file, Access::Inherited, &mut Cursor::new(b"long text")).unwrap_err();
    host.files().digest(&file).unwrap_err();
    host.heal();
    assert_eq!(*host.file(&file).unwrap(), b"old");
    assert_eq!(*host.file(&path(&format!(r"C:\k\a{TEMPORARY_SUFFIX}"))).unwrap(), b"long");
}

#[test]
fn restart_brings_changes_into_force_and_starts_automatic_services() {
    let host = FakeWindows::new("winhost.example.test");
    let boots = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&boots);
    host.observe(move |event| {
        if *event == FakeEvent::Booted {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let automatic = ServiceConfig { start: StartType::Automatic, ..config(&[]) };
    host.add_service(&name("auto"), &automatic, ServiceRunState::Stopped);
    host.add_service(&name("manual"), &config(&[]), ServiceRunState::Running);
    host.environment().set("HTTP_PROXY", "http://p").unwrap();
    host.machine().enable_containers().unwrap();
    host.machine().rename("other").unwrap();
    assert_eq!(host.machine().pending_reboot().unwrap().len(), 2);
    assert_eq!(host.environment().changed_since_boot().unwrap().len(), 1);
    let boot = host.machine().boot_id().unwrap();
    host.machine().restart().unwrap();
    assert_ne!(host.machine().boot_id().unwrap(), boot);
    assert!(host.machine().pending_reboot().unwrap().is_empty());
    assert!(host.environment().changed_since_boot().unwrap().is_empty());
    assert_eq!(host.machine().host_name().unwrap(), "other.example.test");
    assert_eq!(host.machine().containers().unwrap(), FeatureState::Enabled);
    assert_eq!(state(&host, "auto"), ServiceRunState::Running);
    assert_eq!(state(&host, "manual"), ServiceRunState::Stopped);
    assert_eq!(boots.load(Ordering::SeqCst), 1);
}

#[test]
fn planned_faults_run_out() {
    let host = FakeWindows::new("winhost");
    host.fail(Call::EnvironmentSet, "", 1, Fault::Other);
    host.fail(Call::EnvironmentSet, "b", 1, Fault::Lost);
    assert!(host.environment().set("A", "1").is_err());
    assert_eq!(host.environment().get("A").unwrap(), None);
    host.environment().set("A", "1").unwrap();
    assert!(host.environment().set("B", "1").is_err());
    assert_eq!(host.environment().get("b").unwrap().as_deref(), Some("1"));
}

#[test]
fn sftp_like_writes_and_moves() {
    let host = FakeWindows::new("winhost");
    host.with_tree(|tree| {
        let (part, done) = (path(r"C:\k\x.part"), path(r"C:\k\x"));
        assert!(tree.write_at(&part, 0, b"ab").is_err(), "no folder yet");
        tree.make_folders(&path(r"C:\k"));
        tree.write_at(&part, 0, b"ab").unwrap();
        tree.write_at(&part, 3, b"d").unwrap();
        tree.rename(&part, &done).unwrap();
        assert_eq!(**tree.file(&done).unwrap(), *b"ab\0d");
        assert!(tree.file(&part).is_none());
        tree.rename(&path(r"C:\k"), &path(r"C:\other")).unwrap();
        assert_eq!(tree.file(&path(r"C:\other\X")).unwrap().len(), 4);
    });
}
