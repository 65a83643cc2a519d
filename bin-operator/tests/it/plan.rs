//! `plan`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{HashAlg, PrivateKey};
use wmco_core::digest::Sha256;
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
        "2 hosts are no longer listed, and more than 1 at once need a confirmation; list \
         them again, or have them removed by `kubectl annotate configmap windows-instances \
         --overwrite {}=2`",
        names::CONFIRM_REMOVAL_ANNOTATION
    );
    assert_eq!(labelled(&run, "warning: "), [told]);
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
    assert_eq!((assignments(&run)[0], labelled(&run, "warning: ")), (first, vec![]));
}

#[test]
fn removals_within_the_limit_and_without_one_need_no_word() {
    let within = plan("2", ONE_OF_THREE);
    let first = "10.0.0.1: leave (node win-1), because its removal is put on record first";
    assert_eq!((assignments(&within)[0], labelled(&within, "warning: ")), (first, vec![]));
    let removal = "10.0.0.1: remove (node win-1), because it is no longer listed";
    let off = plan("off", ONE_OF_THREE);
    let by_default = run(&["plan", "-f", "-"], ONE_OF_THREE);
    for run in [off, by_default] {
        assert_eq!((assignments(&run)[0], labelled(&run, "warning: ")), (removal, vec![]));
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

/// A host key and its fingerprint.
fn pinned() -> (&'static str, String) {
    let key = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let wire = BASE64_STANDARD.decode(key).unwrap();
    (key, wmco_core::host_key::HostKey::from_wire(&wire).unwrap().fingerprint())
}

/// A listed host and one of a Machine, both nodes that were configured with the key of this hash; the first
/// is on record.
fn configured(hash: &str, lets_in: &str) -> String {
    let annotations = format!("{}: {hash:?}", names::PUBLIC_KEY_HASH_ANNOTATION);
    let (pin, fingerprint) = pinned();
    format!(
        r#"
kind: ConfigMap
metadata: {{name: windows-instances}}
data: {{10.0.0.1: username=core}}
---
kind: ConfigMap
metadata: {{name: windows-ssh-host-keys}}
data:
  10.0.0.1: {pin}
  10.0.0.1_host: '{{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "{fingerprint}"{lets_in}}}'
---
kind: Node
metadata: {{name: win-1, uid: "1", labels: {{kubernetes.io/os: windows}}, annotations: {{{annotations}}}}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1}}]}}
---
kind: Node
metadata: {{name: win-2, uid: "2", labels: {{kubernetes.io/os: windows}}, annotations: {{{annotations}}}}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.2}}]}}
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {{name: made, uid: "3", labels: {{machine.openshift.io/os-id: Windows}}}}
status:
  phase: Running
  addresses: [{{type: InternalIP, address: 10.0.0.2}}]
  nodeRef: {{name: win-2, uid: "2"}}
"#
    )
}

/// The Secret with these keys.
fn secret(keys: &[(&str, &PrivateKey)]) -> String {
    let pem = |key: &PrivateKey| key.to_openssh(LineEnding::LF).unwrap().to_string();
    let data =
        keys.iter().map(|(name, key)| format!("{name}: {}", BASE64_STANDARD.encode(pem(key))));
    let data: Vec<_> = data.collect();
    format!(
        "---\nkind: Secret\nmetadata: {{name: cloud-private-key}}\ndata: {{{}}}\n",
        data.join(", ")
    )
}

fn key(seed: u8) -> PrivateKey {
    Ed25519Keypair::from_seed(&[seed; 32]).into()
}

fn hash(key: &PrivateKey) -> String {
    let line = key.public_key().to_openssh().unwrap();
    Sha256::of(line.trim().as_bytes()).to_string()
}

