//! Services one by one: `docs/contract/wicd.md`, WICD70 to WICD76; `docs/contract/services.md`, SVC30 to SVC32.

use serde_json::{Value, json};
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::{Call, FakeWindows};
use wmco_services::lifecycle;
use wmco_services::manifest::{Manifest, PreScript, Service};
use wmco_services::owner::Owner;
use wmco_services::services::{Desired, Scope, ScriptResults, Settled, settle};
use wmco_services::windows::{self, ScriptOutput, ServiceManager as _, StartType};

use super::{
    NOW, bootstrap, command, manifest_of, name, other, ready_node, script, service, state, tagged,
    variable,
};

fn bring_up(host: &FakeWindows, service: Service, node: Option<&Value>) -> Settled {
    let manifest = manifest_of(vec![service]);
    let desired = Desired { manifest: &manifest, scope: Scope::All, owner: Owner::ours() };
    settle(host, desired, node, &mut ScriptResults::new(), NOW).unwrap()
}

fn host() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    host.answer_scripts(&[("Get-IP", "127.0.0.1\r\n"), ("Get-Port", "4789"), ("Set-Up", "")]);
    host
}

fn with_node_variable(path: &str) -> Service {
    let mut service = service("x", &[]);
    "x --a=VALUE".clone_into(&mut service.command);
    service.node_variables_in_command = vec![variable("VALUE", path)];
    service
}

fn with_scripts(command: &str, scripts: Vec<PreScript>) -> Service {
    let mut service = service("x", &[]);
    command.clone_into(&mut service.command);
    service.powershell_pre_scripts = scripts;
    service
}

#[track_caller]
fn waits(settled: &Settled, part: &str) {
    assert_eq!(settled.left.blocked.len(), 1, "{}", settled.left);
    let reason = &settled.left.blocked[0].reason;
    assert!(reason.contains(part), "{reason}");
}

// Values from the Node and from scripts: SVC30 to SVC32.

/// Unlike the original's: a service that uses no value of the node needs no node.
#[test]
fn a_node_that_does_not_exist_is_missed_only_by_who_asks_it() {
    let host = host();
    waits(&bring_up(&host, with_node_variable("{.metadata.name}"), None), "wait until it is there");
    assert_eq!(state(&host, "x"), None);
    assert!(bring_up(&host, service("y", &[]), None).left.is_settled());
}

#[test]
fn an_annotation_that_is_missing_is_awaited() {
    let path = "{.metadata.annotations.other}";
    waits(&bring_up(&host(), with_node_variable(path), Some(&ready_node(&[]))), "VALUE");
}

#[test]
fn an_annotation_gives_its_value() {
    let (host, node) = (host(), ready_node(&[("other", "here")]));
    bring_up(&host, with_node_variable("{.metadata.annotations.other}"), Some(&node));
    assert_eq!(command(&host, "x").unwrap(), "x --a=here");
}

#[test]
fn an_annotation_and_a_label_give_their_values() {
    let (host, node) = (host(), ready_node(&[("other", "here")]));
    let mut service = service("x", &[]);
    "x A B".clone_into(&mut service.command);
    service.node_variables_in_command = vec![
        variable("A", "{.metadata.annotations.other}"),
        variable("B", "{.metadata.labels.zone}"),
    ];
    bring_up(&host, service, Some(&node));
    assert_eq!(command(&host, "x").unwrap(), "x here east");
}

#[test]
fn a_service_without_scripts_runs_none() {
    let host = host();
    bring_up(&host, service("x", &[]), None);
    assert!(host.changes().iter().all(|(call, _)| *call != Call::PowerShellRun));
}

#[test]
fn five_arguments_of_a_script_are_filled_in() {
    let host = FakeWindows::new("winhost");
    host.answer_scripts(&[(r"C:\Temp\net.ps1 10.0.0.0/24 C:\k\cni C:\k\conf 4 5", "done")]);
    let path = r"C:\Temp\net.ps1 SUBNET FOLDER FILE VERBOSE COUNT";
    let mut script = script("RESULT", path);
    script.node_args = vec![
        variable("SUBNET", r"{.metadata.annotations.k8s\.ovn\.org/subnet}"),
        variable("FOLDER", r"C:\k\cni"),
        variable("FILE", r"C:\k\conf"),
        variable("VERBOSE", "4"),
        variable("COUNT", "5"),
    ];
    let node = ready_node(&[("k8s.ovn.org/subnet", "10.0.0.0/24")]);
    let settled = bring_up(&host, with_scripts("x RESULT", vec![script]), Some(&node));
    assert!(settled.left.is_settled(), "{}", settled.left);
    assert_eq!(command(&host, "x").unwrap(), "x done");
}

