//! Exchanging the operator's key: who holds it up, when the one before goes, whose Machine is made anew.

use super::*;
use crate::login_keys::tests::rotation;
use crate::names::events;

/// What is on record of the host of an entry that lets the next key in.
fn proven(number: u8) -> &'static str {
    let hash = rotation().to.hash();
    format!(r#"{{"ipv4":"10.0.0.{number}","pinned":"a{number}","acceptedKey":"{hash}"}}"#).leak()
}

/// The same, without the current key.
fn over(number: u8) -> &'static str {
    let removed = format!(r#","removedKey":"{}"}}"#, rotation().from.hash());
    proven(number).replace('}', &removed).leak()
}

const LOGGED_IN: &str = r#"{"ipv4":"10.0.0.9","pinned":"b","node":"win-9","username":"sealed"}"#;

/// Entries with these records, while the key is exchanged.
fn listed(records: &[(&'static str, &'static str)]) -> Case {
    Case {
        listed: vec![entry(1), entry(2)],
        host_keys: records.to_vec(),
        keys: Some(LoginKeys::rotating(rotation())),
        budget: 1,
        ..Case::default()
    }
}

fn progress(case: &Case) -> Rotation {
    case.look(|out| out.rotation.unwrap())
}

#[track_caller]
fn waits_for(case: &Case, expected: &[&str]) {
    assert_eq!(progress(case).waits_for.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_current_key_stays_on_all_hosts_until_each_lets_the_next_in() {
    let (one, two) = ("10.0.0.1_host", "10.0.0.2_host");
    let half = listed(&[(one, proven(1)), (two, LOGGED_IN)]);
    waits_for(&half, &["10.0.0.2"]);
    let record = |text| HostRecord::parse(text).unwrap();
    let due = |case: &Case, text| {
        progress(case).due(&LoginKeys::rotating(rotation()), Some(&record(text)))
    };
    assert_eq!(due(&half, proven(1)), None);
    assert_eq!(due(&half, LOGGED_IN).unwrap().remove, None);
    let all = listed(&[(one, proven(1)), (two, proven(2))]);
    let removal = due(&all, proven(1)).unwrap();
    assert_eq!((removal.add, removal.remove), (rotation().to, Some(rotation().from)));
    assert!(!all.told().contains("write it to"), "{}", all.told());
    let away = all.with(|c| c.unanswered = vec!["10.0.0.1", "10.0.0.2"]).told();
    assert!(away.contains("which may stay on 10.0.0.1, 10.0.0.2, since they do not"), "{away}");
    let ready = listed(&[(one, over(1)), (two, over(2))]);
    assert_eq!(due(&ready, over(1)), None);
    let told = ready.told();
    assert!(told.contains("write it to `private-key.pem`") && told.lines().count() == 1, "{told}");
    assert_eq!(listed(&[]).with(|c| c.keys = None).look(|out| out.rotation), None);
}

/// A host that is still to be worked on with a key of ours holds it up, whether it is asked for or not.
#[test]
fn every_host_that_we_may_have_to_log_in_to_holds_it_up() {
    let rest = [("10.0.0.1_host", over(1)), ("10.0.0.2_host", over(2))];
    let with = |key, record| listed(&[rest[0], rest[1], (key, record)]);
    waits_for(&listed(&[rest[0]]), &["10.0.0.2"]);
    waits_for(&with("10.0.0.9_host", LOGGED_IN), &["10.0.0.9"]);
    waits_for(&with("10.0.0.9_host", "{"), &["10.0.0.9"]);
    waits_for(&with("10.0.0.9_host", "{}"), &[]);
    let typo = with("10.0.0.3_host", over(3)).with(|c| c.listed.push(broken("no.such.name")));
    waits_for(&typo, &["no.such.name"]);
    let unknown = listed(&rest).with(|c| c.list_absent = true);
    assert!(!unknown.told().contains("private-key"), "{}", unknown.told());
    let record = HostRecord::parse(proven(1)).unwrap();
    assert_eq!(progress(&unknown).due(&LoginKeys::rotating(rotation()), Some(&record)), None);
    // Nobody knows what people want, so every host may be wanted.
    waits_for(&with("10.0.0.9_host", LOGGED_IN).with(|c| c.list_absent = true), &["10.0.0.9"]);
    let told = with("10.0.0.9_host", LOGGED_IN).told();
    assert!(
        told.contains("10.0.0.9 is not known to let the key of `private-key-next.pem` in")
            && told.contains("remove its entry if its host is gone, and give it up if nobody"),
        "{told}"
    );
}

/// The same of Machines, unless people or the Machine API have taken them out of our hands.
#[test]
fn machines_hold_it_up_while_they_are_ours() {
    let rotating = |case: Case| case.with(|c| c.keys = Some(LoginKeys::rotating(rotation())));
    let logged_in = || r#"{"machine":"uid-1","pinned":"a"}"#;
    let one = |change: fn(&mut MachineFacts)| {
        rotating(made(1)).with(|c| {
            c.host_keys.push(("mac-1_machine_host", logged_in()));
            change(&mut c.machines[0]);
        })
    };
    waits_for(&one(|_| {}), &["mac-1_machine"]);
    waits_for(&one(|machine| machine.phase = Some("Failed".into())), &["mac-1_machine"]);
    waits_for(&one(|machine| machine.is_deleted = true), &[]);
    waits_for(&one(|machine| machine.is_ignored = true), &[]);
    // Nothing is done with it while an entry has its address, and it may be again.
    let doubted = |c: &mut Case| {
        c.listed.push(Listed { address: "listed".into(), ipv4: Some([10, 0, 128, 1].into()) });
    };
    let machine = rotating(made(1)).with(doubted);
    waits_for(&machine, &["listed", "mac-1_machine"]);
    // Its host may have been made before the next key was.
    for change in [
        |machine: &mut MachineFacts| machine.phase = Some("Provisioning".into()),
        |machine: &mut MachineFacts| machine.addresses.clear(),
        |machine: &mut MachineFacts| machine.phase = None,
    ] {
        waits_for(&rotating(made(1)).with(|c| change(&mut c.machines[0])), &["mac-1_machine"]);
    }
    let another = |c: &mut Case| {
        let text = one_record("uid-before", "10.0.128.1");
        c.host_keys.push(("mac-1_machine_host", text));
    };
    waits_for(&rotating(made(1)).with(another), &["mac-1_machine"]);
    let damaged = |c: &mut Case| {
        c.machines[0].phase = Some("Failed".into());
        c.host_keys.push(("mac-1_machine_host", "{"));
    };
    waits_for(&rotating(made(1)).with(damaged), &["mac-1_machine"]);
}

/// What is on record of the host of a Machine that lets the next key in.
fn one_record(uid: &str, ipv4: &str) -> &'static str {
    let hash = rotation().to.hash();
    let text =
        format!(r#"{{"machine":"{uid}","ipv4":"{ipv4}","pinned":"a","acceptedKey":"{hash}"}}"#);
    text.leak()
}

/// Two Machines of three let the next key in, and the host of the third does not answer.
fn stranded() -> Case {
    let record = |number: u8| {
        let text = one_record(&format!("uid-{number}"), &format!("10.0.128.{number}"));
        (&*format!("mac-{number}_machine_host").leak(), text)
    };
    made(3).with(|c| {
        c.keys = Some(LoginKeys::rotating(rotation()));
        c.host_keys.extend([record(2), record(3), going(1)]);
        c.unanswered = vec!["mac-1_machine"];
    })
}

/// It may be scaled up when the exchange is over.
#[test]
fn user_data_of_a_machineset_without_machines_are_waited_for() {
    let waits = |change: fn(&mut Case)| {
        let case = made(0).with(|c| {
            c.keys = Some(LoginKeys::rotating(rotation()));
            c.user_data = Some(UserData::Due);
        });
        let case = case.with(change);
        case.look(|out| out.rotation.is_some_and(|it| it.user_data_due))
    };
    assert!(waits(|_| ()));
    assert!(!waits(|c| c.sets.clear()));
    assert!(!waits(|c| c.sets[0].is_deleted = true));
    assert!(!waits(|c| c.sets[0].os = Some("Linux".into())));
    assert!(!waits(|c| c.user_data = Some(UserData::Fresh)));
    assert!(waits(|c| (c.sets, c.machines) = (vec![], vec![machine(1)])));
}

/// Names of Machines that are made anew.
fn replaced(case: &Case) -> Vec<String> {
    case.look(|out| {
        let permits = out.instances.iter().filter_map(|it| match &it.intent {
            Intent::Replace(permit) => Some(permit.machine().to_owned()),
            _ => None,
        });
        permits.collect()
    })
}

#[test]
fn a_machine_that_alone_holds_it_up_without_an_answer_is_made_anew() {
    assert_eq!(replaced(&stranded()), ["mac-1"]);
    assert_eq!(replaced(&stranded().with(|c| c.budget = 0)), [""; 0]);
    // Without a rotation it only does not answer.
    let one_key = stranded().with(|c| c.keys = Some(LoginKeys::one(rotation().from.hash())));
    assert_eq!(replaced(&one_key), [""; 0]);
    let user_data = stranded().with(|c| c.user_data = Some(UserData::Due));
    assert_eq!(replaced(&user_data), [""; 0]);
}

#[test]
fn nobody_is_made_anew_while_others_are_to_be_reached() {
    let entry_due = stranded().with(|c| c.listed.push(entry(1)));
    assert_eq!(replaced(&entry_due), [""; 0]);
    let entry_away = entry_due.with(|c| c.unanswered.push("10.0.0.1"));
    assert_eq!(replaced(&entry_away), ["mac-1"]);
    // Nobody knows whom.
    assert_eq!(replaced(&stranded().with(|c| c.list_absent = true)), [""; 0]);
}

#[test]
fn who_holds_it_up_is_told_on_its_machine() {
    stranded().with(|c| c.budget = 0).look(|out| {
        let is_due = |notice: &&Notice| matches!(notice, Notice::KeyNotProven { .. });
        let notice = out.notices.iter().find(is_due).unwrap();
        assert_eq!(notice.machine(), Some("mac-1"));
        assert_eq!(notice.reason(), events::MACHINE_SETUP_FAILURE);
        assert_eq!(notice.patience(), limits::ROTATION_PATIENCE);
        let told = notice.to_string();
        assert!(told.ends_with("delete the machine if its host is gone"), "{told}");
    });
}

/// Nobody may believe that the former key is gone, or that nothing is left to do.
#[test]
fn who_keeps_the_key_before_is_told() {
    let rest = ("10.0.0.2_host", over(2));
    let contested = listed(&[("10.0.0.1_host", proven(1)), rest]).with(|c| {
        c.nodes = vec![node(1), node(3)];
        c.nodes[1].addresses = vec!["10.0.0.1".into()];
        c.nodes.iter_mut().for_each(|node| node.annotations.clear());
    });
    let unlisted = listed(&[("10.0.0.1_host", over(1)), rest, ("10.0.0.9_host", proven(9))]);
    for (case, address) in [(contested, "10.0.0.1"), (unlisted, "10.0.0.9")] {
        let expected = Notice::KeyNotRemoved { address: address.into() };
        case.look(|out| assert!(out.notices.contains(&expected), "{}", lines(&out.notices)));
    }
}

/// What is on record was proven elsewhere, or by another way.
#[test]
fn a_proof_counts_for_the_host_that_is_meant() {
    let moved = listed(&[("10.0.0.1_host", over(9)), ("10.0.0.2_host", over(2))]);
    waits_for(&moved, &["10.0.0.1"]);
    let by_jump = over(1).replace("\"pinned\"", "\"via\":\"jump\",\"pinned\"").leak();
    waits_for(&listed(&[("10.0.0.1_host", by_jump), ("10.0.0.2_host", over(2))]), &["10.0.0.1"]);
    let nobody_pinned = over(1).replace("\"pinned\":\"a1\",", "").leak();
    let case = listed(&[("10.0.0.1_host", nobody_pinned), ("10.0.0.2_host", over(2))]);
    waits_for(&case, &["10.0.0.1"]);
}

#[test]
fn the_next_key_is_not_used_before_new_machines_let_it_in() {
    let removed = format!(r#","removedKey":"{}"}}"#, rotation().from.hash());
    let record = one_record("uid-1", "10.0.128.1").replace('}', &removed).leak();
    let case = made(1).with(|c| {
        c.keys = Some(LoginKeys::rotating(rotation()));
        c.host_keys.push(("mac-1_machine_host", record));
    });
    assert!(case.told().contains("write it to"), "{}", case.told());
    let waits = case.with(|c| c.user_data = Some(UserData::Due)).told();
    assert!(waits.contains("see why secret windows-user-data is not changed"), "{waits}");
    assert!(!waits.contains("write it to"), "{waits}");
}

/// The next key is removed or damaged when hosts have lost the current key already.
#[test]
fn no_machine_is_made_anew_for_a_key_that_the_secret_has_lost() {
    let removed =
        format!(r#","removedKey":"{}","replacementMachineSet":"win"}}"#, rotation().from.hash());
    let record = one_record("uid-1", "10.0.128.1").replace('}', &removed).leak();
    let with = |current| {
        made(1).with(|c| {
            c.keys = Some(LoginKeys::one(current));
            c.host_keys.push(("mac-1_machine_host", record));
            c.refused = vec!["mac-1"];
        })
    };
    let lost = with(rotation().from.hash());
    assert_eq!(replaced(&lost), [""; 0]);
    assert!(lost.told().contains("write that key to `private-key.pem`"), "{}", lost.told());
    // Another key altogether is a change that people wanted.
    assert_eq!(replaced(&with(crate::digest::Sha256::of(b"third"))), ["mac-1"]);
}

/// The host of an entry that was renamed is one host.
#[test]
fn a_former_record_of_a_host_is_not_waited_for() {
    let renamed = |fields: &str| -> Case {
        let record = format!(r#"{{"ipv4":"10.0.0.1","pinned":"a1","node":"win-1"{fields}}}"#);
        let hash = rotation().to.hash();
        let own =
            format!(r#"{{"ipv4":"10.0.0.1","pinned":"a1","node":"win-1","acceptedKey":"{hash}"}}"#);
        listed(&[("10.0.0.1_host", own.leak()), ("old.example_host", record.leak())])
            .with(|c| c.listed.truncate(1))
    };
    waits_for(&renamed(""), &[]);
}
