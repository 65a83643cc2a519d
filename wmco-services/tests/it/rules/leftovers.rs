//! `docs/contract/wicd.md`, WICD74: processes that a service leaves running when it ends without its child.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use wmco_core::names::host;
use wmco_core::protocol::ServiceRunState;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::{Call, FakeWindows, Fault};
use wmco_services::lifecycle;
use wmco_services::manifest::{Manifest, Service};
use wmco_services::owner::Owner;
use wmco_services::services::{
    Desired, Execution, Observed, Plan, Scope, ScriptResults, Settled, execute, reconcile, remove,
    settle, stop,
};
use wmco_services::windows::ServiceManager as _;

use super::{NOW, manifest_of, name, other, service, state, tagged};

const RUNNING: Option<ServiceRunState> = Some(ServiceRunState::Running);

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

fn program(of: &str) -> WindowsPath {
    path(&format!(r"C:\k\{of}.exe"))
}

fn wrapped(name: &str) -> Service {
    let command = format!(r"{} -log-file=C:\{name}.log {}", host::LOG_RUNNER, program(name));
    Service { command, ..service(name, &[]) }
}

/// Returns a host on which `kubelet` and `kube-proxy` run, both in the same wrapper.
fn host() -> (FakeWindows, Manifest) {
    let host = FakeWindows::new("winhost");
    for program in [path(host::LOG_RUNNER), program("kubelet"), program("kube-proxy")] {
        host.put_file(&program, "MZ");
    }
    let manifest = manifest_of(vec![wrapped("kubelet"), wrapped("kube-proxy")]);
    assert!(bring_up(&host, &manifest).left.is_settled());
    host.set_leaves_a_child(&name("kubelet"), true);
    host.clear_changes();
    (host, manifest)
}

fn bring_up(host: &FakeWindows, manifest: &Manifest) -> Settled {
    let desired = Desired { manifest, scope: Scope::All, owner: Owner::ours() };
    settle(host, desired, None, &mut ScriptResults::new(), NOW).unwrap()
}

fn plan(host: &FakeWindows, manifest: &Manifest) -> Plan {
    let (services, results) = (host.list().unwrap(), ScriptResults::new());
    let observed = Observed { services: &services, node: None, results: &results };
    reconcile(Desired { manifest, scope: Scope::All, owner: Owner::ours() }, observed, NOW)
}

fn run(host: &FakeWindows, plan: &Plan) -> Execution {
    execute(plan, host, &mut ScriptResults::new(), NOW, &|| true)
}

fn process(host: &FakeWindows, service: &str) -> Option<u32> {
    host.query(&name(service)).unwrap()?.process
}

#[test]
fn what_a_crashed_wrapper_left_is_ended_before_the_next_start() {
    let (host, manifest) = host();
    let proxy = process(&host, "kube-proxy");
    host.crash(&name("kubelet"), 7);
    assert_eq!(host.processes(), [program("kubelet")]);
    insta::assert_snapshot!(plan(&host, &manifest), @r"
    end-leftovers-of kubelet (kubelet.exe), because what it may have left would run beside it
    start kubelet, because it is stopped, last exit code 7
    ");
    assert!(bring_up(&host, &manifest).left.is_settled());
    assert_eq!(host.processes(), []);
    assert_eq!((state(&host, "kubelet"), process(&host, "kube-proxy")), (RUNNING, proxy));
}

#[test]
fn a_service_that_is_stopped_for_a_change_may_have_left_something() {
    let (host, manifest) = host();
    host.change_service(&name("kubelet"), |seen| {
        seen.config.command = r"C:\k\kubelet-before.exe".to_owned();
    });
    let plan = plan(&host, &manifest);
    let lines: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines[2..],
        [
            "end-leftovers-of kubelet (kubelet-before.exe, kubelet.exe), because what it may have left \
         would run beside it",
            "start kubelet, because it was stopped for the change",
        ]
    );
}

#[test]
fn no_process_is_looked_at_where_nothing_starts() {
    let (host, manifest) = host();
    bring_up(&host, &manifest);
    assert_eq!(host.changes(), []);
}

#[test]
fn a_starting_service_keeps_its_processes() {
    let (host, manifest) = host();
    host.set_service_state(&name("kubelet"), ServiceRunState::Starting);
    insta::assert_snapshot!(plan(&host, &manifest), @"start kubelet, because it is still starting, last exit code 0");
}

#[test]
fn a_service_that_was_started_meanwhile_keeps_its_processes() {
    let (host, manifest) = host();
    host.set_leaves_a_child(&name("kubelet"), false);
    host.crash(&name("kubelet"), 7);
    let plan = plan(&host, &manifest);
    assert!(host.recover(&name("kubelet")));
    let before = process(&host, "kubelet");
    assert!(before.is_some() && run(&host, &plan).failures.is_empty());
    assert_eq!(process(&host, "kubelet"), before);
}

#[test]
fn what_cannot_be_ended_is_reported_and_nothing_starts_beside_it() {
    let (host, manifest) = host();
    host.crash(&name("kubelet"), 7);
    host.fail(Call::MachineEndProcesses, "kubelet", 1, Fault::AccessDenied);
    let done = run(&host, &plan(&host, &manifest));
    assert_eq!(done.failures.len(), 1);
    assert_eq!(done.failures[0].verb, "end-leftovers-of");
    assert_eq!(state(&host, "kubelet"), Some(ServiceRunState::Stopped));
}

