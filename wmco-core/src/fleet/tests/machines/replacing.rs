//! Which Machine is made anew, and when.

use std::time::Duration;

use jiff::SignedDuration;

use super::*;
use crate::digest::Sha256;
use crate::fleet::{LoginResult, LoginTry, Patience, Topic};

/// Whether `mac-1`, which refuses our key, is replaced; otherwise why not.
#[track_caller]
fn gate(case: Case, expected: Result<(), Held>) {
    let case = case.with(|c| {
        c.refused.push("mac-1");
        c.host_keys.push(going(1));
    });
    case.look(|out| {
        let mut found = out.instances.iter().filter(|it| it.address == key("mac-1"));
        let found = found.next().unwrap();
        match expected {
            Ok(()) => assert!(matches!(found.intent, Intent::Replace(_)), "{found}"),
            Err(held) => assert_eq!(found.because, Because::ReplacementHeld(held)),
        }
    });
}

fn unhealthy(first: &str) -> Result<(), Held> {
    Err(Held::Unhealthy { first: first.to_owned() })
}

/// What waits for others says so, also when it waits for nothing but its turn.
#[test]
fn a_machine_that_waits_for_the_budget_is_told() {
    let waits = made(1).with(|c| {
        c.budget = 0;
        c.refused = vec!["mac-1"];
    });
    waits.look(|out| {
        let told = |notice: &&Notice| notice.machine() == Some("mac-1");
        let notice = out.notices.iter().find(told).unwrap();
        assert_eq!(notice.reason(), names::events::MACHINE_DELETION_RESTRICTED);
        assert!(notice.to_string().contains("the disruption budget is used up"), "{notice}");
    });
}

/// One that has no Node takes a slot as well.
#[test]
fn no_more_machines_begin_to_be_replaced_than_the_budget_allows() {
    for (budget, has_node) in [(1, true), (2, true), (1, false), (2, false)] {
        let sets = made(4).with(|c| {
            c.budget = budget;
            c.refused = vec!["mac-1", "mac-2", "mac-3", "mac-4"];
            let names = ["a", "b", "c", "d"];
            c.sets = names.map(|name| MachineSetFacts { name: name.into(), ..set(1) }).into();
            for (machine, name) in c.machines.iter_mut().zip(names) {
                machine.machine_set.as_mut().unwrap().name = name.into();
                if !has_node {
                    (machine.node, machine.phase) = (None, Some("Provisioned".into()));
                }
            }
            if !has_node {
                c.nodes.clear();
            }
        });
        sets.look(|out| {
            let begin = |it: &&Assignment<'_>| {
                it.because == Because::ReplacementHeld(Held::RecordDue)
                    || matches!(it.intent, Intent::Replace(_))
            };
            let waits = |it: &&Assignment<'_>| it.because == Because::ReplacementHeld(Held::Budget);
            let count = out.instances.iter().filter(begin).count();
            assert_eq!(count, budget, "{has_node}: {}", lines(&out.instances));
            assert_eq!(out.instances.iter().filter(waits).count(), 4 - budget);
        });
    }
}

#[test]
fn a_machine_that_nobody_makes_anew_is_kept() {
    for change in [
        |c: &mut Case| c.machines[0].machine_set = None,
        |c: &mut Case| c.sets.clear(),
        |c: &mut Case| c.sets[0].uid = "s-2".into(),
        |c: &mut Case| c.sets[0].is_deleted = true,
        |c: &mut Case| c.sets[0].replicas = 0,
    ] {
        gate(made(1).with(change), Err(Held::NobodyMakesAnother));
    }
}

