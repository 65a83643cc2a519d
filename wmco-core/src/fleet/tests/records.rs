//! Several records of one host.

use super::*;
use crate::reach::{Pin, Pinned, Unreachable, reach};

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// A host that is listed by a name now, and was by two other ones before, each of which has a record.
fn renamed_twice() -> Case {
    Case {
        listed: vec![Listed { address: "c.example".into(), ..entry(1) }],
        host_keys: vec![
            ("a.example_host", TOUCHED.1),
            ("a.example", KEY),
            ("b.example_host", TOUCHED.1),
            ("b.example", KEY),
        ],
        ..Case::default()
    }
}

/// The key that the host of the only entry has to show.
fn host_key(case: &Case) -> Result<Option<Pinned>, Unreachable> {
    let hosts = KnownHosts::read(case.host_keys.iter().copied());
    case.look(|out| {
        let [assignment] = out.instances.as_slice() else { panic!("{out:#?}") };
        reach(assignment, &hosts, |_| None).map(|way| way.host_key)
    })
}

#[test]
fn several_former_records_lead_to_no_first_use() {
    let kept = Pinned { key: KEY.parse().unwrap(), by: Pin::Kept { name: "a.example".to_owned() } };
    assert_eq!(host_key(&renamed_twice()), Ok(Some(kept)));
    let pins_gone = renamed_twice().with(|c| c.host_keys.retain(|(key, _)| key.ends_with("_host")));
    let error = host_key(&pins_gone).unwrap_err();
    assert!(matches!(error, Unreachable::PinGone { .. }), "{error}");
}

/// Nobody ever logged in by the name that comes first.
#[test]
fn a_former_record_without_a_pin_does_not_hide_one_with() {
    let case = renamed_twice().with(|c| {
        c.host_keys.retain(|(key, _)| *key != "a.example");
        c.host_keys[0].1 = r#"{"ipv4": "10.0.0.1"}"#;
    });
    assert_ne!(host_key(&case), Ok(None));
}

#[test]
fn all_former_records_are_forgotten_once_one_took_them_over() {
    let forgotten = |more: &[(&'static str, &'static str)]| {
        let case = renamed_twice().with(|c| c.host_keys.extend(more));
        case.look(|out| out.forgotten_keys.into_iter().collect::<Vec<_>>().join(" "))
    };
    let (record, pin) = (("c.example_host", TOUCHED.1), ("c.example", KEY));
    assert_eq!(forgotten(&[]), "");
    assert_eq!(forgotten(&[record]), "", "its pin would be lost");
    assert_eq!(forgotten(&[pin]), "", "its record would be lost");
    assert_eq!(forgotten(&[record, pin]), "a.example a.example_host b.example b.example_host");
}

#[test]
fn what_a_host_that_is_to_be_cleaned_needs_is_not_forgotten() {
    let case = Case { host_keys: vec![TOUCHED, ("10.0.0.1", KEY)], ..Case::default() };
    assert_eq!(case.look(|out| out.forgotten_keys), BTreeSet::new());
    let untouched = ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1"}"#);
    let forgotten = case.with(|c| c.host_keys[0] = untouched).look(|out| out.forgotten_keys);
    assert_eq!(forgotten, ["10.0.0.1".to_owned(), "10.0.0.1_host".to_owned()].into());
}

rows! { lines:
    host_with_several_former_records: renamed_twice() => "c.example: configure, because it is listed";
    host_whose_former_records_are_taken_over: renamed_twice()
        .with(|c| c.host_keys.extend([("c.example_host", TOUCHED.1), ("c.example", KEY)]))
        => "c.example: configure, because it is listed";
    host_with_two_records_leaves_by_the_one_with_a_pin: renamed_twice().with(|c| {
        c.listed.clear();
        c.host_keys.retain(|(key, _)| *key != "b.example");
    }) => "a.example: remove, because it is no longer listed";
    host_with_two_records_leaves_by_the_other_one_with_a_pin: renamed_twice().with(|c| {
        c.listed.clear();
        c.host_keys.retain(|(key, _)| *key != "a.example");
    }) => "b.example: remove, because it is no longer listed";
}
