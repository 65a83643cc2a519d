use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use wmco_core::names::objects;

use super::*;
use crate::fake::{Call, FakeWindows, Fault};
use crate::manifest::{NodeVariable, Parts, PreScript};
use crate::scripts::AWS_HOST_NAME;
use crate::windows::{HttpAnswer, ServiceManager as _, StartType, Wait, Windows as _};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn name(text: &str) -> ServiceName {
    text.parse().unwrap()
}

fn service(text: &str, needs: &[&str]) -> manifest::Service {
    let dependencies = needs.iter().map(|need| name(need)).collect();
    manifest::Service {
        dependencies,
        ..manifest::Service::new(name(text), format!("{text} --run"))
    }
}

fn manifest(services: Vec<manifest::Service>) -> Manifest {
    Manifest::new(Parts { services, ..Parts::default() }).unwrap()
}

/// Returns a manifest with `a`, `b` that needs `a`, and `c` that needs `b`.
fn chain() -> Manifest {
    manifest(vec![service("a", &[]), service("b", &["a"]), service("c", &["b"])])
}

fn all(manifest: &Manifest) -> Desired<'_> {
    Desired { manifest, scope: Scope::All, owner: Owner::ours() }
}

fn bring_up(host: &FakeWindows, manifest: &Manifest) -> Settled {
    settle(host, all(manifest), None, &mut ScriptResults::new(), NOW).unwrap()
}

fn plan(host: &FakeWindows, manifest: &Manifest) -> Plan {
    let services = host.list().unwrap();
    let results = ScriptResults::new();
    reconcile(all(manifest), Observed { services: &services, node: None, results: &results }, NOW)
}

fn other(text: &str, needs: &[&str], description: &str) -> (ServiceName, ServiceConfig) {
    let config = ServiceConfig {
        command: "other".to_owned(),
        description: description.to_owned(),
        dependencies: needs.iter().map(|need| name(need)).collect(),
        start: StartType::Automatic,
        recovery: None,
    };
    (name(text), config)
}