#[test]
fn a_successor_that_would_be_no_node_is_not_asked_for() {
    for (change, words) in [
        (
            (|c: &mut Case| c.sets[0].user_data.name = "worker-user-data".into()) as fn(&mut Case),
            "userDataSecret.name of machineset win is \"worker-user-data\"",
        ),
        (
            |c: &mut Case| c.sets[0].user_data = UserDataRef::default(),
            "userDataSecret.name of machineset win is \"\"",
        ),
        (
            |c: &mut Case| c.sets[0].user_data.namespace = "default".into(),
            "userDataSecret.namespace of machineset win is \"default\"",
        ),
        (
            |c: &mut Case| c.sets[0].os = Some("Linux".into()),
            "labels[machine.openshift.io/os-id] of machineset win is \"Linux\", write \"Windows\"",
        ),
        (
            |c: &mut Case| c.sets[0].os = None,
            "labels[machine.openshift.io/os-id] of machineset win is missing, so the operator takes",
        ),
        (
            |c: &mut Case| c.sets[0].ignores = true,
            "ignore] of machineset win is true: the operator leaves such Machines alone, take the label off",
        ),
    ] {
        made(1).with(|c| c.refused = vec!["mac-1"]).with(change).look(|out| {
            let intent = &out.instances[0].intent;
            assert!(!matches!(intent, Intent::Replace(_)), "{intent:?}");
            let notice = out.notices.iter().find(|notice| notice.machine() == Some("mac-1"));
            let text = notice.unwrap().to_string();
            assert!(text.contains(words) && text.contains("correct the machineset"), "{text}");
        });
    }
    let ours_by_name =
        |c: &mut Case| c.sets[0].user_data.namespace = "openshift-machine-api".into();
    gate(made(1).with(ours_by_name), Ok(()));
}

/// Each of 2,000 Machines that refuse us waits: one notice tells it, on the MachineSet.
#[test]
fn many_machines_of_a_set_that_wait_are_one_notice() {
    const COUNT: u8 = 200;
    let many = made(COUNT).with(|c| {
        c.budget = 0;
        c.refused = (1..=COUNT).map(|number| &*format!("mac-{number}").leak()).collect();
    });
    many.look(|out| {
        let held = |it: &&Assignment<'_>| matches!(it.because, Because::ReplacementHeld(_));
        assert_eq!(out.instances.iter().filter(held).count(), usize::from(COUNT));
        let told = |notice: &&Notice| notice.reason() == names::events::MACHINE_DELETION_RESTRICTED;
        let told: Vec<_> = out.notices.iter().filter(told).collect();
        let [notice] = told[..] else { panic!("{told:#?}") };
        assert_eq!(notice.machine_set(), Some("win"));
        assert_eq!(notice.topic(), Some(Topic::Retold("win".into())));
        let text = notice.to_string();
        let start = "200 of the machines of machineset win wait for their replacement; for example: machine mac-1";
        assert!(text.starts_with(start), "{text}");
    });
}

#[test]
fn the_rest_of_the_machineset_is_whole_and_healthy() {
    gate(made(3), Ok(()));
    gate(made(3).with(|c| c.user_data = Some(UserData::Due)), Err(Held::UserDataDue));
    gate(made(3).with(|c| c.user_data = Some(UserData::Fresh)), Err(Held::UserDataFresh));
    gate(made(3).with(|c| c.blocked = true), Err(Held::ClusterUnfit));
    gate(made(3).with(|c| c.sets[0].replicas = 4), Err(Held::TooFew));
    gate(made(3).with(|c| c.machines[2].is_deleted = true), Err(Held::TooFew));
    gate(made(3).with(|c| c.sets[0].replicas = 2), Err(Held::TooMany));
    gate(made(3).with(|c| c.nodes[2].ready = false), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| drop(c.nodes.remove(2))), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| c.nodes[2].annotations.clear()), unhealthy("mac-3_machine"));
    let other = |c: &mut Case| {
        c.nodes[2].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    };
    gate(made(3).with(other), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| c.machines[2].phase = Some("Failed".into())), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| c.machines[2].is_ignored = true), Ok(()));
}

