//! `check instances`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde_json::{Value, json};
use wmco_core::facts::Facts;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::nodes_of;
use wmco_core::instances::{parse, username_of};
use wmco_core::names::objects::DEFAULT_NAMESPACE;

use crate::program::{Run, run};
use crate::vectors::{Case, cases};

const INSTANCES: &str = include_str!("../vectors/instances.json");
const NODE_USERNAME: &str = include_str!("../vectors/node_username.json");

type Data = BTreeMap<String, String>;

#[derive(Deserialize)]
struct InstancesInput {
    data: Data,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct InstancesExpect {
    ok: bool,
    instances: Option<Vec<ExpectedInstance>>,
    correct_ok: Option<bool>,
    debatable: bool,
}

#[derive(Deserialize)]
struct ExpectedInstance {
    address: String,
    ipv4: String,
    username: String,
    node: Option<String>,
}

#[derive(Deserialize)]
struct UsernameInput {
    data: Data,
    node: Node,
}

#[derive(Deserialize)]
struct UsernameExpect {
    username: Option<String>,
}

fn config_map(data: &Data) -> Value {
    let metadata = json!({"name": "windows-instances", "namespace": DEFAULT_NAMESPACE});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

fn check(documents: &str, format: &str) -> Run {
    run(&["check", "instances", "-f", "-", "-o", format], documents)
}

fn check_data(data: &Data, nodes: &[Node]) -> Run {
    let documents: Vec<_> = std::iter::once(config_map(data).to_string())
        .chain(nodes.iter().map(|node| serde_json::to_string(node).unwrap()))
        .collect();
    check(&documents.join("\n"), "json")
}

/// Pasted by mistake: each entry is right, and the operator would begin on none.
#[test]
fn a_list_of_more_hosts_than_the_records_hold_is_told() {
    let hosts = (0..12_000_u16).map(|host| {
        let [high, low] = host.to_be_bytes();
        (format!("10.1.{high}.{low}"), "username=Administrator".to_owned())
    });
    let run = check(&config_map(&hosts.collect()).to_string(), "text");
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.out.ends_with("12000 entries, too many\n"), "{}", run.out.len());
    assert!(run.err.contains("12000 hosts are listed"), "{}", run.err);
}

#[test]
fn the_instances_vectors_hold() {
    let cases: Vec<Case<InstancesInput, InstancesExpect>> = cases("instances", INSTANCES);
    for Case { name, input, expect } in cases.into_iter().filter(|case| !case.expect.debatable) {
        let run = check_data(&input.data, &input.nodes);
        let ok = expect.correct_ok.unwrap_or(expect.ok);
        assert_eq!(run.status, i32::from(!ok), "{name}: {run:?}");
        if !ok {
            assert!(run.json().as_array().unwrap().iter().any(|row| row["error"].is_string()));
            continue;
        }
        let expected = expect.instances.unwrap();
        let row = |i: &ExpectedInstance| json!({"address": i.address, "ipv4": i.ipv4, "username": i.username, "error": null});
        assert_eq!(run.json(), expected.iter().map(row).collect::<Value>(), "{name}");

        let entries = parse(&input.data, &Facts::default());
        let nodes: Vec<NodeFacts> = input.nodes.iter().map(NodeFacts::from).collect();
        let nodes = nodes_of(&entries, &nodes);
        for (instance, expected) in entries.instances().zip(&expected) {
            assert_eq!(nodes.get(&instance.address), expected.node.as_ref(), "{name}");
        }
    }
}

#[test]
fn the_user_name_vectors_hold() {
    let cases: Vec<Case<UsernameInput, UsernameExpect>> = cases("node_username", NODE_USERNAME);
    for Case { name, input, expect } in cases {
        let found = username_of(&input.node, &input.data);
        assert_eq!(found.ok(), expect.username, "{name}");

        let rows = check_data(&input.data, std::slice::from_ref(&input.node)).json();
        let status = input.node.status.unwrap();
        let addresses = status.addresses.unwrap_or_default();
        let row = addresses.iter().find_map(|address| {
            rows.as_array().unwrap().iter().find(|row| row["address"] == address.address.as_str())
        });
        let printed = row.and_then(|row| row["username"].as_str());
        assert_eq!(printed, expect.username.as_deref(), "{name}");
    }
}

const MIXED: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: win-1}
  status: {addresses: [{type: InternalIP, address: 10.0.0.5}]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: windows-instances}
  data:
    10.0.0.5: |
      username=Administrator
      port=2222
    10.0.0.6: username=
    10.0.0.8: |
      username=core
      hostKey=ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
      via=jump@bastion.example.test
    010.0.0.9: username=core
    win-7.example.test: username=core
";

