//! Exit statuses and messages that all commands share.

use std::fmt::Write as _;
use std::fs;

use crate::program::{run, run_small};

const INSTANCES: [&str; 2] = ["check", "instances"];

#[track_caller]
fn refused(arguments: &[&str], input: &str, message: &str) {
    let run = run(arguments, input);
    assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
    assert!(run.err.contains(message), "{}", run.err);
}

#[test]
fn the_version_is_printed_in_quotation_marks() {
    let run = run(&["version"], "");
    assert_eq!(run.status, 0);
    assert_eq!(run.out, format!("wmco-operator version: \"{}\"\n", bin_operator::VERSION));
}

#[test]
fn wrong_usage_is_2() {
    refused(&[], "", "Usage: wmco-operator <COMMAND>");
    refused(&INSTANCES, "", "--filename <FILE>");
    refused(&["check", "nothing"], "", "unrecognized subcommand");
    refused(&[INSTANCES[0], INSTANCES[1], "-f", "-", "-o", "xml"], "", "possible values: text");
    for (time, told) in [("1s", "between 10s and 168h"), ("200h", "between"), ("soon", "90m")] {
        refused(&["run", "--drain-timeout", time], "", told);
    }
    for option in ["--connect-timeout", "--login-timeout"] {
        for (time, told) in [("0s", "between 1s and 10m"), ("11m", "between"), ("soon", "45s")] {
            refused(&["run", option, time], "", told);
        }
    }
}

#[test]
fn unreadable_input_is_2() {
    let check = |file| [INSTANCES[0], INSTANCES[1], "-f", file];
    refused(&check("gone.yaml"), "", "cannot read gone.yaml, check its name");
    refused(&check("-"), "kind: [", "standard input, document 1 is no YAML");
    refused(&check("-"), "just words", "standard input, document 1 is no cluster object");
    let text = "kind: ConfigMap\ndata:\n  a: 1\n";
    refused(&check("-"), text, "standard input, document 1, field `data.a` is wrong");
    refused(&check("-"), "kind: Node", "no ConfigMap named windows-instances");
    refused(&[&check("-")[..], &["--facts", "-"]].concat(), "kind: Node", "can be read once");
}

#[test]
fn files_are_named_in_messages() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.yaml");
    fs::write(&file, "kind: Node\n---\nkind: NodeList\nitems: [{metadata: {name: 1}}]\n").unwrap();
    let message = "nodes.yaml, document 2, item 1, field `metadata.name` is wrong";
    refused(&[INSTANCES[0], INSTANCES[1], "-f", file.to_str().unwrap()], "", message);
}

#[test]
fn aliases_cannot_exhaust_memory() {
    let document = |levels: usize| {
        let mut text = "kind: X\nl0: &l0 [x]\n".to_owned();
        for level in 1..levels {
            let aliases = vec![format!("*l{}", level - 1); 9].join(", ");
            writeln!(text, "l{level}: &l{level} [{aliases}]").unwrap();
        }
        text
    };
    let many = vec![document(4); 1500].join("---\n");
    for (command, text) in [
        ("plan -f -", &document(10)),
        ("check instances -f -", &document(10)),
        ("check services -f -", &document(10)),
        ("check registries -f -", &document(10)),
        ("explain csr -f -", &many),
    ] {
        let run = run_small(&command.split(' ').collect::<Vec<_>>(), text);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.contains("repeats too much by aliases"), "{command}: {}", run.err);
    }
}

#[test]
fn several_files_are_read_together() {
    let folder = tempfile::tempdir().unwrap();
    let text = "kind: ConfigMap\nmetadata: {name: windows-instances}\n";
    let files = ["a.yaml", "b.yaml"].map(|name| folder.path().join(name));
    fs::write(&files[0], "kind: Node\n").unwrap();
    fs::write(&files[1], text).unwrap();
    let [a, b] = files.each_ref().map(|file| file.to_str().unwrap());
    for arguments in [vec!["-f", a, b], vec!["-f", a, "-f", b]] {
        let run = run(&[&INSTANCES[..], &arguments].concat(), "");
        assert_eq!(run.status, 0, "{}", run.err);
        assert!(run.out.contains("0 entries, all fine"), "{}", run.out);
    }
}

#[test]
fn schemas_are_printed() {
    for name in ["csr-decision", "facts", "finding", "host-plan", "host-report"] {
        let schema = run(&["schema", name, "-o", "json"], "").json();
        assert!(schema["$schema"].is_string(), "{name}");
    }
}
