mod roots;

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use wmco_core::names::host;
use wmco_core::protocol::ServiceRunState;

use super::*;
use crate::fake::{Call, FakeWindows, Fault};
use crate::manifest::{NodeVariable, Parts, PreScript, Service as Wanted};
use crate::scripts::AWS_HOST_NAME;
use crate::windows::{HttpAnswer, Inherited};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const VERSION: &str = "1.0.0-abc";

fn context<'a>(windows: &'a FakeWindows, bundle: Option<&'a WindowsPath>) -> PassContext<'a> {
    PassContext { windows, bundle, should_continue: &|| true }
}

fn wanted(name: &str, needs: &[&str], bootstrap: bool) -> Wanted {
    Wanted {
        name: name.parse().unwrap(),
        command: format!("{name} --node NODE_NAME"),
        node_variables_in_command: vec![NodeVariable {
            name: "NODE_NAME".to_owned(),
            node_object_json_path: if bootstrap { "kept" } else { "{.metadata.name}" }.to_owned(),
        }],
        powershell_pre_scripts: Vec::new(),
        dependencies: needs.iter().map(|need| need.parse().unwrap()).collect(),
        bootstrap,
        priority: u64::from(!bootstrap),
    }
}

fn manifest(proxy: Option<&str>) -> Manifest {
    let mut kubelet = wanted("kubelet", &[], true);
    "kubelet --run".clone_into(&mut kubelet.command);
    kubelet.node_variables_in_command.clear();
    let proxy = proxy.map(|value| ("HTTP_PROXY".to_owned(), value.to_owned()));
    Manifest::new(Parts {
        services: vec![kubelet, wanted("overlay", &["kubelet"], false)],
        environment: proxy.into_iter().collect(),
        watched: host::PROXY_VARIABLES.map(str::to_owned).to_vec(),
        ..Parts::default()
    })
    .unwrap()
}

/// A host, its Node, and an operator that restarts the host on request.
struct World {
    host: FakeWindows,
    annotations: BTreeMap<String, String>,
    results: ScriptResults,
    restarts: usize,
}

impl World {
    fn new() -> Self {
        let annotations =
            BTreeMap::from([(names::DESIRED_VERSION_ANNOTATION.to_owned(), VERSION.to_owned())]);
        let host = FakeWindows::new("winhost").running_as_service();
        host.with_tree(|tree| tree.make_folders(&host::ROOT.parse().unwrap()));
        Self { host, annotations, results: ScriptResults::new(), restarts: 0 }
    }

    fn node(&self) -> Value {
        let kubelet = self.host.snapshot().services.get(&"kubelet".parse().unwrap()).cloned();
        let ready = kubelet.is_some_and(|(_, state)| state == ServiceRunState::Running);
        json!({
            "metadata": {"name": "win-1", "annotations": self.annotations},
            "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "Unknown" }}]},
        })
    }

    fn pass(&mut self, manifest: &Manifest) -> Option<Pass> {
        let node = self.node();
        let desired = Desired { node: Some(&node), manifest: ManifestState::Read(manifest) };
        let pass = pass(context(&self.host, None), desired, &mut self.results, NOW).ok()?;
        self.annotations.extend(pass.annotations.clone());
        Some(pass)
    }

    /// Acts as the operator between two passes.
    fn operate(&mut self) {
        if self.annotations.contains_key(names::REBOOT_ANNOTATION) {
            self.host.power_off();
            self.host.boot();
            self.restarts += 1;
            self.annotations.remove(names::REBOOT_ANNOTATION);
        }
    }

    fn version(&self) -> Option<&str> {
        self.annotations.get(names::VERSION_ANNOTATION).map(String::as_str)
    }

    /// Checks everything that the version annotation promises.
    fn check_promise(&self, manifest: &Manifest) -> Result<(), TestCaseError> {
        let seen = self.host.snapshot();
        prop_assert_eq!(&seen.environment, manifest.environment());
        let environment = Windows::environment(&self.host);
        prop_assert_eq!(environment.changed_since_boot().unwrap(), BTreeSet::new());
        for name in host::PROXY_VARIABLES {
            let wanted = manifest.environment().get(name).cloned();
            let wanted = wanted.map_or(Inherited::Nothing, Inherited::Value);
            prop_assert!(environment.inherited(name).unwrap() == wanted, "{}", name);
        }
        for wanted in manifest.services() {
            let (config, state) = &seen.services[&wanted.name];
            prop_assert_eq!(*state, ServiceRunState::Running);
            prop_assert_eq!(&config.command, &wanted.command.replace("NODE_NAME", "win-1"));
        }
        Ok(())
    }
}

