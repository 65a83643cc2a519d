//! `docs/contract/wicd.md`, WICD70 to WICD73: requirements of a fake Service Control Manager.

use jiff::SignedDuration;
use wmco_core::protocol::ServiceRunState::{self, Running, Stopped};
use wmco_services::fake::FakeWindows;
use wmco_services::windows::{ServiceManager as _, Wait, WindowsError};

use super::{name, other, state};

const LIMIT: Wait<'static> = Wait::at_most(SignedDuration::ZERO);

/// Returns a host with services: name, dependencies, state.
fn host(services: &[(&str, &[&str], ServiceRunState)]) -> FakeWindows {
    let host = FakeWindows::new("winhost");
    for (service, needs, state) in services {
        host.add_service(&name(service), &other("x", "", needs), *state);
    }
    host
}

#[test]
fn create_where_there_are_no_others() {
    let host = host(&[]);
    host.create(&name("a"), &other("x", "", &[])).unwrap();
    assert_eq!(state(&host, "a"), Some(Stopped));
}

#[test]
fn create_keeps_others() {
    let host = host(&[("b", &[], Running)]);
    host.create(&name("a"), &other("x", "", &[])).unwrap();
    assert_eq!(state(&host, "b"), Some(Running));
}

#[test]
fn create_what_is_there() {
    let host = host(&[("a", &[], Running)]);
    let created = host.create(&name("a"), &other("x", "", &[]));
    assert!(matches!(created, Err(WindowsError::Exists { .. })));
}

#[test]
fn open_what_is_there() {
    assert!(host(&[("a", &[], Stopped)]).query(&name("a")).unwrap().is_some());
}

#[test]
fn open_what_is_not_there() {
    assert!(host(&[]).query(&name("a")).unwrap().is_none());
}

#[test]
fn delete_what_is_there() {
    let host = host(&[("a", &[], Stopped)]);
    assert!(host.delete(&name("a"), LIMIT).unwrap());
    assert_eq!(state(&host, "a"), None);
}

#[test]
fn delete_what_is_not_there() {
    assert!(!host(&[]).delete(&name("a"), LIMIT).unwrap());
}

/// Whatever the state before, the service has the requested state afterwards, without an error.
#[track_caller]
fn made_sure(from: ServiceRunState, to: ServiceRunState) {
    let host = host(&[("a", &[], from)]);
    let made = match to {
        Running => host.start(&name("a"), LIMIT),
        _ => host.stop(&name("a"), LIMIT),
    };
    made.unwrap();
    assert_eq!(state(&host, "a"), Some(to));
}

#[test]
fn make_sure_that_a_stopped_one_is_stopped() {
    made_sure(Stopped, Stopped);
}

#[test]
fn make_sure_that_a_running_one_is_stopped() {
    made_sure(Running, Stopped);
}

#[test]
fn make_sure_that_a_stopped_one_runs() {
    made_sure(Stopped, Running);
}

#[test]
fn make_sure_that_a_running_one_runs() {
    made_sure(Running, Running);
}

#[test]
fn start_with_a_running_dependency() {
    let host = host(&[("a", &[], Running), ("b", &["a"], Stopped)]);
    host.start(&name("b"), LIMIT).unwrap();
    assert_eq!(state(&host, "b"), Some(Running));
}

#[test]
fn start_with_a_stopped_dependency() {
    let host = host(&[("a", &[], Stopped), ("b", &["a"], Stopped)]);
    host.start(&name("b"), LIMIT).unwrap();
    assert_eq!((state(&host, "a"), state(&host, "b")), (Some(Running), Some(Running)));
}

#[test]
fn start_when_a_dependency_of_the_dependency_is_missing() {
    let host = host(&[("a", &["none"], Stopped), ("b", &["a"], Stopped)]);
    let started = host.start(&name("b"), LIMIT);
    assert!(matches!(started, Err(WindowsError::MissingDependency { .. })));
    assert_eq!((state(&host, "a"), state(&host, "b")), (Some(Stopped), Some(Stopped)));
}

#[test]
fn start_when_the_second_dependency_is_missing() {
    let host = host(&[("a", &[], Stopped), ("b", &["a", "none"], Stopped)]);
    assert!(host.start(&name("b"), LIMIT).is_err());
    assert_eq!((state(&host, "a"), state(&host, "b")), (Some(Running), Some(Stopped)));
}

/// Unlike the original's: a request for a state that already holds is no error.
#[test]
fn start_what_runs() {
    host(&[("a", &[], Running)]).start(&name("a"), LIMIT).unwrap();
}

#[test]
fn stop_with_a_stopped_dependent() {
    let host = host(&[("a", &[], Running), ("b", &["a"], Stopped)]);
    host.stop(&name("a"), LIMIT).unwrap();
    assert_eq!(state(&host, "a"), Some(Stopped));
}

#[test]
fn stop_with_a_running_dependent() {
    let host = host(&[("a", &[], Running), ("b", &["a"], Running)]);
    let stopped = host.stop(&name("a"), LIMIT);
    assert!(matches!(stopped, Err(WindowsError::DependentsRun { .. })));
    assert_eq!((state(&host, "a"), state(&host, "b")), (Some(Running), Some(Running)));
}

/// Unlike the original's: a request for a state that already holds is no error.
#[test]
fn stop_what_is_stopped() {
    host(&[("a", &[], Stopped)]).stop(&name("a"), LIMIT).unwrap();
}
