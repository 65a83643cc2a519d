use super::*;
use crate::facts::NodeFacts;
use crate::fleet::{Because, Intent};
use crate::instances::{self, Resolutions};

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const RECORD: &str = r#"{"ipv4": "10.0.0.5", "username": "sealed core"}"#;

fn assignment<'a>(entries: &'a Entries, node: Option<&'a NodeFacts>) -> Assignment<'a> {
    Assignment {
        address: "10.0.0.5".into(),
        formerly: Vec::new(),
        instance: entries.instances().next(),
        node,
        confirmed: false,
        intent: Intent::Leave,
        because: Because::Unlisted,
    }
}

fn node_of(annotations: &[(&str, &str)]) -> NodeFacts {
    NodeFacts {
        name: "win-1".into(),
        addresses: vec!["win-1".into(), "10.0.0.5".into()],
        annotations: annotations.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ..NodeFacts::default()
    }
}

fn hosts(data: &[(&str, &str)]) -> KnownHosts {
    KnownHosts::read(data.iter().copied())
}

fn listed(value: &str) -> Entries {
    instances::parse([("10.0.0.5", value)], &Resolutions::default())
}

/// The way to a host that is listed with `value`.
fn by_entry(
    value: &str,
    node: Option<&NodeFacts>,
    data: &[(&str, &str)],
) -> Result<Reach, Unreachable> {
    reach(&assignment(&listed(value), node), &hosts(data), |_| None)
}

/// The way to a host that nobody lists.
fn by_record(node: &NodeFacts, data: &[(&str, &str)]) -> Result<Reach, Unreachable> {
    let decrypt = |text: &str| text.strip_prefix("sealed ").map(Into::into);
    reach(&assignment(&Entries::default(), Some(node)), &hosts(data), decrypt)
}

fn fingerprint() -> String {
    KEY.parse::<HostKey>().unwrap().fingerprint()
}

#[test]
fn a_pin_says_how_another_key_is_trusted() {
    let value = format!("username=a\nhostKey={KEY}\nvia=c.test\nviaHostKey={KEY}");
    let reach = by_entry(&value, None, &[]).unwrap();
    let texts =
        [reach.host_key, reach.via.unwrap().host_key].map(|key| key.unwrap().by.to_string());
    assert_eq!(
        texts,
        [
            "change `hostKey=` of entry `10.0.0.5` in ConfigMap windows-instances",
            "change `viaHostKey=` of entry `10.0.0.5` in ConfigMap windows-instances"
        ]
    );
    let by = Pin::Kept { name: "c.test_22".into() };
    assert_eq!(
        by.to_string(),
        "replace `c.test_22` in ConfigMap windows-ssh-host-keys by its new key"
    );
}

#[test]
fn what_a_node_says_of_its_host_is_not_believed() {
    let node = node_of(&[
        (names::HOST_KEY_ANNOTATION, "another key"),
        (names::USERNAME_ANNOTATION, "sealed another"),
    ]);
    let data = [("10.0.0.5", KEY), ("10.0.0.5_host", RECORD)];
    for reach in [by_entry("username=core", Some(&node), &data), by_record(&node, &data)] {
        let reach = reach.unwrap();
        let key = reach.host_key.unwrap();
        assert_eq!((key.key.to_string().as_str(), reach.username.as_str()), (KEY, "core"));
        assert_eq!(key.by, Pin::Kept { name: "10.0.0.5".into() });
    }
}

#[test]
fn a_pin_that_vanished_is_no_first_use() {
    let record = format!(
        r#"{{"ipv4": "10.0.0.5", "username": "sealed core", "pinned": "{}"}}"#,
        fingerprint()
    );
    let data = [("10.0.0.5_host", record.as_str())];
    // Not even if the Node has a key: every daemon may write one there.
    let node = node_of(&[(names::HOST_KEY_ANNOTATION, KEY)]);
    for reach in [by_entry("username=core", Some(&node), &data), by_record(&node, &data)] {
        let error = reach.unwrap_err().to_string();
        assert!(
            error.contains("`10.0.0.5` is gone from ConfigMap windows-ssh-host-keys"),
            "{error}"
        );
        assert!(error.contains(&fingerprint()) && error.contains("write the key there"), "{error}");
    }
    // Nor when the record is gone with it: marks that only this operator writes tell that it was known, also on the
    // Node of a Machine.
    let marked = |name| node_of(&[(names::HOST_KEY_ANNOTATION, KEY), (name, "10.0.0.5")]);
    let marks = [names::INSTANCE_ANNOTATION, names::SERVICES_ANNOTATION, names::ROOTS_ANNOTATION];
    for mark in marks {
        let reach = by_entry("username=core", Some(&marked(mark)), &[]);
        assert!(matches!(reach, Err(Unreachable::PinGone { .. })), "{mark}");
    }
    let made = marked(names::INSTANCE_ANNOTATION);
    // A person's word in the entry ends it.
    let value = format!("username=core\nhostKey={KEY}");
    let reach = by_entry(&value, Some(&made), &data).unwrap();
    assert!(reach.to_keep && reach.host_key.unwrap().key.to_string() == KEY);
}

