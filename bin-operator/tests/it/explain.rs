//! `explain csr`.

use std::collections::BTreeMap;
use std::fs;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde::Deserialize;
use serde_json::{Value, json};
use wmco_core::names::objects::DEFAULT_NAMESPACE;

use crate::program::{Run, run};
use crate::vectors::Case;

/// The one copy is that of the crate which decides.
const VECTORS: &str = include_str!("../../../wmco-csr/tests/vectors/csr.json");

#[derive(Deserialize)]
struct Input {
    csr: Value,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    namespace: String,
    nodes: Vec<Value>,
    windows_instances: Option<BTreeMap<String, String>>,
    dns: Value,
    reported_hostnames: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Expect {
    strict: bool,
    strict_level: String,
}

fn vectors() -> Vec<Case<Input, Expect>> {
    serde_json::from_str(VECTORS).unwrap()
}

impl Input {
    fn objects(&self) -> Vec<Value> {
        let cluster = &self.cluster;
        let list =
            cluster.windows_instances.as_ref().map(|data| instances(&cluster.namespace, data));
        let no_nodes = json!({"apiVersion": "v1", "kind": "NodeList", "items": []});
        let no_nodes = cluster.nodes.is_empty().then_some(no_nodes);
        let others = list.into_iter().chain(no_nodes);
        cluster.nodes.iter().chain([&self.csr]).cloned().chain(others).collect()
    }