fn fingerprint(key: &PrivateKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// What is said of keys below each assignment, but of steps.
fn about_keys(run: &Run) -> Vec<&str> {
    let lines = run.out.lines().filter(|line| line.starts_with("  ") && line.contains(" key"));
    lines.map(str::trim).collect()
}

#[test]
fn a_rotation_is_shown_host_by_host() {
    let [old, new] = [key(1), key(2)];
    let both = secret(&[("private-key.pem", &old), ("private-key-next.pem", &new)]);
    let run = plan("off", &(configured(&hash(&old), "") + &both));
    let add = format!("would then add key {} to", fingerprint(&new));
    let shown = about_keys(&run);
    assert!(shown.len() == 2 && shown.iter().all(|line| line.starts_with(&add)), "{}", run.out);
    // The machine does not let it in yet, so the one before stays on the entry's host, too.
    let proven = format!(r#", "acceptedKey": "{}""#, hash(&new));
    let run = plan("off", &(configured(&hash(&old), &proven) + &both));
    assert_eq!(about_keys(&run).len(), 1, "{}", run.out);
    let alone = configured(&hash(&old), &proven).replace("Running", "Deleting");
    let run = plan("off", &(alone + &both));
    let remove = format!("and remove key {}", fingerprint(&old));
    assert!(about_keys(&run)[0].contains(&remove), "{}", run.out);
}

#[test]
fn hosts_that_may_refuse_a_sudden_other_key_are_shown() {
    let [old, new] = [key(1), key(2)];
    let run = plan("off", &(configured(&hash(&old), "") + &secret(&[("private-key.pem", &new)])));
    let [listed, made] = about_keys(&run)[..] else { panic!("{}", run.out) };
    assert!(listed.contains("it stays as it is until that is in"), "{listed}");
    let nobody = "its machine is not replaced now, because no machineset would make another one";
    assert!(made.contains(nobody), "{made}");
    for known in [secret(&[("private-key.pem", &old)]), String::new()] {
        let run = plan("off", &(configured(&hash(&old), "") + &known));
        assert_eq!((about_keys(&run), labelled(&run, "warning: ")), (vec![], vec![]));
        let lacks_key = run.err.contains("Secret cloud-private-key");
        assert_eq!(lacks_key, known.is_empty(), "{run:?}");
    }
}

/// A node of a Machine of MachineSet `win` that is in service and was configured with the key of this hash.
fn machine_in_service(number: u8, hash: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let annotations = format!(
        "{}: {hash:?}, {}: {version:?}, {}: {version:?}",
        names::PUBLIC_KEY_HASH_ANNOTATION,
        names::VERSION_ANNOTATION,
        names::DESIRED_VERSION_ANNOTATION
    );
    format!(
        r#"---
kind: Node
metadata: {{name: win-{number}, uid: "n{number}", labels: {{kubernetes.io/os: windows}}, annotations: {{{annotations}}}}}
status:
  addresses: [{{type: InternalIP, address: 10.0.0.{number}}}]
  conditions: [{{type: Ready, status: "True"}}]
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  name: made-{number}
  uid: "m{number}"
  labels: {{machine.openshift.io/os-id: Windows}}
  ownerReferences: [{{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: win, uid: "4", controller: true}}]
status:
  phase: Running
  addresses: [{{type: InternalIP, address: 10.0.0.{number}}}]
  nodeRef: {{name: win-{number}, uid: "n{number}"}}
"#
    )
}

/// Machines whose hosts may refuse a key are replaced as the operator would, were all of these to refuse it.
#[test]
fn a_machine_that_would_be_replaced_and_one_that_would_be_kept_are_told_apart() {
    let [old, new] = [key(1), key(2)];
    let hash = hash(&old);
    let one = machine_in_service(1, &hash);
    let two = one.clone() + &machine_in_service(2, &hash);
    let set = |replicas: u8, user_data: &str| {
        format!(
            "---\napiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata: {{name: win, uid: \"4\"}}\n\
             spec: {{replicas: {replicas}, template: {{metadata: {{labels: {{machine.openshift.io/os-id: Windows}}}}, \
             spec: {{providerSpec: {{value: {{userDataSecret: {{name: {user_data}}}}}}}}}}}}}\n"
        )
    };
    let ours = "windows-user-data";
    let gone = |count: u8| {
        let records = (1..=count).map(|number| {
            format!(
                "  gone-{number}_machine_host: '{{\"machine\": \"g{number}\", \"replacementMachineSet\": \"win\"}}'\n"
            )
        });
        let records: String = records.collect();
        format!("---\nkind: ConfigMap\nmetadata: {{name: windows-ssh-host-keys}}\ndata:\n{records}")
    };
    let unpinned = |number: u8| {
        let record = format!("{{\"machine\": \"m{number}\", \"pinned\": \"SHA256:x\"}}");
        format!(
            "---\nkind: ConfigMap\nmetadata: {{name: windows-ssh-host-keys}}\ndata:\n  \
             made-{number}_machine_host: '{record}'\n"
        )
    };
    let replaced = "its machine is replaced, within";
    for (name, input, words) in [
        ("a machineset that the input lacks", one.clone(), vec![replaced]),
        ("a machineset like any", one.clone() + &set(1, ours), vec![replaced]),
        (
            "other user data",
            one.clone() + &set(1, "worker-user-data"),
            vec!["not replaced now, because a new one would be no node, since providerSpec"],
        ),
        (
            "machines that are left alone",
            one.clone()
                + &set(1, ours)
                    .replace("Windows}", &format!("Windows, {}: \"true\"}}", names::IGNORE_LABEL)),
            vec!["the operator leaves such Machines alone, take the label off"],
        ),
        (
            "machines with linux",
            one.clone() + &set(1, ours).replace("Windows}", "Linux}"),
            vec![
                "[machine.openshift.io/os-id] of machineset win is \"Linux\", write \"Windows\", in this case",
            ],
        ),
        (
            "a machineset that is to have none",
            one.clone() + &set(0, ours),
            vec!["not replaced now, because no machineset"],
        ),
        (
            "a machineset that lacks a machine",
            one.clone() + &set(2, ours),
            vec!["not replaced now, because its machineset lacks machines"],
        ),
        ("two of a machineset", two.clone() + &set(2, ours), vec![replaced; 2]),
        (
            "nobody can log in to one",
            two.clone() + &set(2, ours) + &unpinned(1),
            vec!["the pinned key `made-1_machine` is gone", replaced],
        ),
        (
            "three were replaced in vain",
            two.replace("status: \"True\"", "status: Unknown") + &set(2, ours) + &gone(3),
            vec!["because 3 of its machineset were replaced, and have no successor that works"; 2],
        ),
    ] {
        let list = "---\nkind: ConfigMap\nmetadata: {name: windows-instances}\n";
        let run = plan("off", &(input + list + &secret(&[("private-key.pem", &new)])));
        let told = about_keys(&run);
        let is_lacking = run.err.contains("MachineSets.machine.openshift.io");
        assert_eq!(is_lacking, name == "a machineset that the input lacks", "{run:?}");
        assert_eq!(told.len(), words.len(), "{name}: {run:?}");
        let are_told = told.iter().zip(&words).all(|(told, words)| told.contains(words));
        assert!(are_told, "{name}: {told:#?}");
    }
}

/// Neither what a key is nor a part of it is ever shown.
#[test]
fn a_key_that_is_none_is_told_and_not_shown() {
    let damaged = secret(&[("private-key.pem", &key(1))])
        .replace("private-key.pem: LS0t", "private-key.pem: LS0s");
    let run = plan("off", &(configured("", "") + &damaged));
    assert!(run.err.contains("secret cloud-private-key: "), "{}", run.err);
    let secret = damaged.split(": ").last().unwrap();
    assert!(!run.err.contains(&secret[..20]) && !run.out.contains(&secret[..20]));
}

/// Lines of the messages that begin with this label.
fn labelled<'a>(run: &'a Run, label: &str) -> Vec<&'a str> {
    run.err.lines().filter_map(|line| line.strip_prefix(label)).collect()
}