/// `docs/contract/services.md`, SVC47: on many hosts everybody may write to `C:\\Temp`.
#[test]
fn scripts_of_ours_run_from_where_nobody_else_may_write() {
    let host = FakeWindows::new("winhost");
    let runs = |text: &str| {
        host.clear_changes();
        host.set_powershell(|_| ScriptOutput::default());
        bring_up(&host, with_scripts("x", vec![script("", text)]), None);
        let run = host.changes().into_iter().find(|(call, _)| *call == Call::PowerShellRun);
        run.map(|(_, text)| text).unwrap()
    };
    assert_eq!(
        runs(r"C:\Temp\windows-defender-exclusion.ps1 -BinPath C:\k\x.exe"),
        r"C:\k\scripts\windows-defender-exclusion.ps1 -BinPath C:\k\x.exe"
    );
    assert_eq!(runs(r"& 'C:\Temp\network-conf.ps1'"), r"& 'C:\k\scripts\network-conf.ps1'");
    // Scripts of a person's own manifest run from where it names them.
    assert_eq!(runs(r"C:\Temp\theirs.ps1"), r"C:\Temp\theirs.ps1");
    assert_eq!(runs(r"C:\Temp\network-conf.ps1x"), r"C:\Temp\network-conf.ps1x");
}

#[test]
fn an_unknown_script_holds_its_service_back() {
    let host = host();
    waits(&bring_up(&host, with_scripts("x IP", vec![script("IP", "Other")]), None), "Other");
    assert_eq!(state(&host, "x"), None);
}

#[test]
fn the_output_of_a_script_is_the_value() {
    let host = host();
    bring_up(&host, with_scripts("x IP", vec![script("IP", "Get-IP")]), None);
    assert_eq!(command(&host, "x").unwrap(), "x 127.0.0.1");
}

#[test]
fn a_script_without_a_variable_runs_for_its_effect() {
    let host = host();
    bring_up(&host, with_scripts("x", vec![script("", "Set-Up")]), None);
    assert!(host.changes().contains(&(Call::PowerShellRun, "Set-Up".to_owned())));
    assert_eq!(command(&host, "x").unwrap(), "x");
}

#[test]
fn two_scripts_give_two_values() {
    let host = host();
    let scripts = vec![script("IP", "Get-IP"), script("PORT", "Get-Port")];
    bring_up(&host, with_scripts("x IP:PORT", scripts), None);
    assert_eq!(command(&host, "x").unwrap(), "x 127.0.0.1:4789");
}

// A service that differs: WICD70.

/// Changes `fakeservice`, which runs with another command and description, to `wanted`.
fn corrected(before: (&str, &str), mut wanted: Service, expected: &str) {
    let host = host();
    let (old, description) = before;
    let fake = name("fakeservice");
    let mut config = other(old, description, &[]);
    config.recovery = Some(wmco_services::services::recovery());
    host.add_service(&fake, &config, ServiceRunState::Running);
    wanted.name = fake.clone();
    bring_up(&host, wanted, Some(&ready_node(&[])));
    let seen = host.query(&fake).unwrap().unwrap();
    assert_eq!((seen.config.command.as_str(), seen.state), (expected, ServiceRunState::Running));
    assert_eq!(seen.config.description, tagged("fakeservice"));
}

const WRONG: (&str, &str) = ("wrong --path", "wrong description");

fn plain(command: &str) -> Service {
    with_scripts(command, Vec::new())
}

#[test]
fn an_empty_command_is_filled() {
    corrected(("", ""), plain("fakeservice"), "fakeservice");
}

#[test]
fn a_wrong_command_and_description_are_corrected() {
    corrected(WRONG, plain("fakeservice"), "fakeservice");
}

#[test]
fn a_wrong_description_alone_is_corrected() {
    corrected(("fakeservice", "wrong"), plain("fakeservice"), "fakeservice");
}

/// `docs/contract/wicd.md`, WICD70: a person's change of a service is reverted; returns whether the service was
/// restarted.
#[track_caller]
fn restarts_for(change: impl FnOnce(&mut windows::Service)) -> bool {
    let host = host();
    bring_up(&host, service("x", &[]), None);
    let before = host.query(&name("x")).unwrap();
    host.change_service(&name("x"), change);
    assert_ne!(host.query(&name("x")).unwrap(), before);
    host.clear_changes();
    bring_up(&host, service("x", &[]), None);
    let mut after = host.query(&name("x")).unwrap().unwrap();
    let before = before.unwrap();
    let process = std::mem::replace(&mut after.process, before.process);
    assert_eq!(after, before);
    process != before.process
}

#[test]
fn a_wrong_account_is_corrected() {
    assert!(restarts_for(|service| r".\somebody".clone_into(&mut service.account)));
}

#[test]
fn a_wrong_display_name_is_corrected() {
    assert!(!restarts_for(|service| "Anything".clone_into(&mut service.display_name)));
}

#[test]
fn a_wrong_error_control_is_corrected() {
    assert!(!restarts_for(|service| service.errors_ignored = false));
}