#[test]
fn nodes_elsewhere_that_do_not_work_use_the_budget() {
    let elsewhere = |budget: usize| {
        made(1).with(|c| {
            c.budget = budget;
            c.listed = vec![entry(1)];
            c.nodes.push(node(1));
        })
    };
    gate(elsewhere(1), unhealthy("10.0.0.1"));
    gate(elsewhere(2), Ok(()));
    let healthy = |c: &mut Case| {
        c.nodes[1].ready = true;
        c.nodes[1].annotations.insert(names::VERSION_ANNOTATION.into(), VERSION.into());
    };
    gate(elsewhere(1).with(healthy), Ok(()));
    let marked = |c: &mut Case| {
        healthy(c);
        held(&mut c.nodes[1]);
    };
    gate(elsewhere(1).with(marked), Err(Held::Budget));
    let never_joined = |c: &mut Case| drop(c.nodes.pop());
    gate(elsewhere(1).with(never_joined), Ok(()));
}

/// The Machine is gone, and its successor is on the way.
fn succeeded() -> Case {
    made(2).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.machines[1].created = Some(created(9));
        c.nodes[1].ready = false;
        c.host_keys = vec![going(2), ("mac-2_machine", "AAAA")];
        c.claims = vec!["node-1"];
    })
}

#[test]
fn a_replacement_holds_its_slot_until_the_machineset_is_healthy() {
    let forgotten =
        ["mac-2_machine", "mac-2_machine_host"].map(str::to_owned).into_iter().collect();
    let holds = |change: fn(&mut Case), holds: bool| {
        succeeded().with(change).look(|out| {
            let permitted = out.instances.iter().any(|it| it.intent.permit().is_some());
            assert_eq!(permitted, !holds);
            let expected = if holds { BTreeSet::new() } else { BTreeSet::clone(&forgotten) };
            assert_eq!(out.forgotten_keys, expected);
        });
    };
    holds(|_| {}, true);
    holds(|c| c.machines.truncate(1), true);
    holds(|c| c.nodes[1].ready = true, false);
    holds(|c| c.sets[0].replicas = 1, false);
    holds(|c| c.sets.clear(), false);
}

#[test]
fn a_replacement_that_does_not_end_is_told_after_half_an_hour() {
    let told = |case: Case| {
        case.look(|out| {
            let of_set = |notice: &&Notice| {
                matches!(notice, Notice::NotReplaced { .. } | Notice::BeingDeleted { .. })
            };
            let notices = out.notices.iter().filter(of_set);
            notices.map(|it| (it.to_string(), it.patience())).collect::<Vec<_>>()
        })
    };
    let [(text, patience)] = &told(succeeded())[..] else { panic!("not told") };
    assert!(
        text.starts_with("machine mac-2 was deleted for replacement, and machineset win"),
        "{text}"
    );
    assert_eq!(*patience, SignedDuration::from_mins(30));
    assert_eq!(told(succeeded().with(|c| c.nodes[1].ready = true)), []);
    // Nobody lacks anything when the one that does not get well is left to people.
    assert_eq!(told(succeeded().with(|c| c.machines[1].is_ignored = true)), []);
    let being_deleted = made(2).with(|c| {
        c.host_keys = vec![going(2)];
        c.machines[1].is_deleted = true;
    });
    let of_another = being_deleted.clone().with(|c| c.machines[1].uid = "uid-another".into());
    let [(text, _)] = &told(of_another)[..] else { panic!("not told") };
    assert!(text.starts_with("machine mac-2 was deleted for replacement"), "{text}");
    let [(text, patience)] = &told(being_deleted)[..] else { panic!("not told") };
    assert!(text.starts_with("machine mac-2, which is to be replaced, is being deleted"), "{text}");
    assert_eq!(*patience, SignedDuration::from_mins(30));
}

/// The same when the only thing that is not as it should be is what `change` says.
#[track_caller]
fn slot_is_free(change: fn(&mut Case), expected: bool) {
    let case = succeeded().with(|c| c.nodes[1].ready = true).with(change);
    case.look(|out| {
        let permitted = out.instances.iter().any(|it| it.intent.permit().is_some());
        assert_eq!(permitted, expected);
    });
}