#[test]
fn only_what_the_operator_looks_at_counts_and_the_rest_is_named() {
    let machine = |version: &str, name: &str, namespace: &str, address: &str| {
        format!(
            "---\napiVersion: {version}\nkind: Machine\nmetadata: {{name: {name}, namespace: {namespace}, \
             labels: {{machine.openshift.io/os-id: Windows}}}}\nstatus: {{phase: Provisioned, \
             addresses: [{{type: InternalIP, address: {address}}}]}}\n"
        )
    };
    let list = |namespace: &str, address: &str| {
        format!(
            "---\nkind: ConfigMap\nmetadata: {{name: windows-instances, namespace: {namespace}}}\n\
             data: {{{address}: username=core}}\n"
        )
    };
    let input = [
        machine("cluster.x-k8s.io/v1beta1", "other-group", "openshift-machine-api", "10.0.0.1"),
        machine("machine.openshift.io/v1beta1", "other-place", "default", "10.0.0.2"),
        machine("machine.openshift.io/v1beta1", "ours", "openshift-machine-api", "10.0.0.3"),
        list("elsewhere", "10.0.0.4"),
        list("openshift-windows-machine-config-operator", "10.0.0.5"),
    ]
    .concat();
    let planned = run(&["plan", "-f", "-"], &input);
    let expected = [
        "10.0.0.5: configure, because it is listed",
        "machine ours: configure, because its machine is provisioned",
    ];
    assert_eq!(assignments(&planned), expected, "{planned:?}");
    insta::assert_snapshot!(planned.err);
    let chosen = run(&["plan", "-f", "-", "--namespace", "elsewhere"], &input);
    assert_eq!(assignments(&chosen)[0], "10.0.0.4: configure, because it is listed", "{chosen:?}");
    let without_ours = [list("elsewhere", "10.0.0.4"), list("there", "10.0.0.5")].concat();
    run(&["plan", "-f", "-"], &without_ours).is_refused(2, &["elsewhere and there", "--namespace"]);
}

