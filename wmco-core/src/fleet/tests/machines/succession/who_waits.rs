//! Which of several Machines goes first, and which waits for which, so that none waits for ever.

use std::time::Duration;

use super::*;

/// One node asks for a restart, and the host of another Machine refuses our key.
fn one_asks_and_one_refuses() -> Case {
    made(3).with(|c| {
        (c.budget, c.claims) = (2, vec!["node-2"]);
        (c.refused, c.host_keys) = (vec!["mac-1"], vec![going(1)]);
    })
}

#[test]
fn one_waits_for_a_sibling_that_is_about_to_go_out_of_service() {
    let asks = one_asks_and_one_refuses();
    assert_eq!(asks.permits(), "node-2");
    assert_eq!(next_of(&asks, "mac-1"), waits_for("mac-2"));
    // Its mark is not visible yet.
    let granted = asks.with(|c| (c.granted, c.claims) = (vec!["node-2"], vec![]));
    assert_eq!(next_of(&granted, "mac-1"), waits_for("mac-2"));
}

/// It does not ask whether all are healthy, since they may wait for its slot. This one waits for none.
#[test]
fn one_with_a_mark_that_serves_waits_for_a_sibling_that_is_about_to_go() {
    let asks = put_back().with(|c| (c.budget, c.claims) = (2, vec!["node-2"]));
    assert_eq!(asks.permits(), "node-2");
    assert_eq!(next_of(&asks, "mac-1"), waits_for("mac-2"));
    let granted = asks.clone().with(|c| (c.granted, c.claims) = (vec!["node-2"], vec![]));
    assert_eq!(next_of(&granted, "mac-1"), waits_for("mac-2"));
    let has_permit = asks.with(|c| {
        c.nodes[1].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    });
    assert_eq!(has_permit.permits(), "node-2");
    assert_eq!(next_of(&has_permit, "mac-1"), waits_for("mac-2"));
    // An upgrade waits for the slot that the mark takes.
    let outdated = granted.clone().with(|c| {
        c.granted.clear();
        c.nodes[1].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    });
    assert_eq!(next_of(&outdated, "mac-1"), Ok(()));
    // One that refuses us cannot make use of it.
    let refuses = granted.with(|c| {
        c.refused.push("mac-2");
        c.host_keys.push(going(2));
    });
    assert_eq!(next_of(&refuses, "mac-2"), goes_first("mac-1"));
}

/// The successor asks while its node is not ready for a moment, so it fills the place. Once it is ready again nobody gives it
/// that permit any more, and `mac-3`, which refuses us and was not ready for long, is next.
#[test]
fn a_permit_that_is_not_given_again_holds_nobody_up() {
    let case = succeeded().with(|c| {
        (c.refused, c.claims, c.budget) = (vec![], vec!["node-2"], 1);
        c.host_keys.push(going(3));
        c.nodes[2].ready = false;
    });
    let mut memory = Memory::default();
    let mut pass = |now: Duration, case: &Case| {
        case.inputs(|desired, observed| {
            let observed = Observed { right_user_data: Some("1"), ..*observed };
            let keys = LoginKeys::id(&desired.keys.unwrap().offered(None));
            let login = LoginTry { at: [10, 0, 128, 3].into(), keys };
            memory.logged_in(&key("mac-3"), login, LoginResult::Refused, &(now..now));
            let out = memory.pass(desired, &observed, now);
            let has_permit = out.instances.iter().any(|it| it.intent.permit().is_some());
            (has_permit, out.replacing.contains_key("mac-3"))
        })
    };
    let flaps = case.clone().with(|c| c.nodes[1].ready = false);
    assert_eq!(pass(Duration::ZERO, &flaps), (true, false));
    let later = (1..15).map(|minute| pass(Duration::from_secs(60 * minute), &case));
    assert_eq!(later.last(), Some((false, true)));
}

fn joining(machine: &mut MachineFacts) {
    (machine.node, machine.phase) = (None, Some("Provisioned".into()));
}

/// The slot is held by a mark on the node that serves; the other Machine never was a node. Both refuse us.
fn label_and_newcomer(mark: fn(&mut NodeFacts)) -> Case {
    made(2).with(|c| {
        mark(&mut c.nodes[0]);
        joining(&mut c.machines[1]);
        c.nodes.remove(1);
        (c.refused, c.host_keys) = (vec!["mac-1", "mac-2"], vec![going(1), going(2)]);
    })
}

#[test]
fn one_with_a_mark_that_serves_and_one_that_never_was_a_node_do_not_wait_for_each_other() {
    let put_back = |node: &mut NodeFacts| {
        held(node);
        node.unschedulable = false;
    };
    for mark in [labelled as fn(&mut NodeFacts), put_back] {
        let case = label_and_newcomer(mark);
        assert_eq!(next_of(&case, "mac-1"), Ok(()));
        // One that may join is waited for.
        let alone = label_and_newcomer(mark).with(|c| c.refused.truncate(1));
        assert_eq!(next_of(&alone, "mac-1"), waits_for("mac-2"));
        // With room for both, nobody misses the other one.
        let both = case.with(|c| c.budget = 2);
        assert_eq!(next_of(&both, "mac-2"), Ok(()));
        assert_eq!(next_of(&both, "mac-1"), goes_first("mac-2"));
    }
}

