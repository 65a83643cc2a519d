//! Changes of records, in any order.

use super::*;
use crate::host_record::KnownHosts;

const ADDRESS: &str = "10.0.0.5";
const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn listed() -> RecordChange {
    RecordChange::Listed(ListedHost {
        ipv4: [10, 0, 0, 5].into(),
        username: Some("sealed".into()),
        port: SSH_PORT,
        via: None,
        node: None,
        host_name: None,
        formerly: Vec::new(),
        machine: None,
    })
}

fn pinned() -> RecordChange {
    RecordChange::Pinned { key: KEY.parse().unwrap(), jump: None }
}

fn closed() -> RecordChange {
    let (key, host_name) = (KEY.parse().unwrap(), Some("WIN-1".to_owned()));
    RecordChange::Seen { key, host_name, root: RootAccess::Closed }
}

/// What is kept after these changes, in any of these orders.
fn after(changes: &[RecordChange]) -> BTreeMap<String, String> {
    let mut data = BTreeMap::new();
    listed().apply(ADDRESS, &mut data).unwrap();
    for change in changes {
        change.apply(ADDRESS, &mut data).unwrap();
    }
    data
}

#[test]
fn the_order_of_writers_does_not_matter() {
    let node = RecordChange::Listed(ListedHost {
        node: Some("win-1".into()),
        ..match listed() {
            RecordChange::Listed(host) => host,
            other => unreachable!("{other:?}"),
        }
    });
    let changes = [pinned(), closed(), node];
    let all = after(&changes);
    let record = KnownHosts::read(&all).record(ADDRESS).cloned().unwrap();
    assert_eq!(record.node.as_deref(), Some("win-1"));
    assert!(record.pinned.is_some() && record.pinned == record.root_closed_with_host_key);
    assert_eq!(all[ADDRESS], KEY);
    for [a, b, c] in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let turned = [&changes[a], &changes[b], &changes[c]].map(Clone::clone);
        assert_eq!(after(&turned), all);
    }
}

/// Two hosts of one image are told apart by it. Another name goes on record with what else is decided about the host.
#[test]
fn an_agents_report_gives_a_host_a_name_only_if_it_has_none_with_that_key() {
    let name_after = |changes: &[RecordChange]| {
        let all = after(&[&[pinned(), closed()], changes].concat());
        KnownHosts::read(&all).record(ADDRESS).cloned().unwrap().host_name.unwrap()
    };
    let seen = |key: &str| RecordChange::Seen {
        key: key.parse().unwrap(),
        host_name: Some("WIN-2".into()),
        root: RootAccess::Closed,
    };
    let other_key = KEY.replace("HR4f", "HR4g");
    let other_pinned = RecordChange::Pinned { key: other_key.parse().unwrap(), jump: None };
    assert_eq!(name_after(&[seen(KEY)]), "WIN-1");
    assert_eq!(name_after(&[seen(&other_key)]), "WIN-2", "another host");
    assert_eq!(name_after(&[other_pinned, seen(&other_key)]), "WIN-2", "another host");
}