#[test]
fn the_slot_of_a_replacement_does_not_wait_for_what_is_ignored() {
    slot_is_free(|c| c.machines[1].is_ignored = true, true);
    slot_is_free(|c| (c.machines[1].is_ignored, c.nodes[1].ready) = (true, false), true);
}

#[test]
fn the_slot_of_a_replacement_does_not_wait_for_upgrades_which_wait_for_it() {
    let other = |c: &mut Case| {
        c.nodes[0].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    };
    slot_is_free(other, true);
    slot_is_free(|c| c.nodes[0].annotations.clear(), true);
    slot_is_free(|c| c.nodes[1].annotations.clear(), false);
}

#[test]
fn the_slot_of_a_replacement_is_lent_to_one_node_that_it_waits_for() {
    succeeded().with(|c| c.claims = vec!["node-1", "node-2"]).look(|out| {
        let permitted = |it: &&Assignment<'_>| it.intent.permit().is_some();
        let permitted: Vec<_> = out.instances.iter().filter(permitted).collect();
        assert_eq!(permitted.iter().map(|it| it.node_name()).collect::<Vec<_>>(), [Some("node-2")]);
    });
    let two = succeeded().with(|c| {
        c.nodes[0].ready = false;
        c.claims = vec!["node-1", "node-2"];
    });
    two.look(|out| {
        let permitted = out.instances.iter().filter(|it| it.intent.permit().is_some());
        assert_eq!(permitted.count(), 1);
    });
}

/// One of three is being replaced, and the host of another refuses our key, too.
fn refusing_meanwhile() -> Case {
    made(3).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.machines[1].created = Some(created(9));
        c.host_keys = vec![going(2)];
    })
}

#[test]
fn a_machine_that_its_machineset_waits_for_goes_in_its_slot() {
    let broken = |c: &mut Case| {
        c.nodes[0].ready = false;
        c.unready = vec!["mac-1"];
    };
    gate(refusing_meanwhile().with(broken), Ok(()));
    let other = |c: &mut Case| c.nodes[2].ready = false;
    gate(refusing_meanwhile().with(broken).with(other), unhealthy("mac-3_machine"));
    let joins = |c: &mut Case| c.nodes[1].ready = false;
    gate(refusing_meanwhile().with(joins), unhealthy("mac-9_machine"));
    // One after another, all the same.
    let other = |c: &mut Case| {
        c.nodes[2].ready = false;
        c.refused = vec!["mac-3"];
        c.replaced = vec!["mac-3"];
        c.host_keys.push(going(3));
    };
    gate(
        refusing_meanwhile().with(broken).with(other),
        Err(Held::ReplacedFirst { first: key("mac-3") }),
    );
}

/// Three Machines were made anew, and what took their place never let us in either.
fn in_vain() -> Case {
    made(1).with(|c| {
        c.machines[0].node = None;
        c.machines[0].phase = Some("Provisioned".into());
        c.nodes.clear();
        c.host_keys = vec![going(7), going(8), going(9)];
        c.unready = vec!["mac-1"];
    })
}