/// `mac-2` of three is gone, and `mac-9` has come in its place.
fn came() -> Case {
    succeeded().with(|c| {
        c.host_keys.extend([going(9), going(1)]);
        (c.refused, c.budget) = (vec!["mac-9"], 1);
    })
}

/// The successor lacks its version; `mac-1` was not ready for long; `mac-3` serves, and waits for the slot.
#[test]
fn three_do_not_wait_for_each_other() {
    let case = came().with(|c| {
        c.nodes[0].ready = false;
        c.nodes[1].annotations.clear();
        c.nodes[2].annotations.clear();
        (c.refused, c.unready, c.claims) = (vec!["mac-9", "mac-1"], vec!["mac-1"], vec!["node-3"]);
    });
    assert_eq!(next_of(&case, "mac-1"), Ok(()));
}

/// There are slots for both, and both refuse us.
#[test]
fn what_is_out_of_service_goes_before_what_serves() {
    let cordoned = |node: &mut NodeFacts| {
        held(node);
        node.labels.remove(names::UPGRADING_LABEL);
    };
    let case = came().with(|c| {
        held(&mut c.nodes[1]);
        c.nodes[1].unschedulable = false;
        cordoned(&mut c.nodes[0]);
        (c.refused, c.budget) = (vec!["mac-9", "mac-1"], 3);
    });
    assert_eq!(next_of(&case, "mac-9"), goes_first("mac-1"));
    for [serves, out] in [[1, 0], [0, 1]] {
        let case = made(2).with(|c| {
            c.nodes[serves].annotations.clear();
            cordoned(&mut c.nodes[out]);
            (c.refused, c.host_keys) = (vec!["mac-1", "mac-2"], vec![going(1), going(2)]);
        });
        assert_eq!(next_of(&case, ["mac-1", "mac-2"][out]), Ok(()));
    }
}

/// It works but for the last look at it.
#[test]
fn a_sibling_that_we_have_cordoned_is_waited_for_though_none_is_gone() {
    let case = made(3).with(|c| {
        let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
        c.nodes[1].annotations.extend([mark]);
        (c.refused, c.host_keys) = (vec!["mac-1"], vec![going(1)]);
    });
    assert_eq!(next_of(&case, "mac-1"), waits_for("mac-2"));
}

/// Its own node goes with it, and takes no slot of the budget.
#[test]
fn a_machine_of_another_set_that_is_deleted_is_not_waited_for() {
    let beside = |is_deleted| {
        made(2).with(|c| {
            c.machines[1].machine_set = None;
            c.machines[1].is_deleted = is_deleted;
            c.nodes[1].ready = false;
            c.sets = vec![set(1)];
            (c.refused, c.host_keys) = (vec!["mac-1"], vec![going(1)]);
        })
    };
    assert_eq!(next_of(&beside(true), "mac-1"), Ok(()));
    assert_eq!(next_of(&beside(false), "mac-1"), waits_for("mac-2"));
}

/// A successor that is out of service because of us goes whatever the others do; one that may get ready again waits.
#[test]
fn a_successor_that_is_out_of_service_because_of_us_goes() {
    let goes = |change: fn(&mut NodeFacts)| {
        let case = came().with(not_ready).with(|c| change(&mut c.nodes[1]));
        next_of(&case, "mac-9")
    };
    assert_eq!(goes(|it| it.ready = false), waits_for("mac-1"));
    assert_eq!(goes(|it| (it.ready, ()) = (false, labelled(it))), Ok(()));
    let cordoned = |it: &mut NodeFacts| {
        held(it);
        it.labels.remove(names::UPGRADING_LABEL);
    };
    assert_eq!(goes(cordoned), Ok(()));
    // It works, but for the cordon of people.
    assert_eq!(goes(|it| (it.unschedulable, ()) = (true, labelled(it))), waits_for("mac-1"));
}

