//! The text, and what is refused.

use insta::assert_snapshot;

use super::{ContainerdSettings, containerd_config};

fn settings(variables: &[(&str, &str)]) -> Result<ContainerdSettings, String> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned())
    };
    ContainerdSettings::from_environment(variable).map_err(|wrong| wrong.to_string())
}

#[test]
fn what_is_written_where_nothing_is_set() {
    assert_eq!(
        containerd_config(&settings(&[("CONTAINERD_LOG_LEVEL", " ")]).unwrap()),
        containerd_config(&ContainerdSettings::default())
    );
    assert_snapshot!(containerd_config(&ContainerdSettings::default()));
}

#[test]
fn what_people_set_is_written() {
    let handlers = r#"{"runhcs-wcow-hypervisor": {"options": {"SandboxIsolation": 1,
        "SandboxPlatform": "windows/amd64", "Debug": true}}, "other": {"type": "io.other.v2"}}"#;
    let set = settings(&[
        ("CONTAINERD_PAUSE_IMAGE", "registry.lab.test:5000/pause:3.10"),
        ("CONTAINERD_SNAPSHOTTER", "cimfs"),
        ("CONTAINERD_RUNTIMES", handlers),
        ("CONTAINERD_DEFAULT_RUNTIME", "runhcs-wcow-hypervisor"),
        ("CONTAINERD_LOG_LEVEL", "warn"),
    ]);
    let text = containerd_config(&set.unwrap());
    let usual = containerd_config(&ContainerdSettings::default());
    let changed: Vec<&str> =
        text.lines().filter(|line| !usual.lines().any(|known| known == *line)).collect();
    assert_snapshot!(changed.join("\n"));
}

#[track_caller]
fn refused(name: &str, text: &str, expected: &str) {
    let wrong = settings(&[(name, text)]).unwrap_err();
    assert!(wrong.starts_with(&format!("variable {name}: ")), "{wrong}");
    assert!(wrong.contains(expected), "{wrong}");
}

#[test]
fn what_is_wrong_is_told_with_its_variable() {
    refused("CONTAINERD_PAUSE_IMAGE", "pause:3.9", "such as docker.io/library/pause:3.9");
    refused("CONTAINERD_PAUSE_IMAGE", "a.test/Pause", "in lower case");
    refused("CONTAINERD_SNAPSHOTTER", "a b", "\"a b\" is no name");
    refused("CONTAINERD_LOG_LEVEL", "warning", "trace, debug, info, warn, error, fatal, panic");
    refused("CONTAINERD_DEFAULT_RUNTIME", "runc", "name one of runhcs-wcow-process");
    refused("CONTAINERD_RUNTIMES", "runc", "write JSON such as");
    refused("CONTAINERD_RUNTIMES", r#"{"a": {"kind": "b"}}"#, "unknown field `kind`");
    refused("CONTAINERD_RUNTIMES", r#"{"A": {}}"#, "lower-case letters");
    refused("CONTAINERD_RUNTIMES", r#"{"a": {"type": "x y"}}"#, "field `type`");
    refused("CONTAINERD_RUNTIMES", r#"{"a": {"options": {"b": []}}}"#, "handler a, option b");
    let all = settings(&[("CONTAINERD_LOG_LEVEL", "x"), ("CONTAINERD_RUNTIMES", "x")]).unwrap_err();
    assert_eq!(all.matches("variable ").count(), 2, "{all}");
}