#[test]
fn a_wrong_service_type_is_corrected() {
    assert!(restarts_for(|service| service.own_process = false));
}

#[test]
fn a_wrong_command_gets_a_node_variable() {
    let mut wanted = plain("fakeservice --node-name=NAME_REPLACE -v");
    wanted.node_variables_in_command = vec![variable("NAME_REPLACE", "{.metadata.name}")];
    corrected(WRONG, wanted, "fakeservice --node-name=node -v");
}

#[test]
fn a_wrong_command_gets_a_script_variable() {
    let scripts = vec![script("CMD_REPLACE", "Get-IP")];
    let wanted = with_scripts("fakeservice --ip_example=CMD_REPLACE -v", scripts);
    corrected(WRONG, wanted, "fakeservice --ip_example=127.0.0.1 -v");
}

#[test]
fn a_wrong_command_gets_both() {
    let scripts = vec![script("CMD_REPLACE", "Get-IP")];
    let line = "fakeservice --node-name=NAME_REPLACE --ip_example=CMD_REPLACE -v";
    let mut wanted = with_scripts(line, scripts);
    wanted.node_variables_in_command = vec![variable("NAME_REPLACE", "{.metadata.name}")];
    corrected(WRONG, wanted, "fakeservice --node-name=node --ip_example=127.0.0.1 -v");
}

// Services that start before there is a Node: WICD3.

/// Returns the services that a bootstrap of these creates; all of them run.
fn bootstrapped(services: Vec<Service>) -> Vec<String> {
    let host = host();
    lifecycle::bootstrap(&host, &manifest_of(services), NOW).unwrap();
    let all = host.list().unwrap();
    let ours = all.iter().filter(|service| service.config.description.starts_with("OpenShift"));
    ours.inspect(|service| assert_eq!(service.state, ServiceRunState::Running))
        .map(|service| service.name.to_string())
        .collect()
}

#[test]
fn bootstrap_of_nothing() {
    assert_eq!(bootstrapped(vec![]), Vec::<String>::new());
}

#[test]
fn bootstrap_of_one() {
    assert_eq!(bootstrapped(vec![bootstrap("a", 0)]), ["a"]);
}

#[test]
fn bootstrap_leaves_others_to_the_controller() {
    let two = vec![Service { priority: 1, ..service("a", &[]) }, service("b", &[])];
    assert_eq!(bootstrapped(two), Vec::<String>::new());
}

#[test]
fn bootstrap_takes_the_first_two_of_three() {
    let three =
        vec![bootstrap("a", 0), bootstrap("b", 1), Service { priority: 2, ..service("c", &[]) }];
    assert_eq!(bootstrapped(three), ["a", "b"]);
}

// 22.5, lists of dependencies: the ConfigMap's, the host's, and whether they differ. A host's list may be empty but not
// null, so only the ConfigMap has that case.

fn list_differs(wanted: &str, seen: &[&str]) -> bool {
    let host = host();
    host.add_service(&name("foo"), &other("foo", "", &[]), ServiceRunState::Running);
    let mut config = other("x", &tagged("x"), seen);
    config.recovery = Some(wmco_services::services::recovery());
    assert_eq!(config.start, StartType::Manual);
    host.add_service(&name("x"), &config, ServiceRunState::Running);
    host.clear_changes();
    let services =
        format!(r#"[{{"name": "x", "path": "x", "bootstrap": false, "priority": 1{wanted}}}]"#);
    let mut data = manifest_of(vec![]).render();
    data.0.insert("services".to_owned(), services);
    let manifest = Manifest::parse(&data).unwrap();
    let desired = Desired { manifest: &manifest, scope: Scope::All, owner: Owner::ours() };
    settle(&host, desired, Some(&json!({})), &mut ScriptResults::new(), NOW).unwrap();
    !host.changes().is_empty()
}

#[test]
fn an_empty_list_is_no_dependencies() {
    assert!(!list_differs(r#", "dependencies": []"#, &[]));
}

#[test]
fn null_is_no_dependencies() {
    assert!(!list_differs(r#", "dependencies": null"#, &[]));
}

#[test]
fn a_list_that_is_left_out_is_no_dependencies() {
    assert!(!list_differs("", &[]));
}

#[test]
fn the_same_dependency_is_the_same() {
    assert!(!list_differs(r#", "dependencies": ["foo"]"#, &["foo"]));
}

#[test]
fn a_dependency_is_not_none() {
    assert!(list_differs(r#", "dependencies": ["foo"]"#, &[]));
}

#[test]
fn null_is_not_a_dependency() {
    assert!(list_differs(r#", "dependencies": null"#, &["foo"]));
}

#[test]
fn an_empty_list_is_not_a_dependency() {
    assert!(list_differs(r#", "dependencies": []"#, &["foo"]));
}