#[test]
fn removal_ends_what_is_left_of_services_also_of_those_that_are_gone() {
    let (host, manifest) = host();
    host.crash(&name("kubelet"), 7);
    host.add_process(program("kube-proxy"));
    host.add_process(path(r"C:\Windows\notepad.exe"));
    for change in [ServiceRunState::Stopped, ServiceRunState::Running] {
        host.set_service_state(&name("kube-proxy"), change);
    }
    host.set_service_state(&name("kube-proxy"), ServiceRunState::Stopped);
    host.change_service(&name("kube-proxy"), |seen| seen.config.description = tagged("kube-proxy"));
    insta::assert_snapshot!(remove(Owner::ours(), std::slice::from_ref(&manifest), &host.list().unwrap()), @r"
    end-leftovers-of kubelet (kubelet.exe), because everything of ours is to go
    delete kubelet, because everything of ours is to go
    end-leftovers-of kube-proxy (kube-proxy.exe), because everything of ours is to go
    delete kube-proxy, because everything of ours is to go
    ");
    let wait = wmco_services::windows::Wait::at_most(jiff::SignedDuration::ZERO);
    host.delete(&name("kube-proxy"), wait).unwrap();
    assert!(lifecycle::cleanup(&host, &[manifest]).unwrap().changed);
    assert_eq!(host.processes(), [path(r"C:\Windows\notepad.exe")]);
}

#[test]
fn a_tagged_service_that_is_not_wanted_goes_with_what_it_left() {
    let (host, manifest) = host();
    let config = other(program("old").as_str(), &tagged("old"), &[]);
    host.add_service(&name("old"), &config, ServiceRunState::Stopped);
    host.add_process(program("old"));
    bring_up(&host, &manifest);
    assert_eq!((host.processes(), state(&host, "old")), (Vec::new(), None));
}

/// A left-over kubelet would register the Node that must not be registered.
#[test]
fn no_kubelet_is_left_on_a_host_that_is_worked_on() {
    let (host, _) = host();
    host.crash(&name("kubelet"), 7);
    let plan = stop(Owner::ours(), &name("kubelet"), &host.list().unwrap());
    insta::assert_snapshot!(plan, @"end-leftovers-of kubelet (kubelet.exe), because its host is worked on");
    assert!(run(&host, &plan).changed);
    assert_eq!(host.processes(), []);
}

/// Programs of random services and processes, some of them foreign.
const PROGRAMS: [&str; 6] = [
    r"C:\k\a.exe",
    r"C:\k\b.exe",
    r"C:\k\containerd\c.exe",
    host::LOG_RUNNER,
    host::AGENT,
    r"C:\Windows\d.exe",
];

#[derive(Clone, Debug)]
struct Drawn {
    programs: (usize, usize),
    /// Desired by the cluster, or foreign.
    wanted: bool,
    /// Present on the host already, running or not.
    there: Option<bool>,
}

fn any_drawn() -> impl Strategy<Value = Drawn> {
    let programs = (0..PROGRAMS.len(), 0..PROGRAMS.len());
    (programs, any::<bool>(), prop::option::of(any::<bool>()))
        .prop_map(|(programs, wanted, there)| Drawn { programs, wanted, there })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    /// Whatever was left behind: processes that only a stopped service of ours can have started end, all others keep
    /// running, and no running service is disturbed.
    #[test]
    fn only_what_is_left_over_is_ended(
        drawn in vec(any_drawn(), 1..6),
        left in vec(0..PROGRAMS.len(), 0..6),
    ) {
        let host = FakeWindows::new("winhost");
        for program in PROGRAMS {
            host.put_file(&path(program), "MZ");
        }
        let command = |it: &Drawn| format!("{} -x {}", PROGRAMS[it.programs.0], PROGRAMS[it.programs.1]);
        let mut wanted = Vec::new();
        for (place, it) in drawn.iter().enumerate() {
            let label = format!("s{place}");
            if it.wanted {
                wanted.push(Service { command: command(it), ..service(&label, &[]) });
            }
            let mut config = other(&command(it), &label, &[]);
            if it.wanted {
                config.description = tagged(&label);
                config.recovery = Some(wmco_services::services::recovery());
            }
            let state = match it.there {
                None => continue,
                Some(true) => ServiceRunState::Running,
                Some(false) => ServiceRunState::Stopped,
            };
            host.add_service(&name(&label), &config, state);
        }
        for program in &left {
            host.add_process(path(PROGRAMS[*program]));
        }
        let processes = |of: &FakeWindows| -> Vec<(String, Option<u32>)> {
            let running = of.list().unwrap().into_iter().filter(|it| it.process.is_some());
            running.map(|it| (it.name.to_string(), it.process)).collect()
        };
        let before = processes(&host);
        run(&host, &plan(&host, &manifest_of(wanted)));
        let after = processes(&host);
        prop_assert!(before.iter().all(|it| after.contains(it)), "{:?} {:?}", before, after);
        // An independent definition of the services that may run a program.
        let may_run = |it: &Drawn, program: usize| {
            it.programs.0 == program
                || (PROGRAMS[it.programs.0] == host::LOG_RUNNER && it.programs.1 == program)
        };
        let names_it = |it: &Drawn, program: usize| it.programs.0 == program || it.programs.1 == program;
        let seen = |it: &&Drawn| it.wanted || it.there.is_some();
        let still: BTreeSet<WindowsPath> = host.processes().into_iter().collect();
        for program in left {
            let users: Vec<&Drawn> =
                drawn.iter().filter(seen).filter(|it| names_it(it, program)).collect();
            let ends = match users.as_slice() {
                [one] => {
                    one.wanted && one.there != Some(true) && program < 4 && may_run(one, program)
                }
                _ => false,
            };
            prop_assert_eq!(still.contains(&path(PROGRAMS[program])), !ends, "{}", PROGRAMS[program]);
        }
    }
}