/// `docs/contract/services.md`, SVC46: a restarted host gets its route back before a service needs it.
#[test]
fn a_lost_route_is_back_before_the_services_that_need_it() {
    let mut kubelet = wanted("kubelet", &[], true);
    "kubelet --hostname-override=NAME".clone_into(&mut kubelet.command);
    kubelet.node_variables_in_command.clear();
    kubelet.powershell_pre_scripts = vec![PreScript {
        variable_name: "NAME".to_owned(),
        path: AWS_HOST_NAME.to_owned(),
        node_args: Vec::new(),
    }];
    let manifest = Manifest::new(Parts { services: vec![kubelet], ..Parts::default() }).unwrap();
    let mut world = World::new();
    let host = world.host.clone();
    world.host.set_http(move |request| {
        let there = host.host_routes().contains(&METADATA_SERVICE);
        let body = if request.method == "GET" { "win.internal" } else { "token" };
        there.then(|| HttpAnswer { status: 200, body: body.to_owned() })
    });
    for _ in 0..2 {
        let pass = world.pass(&manifest).unwrap();
        assert_eq!(pass.plan.steps[0].action.verb(), "add-route");
        assert_eq!(pass.failures, [""; 0]);
        // While the route exists, no step concerns it.
        let verbs =
            |pass: Pass| pass.plan.steps.iter().map(|step| step.action.verb()).collect::<Vec<_>>();
        assert!(!verbs(world.pass(&manifest).unwrap()).contains(&"add-route"));
        let (config, _) = &world.host.snapshot().services[&"kubelet".parse().unwrap()];
        assert_eq!(config.command, "kubelet --hostname-override=win.internal");
        world.host.power_off();
        world.host.boot();
        world.results.clear();
    }
    world.host.set_default_routes(Vec::new());
    let notes = world.pass(&manifest).unwrap().plan.notes;
    assert!(notes.iter().any(|note| note.text.contains("no default route")), "{notes:?}");
}

fn plan(desired: Desired<'_>) -> String {
    reconcile(desired, &Observed::default(), &ScriptResults::new(), NOW).to_string()
}