#[test]
fn people_get_a_line_per_entry() {
    let run = check(MIXED, "text");
    assert_eq!(run.status, 1);
    insta::assert_snapshot!(run.out, @r"
    ConfigMap windows-instances in standard input, document 1, item 2:

      error  010.0.0.9           address: its numbers have leading zeros, which some programs read as octal, leave them out
      ok     10.0.0.5            Administrator at 10.0.0.5 port 2222, node win-1
      error  10.0.0.6            username: it has no value, write one after the `=`
      ok     10.0.0.8            core at 10.0.0.8, host key SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA, via jump@bastion.example.test
      open   win-7.example.test  address: the name was not looked up yet

    5 entries, 2 wrong
    ");
    insta::assert_snapshot!(run.err, @"note: names are not looked up, tell their addresses with --facts FILE");
}

#[test]
fn nothing_paints_a_terminal() {
    let data = Data::from([
        ("\u{1b}[2J".to_owned(), "username=core".to_owned()),
        ("10.0.0.7".to_owned(), "username=ACME\\\u{202e}J\u{fc}rgen".to_owned()),
    ]);
    let run = check(&config_map(&data).to_string(), "text");
    assert!(run.out.contains(r"error  \u{1b}[2J  address"), "{}", run.out);
    assert!(run.out.contains("ACME\\\\u{202e}J\u{fc}rgen at"), "{}", run.out);
}

/// One selection of objects for all commands: what is there twice is an error with both places.
#[test]
fn an_object_that_is_given_twice_is_an_error_with_both_places() {
    let list =
        "kind: ConfigMap\nmetadata: {name: windows-instances}\ndata: {10.0.0.1: username=core}\n";
    let node = "---\nkind: Node\nmetadata: {name: win-1}\n";
    assert_eq!(check(&format!("{list}{node}"), "text").status, 0);
    for (twice, name) in
        [(node, "Node win-1"), (&*format!("---\n{list}"), "ConfigMap windows-instances")]
    {
        let first =
            if name.starts_with("Node") { format!("{list}{node}") } else { list.to_owned() };
        let run = check(&format!("{first}{twice}"), "text");
        run.is_refused(2, &[name, "document"]);
    }
}

#[test]
fn warnings_are_told_and_are_no_errors() {
    let data = Data::from([
        ("10.0.0.7".to_owned(), "username=core".to_owned()),
        ("127.0.0.1".to_owned(), "username=ad\u{202e}min".to_owned()),
    ]);
    let run = check(&config_map(&data).to_string(), "text");
    assert_eq!(run.status, 0, "{run:?}");
    insta::assert_snapshot!(run.err, @r"
    warning: entry `127.0.0.1`: 127.0.0.1 is an address of the operator itself
    warning: entry `127.0.0.1`: the user name holds the invisible character \u{202e}, type it again
    ");
}

#[test]
fn yaml_says_the_same_as_json() {
    let yaml: Value = serde_saphyr::from_str(&check(MIXED, "yaml").out).unwrap();
    assert_eq!(yaml, check(MIXED, "json").json());
}

#[test]
fn an_error_names_entry_field_and_next_step() {
    let error = &check(MIXED, "json").json()[2];
    assert_eq!(
        *error,
        json!({
            "address": "10.0.0.6",
            "ipv4": null,
            "username": null,
            "error": "entry `10.0.0.6` of ConfigMap windows-instances, username: \
                      it has no value, write one after the `=`",
        })
    );
}

#[test]
fn facts_tell_what_names_resolve_to() {
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("facts.json");
    let text = r#"{"dns": {"forward": {"win-7.example.test": "10.0.0.7"}}}"#;
    std::fs::write(&facts, text).unwrap();
    let data = Data::from([("Win-7.example.test".to_owned(), "username=core".to_owned())]);
    let facts = facts.to_str().unwrap();
    let arguments = ["check", "instances", "-f", "-", "--facts", facts, "-o", "json"];
    let run = run(&arguments, &config_map(&data).to_string());
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    assert_eq!(run.json()[0]["ipv4"], Ipv4Addr::new(10, 0, 0, 7).to_string());
}

/// A name in `names=` that a Node, a Machine or the API server has, and which item of the list it is.
#[test]
fn further_names_of_others_are_told() {
    let api = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": {"name": "cluster"},
        "status": {"apiServerURL": "https://api.c1.example.com:6443"},
    });
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "cp-1"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]},
    });
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "m-1", "namespace": "openshift-machine-api"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.8"}]},
    });
    let told = |names: &str| {
        let data = [("10.0.0.1".to_owned(), format!("username=a\nnames={names}"))].into();
        let documents = [&api, &node, &machine, &config_map(&data)];
        let documents: Vec<_> = documents.iter().map(ToString::to_string).collect();
        let run = check(&documents.join("\n"), "text");
        (run.status, run.out + &run.err)
    };
    for (names, status, expected) in [
        ("x.example", 0, "all fine"),
        ("cp-1", 1, "its `names=` holds cp-1, which is node cp-1's"),
        ("x.example, 10.0.0.9", 1, "its `names=` holds 10.0.0.9, which is node cp-1's"),
        ("10.0.0.8", 1, "its `names=` holds 10.0.0.8, which is Machine m-1's"),
        ("api.c1.example.com", 1, "a name of the API server"),
        ("console.apps.c1.example.com", 1, "a name of the ingress"),
        ("x.example, [2001:db8::7]", 1, "name 2 of the list: it has brackets"),
        ("x.example:443", 1, "without a port"),
        ("https://x.example", 1, "it is a URL"),
    ] {
        let (found, text) = told(names);
        assert_eq!(found, status, "{names}: {text}");
        assert!(text.contains(expected), "{names}: {text}");
        assert!(!text.contains("IPv6 is not supported"), "{names}: {text}");
    }
}