    fn facts(&self) -> Value {
        json!({"dns": self.cluster.dns, "hostnames": self.cluster.reported_hostnames})
    }
}

fn instances(namespace: &str, data: &BTreeMap<String, String>) -> Value {
    let metadata = json!({"name": "windows-instances", "namespace": namespace});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

/// What is said of an approval where the input has neither Infrastructure nor Machines.
const CLUSTER_NOTES: &str = "\
note: no Infrastructure in the input, so a Node has the first label of its host's name, as on platform None
note: no Infrastructure in the input, so a name or an address could be the API server's or the ingress'
note: no Machine in the input, so a name or an address could be a Machine's; an empty MachineList says that there is none
";

fn documents(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

fn explain(input: &str, more: &[&str]) -> Run {
    run(&[&["explain", "csr", "-f", "-"], more].concat(), input)
}

fn explain_json(input: &str) -> Value {
    explain(input, &["-o", "json"]).json()
}

/// One case with a friendly answer, to be changed by tests.
fn good(name: &str) -> Input {
    let case = vectors().into_iter().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("no case {name}")).input
}

const CLIENT: &str = "kubelet-client: P-256";

/// All of level `must` and `should` are answered as they say; the others are the business of
/// `wmco-csr`, whose test lists the ones that it answers otherwise.
#[test]
fn the_vectors_hold() {
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("facts.json");
    let mut wrong = Vec::new();
    let mut judged = BTreeMap::new();
    for (case, number) in vectors().into_iter().zip(0..) {
        fs::write(&facts, case.input.facts().to_string()).unwrap();
        let objects = case.input.objects();
        // By turns one document for each object, and all in a list.
        let input = if number % 2 == 0 {
            documents(&objects)
        } else {
            serde_saphyr::to_string(&json!({"kind": "List", "apiVersion": "v1", "items": objects}))
                .unwrap()
        };
        let run = explain(&input, &["--facts", facts.to_str().unwrap(), "-o", "json"]);
        let found = run.json();
        let [answer] = &found.as_array().unwrap()[..] else { panic!("{}: {run:?}", case.name) };
        assert_eq!(answer["name"], case.input.csr["metadata"]["name"], "{}", case.name);
        assert!(answer["reason"].is_string(), "{}", case.name);
        for check in answer["checks"].as_array().unwrap() {
            let texts =
                ["rule", "outcome", "detail"].iter().all(|member| check[member].is_string());
            assert!(texts && check.as_object().unwrap().len() == 3, "{}: {check}", case.name);
        }
        let verdict = answer["verdict"].as_str().unwrap();
        assert!(["approve", "ignore", "refuse", "wait"].contains(&verdict), "{}", case.name);
        assert_eq!(run.status, i32::from(verdict != "approve"), "{}", case.name);
        let Expect { strict, strict_level } = case.expect;
        // Decided after the vectors were written: dots at the end mean nothing (CSR36).
        let decided_later = case.name == "kubelet-serving: own name with a trailing dot";
        if strict_level != "either" && (verdict == "approve") != (strict || decided_later) {
            wrong.push(format!("{} ({strict_level}, strict {strict}): {answer:#}", case.name));
        }
        *judged.entry(strict_level).or_insert(0) += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged["must"] > 100 && judged["should"] > 10, "{judged:?}");
}

#[test]
fn people_see_what_decided_and_what_to_do() {
    let mut input = good(CLIENT);
    let mut other = input.csr.clone();
    other["metadata"]["name"] = json!("csr-other");
    other["metadata"]["creationTimestamp"] = json!("2026-02-03T04:00:00Z");
    other["spec"]["username"] = json!("jane");
    let mut foreign = input.csr.clone();
    foreign["metadata"]["name"] = json!("csr-foreign");
    foreign["spec"]["signerName"] = json!("example.test/signer");
    input.cluster.nodes.push(other);
    input.cluster.nodes.push(foreign);
    let run = explain(&documents(&input.objects()), &[]);
    assert_eq!((run.status, run.err.as_str()), (1, CLUSTER_NOTES));
    insta::assert_snapshot!(run.out);
}

#[test]
fn yaml_says_the_same_as_json() {
    let input = documents(&good(CLIENT).objects());
    let run = explain(&input, &["-o", "yaml"]);
    assert_eq!(run.status, 0, "{run:?}");
    let yaml: Value = serde_saphyr::from_str(&run.out).unwrap();
    assert_eq!(yaml, explain_json(&input));
}

#[test]
fn machines_are_left_to_their_approver() {
    let mut input = good(CLIENT);
    let verdict = |input: &Input, machine: Value| {
        let answer = &explain_json(&documents(&[&input.objects()[..], &[machine]].concat()))[0];
        (
            answer["verdict"].clone(),
            answer["reason"].as_str().unwrap().split(':').next().unwrap().to_owned(),
        )
    };
    let machine = |name: &str, status: Value| {
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {"name": name, "namespace": "openshift-machine-api"},
            "status": status,
        })
    };
    let left = (json!("ignore"), "machine".to_owned());
    let node = json!({"nodeRef": {"kind": "Node", "name": "win-bravo"}});
    assert_eq!(verdict(&input, machine("m-1", node)), left);
    let address =
        |kind: &str, address: &str| json!({"addresses": [{"type": kind, "address": address}]});
    assert_eq!(verdict(&input, machine("m-1", address("InternalDNS", "WIN-Bravo."))), left);
    assert_eq!(verdict(&input, machine("win-bravo", Value::Null)), left);
    let approved = (json!("approve"), "every check passed".to_owned());
    assert_eq!(verdict(&input, machine("m-1", address("InternalDNS", "win-7"))), approved);
    assert_eq!(verdict(&input, machine("win-bravo", address("InternalDNS", "win-7"))), approved);
    // The address counts as well, once it is known which one the instance has.
    let list = input.cluster.windows_instances.as_mut().unwrap();
    list.clear();
    list.insert("10.20.30.12".to_owned(), "username=core".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("facts.json");
    fs::write(&facts, r#"{"hostnames": {"10.20.30.12": "WIN-BRAVO"}}"#).unwrap();
    let machine = machine("m-1", address("InternalIP", "10.20.30.12"));
    let input = documents(&[&input.objects()[..], &[machine]].concat());
    let run = explain(&input, &["--facts", facts.to_str().unwrap(), "-o", "json"]);
    assert_eq!(run.json()[0]["reason"], "machine: Machine m-1 has the address 10.20.30.12");
}

/// A Windows Machine is decided about like an entry, by what the Machine API says of it.
#[test]
fn windows_machines_are_explained() {
    let mut input = good(CLIENT);
    input.cluster.windows_instances = None;
    let machine = |name: &str, address: &str| {
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {
                "name": name,
                "labels": {"machine.openshift.io/os-id": "Windows"},
            },
            "status": {"phase": "Provisioned", "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "InternalDNS", "address": "WIN-Bravo.plant.example.net"},
            ]},
        })
    };
    let explained =
        |more: &[Value]| explain(&documents(&[&input.objects()[..], more].concat()), &[]);
    let checks = |run: &Run| {
        let lines = run.out.lines().filter(|line| {
            ["because", "to do", "  machine", "  instance", "  node-absent"]
                .iter()
                .any(|part| line.contains(part))
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let ours = machine("winworker-a", "10.20.30.12");
    insta::assert_snapshot!(checks(&explained(std::slice::from_ref(&ours))), @r"
    because  every check passed
    to do    nothing, the operator approves it
       pass     machine        no other
       pass     instance       Machine winworker-a, by the Machine API
       pass     node-absent    no such node
       pass     machine-node   the Machine has none
    ");
    // Nobody knows which hosts are entries.
    let assumed =
        "no ConfigMap windows-instances in the input, so a name or an address could be an entry's";
    let objects = [&input.objects()[..], std::slice::from_ref(&ours)].concat();
    let alone = explain(&documents(&objects), &[]);
    assert!(alone.err.contains(assumed), "{alone:?}");
    explain(&documents(&objects), &["--strict"]).is_refused(2, &[assumed, "add it with -f FILE"]);
    let empty = instances(DEFAULT_NAMESPACE, &BTreeMap::new());
    let told = explain(&documents(&[&objects[..], &[empty]].concat()), &[]);
    assert!(!told.err.contains(assumed), "{told:?}");
    let mut deleted = ours.clone();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-05-04T03:02:01Z");
    deleted["status"]["addresses"][1]["address"] = json!("win-bravo");
    insta::assert_snapshot!(checks(&explained(&[deleted])), @r"
    because  machine: Machine winworker-a has the name win-bravo, and it is being deleted
    to do    leave it to cluster-machine-approver if the Machine does not run Windows, else see what the Machine lacks, or whether it is to be left alone; or remove the entry of the host from windows-instances
    -> fail     machine        Machine winworker-a has the name win-bravo, and it is being deleted
    ");
    let twin = machine("winworker-b", "10.20.30.13");
    insta::assert_snapshot!(checks(&explained(&[ours.clone(), twin])), @r"
    because  instance: Machine winworker-a (by the Machine API) and Machine winworker-b (by the Machine API) both claim the name win-bravo, rename one of the hosts or correct the DNS
    to do    give each host a name of its own, and list a host by its DNS name to say whose it is
       pass     machine        none
    -> fail     instance       Machine winworker-a (by the Machine API) and Machine winworker-b (by the Machine API) both claim the name win-bravo, rename one of the hosts or correct the DNS
    ");
    let mut at_work = ours;
    at_work["status"]["nodeRef"] = json!({"name": "win-old", "uid": "u-1"});
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "win-old", "uid": "u-1"},
    });
    insta::assert_snapshot!(checks(&explained(&[at_work, node])), @r"
    because  machine-node: Machine winworker-a has node win-old already
    to do    delete the Node of the Machine if the host was reinstalled, else find out why its host asks for another name
       pass     machine        no other
       pass     instance       Machine winworker-a, by the Machine API
       pass     node-absent    no such node
    -> fail     machine-node   Machine winworker-a has node win-old already
    ");
}

/// The host of a Machine answers under the name of the Machine.
#[test]
fn what_the_host_of_a_machine_reports_is_told_under_its_name() {
    let mut input = good(CLIENT);
    input.cluster.windows_instances = None;
    let machine = json!({
        "kind": "Machine",
        "metadata": {"name": "winworker-a", "labels": {"machine.openshift.io/os-id": "Windows"}},
        "status": {
            "phase": "Running",
            "addresses": [{"type": "InternalIP", "address": "10.20.30.12"}],
        },
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.json");
    let input = documents(&[&input.objects()[..], &[machine]].concat());
    for (key, verdict) in [("winworker-a_machine", "approve"), ("winworker-b_machine", "ignore")] {
        fs::write(&file, json!({"hostnames": {key: "WIN-BRAVO"}}).to_string()).unwrap();
        let run = explain(&input, &["--facts", file.to_str().unwrap(), "-o", "json"]);
        assert_eq!(run.json()[0]["verdict"], verdict, "{key}");
    }
}

/// Where a host is called otherwise than it is listed, its name has to be told.
#[test]
fn facts_that_are_missing_are_asked_for() {
    let mut input = good(CLIENT);
    let list = input.cluster.windows_instances.as_mut().unwrap();
    list.clear();
    list.insert("10.20.30.12".to_owned(), "username=core".to_owned());
    let input = documents(&input.objects());
    let run = explain(&input, &["-o", "json"]);
    assert_eq!(run.json()[0]["verdict"], "ignore");
    insta::assert_snapshot!(run.err, @"note: names and hosts are not asked, tell what they answer with --facts FILE");
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("facts.yaml");
    fs::write(&facts, "dns: {reverse: {10.20.30.12: [win-bravo.plant.example.net.]}}").unwrap();
    let run = explain(&input, &["--facts", facts.to_str().unwrap(), "-o", "json"]);
    assert_eq!((run.status, run.err.as_str()), (0, CLUSTER_NOTES), "{}", run.out);
}

/// What the cluster says of itself: how Nodes are named, where its services are, and that it has no Machines.
fn configuration(platform: &str, networks: &[&str]) -> [Value; 3] {
    let version = "config.openshift.io/v1";
    [
        json!({
            "apiVersion": version, "kind": "Infrastructure", "metadata": {"name": "cluster"},
            "status": {"platformStatus": {"type": platform}, "apiServerURL": "https://api.c.test:6443"},
        }),
        json!({
            "apiVersion": version, "kind": "Network", "metadata": {"name": "cluster"},
            "spec": {"serviceNetwork": networks},
        }),
        json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineList", "items": []}),
    ]
}

/// Verdict, reason, and what was told besides.
fn judged(input: &Input, more: &[Value], facts: &str) -> (Value, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("facts.json");
    fs::write(&path, facts).unwrap();
    let objects = documents(&[&input.objects()[..], more].concat());
    let run = explain(&objects, &["--facts", path.to_str().unwrap(), "-o", "json"]);
    let answer = run.json()[0].clone();
    (answer["verdict"].clone(), answer["reason"].clone(), run.err)
}

#[test]
fn a_node_has_the_name_that_the_platform_gives() {
    let input = good(CLIENT);
    let facts = "{}";
    let (verdict, _, told) = judged(&input, &configuration("None", &["172.30.0.0/16"]), facts);
    assert_eq!((verdict, told.as_str()), (json!("approve"), ""));
    let (verdict, reason, _) = judged(&input, &configuration("VSphere", &["172.30.0.0/16"]), facts);
    assert_eq!(verdict, "ignore");
    let expected = "instance: no instance has the name win-bravo, only a longer one of \
                    win-bravo.plant.example.net starts with it";
    assert_eq!(reason, expected);
}

/// Each of them was approved because the Node's status had the address.
#[test]
fn serving_names_are_checked_against_everybody_elses() {
    let input = good("kubelet-serving: P-256");
    let entry = "win-alpha.plant.example.net";
    let facts = |addresses: &str| {
        format!(
            r#"{{"dns": {{"forward": {{"{entry}": "10.20.30.11"}}}}, "addresses": {addresses}}}"#
        )
    };
    let none = configuration("None", &["172.30.0.0/16"]);
    let asked = facts(&format!(r#"{{"{entry}": ["10.20.30.11"]}}"#));
    let (verdict, reason, told) = judged(&input, &none, &asked);
    assert_eq!((verdict, told.as_str()), (json!("approve"), ""), "{reason}");
    // The address is one of a service, or of another entry.
    let services = configuration("None", &["fd02::/112", "10.20.0.0/16"]);
    let (_, reason, _) = judged(&input, &services, &asked);
    assert_eq!(reason, "belongs: 10.20.30.11: that is an address of the service network");
    let mut twice = good("kubelet-serving: P-256");
    let list = twice.cluster.windows_instances.as_mut().unwrap();
    list.insert("10.20.30.11".to_owned(), "username=core".to_owned());
    let (_, reason, _) = judged(&twice, &none, &asked);
    assert_eq!(reason, "belongs: 10.20.30.11: that is entry 10.20.30.11's");
}

/// What is taken for granted is said, where it matters.
#[test]
fn what_the_input_leaves_open_is_said() {
    let input = good("kubelet-serving: all kinds of addresses of the node");
    let none = configuration("None", &["172.30.0.0/16"]);
    let (verdict, _, told) = judged(&input, &none, "{}");
    assert_eq!(verdict, "approve");
    assert!(told.starts_with("note: hosts are not asked for their addresses"), "{told}");
    let (verdict, reason, told) = judged(&input, &none, r#"{"addresses": {}}"#);
    assert_eq!((verdict, told.as_str()), (json!("refuse"), ""), "{reason}");
    let (_, _, told) = judged(&input, &none[..1], "{}");
    assert!(told.contains("no Network in the input"), "{told}");
}

/// What is told of a request with these objects beside it, and what is an error where it has to be there.
#[test]
fn what_the_input_lacks_is_said_and_an_error_where_it_has_to_be_there() {
    let mut input = good(CLIENT);
    let all = configuration("None", &["172.30.0.0/16"]);
    let parts = [
        (0, "could be the API server's or the ingress'"),
        (2, "could be a Machine's; an empty MachineList"),
    ];
    let run_with = |input: &Input, more: &[Value], strict: bool| {
        let objects = documents(&[&input.objects()[..], more].concat());
        explain(&objects, if strict { &["--strict"] } else { &[] })
    };
    for strict in [false, true] {
        let run = run_with(&input, &all, strict);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{run:?}");
    }
    for (missing, note) in parts {
        let mut more = all.to_vec();
        more.remove(missing);
        let run = run_with(&input, &more, false);
        assert!(run.status == 0 && run.err.contains(note), "{run:?}");
        run_with(&input, &more, true).is_refused(2, &[note, "add it with -f FILE"]);
    }
    // No request names its Node in the input, so any Node may be missing there.
    let note = "no Node in the input, so a name or an address could be another one's";
    let is_of_nodes = |object: &Value| object["kind"] == "Node" || object["kind"] == "NodeList";
    let mut objects = [&input.objects()[..], &all].concat();
    objects.retain(|object| !is_of_nodes(object));
    let without = documents(&objects);
    let run = explain(&without, &[]);
    assert!(run.status == 0 && run.err.contains(note), "{run:?}");
    explain(&without, &["--strict"]).is_refused(2, &[note, "add it with -f FILE"]);
    // An Infrastructure that nobody filled in tells nothing.
    let mut more = all.clone();
    more[0]["status"] = json!({});
    assert!(run_with(&input, &more, false).err.contains(parts[0].1));
    // A list of another group says nothing of them, a Machine does.
    let mut more = all.clone();
    more[2]["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    assert!(run_with(&input, &more, false).err.contains(parts[1].1));
    more[2] = json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": {"name": "m-1"}});
    assert_eq!(run_with(&input, &more, true).status, 0);
    // Nothing is approved, so nothing could be another's.
    input.csr["spec"]["username"] = json!("jane");
    let run = run_with(&input, &all[..2], false);
    assert_eq!((run.status, run.err.as_str()), (1, ""), "{run:?}");
}

/// The operator counts them once it was on the host.
#[test]
fn further_names_that_count_only_after_a_login_are_said() {
    let mut input = good("kubelet-serving: P-256");
    let all = configuration("None", &["172.30.0.0/16"]);
    let facts =
        |more: &str| format!(r#"{{"dns": {{"forward": {{"host.test": "10.20.30.11"}}}}{more}}}"#);
    let told = |input: &Input, more: &str| {
        let (verdict, reason, told) = judged(input, &all, &facts(more));
        (verdict, told.contains("`names=` of an entry with a name as its key counts"), reason)
    };
    let names = "username=core\nnames=win-alpha,win-alpha.plant.example.net";
    for (key, is_said) in [("host.test", true), ("10.20.30.11", false)] {
        let list = input.cluster.windows_instances.as_mut().unwrap();
        *list = [(key.to_owned(), names.to_owned())].into();
        let (verdict, found, reason) = told(&input, "");
        assert_eq!((verdict, found), (json!("approve"), is_said), "{key}: {reason}");
        // Hosts were asked, so nothing is taken for granted.
        let asked = format!(r#", "addresses": {{"{key}": ["10.20.30.11"]}}"#);
        let (verdict, found, reason) = told(&input, &asked);
        assert_eq!((verdict, found), (json!("approve"), false), "{key}: {reason}");
    }
}

/// An entry with a mistake stands for its host as well, and harms no other.
#[test]
fn bad_entries_harm_nobody() {
    let mut input = good(CLIENT);
    let list = input.cluster.windows_instances.as_mut().unwrap();
    list.insert("gone.example.test".to_owned(), "user=".to_owned());
    list.insert("not a name".to_owned(), String::new());
    assert_eq!(explain_json(&documents(&input.objects()))[0]["verdict"], "approve");
    let list = input.cluster.windows_instances.as_mut().unwrap();
    *list.get_mut("win-bravo.plant.example.net").unwrap() = "user=".to_owned();
    assert_eq!(explain_json(&documents(&input.objects()))[0]["verdict"], "approve");
}

#[test]
fn the_namespace_is_that_of_the_list() {
    let wicd = "wicd: service account, P-256";
    let mut input = good(wicd);
    let winc = "system:serviceaccount:winc:windows-instance-config-daemon";
    input.csr["spec"]["username"] = json!(winc);
    assert_eq!(explain_json(&documents(&input.objects()))[0]["verdict"], "refuse");
    let told = explain(&documents(&input.objects()), &["--namespace", "winc"]);
    assert_eq!(told.status, 0, "{told:?}");
    input.cluster.namespace = "winc".to_owned();
    let objects = input.objects();
    assert_eq!(explain_json(&documents(&objects))[0]["verdict"], "approve");
    let second = instances("other", &BTreeMap::new());
    let run = explain(&documents(&[&objects[..], &[second]].concat()), &[]);
    assert_eq!((run.status, run.out.as_str()), (2, ""));
    assert!(run.err.contains("namespaces other and winc, choose"), "{}", run.err);
}

fn pem(input: &Input) -> String {
    let object: CertificateSigningRequest = serde_json::from_value(input.csr.clone()).unwrap();
    String::from_utf8(object.spec.request.0).unwrap()
}

/// Bare requests are looked at as if the right one asked for the right thing.
#[test]
fn bare_requests_of_every_kind_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (case, kind) in [
        (CLIENT, "kubelet-client"),
        ("kubelet-serving: P-256", "kubelet-serving"),
        ("wicd: service account, P-256", "wicd"),
    ] {
        let mut input = good(case);
        let bare = file("host.pem", &pem(&input));
        input.csr = json!({"kind": "Other"});
        let run =
            run(&["explain", "csr", "-f", &bare, "-", "-o", "json"], &documents(&input.objects()));
        let answer = &run.json()[0];
        assert_eq!((run.status, &answer["kind"]), (0, &json!(kind)), "{answer:#}");
        assert_eq!(answer["name"], bare);
        assert!(run.err.contains("no object around it"), "{}", run.err);
    }
    // Without a cluster around it, it is nobody's.
    let text = pem(&good(CLIENT));
    let answer = |text: &str| explain(text, &["-o", "json"]).json()[0].clone();
    assert_eq!(answer(&text)["name"], "standard input");
    assert_eq!(answer(&text)["reason"], "instance: no instance has the name win-bravo");
}

#[test]
fn broken_bare_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = pem(&good(CLIENT));
    let cases = [
        ("two.pem", format!("{good}{good}"), "pem: `spec.request` has data behind its PEM block"),
        (
            "ends.csr",
            good.replacen('\n', "\r\n", 1),
            "pem: the PEM body needs lines of 64 characters",
        ),
        ("mark.pem", format!("\u{feff}{good}"), "pem: `spec.request` needs one PEM block"),
        ("empty.pem", String::new(), "pem: `spec.request` needs one PEM block"),
        ("words.CSR", "hello\n".to_owned(), "pem: `spec.request` needs one PEM block"),
        ("cut.pem", good[..good.len() / 2].to_owned(), "pem: the PEM block needs a line"),
        (
            "other.pem",
            "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n".to_owned(),
            "pem: `spec.request` needs one PEM block of type CERTIFICATE REQUEST",
        ),
    ];
    for (name, text, reason) in cases {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let run = run(&["explain", "csr", "-f", path.to_str().unwrap(), "-o", "json"], "");
        let answer = &run.json()[0];
        assert_eq!((run.status, &answer["verdict"]), (1, &json!("refuse")), "{name}: {answer:#}");
        assert!(answer["reason"].as_str().unwrap().starts_with(reason), "{name}: {answer:#}");
    }
}

#[test]
fn lines_may_end_as_on_windows() {
    let input = good(CLIENT);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.csr");
    fs::write(&path, pem(&input).replace('\n', "\r\n")).unwrap();
    let hosts = documents(&input.objects()).replace("CertificateSigningRequest", "Other");
    let files = ["explain", "csr", "-f", path.to_str().unwrap(), "-f", "-", "-o", "json"];
    let run = run(&files, &hosts);
    assert_eq!((run.status, &run.json()[0]["verdict"]), (0, &json!("approve")), "{run:?}");
}

/// What stands in front of a block is passed over, as every reader does.
#[test]
fn text_of_openssl_in_front_is_passed_over() {
    let text =
        format!("Certificate Request:\n    Data:\n        Version: 1\n{}", pem(&good(CLIENT)));
    let checks = explain_json(&text)[0]["checks"].clone();
    let pem = checks.as_array().unwrap().iter().find(|check| check["rule"] == "pem").unwrap();
    assert_eq!(pem["outcome"], "pass");
}

#[test]
fn odd_requests_get_an_answer() {
    let mut input = good(CLIENT);
    input.csr["spec"].as_object_mut().unwrap().remove("request");
    let answer = |csr: &Value| explain_json(&documents(std::slice::from_ref(csr)))[0].clone();
    assert_eq!(answer(&input.csr)["verdict"], "refuse");
    let bare = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"});
    assert_eq!(answer(&bare)["verdict"], "ignore");
    assert_eq!(answer(&bare)["name"], "standard input, document 1");
    assert_eq!(answer(&bare)["kind"], Value::Null);
    let list = json!({"kind": "CertificateSigningRequestList", "items": [input.csr, bare]});
    assert_eq!(explain_json(&list.to_string()).as_array().unwrap().len(), 2);
}

#[test]
fn what_is_no_request_is_2() {
    let refused = |input: &str, message: &str| {
        let run = explain(input, &[]);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.contains(message), "{}", run.err);
    };
    refused("", "the input has no CertificateSigningRequest");
    refused("kind: Node", "the input has no CertificateSigningRequest");
    refused("kind: [", "standard input, document 1 is no YAML");
    refused("just words", "standard input, document 1 is no cluster object");
    let mut csr = good(CLIENT).csr;
    csr["spec"]["request"] = json!("not base64!");
    refused(&csr.to_string(), "document 1, field `spec.request` is wrong");
    csr["apiVersion"] = json!("certificates.k8s.io/v1beta1");
    refused(&csr.to_string(), "document 1 is of another API version");
    let version = "config.openshift.io/v1";
    let status = json!({"platformStatus": "none"});
    let odd = json!({"apiVersion": version, "kind": "Infrastructure", "status": status});
    let with = documents(&[good(CLIENT).csr, odd]);
    refused(&with, "document 2, field `platformStatus` is wrong");
    let run = run(&["explain", "csr"], "");
    assert_eq!(run.status, 2);
}
