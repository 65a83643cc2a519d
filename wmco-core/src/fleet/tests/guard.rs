//! Which removals count for the limit, and what lets them go.

use super::*;

/// Nothing is on record of the Node's host, so nobody can reach it.
fn unknown_host(case: &mut Case) {
    case.nodes = vec![node(3)];
}

/// Nobody ever logged in to this host.
const UNTOUCHED: (&str, &str) = ("10.0.0.3_host", r#"{"ipv4": "10.0.0.3"}"#);

const WAITING: &str = "10.0.0.1: leave, because its removal is not confirmed\n\
                       10.0.0.2: leave, because its removal is not confirmed";

const LET_GO: &str = "10.0.0.1: leave, because its removal is put on record first\n\
                      10.0.0.2: leave, because its removal is put on record first";

rows! { lines:
    node_without_a_record_does_not_count: two_removals().with(|c| c.guard.most = Some(2)).with(unknown_host)
        => &format!("{LET_GO}\n10.0.0.3: remove (node win-3), because it is no longer listed");
    node_without_a_record_does_not_wait: Case {
        guard: RemovalGuard { most: Some(0), confirmed: None }, ..Case::default()
    }.with(unknown_host) => "10.0.0.3: remove (node win-3), because it is no longer listed";
    node_without_a_record_is_not_counted_in_what_is_confirmed: two_removals()
        .with(|c| c.guard.confirmed = Some(3))
        .with(unknown_host)
        => &format!("{WAITING}\n10.0.0.3: remove (node win-3), because it is no longer listed");
    host_that_was_never_logged_in_to_does_not_count: two_removals().with(|c| {
        c.guard.most = Some(2);
        c.host_keys.push(UNTOUCHED);
    }) => LET_GO;
    host_that_may_be_listed_does_not_count: two_removals().with(|c| {
        c.listed = vec![broken("10.0.0.2")];
    }) => "10.0.0.1: leave, because its removal is put on record first\n\
           10.0.0.2: leave, because its entry is broken";
    as_many_as_the_limit: two_removals().with(|c| c.guard.most = Some(2)) => LET_GO;
    limit_of_none: two_removals().with(|c| c.guard.most = Some(0)) => WAITING;
    confirmation_of_fewer: two_removals().with(|c| {
        c.guard = RemovalGuard { most: Some(0), confirmed: Some(1) };
    }) => WAITING;
    confirmation_of_more: two_removals().with(|c| c.guard.confirmed = Some(20)) => WAITING;
    confirmation_counts_those_that_wait: two_removals().with(|c| {
        c.guard.confirmed = Some(2);
        c.host_keys.push(("10.0.0.3_host", r#"{"pinned": "z", "removalConfirmed": true}"#));
    }) => &format!("{LET_GO}\n10.0.0.3: remove, because it is no longer listed");
    confirmation_of_one_that_waits_for_something_else_is_not_of_others: one_of_two_waits()
        .with(|c| c.guard = RemovalGuard { most: Some(0), confirmed: Some(1) })
        => "10.0.0.1: leave, because its removal is not confirmed\n\
            10.0.0.2: leave, because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: configure, because it is listed";
}

/// An entry says that the second of the hosts is its own.
fn one_of_two_waits() -> Case {
    two_removals().with(|c| {
        c.listed = vec![entry(9)];
        c.also = vec![("10.0.0.9", "10.0.0.2")];
    })
}

rows! { changes:
    confirmation_of_both_is_of_one_that_waits_for_something_else: one_of_two_waits()
        .with(|c| c.guard.confirmed = Some(2)) => "10.0.0.1 10.0.0.2";
}

rows! { told:
    nodes_without_a_record_need_no_confirmation: Case {
        guard: RemovalGuard { most: Some(0), confirmed: None }, ..Case::default()
    }.with(unknown_host) => "";
    how_many_wait: two_removals().with(unknown_host) => &format!(
        "2 hosts are no longer listed, and more than 1 at once need a confirmation; list them again, \
         or have them removed by `kubectl annotate configmap windows-instances --overwrite {}=2`",
        names::CONFIRM_REMOVAL_ANNOTATION
    );
    nobody_waits_for_it_while_all_wait_for_something_else: two_removals().with(|c| {
        c.guard.most = Some(0);
        c.listed = vec![broken("c.example")];
    }) => "";
    nobody_waits_once_it_is_confirmed: two_removals().with(|c| c.guard.confirmed = Some(2)) => "";
}

rows! { changes:
    of_hosts_that_wait: two_removals() => "";
}

#[test]
fn what_was_let_go_is_on_record_with_all_that_was_known() {
    let case = two_removals().with(|c| c.guard.confirmed = Some(2));
    let before = KnownHosts::read(case.host_keys.iter().copied());
    let mut data: BTreeMap<String, String> =
        case.host_keys.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    for (address, change) in case.look(|out| out.changes) {
        change.apply(&address, &mut data).unwrap();
    }
    let after = KnownHosts::read(&data);
    for (address, record) in before.records() {
        let expected = HostRecord { removal_confirmed: true, ..record.clone() };
        assert_eq!(after.record(address), Some(&expected));
    }
    assert_eq!(after.records().count(), 2);
}

/// Each was within the limit while it waited for something else, but never were all three.
#[test]
fn hosts_that_waited_one_by_one_do_not_go_at_once() {
    let mut data: BTreeMap<String, String> = BTreeMap::new();
    let rec = |n: u8| format!(r#"{{"ipv4": "10.0.0.{n}", "pinned": "k{n}"}}"#);
    let case = |data: &BTreeMap<String, String>, also: bool| Case {
        listed: vec![entry(9)],
        also: if also { vec![("10.0.0.9", "10.0.0.10, 10.0.0.11, 10.0.0.12")] } else { vec![] },
        host_keys: data.iter().map(|(k, v)| (&*k.clone().leak(), &*v.clone().leak())).collect(),
        guard: RemovalGuard { most: Some(2), confirmed: None },
        ..Case::default()
    };
    for kept in 10..13u8 {
        data.insert(format!("10.0.0.{kept}_host"), rec(kept));
        data.insert("10.0.0.50_host".into(), rec(50));
        for (address, change) in case(&data, true).look(|out| out.changes) {
            change.apply(&address, &mut data).unwrap();
        }
        data.remove("10.0.0.50_host");
    }
    assert_eq!(
        case(&data, false).lines(),
        "10.0.0.10: leave, because its removal is not confirmed\n\
        10.0.0.11: leave, because its removal is not confirmed\n\
        10.0.0.12: leave, because its removal is not confirmed\n\
        10.0.0.9: configure, because it is listed"
    );
}