/// Kubernetes takes neither, and with one letter of another case a full list would be none.
#[test]
fn what_is_nearly_an_object_of_ours_is_named_and_a_list_that_is_none_is_an_error() {
    let list = "metadata: {name: windows-instances}\ndata: {10.0.0.1: username=core}\n";
    for (head, named) in [
        (
            "kind: configmap\n",
            "configmap windows-instances (standard input, document 1) is not used: the operator \
                               looks at ConfigMap of v1 alone",
        ),
        (
            "apiVersion: v2\nkind: ConfigMap\n",
            "ConfigMap windows-instances of v2 (standard input, document 1) is \
                                               not used",
        ),
        (
            "kind: machine\n",
            "is not used: the operator looks at Machine of machine.openshift.io alone",
        ),
        (
            "kind: INFRASTRUCTURE\n",
            "is not used: the operator looks at Infrastructure of config.openshift.io alone",
        ),
    ] {
        let input = format!("{head}{list}");
        let planned = run(&["plan", "-f", "-"], &input);
        assert!(
            labelled(&planned, "note: ").iter().any(|note| note.contains(named)),
            "{planned:?}"
        );
        let lacks = "the input lacks ConfigMap windows-instances";
        run(&["plan", "-f", "-", "--strict"], &input).is_refused(2, &[lacks]);
    }
    for items in ["x", "{a: 1}"] {
        let input = format!("kind: NodeList\nitems: {items}\n");
        run(&["plan", "-f", "-"], &input).is_refused(2, &["document 1, field `items` is wrong"]);
    }
}

#[test]
fn an_object_that_is_given_twice_is_an_error_with_both_places() {
    let twice = format!("{ONE_OF_THREE}---\nkind: Node\nmetadata: {{name: win-1}}\n");
    let input = &["document 3", "document 4", "Node win-1"];
    run(&["plan", "-f", "-"], &twice).is_refused(2, input);
    run(&["explain", "csr", "-f", "-"], &twice).is_refused(2, input);
    // One with and one without the namespace are the same.
    let list = "---\nkind: ConfigMap\nmetadata: {name: windows-instances, namespace: \
        openshift-windows-machine-config-operator}\n";
    let twice = format!("{ONE_OF_THREE}{list}");
    run(&["plan", "-f", "-"], &twice).is_refused(2, &["ConfigMap windows-instances"]);
    // What nobody looks at may be there twice, as in dumps.
    let pod = "---\nkind: Pod\nmetadata: {name: a, namespace: b}\n";
    assert_eq!(run(&["plan", "-f", "-"], &format!("{ONE_OF_THREE}{pod}{pod}")).status, 0);
}