/// That of a name that did not register it stays: the host may have been renamed before there were records.
#[test]
fn a_node_goes_from_the_record_with_the_name_that_registered_it() {
    let node_after = |name: &str, told: &str| {
        let record = format!(r#"{{"node": "win-1", "hostName": "{name}"}}"#);
        let mut data = BTreeMap::from([(HostRecord::key_name(ADDRESS), record)]);
        let RecordChange::Listed(host) = listed() else { unreachable!() };
        let host = ListedHost { host_name: Some(told.into()), ..host };
        RecordChange::Listed(host).apply(ADDRESS, &mut data).unwrap();
        KnownHosts::read(&data).record(ADDRESS).unwrap().node.clone()
    };
    assert_eq!(node_after("WIN-1", "WIN-1").as_deref(), Some("win-1"));
    assert_eq!(node_after("WIN-1", "WIN-2"), None);
    assert_eq!(node_after("WIN-3", "WIN-2").as_deref(), Some("win-1"));
}

/// A name may be known of a host that has shown no key yet.
#[test]
fn the_first_key_takes_no_name_away() {
    let record = r#"{"hostName": "WIN-1"}"#.to_owned();
    let mut data = BTreeMap::from([(HostRecord::key_name(ADDRESS), record)]);
    pinned().apply(ADDRESS, &mut data).unwrap();
    let record = KnownHosts::read(&data).record(ADDRESS).cloned().unwrap();
    assert_eq!(record.host_name.as_deref(), Some("WIN-1"));
}

#[test]
fn a_late_write_does_not_bring_a_forgotten_host_back() {
    let mut data = after(&[pinned(), RecordChange::Forgotten]);
    assert_eq!(data, BTreeMap::new());
    let replaced = RecordChange::ToReplace { set: "win".into(), of: None };
    let keys = [RecordChange::LetsIn(None), RecordChange::KeyRemoved(Sha256::of(b"1"))];
    let others = [pinned(), closed(), RecordChange::RemovalConfirmed(true), replaced];
    for late in others.into_iter().chain(keys) {
        assert_eq!(late.apply(ADDRESS, &mut data), Err(RecordRefused::Gone));
    }
    assert_eq!(data, BTreeMap::new());
}

/// Which key the host lets in, and which was taken off, after these changes.
fn keys_after(changes: &[RecordChange]) -> [Option<Sha256>; 2] {
    let record = KnownHosts::read(&after(changes)).record(ADDRESS).cloned().unwrap();
    [record.accepted_key, record.removed_key]
}

#[test]
fn a_key_that_is_let_in_was_not_taken_off() {
    use RecordChange::{KeyRemoved, LetsIn};
    let [one, two, three] = [b"1", b"2", b"3"].map(|key| Sha256::of(key));
    let rotated = [LetsIn(Some(two)), KeyRemoved(one)];
    assert_eq!(keys_after(&rotated), [Some(two), Some(one)]);
    let [a, b] = rotated;
    assert_eq!(keys_after(&[a.clone(), b.clone(), LetsIn(Some(two))]), [Some(two), Some(one)]);
    assert_eq!(keys_after(&[a.clone(), b.clone(), LetsIn(None)]), [None, None]);
    assert_eq!(keys_after(&[a.clone(), b.clone(), LetsIn(Some(three))]), [Some(three), None]);
    assert_eq!(keys_after(&[a, b, LetsIn(Some(one))]), [Some(one), None]);
}

/// A host at another address or with another host key may let in any key.
#[test]
fn which_keys_a_host_lets_in_is_known_of_that_host_only() {
    let proven = || [pinned(), RecordChange::LetsIn(Some(Sha256::of(b"1")))];
    let with = |change| keys_after(&[proven().to_vec(), vec![change]].concat())[0].is_some();
    let RecordChange::Listed(host) = listed() else { unreachable!() };
    assert!(with(listed()) && with(pinned()) && with(closed()));
    assert!(with(RecordChange::Listed(ListedHost { port: 2222, ..host.clone() })));
    let by_jump = ListedHost { via: Some("jump".into()), ..host.clone() };
    assert!(!with(RecordChange::Listed(by_jump)));
    let moved = ListedHost { ipv4: [10, 0, 0, 6].into(), ..host };
    assert!(!with(RecordChange::Listed(moved)));
    let other = KEY.replace("AAIAABA", "AAIAABB").parse().unwrap();
    assert!(!with(RecordChange::Pinned { key: other, jump: None }));
}

#[test]
fn a_record_that_nobody_can_read_is_left_to_a_person() {
    let damaged = BTreeMap::from([(HostRecord::key_name(ADDRESS), "{".to_owned())]);
    let adopted = RecordChange::Adopted {
        ipv4: [10, 0, 0, 5].into(),
        node: "win-1".into(),
        username: "sealed".into(),
    };
    let renamed = RecordChange::Listed(ListedHost {
        formerly: vec![ADDRESS.into()],
        ..match listed() {
            RecordChange::Listed(host) => host,
            other => unreachable!("{other:?}"),
        }
    });
    let mut data = damaged.clone();
    for change in [listed(), pinned(), closed(), adopted, RecordChange::Forgotten] {
        assert_eq!(change.apply(ADDRESS, &mut data), Err(RecordRefused::Damaged));
    }
    assert_eq!(renamed.apply("win-5.example", &mut data), Err(RecordRefused::Damaged));
    assert_eq!(data, damaged);
}

#[test]
fn what_is_on_record_already_is_no_more_believed_of_a_node() {
    let known = after(&[pinned()]);
    let mut data = known.clone();
    let adopted = RecordChange::Adopted {
        ipv4: [10, 0, 0, 66].into(),
        node: "win-66".into(),
        username: "other".into(),
    };
    adopted.apply(ADDRESS, &mut data).unwrap();
    assert_eq!(data, known);
}

#[test]
fn the_node_of_a_host_that_left_is_put_on_record_once() {
    let joined = |node: &str| RecordChange::Joined { node: node.to_owned() };
    let node = |data: &BTreeMap<String, String>| {
        HostRecord::parse(&data[&HostRecord::key_name(ADDRESS)]).and_then(|record| record.node)
    };
    let record = r#"{"ipv4": "10.0.0.5"}"#.to_owned();
    let mut data = BTreeMap::from([(HostRecord::key_name(ADDRESS), record)]);
    joined("win-1").apply(ADDRESS, &mut data).unwrap();
    joined("win-2").apply(ADDRESS, &mut data).unwrap();
    assert_eq!(node(&data).as_deref(), Some("win-1"));
    assert_eq!(joined("win-1").apply("10.0.0.6", &mut data), Err(RecordRefused::Gone));
}

#[test]
fn a_host_takes_what_was_kept_under_its_former_address_along() {
    let mut data = after(&[pinned(), closed()]);
    let RecordChange::Listed(host) = listed() else { unreachable!() };
    let renamed = RecordChange::Listed(ListedHost { formerly: vec![ADDRESS.into()], ..host });
    renamed.apply("win-5.example", &mut data).unwrap();
    let known = KnownHosts::read(&data);
    assert_eq!(known.record("win-5.example"), known.record(ADDRESS));
}

#[test]
fn a_machine_at_another_address_is_not_known_to_be_closed() {
    let RecordChange::Listed(host) = listed() else { unreachable!() };
    let at = |last: u8, machine: Option<&str>| {
        let (ipv4, machine) = ([10, 0, 0, last].into(), machine.map(str::to_owned));
        RecordChange::Listed(ListedHost { ipv4, machine, ..host.clone() })
    };
    for (machine, last, expected) in
        [(Some("u-1"), 5, true), (Some("u-1"), 6, false), (None, 6, true)]
    {
        let mut data = BTreeMap::new();
        for change in [at(5, machine), pinned(), closed(), at(last, machine)] {
            change.apply(ADDRESS, &mut data).unwrap();
        }
        let known = KnownHosts::read(&data);
        let record = known.record(ADDRESS).unwrap();
        assert_eq!(
            (record.root_closed_with_host_key.is_some(), record.pinned.is_some()),
            (expected, true)
        );
    }
}

#[test]
fn a_machine_that_took_the_name_of_another_has_a_host_of_its_own() {
    let of = |uid: &str| match listed() {
        RecordChange::Listed(host) => {
            RecordChange::Listed(ListedHost { machine: Some(uid.into()), ..host })
        }
        other => unreachable!("{other:?}"),
    };
    let mut data = BTreeMap::new();
    for change in [of("u-1"), pinned(), closed(), of("u-1")] {
        change.apply(ADDRESS, &mut data).unwrap();
    }
    let known = KnownHosts::read(&data);
    assert!(known.pin(ADDRESS).is_some() && known.record(ADDRESS).unwrap().pinned.is_some());
    of("u-2").apply(ADDRESS, &mut data).unwrap();
    let known = KnownHosts::read(&data);
    let record = known.record(ADDRESS).unwrap();
    assert_eq!((known.pin(ADDRESS), &record.pinned, &record.host_name), (None, &None, &None));
    assert_eq!(record.machine.as_deref(), Some("u-2"));
}

/// Its number of Machines is a hint; that it is being replaced, and its pin, are not lost with it.
#[test]
fn a_replacement_is_on_record_though_its_machines_are_not() {
    for damaged in ["3", "null", r#""three""#, r#"{"count": 3}"#, r#"{"newest": "yesterday"}"#] {
        let text = format!(
            r#"{{"machine": "u-1", "replacementMachineSet": "win", "machinesBefore": {damaged}}}"#
        );
        let data = BTreeMap::from([(HostRecord::key_name("mac-1_machine"), text)]);
        let known = KnownHosts::read(&data);
        let record = known.record("mac-1_machine").unwrap_or_else(|| panic!("{damaged}: lost"));
        assert_eq!(
            (record.replacement_machine_set.as_deref(), record.machines_before),
            (Some("win"), None)
        );
    }
}