#[test]
fn a_pin_of_the_go_operator_is_taken_over_once() {
    let node = node_of(&[(names::HOST_KEY_ANNOTATION, KEY)]);
    let reach = by_entry("username=core", Some(&node), &[]).unwrap();
    assert_eq!(reach.host_key.unwrap().by, Pin::Node { node: "win-1".into() });
    assert!(reach.to_keep);
}

#[test]
fn the_first_login_trusts_a_host_that_was_never_known() {
    let reach = by_entry("username=core", None, &[("10.0.0.5_host", RECORD)]).unwrap();
    assert_eq!((reach.host_key, reach.to_keep), (None, false));
}

#[test]
fn a_key_that_a_person_wrote_into_the_config_map_is_noted() {
    let old = r#"{"pinned": "SHA256:old"}"#;
    let reach = by_entry("username=a", None, &[("10.0.0.5", KEY), ("10.0.0.5_host", old)]).unwrap();
    assert!(reach.to_keep && reach.host_key.unwrap().key.to_string() == KEY);
    let noted = format!(r#"{{"pinned": "{}"}}"#, fingerprint());
    let data = [("10.0.0.5", KEY), ("10.0.0.5_host", noted.as_str())];
    assert!(!by_entry("username=a", None, &data).unwrap().to_keep);
}

#[test]
fn a_host_that_is_listed_under_another_name_keeps_its_pin() {
    let entries = listed("username=a");
    let renamed = Assignment { formerly: vec!["win-1.test".into()], ..assignment(&entries, None) };
    let known = hosts(&[("win-1.test", KEY), ("win-1.test_host", RECORD)]);
    let reach = reach(&renamed, &known, |_| None).unwrap();
    assert!(reach.to_keep && reach.host_key.unwrap().key.to_string() == KEY);
}

#[test]
fn a_record_tells_port_and_jump_host_of_a_host_that_nobody_lists() {
    let record =
        r#"{"ipv4": "10.0.0.5", "username": "sealed core", "port": 2222, "via": "c.test:23"}"#;
    let reach = by_record(&node_of(&[]), &[("10.0.0.5_host", record)]).unwrap();
    let via = reach.via.unwrap();
    assert_eq!((reach.address.to_string().as_str(), reach.port), ("10.0.0.5", 2222));
    assert_eq!((via.username.as_str(), via.key_name.as_str()), ("core", "c.test_23"));
}

fn via_of(value: &str, data: &[(&str, &str)]) -> Via {
    by_entry(value, None, data).unwrap().via.unwrap()
}

#[test]
fn a_jump_host_has_its_own_user_port_and_key() {
    let noted = format!(r#"{{"jumpPinned": ["c.test_23", "{}"]}}"#, fingerprint());
    let data = [("c.test_23", KEY), ("10.0.0.5_host", noted.as_str())];
    let via = via_of("username=a\nvia=b@c.test:23", &data);
    assert_eq!((via.address.as_str(), via.port, via.username.as_str()), ("c.test", 23, "b"));
    assert_eq!((via.host_key.unwrap().key.to_string().as_str(), via.to_keep), (KEY, false));
    let via = via_of("username=a\nvia=c.test", &data);
    assert_eq!((via.username.as_str(), via.host_key, via.to_keep), ("a", None, true));
}

#[test]
fn a_jump_hosts_pin_that_vanished_is_no_first_use() {
    let record = r#"{"jumpPinned": ["c.test_22", "SHA256:x"]}"#;
    let error = by_entry("username=a\nvia=c.test", None, &[("10.0.0.5_host", record)]).unwrap_err();
    assert!(matches!(error, Unreachable::PinGone { name, .. } if name == "c.test_22"));
    let other = by_entry("username=a\nvia=d.test", None, &[("10.0.0.5_host", record)]).unwrap();
    assert_eq!(other.via.unwrap().host_key, None);
}

#[test]
fn the_key_in_the_entry_counts_more_than_the_kept_one_of_a_jump_host() {
    let value = format!("username=a\nvia=c.test\nviaHostKey={KEY}");
    let via = via_of(&value, &[("c.test_22", "another key")]);
    assert_eq!((via.host_key.unwrap().key.to_string().as_str(), via.to_keep), (KEY, true));
}

#[test]
fn a_pin_that_is_no_key_is_no_first_use() {
    let node = node_of(&[(names::HOST_KEY_ANNOTATION, "damaged")]);
    for (node, data, place) in [
        (None, &[("10.0.0.5", "damaged")][..], "replace `10.0.0.5` in ConfigMap"),
        (Some(&node), &[], "correct annotation"),
    ] {
        let error = by_entry("username=a", node, data).unwrap_err();
        assert!(matches!(error, Unreachable::BadPin { .. }) && error.to_string().contains(place));
    }
    let jump = by_entry("username=a\nvia=c.test", None, &[("c.test_22", "damaged")]);
    assert!(matches!(jump, Err(Unreachable::BadPin { .. })));
}

/// Only then a connection that is open may be used on.
#[test]
fn a_way_only_pins_if_nothing_else_differs() {
    let first = by_entry("username=a\nvia=c.test", None, &[]).unwrap();
    let pins = [("10.0.0.5", KEY), ("c.test_22", KEY)];
    let pinned = by_entry("username=a\nvia=c.test", None, &pins).unwrap();
    assert!(pinned.only_pins(&first) && pinned.only_pins(&pinned));
    assert!(!first.only_pins(&pinned), "a pin that was removed");
    let host_only = by_entry("username=a\nvia=c.test", None, &pins[..1]).unwrap();
    assert!(!host_only.only_pins(&pinned), "the jump host's pin was removed");
    for value in ["username=b\nvia=c.test", "username=a\nport=23\nvia=c.test", "username=a"] {
        assert!(!by_entry(value, None, &pins).unwrap().only_pins(&first), "{value}");
    }
    let jump = by_entry("username=a\nvia=c.test:23", None, &[]).unwrap();
    assert!(!jump.only_pins(&first));
}

#[test]
fn keys_of_jump_hosts_are_kept_while_somebody_needs_them() {
    let known = hosts(&[
        ("a_22", KEY),
        ("b_22", KEY),
        ("c_22", KEY),
        ("10.0.0.5", KEY),
        ("10.0.0.6_host", r#"{"via": "b"}"#),
    ]);
    let forgotten = |value| forgotten_jump_keys(&listed(value), &known);
    assert_eq!(forgotten("username=x\nvia=a"), ["c_22".to_owned()].into());
    assert!(forgotten("user=x").is_empty(), "a broken entry may mean any of them");
    let damaged = KnownHosts::read([("c_22", ""), ("10.0.0.5_host", "{")]);
    assert!(
        forgotten_jump_keys(&listed("username=x"), &damaged).is_empty(),
        "so may a broken record"
    );
}

#[test]
fn without_a_readable_user_the_error_names_the_node() {
    let record = r#"{"ipv4": "10.0.0.5", "username": "?"}"#;
    let error = by_record(&node_of(&[]), &[("10.0.0.5_host", record)]).unwrap_err().to_string();
    assert!(error.contains("win-1") && error.contains("cannot be read with this key"), "{error}");
    let error = by_record(&node_of(&[]), &[]).unwrap_err().to_string();
    assert!(error.contains(names::USERNAME_ANNOTATION), "{error}");
}

/// A person may have pasted a whole line; the copy on the Node is canonical, and both are compared.
#[test]
fn a_kept_key_with_a_comment_is_written_anew() {
    let (line, noted) = (
        format!("ssh-ed25519 {KEY} root@win-1"),
        format!(r#"{{"ipv4": "10.0.0.5", "pinned": "{}"}}"#, fingerprint()),
    );
    let data = [("10.0.0.5", line.as_str()), ("10.0.0.5_host", noted.as_str())];
    for value in ["username=a".to_owned(), format!("username=a\nhostKey={KEY}")] {
        assert!(by_entry(&value, None, &data).unwrap().to_keep, "{value}");
    }
}