#[test]
fn what_is_missing_is_told_and_an_error_where_it_has_to_be_there() {
    let alone =
        "kind: ConfigMap\nmetadata: {name: windows-instances}\ndata: {10.0.0.1: username=core}\n";
    let planned = run(&["plan", "-f", "-"], alone);
    let lacks = "the input lacks ConfigMap windows-ssh-host-keys, Nodes, Machines.machine.openshift.io (an entry \
                 may mean the host of one; an empty MachineList says that there is none), \
                 Networks.config.openshift.io, Infrastructures.config.openshift.io (an entry may have an address \
                 of the API server or the ingress";
    assert!(labelled(&planned, "note: ")[0].starts_with(lacks), "{planned:?}");
    run(&["plan", "-f", "-", "--strict"], alone).is_refused(2, &[lacks, "add it with -f FILE"]);
    let no_nodes = format!("{alone}---\nkind: NodeList\nitems: []\n");
    let planned = run(&["plan", "-f", "-"], &no_nodes);
    assert!(!labelled(&planned, "note: ")[0].contains("Nodes"), "{planned:?}");
    let unfilled =
        format!("{alone}---\nkind: Infrastructure\nmetadata: {{name: cluster}}\nstatus: {{}}\n");
    let planned = run(&["plan", "-f", "-"], &unfilled);
    assert!(labelled(&planned, "note: ")[0].contains("Infrastructures.config"), "{planned:?}");
    let nothing = run(
        &["plan", "-f", "-", "--strict"],
        "kind: ConfigMap\nmetadata: {name: windows-instances}\n",
    );
    assert_eq!((nothing.status, nothing.err.as_str()), (0, ""), "{nothing:?}");
}

/// Without the list nobody knows which hosts are entries, with Machines beside it as little as without.
#[test]
fn an_absent_list_is_told_and_one_without_data_says_that_there_is_none() {
    let all = "kind: NodeList\nitems: []\n---\nkind: ConfigMap\nmetadata: {name: windows-ssh-host-keys}\n---\n\
               kind: Machine\nmetadata: {name: m-1, labels: {machine.openshift.io/os-id: Windows}}\n---\n\
               kind: Infrastructure\nmetadata: {name: cluster}\nstatus: {platformStatus: {type: AWS}, \
               apiServerInternalURI: 'https://api-int.a.test:6443'}\n";
    let list = "ConfigMap windows-instances";
    let without = run(&["plan", "-f", "-"], all);
    assert!(labelled(&without, "note: ").concat().contains(list), "{without:?}");
    run(&["plan", "-f", "-", "--strict"], all).is_refused(2, &[list, "add it with -f FILE"]);
    let empty = format!("{all}---\nkind: ConfigMap\nmetadata: {{name: windows-instances}}\n");
    let with = run(&["plan", "-f", "-", "--strict"], &empty);
    assert!(with.status == 0 && !with.err.contains(list), "{with:?}");
}

/// Objects of a kind that the operator looks at, in a group, version or of a name that it does not.
#[test]
fn objects_of_other_groups_and_versions_do_not_count_and_are_named() {
    let list =
        "kind: ConfigMap\nmetadata: {name: windows-instances}\ndata: {10.0.0.1: username=core}\n";
    let infrastructure = |version: &str, name: &str| {
        format!(
            "---\napiVersion: {version}\nkind: Infrastructure\nmetadata: {{name: {name}}}\n\
             status: {{platformStatus: {{type: AWS}}, apiServerInternalURI: 'https://api-int.a.test:6443'}}\n"
        )
    };
    let machine = |version: &str| {
        format!(
            "---\napiVersion: {version}\nkind: Machine\nmetadata: {{name: m-1, \
             labels: {{machine.openshift.io/os-id: Windows}}}}\n"
        )
    };
    let lacks = |run: &Run, what: &str| {
        let notes = labelled(run, "note: ");
        notes.iter().any(|note| note.starts_with("the input lacks") && note.contains(what))
    };
    let named = |run: &Run, what: &str| {
        labelled(run, "note: ")
            .iter()
            .any(|note| !note.starts_with("the input lacks") && note.contains(what))
    };
    for (object, kind, counts) in [
        (infrastructure("config.openshift.io/v1", "cluster"), "Infrastructure", true),
        (infrastructure("config.openshift.io/v1", "other"), "Infrastructure", false),
        (infrastructure("config.openshift.io/v1beta1", "cluster"), "Infrastructure", false),
        (infrastructure("infra.example.test/v1", "cluster"), "Infrastructure", false),
        (machine("machine.openshift.io/v1beta1"), "Machine", true),
        (machine("machine.openshift.io/v1"), "Machine", false),
        (machine("cluster.x-k8s.io/v1beta1"), "Machine", false),
    ] {
        let planned = run(&["plan", "-f", "-"], &format!("{list}{object}"));
        assert_eq!(planned.status, 0, "{planned:?}");
        assert_eq!(lacks(&planned, &format!("{kind}s.")), !counts, "{object}{planned:?}");
        assert_eq!(named(&planned, &format!("{kind} ")), !counts, "{object}{planned:?}");
    }
}