#[test]
fn machines_are_not_made_anew_for_ever() {
    gate(in_vain(), Err(Held::SuccessorsFailed { replaced: 3 }));
    gate(in_vain().with(|c| c.host_keys.truncate(2)), Ok(()));
    // A Machine that let us in once is none of those that were made meanwhile.
    gate(in_vain().with(|c| c.host_keys.push(("mac-1_machine", "AAAA"))), Ok(()));
    let joined = |c: &mut Case| {
        c.machines = vec![machine(1)];
        c.nodes = vec![NodeFacts { ready: false, ..node_of(1) }];
    };
    gate(in_vain().with(joined), Ok(()));
    let elsewhere = |c: &mut Case| {
        c.host_keys[0] = record(7, r#", "replacementMachineSet": "other""#);
        c.sets.push(MachineSetFacts { name: "other".into(), ..set(1) });
    };
    gate(in_vain().with(elsewhere), Ok(()));
}

#[test]
fn a_host_whose_key_is_on_record_was_let_in_once() {
    let pinned = record(1, r#", "replacementMachineSet": "win", "pinned": "SHA256:a""#);
    let case = in_vain().with(|c| (c.refused, c.budget) = (vec!["mac-1"], 1));
    case.with(|c| c.host_keys.push(pinned)).look(|out| {
        assert!(matches!(out.instances[0].intent, Intent::Replace(_)), "{}", out.instances[0]);
    });
}

#[test]
fn machines_that_are_made_anew_in_vain_are_told() {
    in_vain().with(|c| c.refused = vec!["mac-1"]).look(|out| {
        let told = |notice: &&Notice| notice.machine() == Some("mac-1");
        let notice = out.notices.iter().find(told).unwrap();
        assert_eq!(notice.reason(), names::events::MACHINE_DELETION_RESTRICTED);
        assert_eq!(notice.patience(), SignedDuration::ZERO);
        let text = notice.to_string();
        assert!(text.contains("3 of its machineset were replaced"), "{text}");
        assert!(text.contains("see whether the image of its machineset runs"), "{text}");
    });
}

#[test]
fn a_machine_whose_node_holds_a_slot_waits_for_no_other() {
    let out = |c: &mut Case| held(&mut c.nodes[0]);
    gate(made(2).with(out), Ok(()));
    gate(made(2).with(out).with(|c| c.nodes[1].annotations.clear()), Ok(()));
    let elsewhere = |c: &mut Case| {
        c.listed = vec![entry(1)];
        c.nodes.push(node(1));
    };
    gate(made(2).with(out).with(elsewhere), Ok(()));
    // A mark that was left over takes a slot like any other.
    let marked = |c: &mut Case| {
        c.nodes[0].labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
    };
    gate(made(2).with(marked), Ok(()));
    gate(made(2).with(marked).with(|c| c.budget = 0), Err(Held::Budget));
}

#[test]
fn a_machine_that_goes_does_not_wait_for_a_slot() {
    let case = made(3).with(|c| {
        c.host_keys = vec![going(1)];
        (c.refused, c.replaced, c.claims) = (vec!["mac-1"], vec!["mac-1"], vec!["node-1"]);
    });
    case.look(|out| assert_eq!((out.waiting, out.replacing.len()), ([].into(), 1)));
}

#[test]
fn a_new_operator_takes_no_machine_off_record_that_a_predecessor_may_have_deleted() {
    let case = made(3).with(|c| c.host_keys = vec![going(1)]);
    let after = |passes: &[Duration]| {
        case.inputs(|desired, observed| {
            let mut memory = Memory::default();
            let changes = passes.iter().map(|now| memory.pass(desired, observed, *now).changes);
            let last = changes.last().unwrap().get(&key("mac-1")).cloned();
            (last, memory.wake_at(Duration::ZERO))
        })
    };
    let soon = limits::CATCH_UP.unsigned_abs();
    assert_eq!(after(&[Duration::ZERO]), (None, Some(soon)));
    assert_eq!(after(&[Duration::ZERO, soon]).0, Some(RecordChange::ToKeep));
}

/// Whoever takes its owner reference off does not end the deletion.
#[test]
fn a_deletion_under_way_of_a_machine_without_owner_takes_a_slot() {
    let keys = LoginKeys::one(Sha256::of(b"ours"));
    let case = made(2).with(|c| {
        c.host_keys = vec![going(1)];
        c.listed = vec![entry(1)];
        c.nodes.push(node(1));
        c.nodes[2].annotations.insert(names::VERSION_ANNOTATION.into(), VERSION.into());
    });
    let mut memory = Memory::new(Patience { refused: Duration::ZERO, unanswered: Duration::ZERO });
    let login = LoginTry { at: [10, 0, 128, 1].into(), keys: LoginKeys::id(&keys.offered(None)) };
    let refused = Duration::ZERO..Duration::ZERO;
    memory.logged_in("mac-1_machine", login, LoginResult::Refused, &refused);
    let mut pass = |case: &Case, taking: &[&str], now| {
        let taking = taking.iter().map(|it| (*it).to_owned()).collect();
        case.inputs(|desired, observed| {
            let right_user_data = Some("1");
            let observed = Observed { right_user_data, taking: &taking, ..*observed };
            lines(&memory.pass(desired, &observed, Duration::from_secs(now)).instances)
        })
    };
    let begun = pass(&case, &[], 10);
    assert!(begun.contains("machine mac-1: replace"), "{begun}");
    let without_owner = case.with(|c| {
        c.machines[0].machine_set = None;
        c.claims = vec!["win-1"];
    });
    let under_way = pass(&without_owner, &["mac-1_machine"], 11);
    assert!(!under_way.contains("permit"), "{under_way}");
}

#[test]
fn a_host_that_lets_us_in_again_is_not_replaced() {
    made(1).with(|c| c.host_keys = vec![going(1)]).look(|out| {
        assert_eq!(lines(&out.instances), JOINED);
        assert_eq!(out.changes[&key("mac-1")], RecordChange::ToKeep);
    });
}

/// An upgrade of the operator has just begun.
#[test]
fn of_old_versions_the_one_that_works_goes_last() {
    let case = made(3).with(|c| {
        for node in &mut c.nodes {
            node.annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
        }
        c.refused = vec!["mac-1", "mac-2", "mac-3"];
        c.unready = vec!["mac-3"];
        c.nodes[2].ready = false;
        c.host_keys = vec![going(1), going(2), going(3)];
    });
    assert_goes_first(&case);
}

/// Or two of the MachineSet would be out of service.
#[test]
fn one_with_an_old_version_goes_after_one_that_we_cordoned() {
    let case = made(3).with(|c| {
        c.nodes[0].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
        held(&mut c.nodes[2]);
        c.refused = vec!["mac-1", "mac-3"];
        c.host_keys = vec![going(1), going(3)];
        c.budget = 2;
    });
    assert_goes_first(&case);
}

/// `mac-3` goes before `mac-1`.
#[track_caller]
fn assert_goes_first(case: &Case) {
    let expected = Because::ReplacementHeld(Held::ReplacedFirst { first: key("mac-3") });
    case.look(|out| {
        let mut found = out.instances.iter().filter(|it| it.address == key("mac-1"));
        assert_eq!(found.next().map(|it| &it.because), Some(&expected));
    });
}

/// Until nothing keeps it from going, or the deletion is visible.
#[test]
fn what_is_to_go_stays_on_record() {
    let is_kept = |change: fn(&mut Case)| {
        let case = made(1).with(|c| c.host_keys = vec![going(1)]).with(change);
        case.look(|out| out.changes.get(&key("mac-1")) != Some(&RecordChange::ToKeep))
    };
    assert!(!is_kept(|_| ()));
    assert!(is_kept(|c| {
        c.refused = vec!["mac-1"];
        c.sets[0].is_deleted = true;
    }));
    assert!(is_kept(|c| c.replaced = vec!["mac-1"]));
}

/// Nobody makes Machines for it any more.
#[test]
fn a_machineset_that_is_deleted_holds_no_slot() {
    let permits = |is_deleted| {
        let case = made(3).with(|c| {
            c.machines.truncate(1);
            c.sets[0].is_deleted = is_deleted;
            c.host_keys = vec![going(2)];
            (c.listed, c.claims) = (vec![entry(1)], vec!["win-1"]);
            c.nodes.push(node(1));
        });
        case.permits()
    };
    assert_eq!([permits(false), permits(true)], ["", "win-1"]);
}