#[test]
fn waits_for_what_the_cluster_has_to_do() {
    let good = manifest(None);
    let node = |annotations: Value| json!({"metadata": {"name": "n", "annotations": annotations}});
    let read = ManifestState::Read(&good);
    insta::assert_snapshot!(plan(Desired { node: None, manifest: read }), @"then await the node, until 1970-01-01T00:02:00Z");
    let empty = node(json!({(names::DESIRED_VERSION_ANNOTATION): ""}));
    insta::assert_snapshot!(plan(Desired { node: Some(&empty), manifest: read }), @"then await a desired version, until 1970-01-01T00:02:00Z");
    let reboot =
        node(json!({(names::DESIRED_VERSION_ANNOTATION): "1", (names::REBOOT_ANNOTATION): ""}));
    insta::assert_snapshot!(plan(Desired { node: Some(&reboot), manifest: read }), @"then await the restart of the host, until 1970-01-01T00:02:00Z");
    let asked = node(json!({(names::DESIRED_VERSION_ANNOTATION): "1"}));
    insta::assert_snapshot!(plan(Desired { node: Some(&asked), manifest: ManifestState::Held }), @r"
    note: the content of the services ConfigMap is not released for this node yet
    then await the release of other services, until 1970-01-01T00:02:00Z
    ");
    insta::assert_snapshot!(plan(Desired { node: Some(&asked), manifest: ManifestState::Refused("key missing") }), @r"
    note: the services ConfigMap for version 1 is refused: key missing
    then await the services ConfigMap, until 1970-01-01T00:02:00Z
    ");
}

#[test]
fn a_new_node_is_brought_up_and_marked_last() {
    let mut world = World::new();
    let manifest = manifest(None);
    let first = world.pass(&manifest).unwrap();
    assert_eq!((first.plan.next, world.version()), (Next::Now, None));
    let second = world.pass(&manifest).unwrap();
    assert!(matches!(second.plan.next, Next::Settled { .. }));
    assert_eq!(world.version(), Some(VERSION));
    let third = world.pass(&manifest).unwrap();
    assert!(third.plan.steps.is_empty() && third.annotations.is_empty());
}

#[test]
fn told_to_stop_a_pass_does_and_marks_nothing_more() {
    let mut world = World::new();
    let manifest = manifest(None);
    let node = world.node();
    let stopped = |world: &mut World, node: &Value| {
        let desired = Desired { node: Some(node), manifest: ManifestState::Read(&manifest) };
        let context = PassContext { should_continue: &|| false, ..context(&world.host, None) };
        pass(context, desired, &mut world.results, NOW).unwrap()
    };
    let before = world.host.snapshot();
    stopped(&mut world, &node);
    assert_eq!(world.host.snapshot(), before);
    world.pass(&manifest);
    // Everything is as desired, and only the version annotation is missing.
    let node = world.node();
    let last = stopped(&mut world, &node);
    assert_eq!(last.plan.steps.len(), 1);
    assert!(last.annotations.is_empty());
}

#[test]
fn a_changed_variable_asks_for_one_restart_before_anything_else() {
    let mut world = World::new();
    let manifest = manifest(Some("http://p"));
    let first = world.pass(&manifest).unwrap();
    let text = first.plan.to_string();
    let text = text.replace(names::REBOOT_ANNOTATION, "REBOOT");
    insta::assert_snapshot!(text, @r#"
    change-variables, because variables are not as asked for
      record-variables (1 in all), because variables are about to be set
      set-variable HTTP_PROXY, because it is not set
      then restart the host
    annotate-node REBOOT="", because a change comes into force only when the host restarts
    then await the restart of the host, until 1970-01-01T00:02:00Z
    "#);
    assert!(world.pass(&manifest).unwrap().plan.steps.is_empty());
    // Removing the request without a restart has no effect.
    world.annotations.remove(names::REBOOT_ANNOTATION);
    world.pass(&manifest).unwrap();
    assert!(world.annotations.contains_key(names::REBOOT_ANNOTATION));
    for _ in 0..4 {
        world.operate();
        world.pass(&manifest).unwrap();
    }
    assert_eq!((world.restarts, world.version()), (1, Some(VERSION)));
}

#[test]
fn a_node_that_is_not_ready_is_not_marked() {
    let mut world = World::new();
    let manifest = manifest(None);
    world.pass(&manifest);
    let mut node = world.node();
    node["status"]["conditions"][0]["status"] = json!("False");
    let desired = Desired { node: Some(&node), manifest: ManifestState::Read(&manifest) };
    let pass = pass(context(&world.host, None), desired, &mut world.results, NOW).unwrap();
    insta::assert_snapshot!(pass.plan, @"then await the node to be ready, until 1970-01-01T00:02:00Z");
    assert!(pass.annotations.is_empty());
}

#[test]
fn a_kubelet_that_answers_500_holds_the_mark_back() {
    let mut world = World::new();
    let mut kubelet = wanted("kubelet", &[], true);
    r"kubelet --config=C:\k\kubelet.conf".clone_into(&mut kubelet.command);
    kubelet.node_variables_in_command.clear();
    let parts = Parts { services: vec![kubelet], ..Parts::default() };
    let manifest = Manifest::new(parts).unwrap();
    world.host.put_file(&host::KUBELET_CONFIG.parse().unwrap(), "{}");
    world.host.set_http_status(10_248, Some(500));
    world.pass(&manifest);
    let sick = world.pass(&manifest).unwrap();
    insta::assert_snapshot!(sick.plan, @r"
    note: service kubelet runs, but http://127.0.0.1:10248/healthz answers 500
    then await services to answer, until 1970-01-01T00:00:05Z
    ");
    assert_eq!(world.version(), None);
    world.host.set_http_status(10_248, Some(200));
    world.pass(&manifest);
    assert_eq!(world.version(), Some(VERSION));
    // An existing annotation stays; the Node's condition reports the problem.
    world.host.set_http_status(10_248, None);
    assert!(matches!(world.pass(&manifest).unwrap().plan.next, Next::Settled { .. }));
}

#[test]
fn a_missing_bundle_takes_no_root_away() {
    let mut world = World::new();
    let manifest = manifest(None);
    let before = world.host.snapshot().roots;
    let node = world.node();
    let desired = Desired { node: Some(&node), manifest: ManifestState::Read(&manifest) };
    let file = host::CA_BUNDLE.parse().unwrap();
    let pass = pass(context(&world.host, Some(&file)), desired, &mut world.results, NOW).unwrap();
    let texts: Vec<&str> = pass.plan.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(texts, [r"the CA bundle C:\k\ca-bundle.crt is not there"]);
    assert_eq!(world.host.snapshot().roots, before);
}

#[test]
fn the_node_is_found_by_internal_addresses_first() {
    let node = |name: &str, os: &str, kind: &str, address: &str| {
        json!({
            "metadata": {"name": name, "labels": {(names::OS_LABEL): os}},
            "status": {"addresses": [{"type": kind, "address": address}]},
        })
    };
    let addresses = [[169, 254, 0, 1].into(), [127, 0, 0, 1].into(), [10, 0, 0, 1].into()];
    let identity = HostIdentity { addresses: addresses.to_vec(), ..HostIdentity::default() };
    let find = |nodes: &[Value]| find_node(nodes, &identity).map(|search| search.node);
    let linux = node("linux", "linux", "InternalIP", "10.0.0.1");
    let outside = node("outside", names::OS_WINDOWS, "ExternalIP", "10.0.0.1");
    let inside = node("inside", names::OS_WINDOWS, "InternalIP", "10.0.0.1");
    let local = node("local", names::OS_WINDOWS, "InternalIP", "169.254.0.1");
    assert_eq!(find(&[linux.clone(), local]), Ok(None));
    assert_eq!(find(&[linux, outside.clone()]), Ok(Some("outside".to_owned())));
    assert_eq!(find(&[outside, inside.clone()]), Ok(Some("inside".to_owned())));
    let twice = find(&[inside.clone(), inside]).unwrap_err();
    assert_eq!(twice.names.len(), 2);
}

#[test]
fn the_name_in_a_certificate_decides_where_addresses_do_not() {
    let node = |name: &str, os: &str, address: &str| {
        json!({
            "metadata": {"name": name, "labels": {(names::OS_LABEL): os}},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        })
    };
    let nodes = [
        node("a", names::OS_WINDOWS, "10.0.0.1"),
        node("b", names::OS_WINDOWS, "10.0.0.1"),
        node("c", names::OS_WINDOWS, "10.0.0.2"),
        node("d", "linux", "10.0.0.3"),
    ];
    let find = |address: [u8; 4], known: Option<&str>| {
        let names = known.into_iter().map(str::to_owned).collect();
        let identity =
            HostIdentity { addresses: vec![address.into()], names, ..HostIdentity::default() };
        find_node(&nodes, &identity).map(|search| search.node)
    };
    assert_eq!(find([10, 0, 0, 1], Some("b")), Ok(Some("b".to_owned())));
    assert!(find([10, 0, 0, 1], Some("c")).is_err());
    // A host's addresses outweigh a certificate, which may have been copied with its disk.
    assert_eq!(find([10, 0, 0, 2], Some("a")), Ok(Some("c".to_owned())));
    assert_eq!(find([10, 0, 0, 9], Some("c")), Ok(Some("c".to_owned())));
    assert_eq!(find([10, 0, 0, 9], Some("d")), Ok(None));
    assert_eq!(find([10, 0, 0, 9], Some("e")), Ok(None));
    assert_eq!(find([10, 0, 0, 9], None), Ok(None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// Whatever fails and whenever the process dies, the node ends up configured; whenever it has the version
    /// annotation, all that this promises is true; and it is not restarted without need.
    #[test]
    fn converges_safely(
        proxy in prop::option::of("[a-c]"),
        before in prop::option::of("[a-c]"),
        since in prop::option::of(prop::option::of("[a-c]")),
        cuts in vec(0..6_usize, 0..4),
        faults in vec((0..Call::ALL.len(), 0..2_usize, any::<bool>()), 0..4),
        drift in any::<bool>(),
    ) {
        let manifest = manifest(proxy.as_deref());
        let mut world = World::new();
        if let Some(value) = &before {
            let environment = Windows::environment(&world.host);
            environment.set("HTTP_PROXY", value).unwrap();
            world.host.boot();
        }
        // Later changes by others are no reason to restart, unless nobody reverts them.
        if let Some(value) = &since {
            world.host.change_variable("HTTP_PROXY", value.as_deref());
        }
        for (call, times, lost) in faults {
            let fault = if lost { Fault::Lost } else { Fault::Other };
            world.host.fail(Call::ALL[call], "", times, fault);
        }
        for cut in cuts {
            world.host.cut_after(cut);
            if let Some(pass) = world.pass(&manifest)
                && pass.annotations.contains_key(names::VERSION_ANNOTATION)
            {
                world.host.heal();
                world.check_promise(&manifest)?;
            }
            world.host.cut_after(usize::MAX - 1);
            world.operate();
        }
        for round in 0..12 {
            if drift && round == 3 {
                world.host.set_service_state(&"overlay".parse().unwrap(), ServiceRunState::Stopped);
            }
            if let Some(pass) = world.pass(&manifest)
                && pass.annotations.contains_key(names::VERSION_ANNOTATION)
            {
                world.host.heal();
                world.check_promise(&manifest)?;
            }
            world.operate();
        }
        prop_assert_eq!(world.version(), Some(VERSION));
        world.check_promise(&manifest)?;
        prop_assert_eq!(world.restarts, usize::from(proxy != before));
    }
}