/// A list of no Machines tells as much as one of some, and a Machine that is not looked at tells nothing.
#[test]
fn an_empty_list_of_machines_tells_that_there_is_none() {
    let machines = |more: &str| {
        let run = run(&["plan", "-f", "-"], &format!("{ONE_OF_THREE}---\n{more}"));
        run.err.contains("Machines.machine.openshift.io")
    };
    assert!(machines("kind: Other\n"));
    assert!(!machines("apiVersion: machine.openshift.io/v1beta1\nkind: MachineList\nitems: []\n"));
    assert!(!machines("kind: MachineList\nitems: []\n"));
    assert!(!machines("kind: Machine\nmetadata: {name: m-1}\n"));
    for other in
        ["apiVersion: v1\nkind: List", "apiVersion: cluster.x-k8s.io/v1\nkind: MachineList"]
    {
        assert!(machines(&format!("{other}\nitems: []\n")), "{other}");
    }
}

#[test]
fn a_name_that_was_not_looked_up_is_no_mistake() {
    let input =
        "kind: ConfigMap\nmetadata: {name: windows-instances}\ndata: {win.test: username=core}\n";
    let planned = run(&["plan", "-f", "-"], input);
    let expected = ["win.test: leave, because its name was not looked up yet"];
    assert_eq!((planned.status, assignments(&planned)), (0, expected.to_vec()), "{planned:?}");
    assert_eq!(labelled(&planned, "error: "), Vec::<&str>::new());
    assert!(labelled(&planned, "note: ").concat().contains("--facts FILE"), "{planned:?}");
}

/// What `plan` says of a listed host that is on record as closed, with these other entries of its ConfigMap of host keys
/// and annotations of its Node.
fn planned_on_record(kept: &str, annotations: &str) -> Run {
    let input = format!(
        r#"
kind: ConfigMap
metadata: {{name: windows-instances}}
data: {{10.0.0.1: username=core}}
---
kind: ConfigMap
metadata: {{name: windows-ssh-host-keys}}
data:
  {kept}
  10.0.0.1_host: '{{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "{0}", "rootClosedWithHostKey": "{0}"}}'
---
kind: Node
metadata: {{name: win-1, uid: "1", labels: {{kubernetes.io/os: windows}}, annotations: {{{annotations}}}}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1}}]}}
"#,
        pinned().1
    );
    run(&["plan", "-f", "-", "--operator-version", "2.0.0"], &input)
}

#[test]
fn a_host_on_record_would_only_be_probed_and_what_follows_is_told() {
    let kept = format!("10.0.0.1: {}", pinned().0);
    let version = |version: &str| format!("{}: {version}", names::VERSION_ANNOTATION);
    for (annotations, then) in [
        (String::new(), "would then set the host up as a node"),
        (version("2.0.0"), "would then do nothing, unless the host differs"),
        (
            version("1.0.0"),
            "would then upgrade it from 1.0.0 to 2.0.0, drained, once it has a slot of the disruption budget",
        ),
        (
            version("3.0.0"),
            "would then downgrade it from 3.0.0 to 2.0.0, drained, once it has a slot of the disruption budget",
        ),
        (
            version("old"),
            "would then bring it from \"old\" to 2.0.0, drained, once it has a slot of the disruption budget",
        ),
        (
            version("2.0.0-0a1b2c3"),
            "would then bring it from 2.0.0-0a1b2c3 to 2.0.0, drained, once it has a slot of the disruption budget",
        ),
        (
            format!("{}, {}: 1.9.0", version("2.0.0"), names::DESIRED_VERSION_ANNOTATION),
            "would then set it up anew, drained, once it has a slot of the disruption budget, because its daemon was \
             told to follow version 1.9.0",
        ),
        (
            format!("{}, {}: ''", version("2.0.0"), names::REBOOT_ANNOTATION),
            "would then restart it, drained, once it has a slot of the disruption budget, as its node asks",
        ),
        (
            format!("{}, {}: operator", version("2.0.0"), names::CORDONED_ANNOTATION),
            "would then put the node back into service, once it is ready",
        ),
    ] {
        let planned = planned_on_record(&kept, &annotations);
        assert!(planned.out.contains("\n  would probe, because"), "{planned:?}");
        assert!(planned.out.ends_with(&format!("\n  {then}\n")), "{planned:?}");
    }
}