/// What was created after the oldest of these notes takes the place of one.
#[test]
fn successors_are_those_that_came_after_the_first_that_was_to_go() {
    let of =
        |newest| format!(r#", "machinesBefore": {{"count": 3, "newest": "{}"}}"#, created(newest));
    let gone = |number, newest| {
        record(number, &format!(r#", "replacementMachineSet": "win"{}"#, of(newest)))
    };
    let is_successor = |host_keys: Vec<(&'static str, &'static str)>, change: fn(&mut Case)| {
        let case = came().with(not_ready).with(|c| {
            c.nodes[1].ready = false;
            labelled(&mut c.nodes[1]);
            c.host_keys = host_keys;
            c.host_keys.push(going(9));
        });
        next_of(&case.with(change), "mac-9") == Ok(())
    };
    assert!(is_successor(vec![gone(2, 1)], |_| ()));
    assert!(!is_successor(vec![gone(2, 9)], |_| ()));
    assert!(is_successor(vec![gone(2, 9), gone(7, 1)], |_| ()));
    // It is still to be seen, or people made another one of its name.
    let is_there = |c: &mut Case| {
        c.machines.push(MachineFacts {
            name: "mac-2".into(),
            uid: "uid-2".into(),
            is_deleted: true,
            ..machine(4)
        });
    };
    assert!(is_successor(vec![gone(2, 1)], is_there));
    let joins = came().with(|c| {
        c.machines.push(MachineFacts { name: "mac-2".into(), ..machine(4) });
        c.nodes.push(node_of(4));
        c.sets[0].replicas = 4;
        // It is about to join, and one of those before it is not there.
        (c.nodes[0].ready, c.nodes[1].ready) = (false, false);
        (c.refused, c.claims) = (vec![], vec!["node-2"]);
    });
    assert_eq!(joins.permits(), "node-2");
}

/// It is in nobody's MachineSet, and people see to it.
#[test]
fn a_machine_that_failed_and_is_a_node_counts_among_those_out_of_order() {
    let case = made(2).with(|c| {
        (c.machines[1].machine_set, c.machines[1].phase) = (None, Some("Failed".into()));
        c.nodes[1].ready = false;
        c.sets = vec![set(1)];
        (c.refused, c.host_keys) = (vec!["mac-1"], vec![going(1)]);
    });
    assert_eq!(next_of(&case, "mac-1"), waits_for("mac-2"));
}

/// One with a version worked once, so the image was right for it.
#[test]
fn a_successor_that_only_joined_is_in_vain() {
    let joined = came().with(|c| {
        c.host_keys.extend([going(7), going(8)]);
        held(&mut c.nodes[1]);
        c.nodes[1].labels.remove(names::UPGRADING_LABEL);
    });
    assert_eq!(next_of(&joined, "mac-9"), Ok(()));
    let only_joined =
        joined.with(|c| drop(c.nodes[1].annotations.remove(names::VERSION_ANNOTATION)));
    assert_eq!(next_of(&only_joined, "mac-9"), Err(Held::SuccessorsFailed { replaced: 3 }));
    // Its mark is missing, and it serves.
    let serves = only_joined.with(|c| {
        c.nodes[1].annotations.clear();
        c.nodes[1].unschedulable = false;
    });
    assert_eq!(next_of(&serves, "mac-9"), Ok(()));
}

/// Nobody puts the key of the successor back.
#[test]
fn one_with_a_mark_that_serves_waits_for_a_successor_that_waits_for_people() {
    let case = succeeded().with(successor_refuses).with(key_of_successor_is_lost).with(|c| {
        c.nodes[1].ready = false;
        c.unready = vec!["mac-9"];
        labelled(&mut c.nodes[0]);
        c.host_keys.push(going(1));
        c.budget = 3;
    });
    assert_eq!(next_of(&case, "mac-1"), waits_for("mac-9"));
}

/// It joins, and its host asks for a restart. Its drain takes nothing out of service.
#[test]
fn one_that_we_have_cordoned_fills_the_place() {
    let case = came().with(|c| {
        c.nodes[1].annotations.clear();
        held(&mut c.nodes[0]);
        c.nodes[0].labels.remove(names::UPGRADING_LABEL);
        c.claims = vec!["node-1"];
    });
    assert_eq!(next_of(&case, "mac-9"), waits_for("mac-1"));
    assert_eq!(case.permits(), "node-1");
    // What people have put back into service is missed, and their own cordon is theirs.
    let put_back = case.clone().with(|c| c.nodes[0].unschedulable = false);
    assert_eq!(put_back.permits(), "");
    let by_people = case.with(|c| drop(c.nodes[0].annotations.remove(names::CORDONED_ANNOTATION)));
    assert_eq!(by_people.permits(), "");
}

/// The image was right for it.
#[test]
fn one_that_was_a_node_is_no_successor_in_vain() {
    let case = came().with(|c| {
        c.host_keys.extend([going(7), going(8)]);
        c.nodes.remove(1);
        c.unready = vec!["mac-9"];
    });
    assert_eq!(next_of(&case, "mac-9"), Ok(()));
    let never = case.with(|c| joining(&mut c.machines[1]));
    assert_eq!(next_of(&never, "mac-9"), Err(Held::SuccessorsFailed { replaced: 3 }));
}

/// Of as many as are gone some have a successor that works; of the others three may be in vain.
#[test]
fn what_has_a_successor_that_works_was_not_in_vain() {
    let case = two_to_come().with(|c| {
        c.refused = vec!["mac-5"];
        c.host_keys.extend([going(5), going(7)]);
    });
    assert_eq!(next_of(&case, "mac-5"), Ok(()));
    let another = case.with(|c| c.host_keys.push(going(8)));
    assert_eq!(next_of(&another, "mac-5"), Err(Held::SuccessorsFailed { replaced: 3 }));
    let outdated = another.with(|c| {
        c.host_keys.pop();
        c.nodes[1].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    });
    assert_eq!(next_of(&outdated, "mac-5"), Ok(()));
    let has_permit = outdated.with(|c| c.granted = vec!["node-2"]);
    assert_eq!(next_of(&has_permit, "mac-5"), Ok(()));
}
