//! `plan`.

use wmco_core::names;

use crate::program::{Run, run};

/// Three hosts on record, of which one is listed, and the Node of one that is not.
const ONE_OF_THREE: &str = r#"
kind: ConfigMap
metadata: {name: windows-instances}
data: {10.0.0.3: username=core}
---
kind: ConfigMap
metadata: {name: windows-ssh-host-keys}
data:
  10.0.0.1_host: '{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "SHA256:x"}'
  10.0.0.2_host: '{"ipv4": "10.0.0.2", "pinned": "SHA256:y"}'
  10.0.0.3_host: '{"ipv4": "10.0.0.3", "pinned": "SHA256:z"}'
---
kind: Node
metadata:
  name: win-1
  labels: {kubernetes.io/os: windows}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
"#;

/// Runs `plan` with this value of `--guard-removals`.
fn plan(guard: &str, input: &str) -> Run {
    run(&["plan", "-f", "-", &format!("--guard-removals={guard}")], input)
}

/// The assignments in a run's output, without the steps below them.
fn assignments(run: &Run) -> Vec<&str> {
    run.out.lines().filter(|line| !line.starts_with(' ')).collect()
}

/// The same list, with this number of removals confirmed by a person.
fn confirmed(number: &str) -> String {
    let name = "name: windows-instances";
    let annotation = names::CONFIRM_REMOVAL_ANNOTATION;
    ONE_OF_THREE.replace(name, &format!("{name}, annotations: {{{annotation}: {number:?}}}"))
}

const WAITING: [&str; 3] = [
    "10.0.0.1: leave (node win-1), because its removal is not confirmed",
    "10.0.0.2: leave, because its removal is not confirmed",
    "10.0.0.3: configure, because it is listed",
];

#[test]
fn waiting_removals_are_shown_with_the_line_that_confirms_them() {
    let run = plan("1", ONE_OF_THREE);
    assert_eq!((run.status, assignments(&run)), (0, WAITING.to_vec()), "{}", run.err);
    let told = format!(
        "warning: 2 hosts are no longer listed, and more than 1 at once need a confirmation; list \
         them again, or have them removed by `kubectl annotate configmap windows-instances \
         --overwrite {}=2`\n",
        names::CONFIRM_REMOVAL_ANNOTATION
    );
    assert_eq!(run.err, told);
}

#[test]
fn the_number_of_removals_confirms_them_and_no_other_does() {
    for number in ["1", "3", "02x", "two"] {
        let run = plan("1", &confirmed(number));
        assert_eq!(assignments(&run), WAITING, "{number}: {}", run.err);
        assert!(run.err.contains("--overwrite"), "{number}: {}", run.err);
    }
    let told = plan("1", &confirmed("3")).err;
    assert!(told.contains("of their number, which is not 3"), "{told}");
    let run = plan("1", &confirmed("2"));
    let first = "10.0.0.1: leave (node win-1), because its removal is put on record first";
    assert_eq!((assignments(&run)[0], run.err.as_str()), (first, ""));
}

#[test]
fn removals_within_the_limit_and_without_one_need_no_word() {
    let within = plan("2", ONE_OF_THREE);
    let first = "10.0.0.1: leave (node win-1), because its removal is put on record first";
    assert_eq!((assignments(&within)[0], within.err.as_str()), (first, ""));
    let removal = "10.0.0.1: remove (node win-1), because it is no longer listed";
    let off = plan("off", ONE_OF_THREE);
    let by_default = run(&["plan", "-f", "-"], ONE_OF_THREE);
    for run in [off, by_default] {
        assert_eq!((assignments(&run)[0], run.err.as_str()), (removal, ""));
    }
}

#[test]
fn a_limit_is_a_number_or_off() {
    for guard in ["", "-1", "on"] {
        let run = plan(guard, ONE_OF_THREE);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{guard}");
        assert!(run.err.contains("write a number or `off`"), "{}", run.err);
    }
}