/// Whoever may write a record, or a Node, writes no line of the plan.
#[test]
fn what_others_wrote_makes_no_line() {
    let forged = "1.0.0\n10.0.0.9: leave, because all is well";
    let lines = |run: Run| run.out.lines().map(str::to_owned).collect::<Vec<_>>();
    let version = format!("{}: {forged:?}", names::VERSION_ANNOTATION);
    let shown = lines(planned_on_record(&format!("10.0.0.1: {}", pinned().0), &version));
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert!(shown[2].contains(r#"bring it from "1.0.0\n10.0.0.9: leave"#), "{shown:#?}");
    let input = r#"
kind: ConfigMap
metadata: {name: windows-instances}
data: {10.0.0.1: username=core}
---
kind: ConfigMap
metadata: {name: windows-ssh-host-keys}
data:
  10.0.0.1_host: '{"ipv4": "10.0.0.1", "pinned": "SHA256:a\n10.0.0.9: leave"}'
"#;
    let shown = lines(run(&["plan", "-f", "-", "--operator-version", "2.0.0"], input));
    assert_eq!(shown.len(), 2, "{shown:#?}");
    assert!(shown[1].contains(r"the fingerprint SHA256:a\n10.0.0.9: leave"), "{shown:#?}");
}

/// As the operator does.
#[test]
fn a_host_whose_pinned_key_is_gone_would_not_be_logged_in_to() {
    let planned = planned_on_record("other: text", "");
    let lines: Vec<&str> = planned.out.lines().skip(1).collect();
    let [line] = lines[..] else { panic!("{planned:?}") };
    assert!(
        line.starts_with("  would not log in: the pinned key `10.0.0.1` is gone"),
        "{planned:?}"
    );
}

#[test]
fn a_long_version_is_cut_with_a_mark() {
    let version = format!("{}: {}", names::VERSION_ANNOTATION, "x".repeat(65));
    let planned = planned_on_record(&format!("10.0.0.1: {}", pinned().0), &version);
    let shown = format!("bring it from \"{}\".. to 2.0.0", "x".repeat(64));
    assert!(planned.out.contains(&shown), "{planned:?}");
}

/// No API server lets such a name in, but a file may hold anything.
#[test]
fn the_name_of_a_machine_makes_no_note() {
    let ignored = names::IGNORE_LABEL;
    let machine = format!(
        "kind: Machine\nmetadata: {{name: \"mine\\nerror: all\\u2028error: is\", labels: \
         {{machine.openshift.io/os-id: Windows, {ignored}: \"true\"}}}}\n"
    );
    let planned = run(&["plan", "-f", "-"], &machine);
    assert!(
        planned.err.contains("note: machine mine\n  error: all\\u{2028}error: is"),
        "{planned:?}"
    );
    assert_eq!(labelled(&planned, "error: "), Vec::<&str>::new(), "{planned:?}");
}

#[test]
fn a_machine_that_is_left_alone_has_a_line() {
    let ignored = names::IGNORE_LABEL;
    let machine = format!(
        "kind: Machine\nmetadata: {{name: mine, labels: {{machine.openshift.io/os-id: Windows, {ignored}: \"true\"}}}}\n\
         status: {{phase: Running}}\n"
    );
    let planned = run(&["plan", "-f", "-"], &machine);
    let told = ["machine mine is left as it is: people asked to leave it alone"];
    assert_eq!(labelled(&planned, "note: ")[1..], told, "{planned:?}");
}