#[test]
fn a_new_host_gets_all_services_in_order() {
    let host = FakeWindows::new("winhost");
    insta::assert_snapshot!(plan(&host, &chain()), @r"
    create a, because it is missing
    create b, because it is missing
    create c, because it is missing
    start a, because it is missing
    start b, because it is missing
    start c, because it is missing
    ");
    let settled = bring_up(&host, &chain());
    assert!(settled.changed && settled.left.is_settled());
    assert!(!bring_up(&host, &chain()).changed);
}

#[test]
fn a_change_stops_dependents_first_and_brings_them_back() {
    let host = FakeWindows::new("winhost");
    bring_up(&host, &chain());
    let (user, config) = other("user", &["b"], "somebody's");
    host.add_service(&user, &config, ServiceRunState::Running);
    let mut config = host.query(&name("a")).unwrap().unwrap().config;
    config.command = "wrong".to_owned();
    config.dependencies = vec![name("RpcSs")];
    host.configure(&name("A"), &config).unwrap();
    insta::assert_snapshot!(plan(&host, &chain()), @r"
    stop user, because it needs b, which must stop
    stop c, because it needs b, which must stop
    stop b, because it needs a, which must stop
    stop a, because it differs in command, dependencies
    configure a, because it differs in command, dependencies
    start a, because it was stopped for the change
    start b, because it was stopped for the change
    start c, because it was stopped for the change
    start user, because it was stopped for the change
    ");
    assert!(bring_up(&host, &chain()).left.is_settled());
    assert!(plan(&host, &chain()).is_settled());
}

#[test]
fn tagged_services_that_are_not_listed_go_and_others_stay() {
    let host = FakeWindows::new("winhost");
    bring_up(&host, &chain());
    for (service, config) in [
        other("old", &[], "OpenShift managed old"),
        other("note", &[], "is not OpenShift managed"),
        other(objects::WICD, &[], &Owner::ours().description(&name(objects::WICD))),
    ] {
        host.add_service(&service, &config, ServiceRunState::Running);
    }
    insta::assert_snapshot!(plan(&host, &chain()), @r"
    stop old, because it carries our tag but is not in the manifest
    delete old, because it carries our tag but is not in the manifest
    ");
}

#[test]
fn what_no_process_sees_is_corrected_without_a_stop() {
    let host = FakeWindows::new("winhost");
    bring_up(&host, &chain());
    let mut config = host.query(&name("a")).unwrap().unwrap().config;
    config.recovery = None;
    config.start = StartType::Automatic;
    host.configure(&name("a"), &config).unwrap();
    insta::assert_snapshot!(plan(&host, &chain()), @"configure a, because it differs in recovery, start type");
}

#[test]
fn order_and_case_of_dependencies_mean_nothing() {
    let two = manifest(vec![service("a", &[]), service("b", &["a", "RpcSs"])]);
    let host = FakeWindows::new("winhost");
    bring_up(&host, &two);
    let mut config = host.query(&name("b")).unwrap().unwrap().config;
    config.dependencies = vec![name("rpcss"), name("A")];
    host.configure(&name("b"), &config).unwrap();
    assert!(plan(&host, &two).is_settled());
}

#[test]
fn a_service_that_lost_its_last_dependency_settles() {
    let host = FakeWindows::new("winhost");
    bring_up(&host, &chain());
    let free = manifest(vec![service("a", &[]), service("b", &[]), service("c", &[])]);
    assert!(bring_up(&host, &free).changed);
    assert!(!bring_up(&host, &free).changed);
}

#[test]
fn one_bad_service_holds_back_only_those_that_need_it() {
    let host = FakeWindows::new("winhost");
    let list = manifest(vec![service("a", &["nowhere"]), service("b", &["a"]), service("c", &[])]);
    let settled = bring_up(&host, &list);
    insta::assert_snapshot!(settled.left, @r"
    service a waits: it needs service nowhere, which does not exist; install it
    service b waits: it needs service a, which waits itself
    ");
    let state = host.query(&name("c")).unwrap().unwrap().state;
    assert_eq!(state, ServiceRunState::Running);
}

#[test]
fn a_service_that_ends_at_once_is_reported_with_its_code() {
    let host = FakeWindows::new("winhost");
    host.set_ends_on_start(&name("b"), Some(3));
    let settled = bring_up(&host, &chain());
    let lines: Vec<String> = settled.failures.iter().map(|f| f.error.to_string()).collect();
    assert_eq!(lines, ["service b ended right after its start with code 3, look at its log"]);
    let c = host.query(&name("c")).unwrap().unwrap();
    assert_eq!(c.state, ServiceRunState::Stopped);
    // Indirect dependents are not tried either.
    let host = FakeWindows::new("winhost");
    host.set_ends_on_start(&name("a"), Some(3));
    assert_eq!(bring_up(&host, &chain()).failures.len(), 1);
}

#[test]
fn values_come_from_node_and_scripts() {
    let mut one = service("a", &[]);
    one.command = "a --node=NODE_NAME --ip NODE_IP".to_owned();
    let variable = |name: &str, path: &str| NodeVariable {
        name: name.to_owned(),
        node_object_json_path: path.to_owned(),
    };
    one.node_variables_in_command = vec![variable("NODE_NAME", "{.metadata.name}")];
    one.powershell_pre_scripts = vec![PreScript {
        variable_name: "NODE_IP".to_owned(),
        path: "ip -of NODE_NAME -in KUBECONFIG".to_owned(),
        node_args: vec![
            variable("NODE_NAME", "{.metadata.name}"),
            variable("KUBECONFIG", r"C:\k\kubeconfig"),
        ],
    }];
    let list = manifest(vec![one]);
    let host = FakeWindows::new("winhost");
    host.answer_scripts(&[(r"ip -of win-1 -in C:\k\kubeconfig", " 10.0.0.1\r\n")]);
    let mut results = ScriptResults::new();
    let node = json!({"metadata": {"name": "win-1"}});
    let without = settle(&host, all(&list), None, &mut results, NOW).unwrap();
    insta::assert_snapshot!(without.left, @"service a waits: placeholder NODE_NAME needs the node, wait until it is there");
    settle(&host, all(&list), Some(&node), &mut results, NOW).unwrap();
    let seen = host.query(&name("a")).unwrap().unwrap();
    assert_eq!(seen.config.command, "a --node=win-1 --ip 10.0.0.1");

    let shifty = json!({"metadata": {"name": "x; Remove-Item"}});
    let left = settle(&host, all(&list), Some(&shifty), &mut results, NOW).unwrap().left;
    assert!(left.steps.is_empty() && left.blocked[0].reason.contains("holds blanks"), "{left}");
}

#[test]
fn a_placeholder_that_is_not_used_holds_up_nothing() {
    let asks = |name: &str| NodeVariable {
        name: name.to_owned(),
        node_object_json_path: "{.metadata.name}".to_owned(),
    };
    let mut one = service("a", &[]);
    one.node_variables_in_command = vec![asks("NODE_NAME")];
    one.powershell_pre_scripts = vec![PreScript {
        variable_name: "NODE_IP".to_owned(),
        path: "prepare".to_owned(),
        node_args: vec![asks("NODE_SUBNET")],
    }];
    let host = FakeWindows::new("winhost");
    host.answer_scripts(&[("prepare", "two lines\r\nthat fill nothing\r\n")]);
    assert_eq!(bring_up(&host, &manifest(vec![one])).left.to_string(), "");
    assert_eq!(host.query(&name("a")).unwrap().unwrap().config.command, "a --run");
}

#[test]
fn scripts_run_again_when_they_are_old_changed_or_failed() {
    let host = FakeWindows::new("winhost");
    let mut one = service("a", &[]);
    one.powershell_pre_scripts = vec![PreScript {
        variable_name: String::new(),
        path: "prepare".to_owned(),
        node_args: Vec::new(),
    }];
    let list = manifest(vec![one]);
    let mut results = ScriptResults::new();
    let mut at = |seconds: i64, host: &FakeWindows| {
        let now = Timestamp::from_second(seconds).unwrap();
        host.clear_changes();
        let settled = settle(host, all(&list), None, &mut results, now).unwrap();
        let runs = host.changes().iter().filter(|(call, _)| *call == Call::PowerShellRun).count();
        (runs, settled.left.blocked.len())
    };
    assert_eq!(at(0, &host), (1, 1), "fails");
    host.answer_scripts(&[("prepare", "")]);
    assert_eq!(at(1, &host), (0, 1), "not yet again");
    assert_eq!(at(15, &host), (1, 0));
    assert_eq!(at(16, &host), (0, 0));
    assert_eq!(at(15 + limits::SCRIPT_REFRESH.as_secs(), &host), (1, 0));
}

/// `docs/contract/wicd.md`, WICD75.
#[test]
fn a_running_service_goes_on_with_what_its_scripts_gave_before() {
    let host = FakeWindows::new("winhost");
    let mut one = service("a", &[]);
    one.command = "a --ip IP".to_owned();
    one.powershell_pre_scripts = vec![PreScript {
        variable_name: "IP".to_owned(),
        path: "get-ip".to_owned(),
        node_args: Vec::new(),
    }];
    let list = manifest(vec![one]);
    let mut results = ScriptResults::new();
    let refresh = limits::SCRIPT_REFRESH.as_secs();
    let mut at = |seconds: i64| {
        let now = Timestamp::from_second(seconds).unwrap();
        settle(&host, all(&list), None, &mut results, now).unwrap().left.to_string()
    };
    let command = || host.query(&name("a")).unwrap().unwrap().config.command;
    host.answer_scripts(&[("get-ip", "10.0.0.1")]);
    assert_eq!(at(0), "");
    host.answer_scripts(&[]);
    // The service is still managed.
    let right = host.query(&name("a")).unwrap().unwrap().config;
    let wrong = ServiceConfig { command: "wrong".to_owned(), ..right };
    host.configure(&name("a"), &wrong).unwrap();
    assert_eq!(at(refresh), "");
    assert_eq!(command(), "a --ip 10.0.0.1");
    // A stopped service waits until its scripts work.
    let again = refresh + limits::SCRIPT_RECHECK.as_secs();
    host.stop(&name("a"), Wait::at_most(limits::SCRIPT)).unwrap();
    insta::assert_snapshot!(at(again), @"service a waits: script `get-ip` failed with code 1, look at it on the host: no answer is prepared for this script");
    host.answer_scripts(&[("get-ip", "10.0.0.2")]);
    assert_eq!(at(again + limits::SCRIPT_RETRY.as_secs()), "");
    assert_eq!(command(), "a --ip 10.0.0.2");
}

/// `docs/contract/services.md`, SVC45: after a restart the route to the metadata service may be missing.
#[test]
fn a_service_starts_with_the_name_that_it_had() {
    let host = FakeWindows::new("winhost");
    let mut one = service("a", &[]);
    one.command = "a --name=NAME --ip=IP".to_owned();
    let script = |variable: &str, path: &str| PreScript {
        variable_name: variable.to_owned(),
        path: path.to_owned(),
        node_args: Vec::new(),
    };
    one.powershell_pre_scripts = vec![script("NAME", AWS_HOST_NAME), script("IP", "get-ip")];
    let list = manifest(vec![one]);
    let answers = |name: Option<&'static str>| {
        host.set_http(move |request| {
            let body = if request.method == "GET" { name? } else { "token" };
            Some(HttpAnswer { status: 200, body: body.to_owned() })
        });
    };
    // Each time a new daemon without memory.
    let settled = || {
        let done = settle(&host, all(&list), None, &mut ScriptResults::new(), NOW).unwrap();
        (done.left.to_string(), host.query(&name("a")).unwrap().map(|seen| seen.config.command))
    };
    host.answer_scripts(&[("get-ip", "10.0.0.1")]);
    answers(None);
    assert!(settled().0.contains("NAME is not known"), "nobody ever said it");
    answers(Some("one.internal"));
    let running = (String::new(), Some("a --name=one.internal --ip=10.0.0.1".to_owned()));
    assert_eq!(settled(), running);
    host.machine().restart().unwrap();
    answers(None);
    assert_eq!(settled(), running);
    assert_eq!(host.query(&name("a")).unwrap().unwrap().state, ServiceRunState::Running);
    // A new answer is used, and a value that may change is not remembered.
    answers(Some("two.internal"));
    assert_eq!(settled().1.unwrap(), "a --name=two.internal --ip=10.0.0.1");
    host.machine().restart().unwrap();
    host.answer_scripts(&[]);
    assert!(settled().0.contains("`get-ip` failed"));
}

#[test]
fn a_process_whose_file_a_script_changed_starts_anew_once() {
    let host = FakeWindows::new("winhost");
    let mut one = service("a", &[]);
    one.command = r"a --config=C:\k\a.conf -log-file=C:\var\log\a.log".to_owned();
    one.powershell_pre_scripts = vec![PreScript {
        variable_name: String::new(),
        path: "render".to_owned(),
        node_args: Vec::new(),
    }];
    let list = manifest(vec![one]);
    let mut results = ScriptResults::new();
    let mut calls = |day: i64, content: &'static str| -> Vec<Call> {
        let shared = host.clone();
        host.set_powershell(move |_| {
            shared.put_file(&r"C:\k\a.conf".parse().unwrap(), content);
            shared.put_file(&r"C:\var\log\a.log".parse().unwrap(), day.to_string());
            crate::windows::ScriptOutput::default()
        });
        host.clear_changes();
        let now = Timestamp::from_second(day * 86_400).unwrap();
        settle(&host, all(&list), None, &mut results, now).unwrap();
        host.changes().into_iter().map(|(call, _)| call).skip(1).collect()
    };
    assert_eq!(calls(0, "1"), [Call::ServicesCreate, Call::ServicesStart]);
    assert_eq!(calls(1, "1"), []);
    assert_eq!(calls(2, "2"), [Call::ServicesStop, Call::ServicesStart]);
    assert_eq!(calls(3, "2"), []);
}

#[test]
fn removal_takes_what_is_ours_and_stubs_that_a_crash_left() {
    let host = FakeWindows::new("winhost");
    let before = host.snapshot();
    bring_up(&host, &chain());
    let (stub, mut config) = other("kubelet", &[], "");
    config.command = "\"\"".to_owned();
    host.add_service(&stub, &config, ServiceRunState::Stopped);
    let (theirs, config) = other("containerd", &[], "");
    host.add_service(&theirs, &config, ServiceRunState::Running);
    let listed = manifest(vec![service("kubelet", &[]), service("containerd", &[])]);
    let plan = remove(Owner::ours(), &[listed], &host.list().unwrap());
    execute(&plan, &host, &mut ScriptResults::new(), NOW, &|| true);
    let mut after = host.snapshot();
    assert!(after.services.remove(&theirs).is_some(), "another product's containerd stays");
    assert_eq!(after, before);
}

/// A service of a random world: its dependencies, and its initial state on the host.
#[derive(Clone, Debug)]
struct Start {
    needs: Vec<usize>,
    there: Option<(bool, bool, Vec<usize>)>,
}

fn any_start() -> impl Strategy<Value = Vec<Start>> {
    let one = (
        vec(0..5_usize, 0..3),
        prop::option::of((any::<bool>(), any::<bool>(), vec(0..5_usize, 0..3))),
    );
    vec(one.prop_map(|(needs, there)| Start { needs, there }), 1..6)
}

fn label(place: usize) -> String {
    format!("s{place}")
}

/// Returns earlier services only, so that there is no cycle.
fn earlier(needs: &[usize], place: usize) -> Vec<ServiceName> {
    let mut names: Vec<_> =
        needs.iter().filter(|need| **need < place).map(|need| name(&label(*need))).collect();
    names.sort();
    names.dedup();
    names
}

fn world(start: &[Start]) -> (FakeWindows, Manifest) {
    let host = FakeWindows::new("winhost");
    let mut services = Vec::new();
    for (place, one) in start.iter().enumerate() {
        let own = label(place);
        let mut wanted = service(&own, &[]);
        wanted.dependencies = earlier(&one.needs, place);
        if let Some((right, runs, needs)) = &one.there {
            let config = resolve::config(&wanted, Owner::ours(), None, &BTreeMap::new()).unwrap();
            let wrong = ServiceConfig {
                command: "wrong".to_owned(),
                dependencies: earlier(needs, place),
                ..config.clone()
            };
            let state = if *runs { ServiceRunState::Running } else { ServiceRunState::Stopped };
            host.add_service(&name(&own), if *right { &config } else { &wrong }, state);
        }
        services.push(wanted);
    }
    let (old, config) = other("old", &["s0"], "OpenShift managed old");
    host.add_service(&old, &config, ServiceRunState::Running);
    let (user, config) = other("user", &["s0"], "somebody's");
    host.add_service(&user, &config, ServiceRunState::Running);
    (host, manifest(services))
}

/// Checks that every step of a plan is allowed in the state in which it is taken.
fn check_safety(plan: &Plan, seen: &[Service]) -> Result<(), TestCaseError> {
    let graph = Graph::new(seen);
    let mut stopped: BTreeSet<&ServiceName> = seen
        .iter()
        .filter(|service| service.state == ServiceRunState::Stopped)
        .map(|service| &service.name)
        .collect();
    let changes: BTreeSet<&ServiceName> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.action, Action::Configure { .. } | Action::Delete { .. }))
        .map(|step| step.action.service())
        .collect();
    for step in &plan.steps {
        let service = step.action.service();
        match &step.action {
            Action::Stop { .. } => {
                for user in seen.iter().filter(|user| user.config.dependencies.contains(service)) {
                    prop_assert!(stopped.contains(&user.name), "{} before {}", service, user.name);
                }
                let mut reach = vec![service];
                let mut needed = false;
                while let Some(next) = reach.pop() {
                    needed |= changes.contains(next);
                    reach.extend(
                        graph.service(next).into_iter().flat_map(|s| &s.config.dependencies),
                    );
                }
                prop_assert!(needed, "{service} is stopped for nothing");
                stopped.insert(service);
            }
            Action::Configure { .. } | Action::Delete { .. } => {
                let free = stopped.contains(service) || !step.because.needs_a_stop();
                prop_assert!(free, "{} runs", service);
            }
            Action::Start { needs, .. } => {
                prop_assert!(
                    needs.iter().all(|need| !stopped.contains(need)),
                    "{service} is early"
                );
                stopped.remove(service);
            }
            Action::EndLeftovers { .. } => {
                let rests = stopped.contains(service) || graph.service(service).is_none();
                prop_assert!(rests, "{} runs", service);
            }
            Action::RunScripts { .. } | Action::Create { .. } => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    /// Whatever fails and whenever the process dies, all services end up configured and running, those of ours that are
    /// not desired are gone, others have their configuration; no plan in between is unsafe.
    #[test]
    fn converges_safely(
        start in any_start(),
        cuts in vec(0..5_usize, 0..4),
        faults in vec((0..Call::ALL.len(), 0..3_usize, any::<bool>()), 0..4),
    ) {
        let (host, list) = world(&start);
        let user_before = host.query(&name("user")).unwrap().unwrap().config;
        for (call, times, lost) in &faults {
            let call = Call::ALL[*call];
            // A failing list ends a pass before it plans anything.
            if call.changes() {
                host.fail(call, "", *times, if *lost { Fault::Lost } else { Fault::Other });
            }
        }
        let mut results = ScriptResults::new();
        for cut in cuts {
            host.cut_after(cut);
            let services = host.list().unwrap();
            let observed = Observed { services: &services, node: None, results: &results };
            let plan = reconcile(all(&list), observed, NOW);
            check_safety(&plan, &services)?;
            execute(&plan, &host, &mut results, NOW, &|| true);
            // Undoes the cut, not the planned faults.
            host.cut_after(usize::MAX - 1);
        }
        for _ in 0..8 {
            let services = host.list().unwrap();
            let observed = Observed { services: &services, node: None, results: &results };
            let plan = reconcile(all(&list), observed, NOW);
            check_safety(&plan, &services)?;
            execute(&plan, &host, &mut results, NOW, &|| true);
        }
        for wanted in list.services() {
            let seen = host.query(&wanted.name).unwrap().unwrap();
            prop_assert_eq!(seen.state, ServiceRunState::Running);
            prop_assert_eq!(&seen.config.command, &format!("{} --run", wanted.name));
            prop_assert_eq!(&seen.config.dependencies, &wanted.dependencies);
            prop_assert_eq!(seen.config.description, format!("OpenShift managed {}", wanted.name));
        }
        prop_assert!(host.query(&name("old")).unwrap().is_none());
        let user = host.query(&name("user")).unwrap().unwrap();
        prop_assert_eq!(user.config, user_before);
        prop_assert!(plan(&host, &list).is_settled());
    }

    /// Undisturbed, two passes are enough, and an unrelated dependent runs again at the end.
    #[test]
    fn settles_at_once(start in any_start()) {
        let (host, list) = world(&start);
        let settled = bring_up(&host, &list);
        prop_assert!(settled.failures.is_empty() && settled.left.is_settled());
        let user = host.query(&name("user")).unwrap().unwrap();
        prop_assert_eq!(user.state, ServiceRunState::Running);
        host.clear_changes();
        bring_up(&host, &list);
        prop_assert_eq!(host.changes(), vec![]);
    }
}
