//! `render credential-provider`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::program::{Run, run};
use crate::vectors::{Case, cases};

const VECTORS: &str = include_str!("../../../wmco-core/tests/vectors/credential_provider.json");

fn render(input: &str, format: &str) -> Run {
    run(&["render", "credential-provider", "-f", "-", "-o", format], input)
}

/// A rendered MachineConfig with these files, as paths and plain texts.
fn machine_config(files: &[(&str, &str)]) -> String {
    let file = |(path, text): &(&str, &str)| {
        let base64 = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
        json!({"path": path, "contents": {"source": format!("data:;base64,{base64}")}})
    };
    let files: Vec<Value> = files.iter().map(file).collect();
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "rendered-worker-0a"},
        "spec": {"config": {"ignition": {"version": "3.5.0"}, "storage": {"files": files}}},
    })
    .to_string()
}

/// Drops members that are null, which mean the same as missing ones.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[test]
fn the_vectors_hold() {
    #[derive(Deserialize)]
    struct Input {
        yaml: String,
    }
    #[derive(Deserialize)]
    struct Expect {
        parsed: Option<Value>,
        debatable: bool,
    }
    let cases: Vec<Case<Input, Expect>> = cases("credential_provider", VECTORS);
    assert_eq!(cases.len(), 11);
    for Case { name, input, expect } in cases {
        let [json, yaml] = ["json", "yaml"].map(|format| render(&input.yaml, format));
        let Some(parsed) = expect.parsed else {
            assert_eq!((json.status, json.out.as_str()), (1, ""), "{name}: {json:?}");
            assert!(json.err.starts_with("error: "), "{name}: {json:?}");
            continue;
        };
        let from_yaml: Value = serde_saphyr::from_str(&yaml.out).unwrap();
        assert_eq!((json.status, json.json()), (0, from_yaml), "{name}: {json:?}");
        if !expect.debatable {
            assert_eq!(without_nulls(json.json()), without_nulls(parsed), "{name}");
        }
    }
}

#[test]
fn the_file_is_found_in_the_rendered_machine_config() {
    let path = "/etc/kubernetes/credential-providers/ecr-credential-provider.yaml";
    let file = "kind: CredentialProviderConfig\nproviders:\n- name: ecr\n";
    let rendered = render(&machine_config(&[("/etc/other", "x"), (path, file)]), "json");
    assert_eq!(rendered.json(), render(file, "json").json());
    assert_eq!(rendered.json()["providers"][0]["name"], "ecr.exe");
    let text = render(file, "text").out;
    assert!(text.starts_with(r"C:\k\credential-provider-config.yaml: "), "{text}");
    render(&machine_config(&[]), "json").is_refused(1, &["has no file", path]);
}

/// A kubelet does not start with such a file.
#[test]
fn what_kubelets_refuse_is_not_printed() {
    for (input, expected) in [
        ("kind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n", "CredentialProviderConfig"),
        ("kind: CredentialProviderConfig\nprovider: [{name: x}]\n", "write `providers`"),
        (
            "kind: CredentialProviderConfig\nproviders: [{name: x, matchImage: [a]}]\n",
            "providers[0].matchImage",
        ),
        (
            "kind: CredentialProviderConfig\nproviders: [{name: x, env: [{nam: a}]}]\n",
            "providers[0].env[0].nam",
        ),
        ("kind: CredentialProviderConfig\nproviders: [{name: ''}]\n", "providers[0].name"),
        ("kind: CredentialProviderConfig\nproviders: [{name: ../x}]\n", "providers[0].name"),
        (
            "kind: CredentialProviderConfig\nproviders: [{name: x}, {name: x.exe}]\n",
            "providers[1].name",
        ),
    ] {
        for format in ["json", "yaml", "text"] {
            render(input, format).is_refused(1, &["error: ", expected]);
        }
    }
}

/// The vectors want such a file printed; the operator starts kubelets without it.
#[test]
fn members_that_kubelets_demand_are_told() {
    for (input, expected) in [
        ("kind: CredentialProviderConfig\nproviders: []\n", "`providers` is missing or empty"),
        ("providers: [{name: x}]\n", "`providers[0].matchImages`"),
        ("providers: [{name: x}]\n", "`apiVersion`"),
    ] {
        let rendered = render(input, "yaml");
        assert_eq!(rendered.status, 0, "{rendered:?}");
        assert!(rendered.err.lines().all(|line| line.starts_with("warning: ")), "{rendered:?}");
        assert!(rendered.err.contains(expected), "{rendered:?}");
    }
}

#[test]
fn a_list_of_machine_configs_is_read() {
    let path = "/etc/kubernetes/credential-providers/ecr-credential-provider.yaml";
    let file = "kind: CredentialProviderConfig\nproviders:\n- name: ecr\n";
    let config = |name: &str, files: &[(&str, &str)]| {
        let mut config: Value = serde_json::from_str(&machine_config(files)).unwrap();
        config["metadata"]["name"] = name.into();
        config
    };
    let list =
        |items: &[Value]| json!({"kind": "List", "apiVersion": "v1", "items": items}).to_string();
    let with = config("rendered-worker-0a", &[(path, file)]);
    let without = config("99-other", &[("/etc/other", "x")]);
    let rendered = render(&list(&[without.clone(), with.clone(), with.clone()]), "json");
    assert_eq!(rendered.json(), render(file, "json").json());
    render(&list(&[without]), "json").is_refused(1, &["no MachineConfig of the list", path]);
    let other =
        config("rendered-infra-1b", &[(path, "kind: CredentialProviderConfig\nproviders: []\n")]);
    let names = ["rendered-worker-0a", "rendered-infra-1b", "different files"];
    render(&list(&[with, other]), "json").is_refused(1, &names);
}
