//! What may happen in a MachineSet while one of its Machines is made anew.

mod who_waits;

use super::*;
use crate::digest::Sha256;
use crate::host_record::MachinesThen;

/// `mac-2` of three was deleted by us, and its successor `mac-9` works; the host of `mac-1` refuses our key.
fn succeeded() -> Case {
    made(3).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.machines[1].created = Some(created(9));
        c.host_keys = vec![going(2)];
        c.refused = vec!["mac-1"];
        c.budget = 2;
    })
}

/// The same before the successor has joined.
fn expected() -> Case {
    succeeded().with(|c| {
        c.machines[1].node = None;
        c.machines[1].phase = Some("Provisioned".into());
        c.nodes.remove(1);
    })
}

fn not_ready(c: &mut Case) {
    for node in c.nodes.iter_mut().filter(|node| node.name == "node-1") {
        node.ready = false;
    }
}

fn not_ready_for_long(c: &mut Case) {
    not_ready(c);
    c.unready.push("mac-1");
}

fn no_marks(c: &mut Case) {
    for node in c.nodes.iter_mut().filter(|node| node.name == "node-1") {
        node.annotations.clear();
    }
}

fn successor_refuses(c: &mut Case) {
    c.refused.push("mac-9");
}

/// `mac-2` and `mac-3` were deleted by us; the successor of the first worked and refuses our key, that of the other is
/// still to become a node.
fn two_to_come() -> Case {
    succeeded().with(successor_refuses).with(|c| {
        c.refused.retain(|name| *name != "mac-1");
        c.host_keys.push(going(3));
        c.nodes.remove(2);
        c.machines[2] = MachineFacts {
            name: "mac-5".into(),
            uid: "uid-5".into(),
            created: Some(created(5)),
            node: None,
            phase: Some("Provisioned".into()),
            ..machine(3)
        };
    })
}

/// Whether a Machine of the MachineSet is replaced next; otherwise why not.
#[track_caller]
fn next(case: Case, machine: &str, expected: Result<(), Held>) {
    let number = if machine == "mac-1" { 1 } else { 9 };
    case.with(|c| c.host_keys.push(going(number))).look(|out| {
        let mut found = out.instances.iter().filter(|it| it.address == key(machine));
        let found = found.next().unwrap();
        match expected {
            Ok(()) => assert!(matches!(found.intent, Intent::Replace(_)), "{found}"),
            Err(held) => assert_eq!(found.because, Because::ReplacementHeld(held)),
        }
    });
}

fn waits_for(machine: &str) -> Result<(), Held> {
    Err(Held::Unhealthy { first: key(machine) })
}

fn goes_first(machine: &str) -> Result<(), Held> {
    Err(Held::ReplacedFirst { first: key(machine) })
}

/// The successor has become a node and asks for a slot, while the node of `mac-1` holds one.
fn successor_asks_beside_a_holder() -> Case {
    succeeded().with(not_ready).with(|c| {
        held(&mut c.nodes[0]);
        c.nodes[1].ready = false;
        c.nodes[1].annotations.clear();
        c.claims = vec!["node-2"];
    })
}

/// Two nodes of the MachineSet were about to join when the key changed, and refuse the new one.
fn both_cordoned() -> Case {
    succeeded().with(|c| {
        c.refused.push("mac-3");
        for node in [0, 2] {
            let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
            c.nodes[node].annotations.extend([mark]);
        }
    })
}

/// The successor has lost its marks, and is not replaced, since the key is to be put back.
fn key_of_successor_is_lost(case: &mut Case) {
    case.nodes[1].annotations.clear();
    let [accepted, removed] = [b"before", b"ours__"].map(|key| Sha256::of(key));
    let fields = format!(r#", "acceptedKey": "{accepted}", "removedKey": "{removed}""#);
    case.host_keys.push(record(9, &fields));
    case.keys = Some(LoginKeys::one(removed));
}

/// The first was about to join when the key changed; the third refuses the new key as well, and has lost its marks.
fn one_cordoned_beside_one_without_marks() -> Case {
    both_cordoned().with(|c| c.nodes[2].annotations.clear())
}

macro_rules! succession {
    ($(fn $name:ident: $case:expr, $machine:literal => $expected:expr;)*) => { $(
        #[test]
        fn $name() {
            next($case, $machine, $expected);
        }
    )* };
}

succession! {
    fn one_that_works_waits_for_the_successor: expected(), "mac-1" => waits_for("mac-9");
    fn one_that_is_not_ready_waits_for_the_successor: expected().with(not_ready), "mac-1" => waits_for("mac-9");
    fn one_without_marks_waits_for_the_successor: expected().with(no_marks), "mac-1" => waits_for("mac-9");
    fn one_that_was_not_ready_for_long_waits_for_the_successor: expected().with(not_ready_for_long), "mac-1"
        => waits_for("mac-9");
    fn one_that_works_waits_for_a_successor_that_refuses: expected().with(successor_refuses), "mac-1"
        => goes_first("mac-9");
    fn one_that_is_not_ready_waits_for_a_successor_that_refuses:
        expected().with(not_ready_for_long).with(successor_refuses), "mac-1" => waits_for("mac-9");
    fn a_successor_that_refuses_goes_in_the_slot: expected().with(not_ready_for_long).with(successor_refuses), "mac-9"
        => Ok(());
    fn a_successor_that_refuses_in_its_slot_waits_for_no_sibling_without_marks: succeeded().with(no_marks)
        .with(successor_refuses)
        .with(|c| (c.nodes[1].annotations.clear(), held(&mut c.nodes[1])).0), "mac-9" => Ok(());
    fn one_without_marks_goes_first_a_successor_that_refuses_in_its_slot: succeeded().with(no_marks)
        .with(successor_refuses)
        .with(|c| (c.nodes[1].annotations.clear(), held(&mut c.nodes[1])).0), "mac-1" => goes_first("mac-9");
    fn a_successor_that_is_not_ready_for_a_moment_waits_for_another_one: two_to_come().with(|c| c.nodes[1].ready = false),
        "mac-9" => waits_for("mac-5");
    fn a_successor_without_marks_waits_for_another_one: two_to_come().with(|c| c.nodes[1].annotations.clear()), "mac-9"
        => waits_for("mac-5");
    fn one_that_may_get_ready_again_keeps_its_place: succeeded().with(not_ready), "mac-1" => Err(Held::MayRecover);
    fn one_that_was_not_ready_for_long_is_next: succeeded().with(not_ready_for_long), "mac-1" => Ok(());
    fn one_without_marks_is_next_after_the_successor: succeeded().with(no_marks), "mac-1" => Ok(());
    fn what_was_not_ready_for_long_waits_for_no_other_such: succeeded().with(not_ready_for_long).with(|c| {
        c.refused.push("mac-3");
        c.unready.push("mac-3");
        c.nodes[2].ready = false;
    }), "mac-1" => Ok(());
    fn one_that_works_waits_for_what_was_not_ready_for_long: succeeded().with(|c| {
        c.refused.push("mac-3");
        c.unready.push("mac-3");
        c.nodes[2].ready = false;
    }), "mac-1" => goes_first("mac-3");
    fn one_that_holds_a_slot_waits_for_a_successor_that_gets_its_own: successor_asks_beside_a_holder(), "mac-1"
        => waits_for("mac-9");
    fn one_that_holds_the_only_slot_makes_room: successor_asks_beside_a_holder().with(|c| c.budget = 1), "mac-1" => Ok(());
    fn of_two_that_are_cordoned_and_refuse_one_is_next: both_cordoned(), "mac-1" => Ok(());
    fn one_that_is_cordoned_waits_for_none_that_refuses_and_only_lacks_marks: one_cordoned_beside_one_without_marks(),
        "mac-1" => Ok(());
    fn one_that_only_lacks_marks_waits_for_one_that_is_cordoned: both_cordoned().with(no_marks), "mac-1"
        => waits_for("mac-3");
    fn one_that_is_cordoned_waits_for_one_that_gets_its_marks_back: one_cordoned_beside_one_without_marks()
        .with(|c| c.refused.retain(|name| *name != "mac-3")), "mac-1" => waits_for("mac-3");
    fn one_in_service_waits_for_one_that_refuses_and_may_get_ready_again: succeeded().with(|c| {
        c.refused.push("mac-3");
        c.nodes[2].ready = false;
    }), "mac-1" => waits_for("mac-3");
    fn one_of_two_that_only_lack_marks_is_next: succeeded().with(no_marks).with(|c| {
        c.refused.push("mac-3");
        c.nodes[2].annotations.clear();
    }), "mac-1" => Ok(());
    fn one_in_service_waits_for_a_successor_that_only_lacks_marks_and_stays: succeeded().with(successor_refuses)
        .with(key_of_successor_is_lost), "mac-1" => waits_for("mac-9");
    fn one_that_is_cordoned_waits_for_no_successor_that_only_lacks_marks: succeeded().with(successor_refuses)
        .with(key_of_successor_is_lost)
        .with(|c| {
            let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
            c.nodes[0].annotations.extend([mark]);
        }), "mac-1" => Ok(());
    fn one_that_is_cordoned_waits_for_one_that_is_about_to_go: succeeded().with(successor_refuses)
        .with(key_of_successor_is_lost)
        .with(|c| {
            let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
            c.nodes[0].annotations.extend([mark]);
            c.granted = vec!["node-3"];
        }), "mac-1" => waits_for("mac-3");
    fn two_successors_that_only_lack_marks_wait_for_none_of_both: succeeded().with(successor_refuses)
        .with(key_of_successor_is_lost)
        .with(|c| {
            c.machines[0].created = Some(created(8));
            c.nodes[0].annotations.clear();
        }), "mac-1" => Ok(());
    fn a_successor_that_refuses_and_only_lacks_marks_goes: succeeded().with(successor_refuses)
        .with(|c| c.nodes[1].annotations.clear()), "mac-9" => Ok(());
    fn one_in_service_waits_for_one_that_is_cordoned_and_refuses:
        both_cordoned().with(|c| drop(c.nodes[0].annotations.remove(names::CORDONED_ANNOTATION))), "mac-1"
        => goes_first("mac-3");
    fn one_that_let_us_in_and_never_was_a_node_waits_for_nobody: expected().with(successor_refuses).with(|c| {
        c.machines[1].created = Some(created(1));
        c.host_keys.push(("mac-9_machine", "SHA256:a"));
        let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
        c.nodes[0].annotations.extend([mark]);
    }), "mac-9" => Ok(());
    fn the_stop_after_three_holds_for_all_machines_of_the_set: expected().with(not_ready_for_long)
        .with(successor_refuses)
        .with(|c| c.host_keys.extend([going(7), going(8)])), "mac-1" => Err(Held::SuccessorsFailed { replaced: 3 });
    fn it_holds_for_one_with_a_mark: expected().with(successor_refuses).with(|c| {
        c.host_keys.extend([going(7), going(8)]);
        labelled(&mut c.nodes[0]);
    }), "mac-1" => Err(Held::SuccessorsFailed { replaced: 3 });
}

/// A slot that another Machine of the MachineSet had before is not the one that the MachineSet holds.
#[test]
fn a_successor_gets_the_slot_of_its_machineset_beside_a_sibling_that_holds_its_own() {
    assert_eq!(successor_asks_beside_a_holder().permits(), "node-2");
    // With one slot in all, the sibling fills the place.
    assert_eq!(successor_asks_beside_a_holder().with(|c| c.budget = 1).permits(), "");
    // A leftover mark takes nothing from it.
    let leftover = successor_asks_beside_a_holder().with(|c| {
        c.listed = vec![entry(1)];
        c.nodes.push(node(1));
        c.nodes.iter_mut().filter(|node| node.name == "win-1").for_each(labelled);
    });
    assert_eq!(leftover.permits(), "node-2");
    // Beyond a budget that was lowered nobody knows who fills the place: it may be the sibling, also when it is ready again.
    let others = successor_asks_beside_a_holder().with(|c| {
        c.nodes[0].ready = true;
        c.listed = vec![entry(1), entry(2)];
        c.nodes.extend([node(1), node(2)]);
        c.nodes[3..].iter_mut().for_each(held);
    });
    assert_eq!(others.permits(), "");
}

/// What fills it gets its version, and is ready, before it serves again.
#[test]
fn a_place_is_lent_to_nobody_else_before_who_fills_it_serves() {
    let lent = |change: fn(&mut Case)| {
        let case = made(4).with(|c| {
            c.machines.remove(1);
            c.nodes.remove(1);
            c.host_keys = vec![going(2)];
            held(&mut c.nodes[0]);
            (c.unready, c.claims) = (vec!["mac-1", "mac-3"], vec!["node-1", "node-3"]);
            c.nodes[1].ready = false;
        });
        case.with(change).permits()
    };
    assert_eq!(lent(|c| c.nodes[0].ready = false), "node-1");
    assert_eq!(lent(|_| ()), "node-1");
    // Both have lost their marks, and the successor works.
    let successor_works = |c: &mut Case| {
        let machine = MachineFacts {
            name: "mac-9".into(),
            uid: "uid-9".into(),
            created: Some(created(9)),
            ..machine(2)
        };
        c.machines.push(machine);
        c.nodes.push(node_of(2));
        c.unready.clear();
        c.nodes[1] = node_of(3);
        c.nodes[1].annotations.clear();
    };
    assert_eq!(lent(successor_works), "node-1");
}

/// Its mark may be on its way.
#[test]
fn a_place_is_lent_to_nobody_else_before_the_mark_of_who_fills_it_is_seen() {
    let case = succeeded().with(|c| {
        c.budget = 1;
        c.refused.clear();
        c.nodes[0].annotations.clear();
        c.nodes[2].annotations.clear();
        c.claims = vec!["node-3"];
    });
    assert_eq!(case.permits(), "node-3");
    let both = case.with(|c| (c.granted, c.claims) = (vec!["node-3"], vec!["node-1", "node-3"]));
    assert_eq!(both.permits(), "node-3");
    assert_eq!(both.with(|c| c.claims = vec!["node-1"]).permits(), "");
}

/// Nodes beside a MachineSet of which a Machine is gone, with two slots in all.
#[test]
fn what_is_gone_takes_a_slot_from_nodes_with_permits() {
    let beside = |case: Case| {
        case.with(|c| {
            c.refused.clear();
            c.listed = vec![entry(1), entry(2)];
            c.nodes.extend([node(1), node(2)]);
            c.claims.extend(["win-1", "win-2"]);
        })
    };
    // Of two permits whose marks are not visible yet one ends.
    let granted = beside(expected()).with(|c| c.granted = vec!["win-1", "win-2"]);
    assert_eq!(granted.permits(), "win-1");
    // One that goes beyond the budget may be made use of this moment.
    let holder = beside(successor_asks_beside_a_holder());
    assert_eq!(holder.permits(), "node-2");
    assert_eq!(holder.with(|c| c.granted = vec!["win-1"]).permits(), "");
    // Who has a mark goes before who fills the place, which is open all the same.
    let marked = beside(successor_asks_beside_a_holder()).with(|c| {
        c.nodes[0] = node_of(1);
        let mut marked = c.nodes.iter_mut().filter(|node| node.name == "win-1");
        let marked = marked.next().unwrap();
        labelled(marked);
        given_up(marked, 1);
    });
    assert_eq!(marked.permits(), "win-1 node-2");
}

/// The budget was lowered after it got its permit.
#[test]
fn one_that_fills_no_place_loses_a_permit_beyond_the_budget() {
    for change in [not_ready, no_marks] {
        let lowered = |case: Case, granted: &[&'static str]| {
            case.with(change)
                .with(|c| {
                    (c.budget, c.granted) = (1, granted.to_vec());
                    c.refused.clear();
                    c.claims = vec!["node-1", "node-2"];
                })
                .permits()
        };
        assert_eq!(lowered(expected(), &["node-1"]), "");
        let joining = || {
            succeeded().with(|c| {
                c.nodes[1].ready = false;
                c.nodes[1].annotations.clear();
            })
        };
        assert_eq!(lowered(joining(), &["node-1"]), "node-2");
        assert_eq!(lowered(joining(), &["node-1", "node-2"]), "node-2");
    }
}

#[test]
fn a_place_is_filled_by_one_machine() {
    let both_ask = expected().with(|c| {
        c.refused.clear();
        c.unready.extend(["mac-1", "mac-3"]);
        c.nodes.iter_mut().for_each(|node| node.ready = false);
        (c.budget, c.claims) = (1, vec!["node-1", "node-3"]);
    });
    assert_eq!(both_ask.permits(), "node-1");
}

/// What is ready again in a moment would be drained while another one is gone; so would what only lacks a mark.
#[test]
fn a_sibling_fills_the_place_only_once_it_was_not_ready_for_long() {
    let asks = |change: fn(&mut Case)| {
        let case = expected().with(change).with(|c| {
            (c.budget, c.claims) = (1, vec!["node-1"]);
            c.refused.clear();
        });
        case.permits()
    };
    assert_eq!(asks(not_ready), "");
    assert_eq!(asks(no_marks), "");
    assert_eq!(asks(not_ready_for_long), "node-1");
    // An older version did not note which ones were there.
    let unknown = expected().with(no_marks).with(|c| {
        (c.budget, c.claims) = (1, vec!["node-1"]);
        c.refused.clear();
        c.host_keys = vec![record(2, r#", "replacementMachineSet": "win""#)];
    });
    assert_eq!(unknown.permits(), "node-1");
}

#[test]
fn a_successor_fills_the_place_before_it_ever_worked() {
    let joined = |change: fn(&mut Case)| {
        let case = succeeded().with(|c| {
            (c.budget, c.claims) = (1, vec!["node-1", "node-2"]);
            c.refused.clear();
            c.nodes[1].annotations.clear();
        });
        case.with(no_marks).with(change).permits()
    };
    assert_eq!(joined(|_| ()), "node-2");
}

/// It gets its version before it is looked at for the last time, and serves nobody until then.
#[test]
fn a_successor_that_we_have_cordoned_does_not_work_yet() {
    let cordoned = |c: &mut Case| {
        let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
        c.nodes[1].annotations.extend([mark]);
    };
    next(succeeded(), "mac-1", Ok(()));
    next(succeeded().with(cordoned), "mac-1", waits_for("mac-9"));
    // A person's cordon is theirs.
    let by_others = |c: &mut Case| c.nodes[1].unschedulable = true;
    next(succeeded().with(by_others), "mac-1", Ok(()));
}

/// Nothing is gone any more, and the MachineSet holds its slot for the one that lacks its mark.
#[test]
fn a_sibling_fills_the_place_as_soon_as_the_successor_works() {
    let asks = |change: fn(&mut Case)| {
        let case = succeeded().with(change).with(|c| {
            (c.budget, c.claims) = (1, vec!["node-1"]);
            c.refused.clear();
        });
        case.permits()
    };
    assert_eq!(asks(no_marks), "node-1");
    assert_eq!(asks(not_ready), "node-1");
    assert_eq!(asks(|c| (no_marks(c), c.nodes[1].ready = false).0), "");
}

/// One successor that works is not enough while two are gone, or another one is about to go.
#[test]
fn a_sibling_waits_for_as_many_successors_as_are_gone() {
    let asks = |change: fn(&mut Case)| {
        let case = succeeded().with(no_marks).with(|c| {
            (c.budget, c.claims) = (1, vec!["node-1"]);
            c.refused.clear();
        });
        case.with(change).permits()
    };
    let gone = |c: &mut Case| {
        c.machines.remove(2);
        c.nodes.remove(2);
        c.host_keys.push(going(3));
    };
    assert_eq!(asks(gone), "");
    assert_eq!(asks(|c| c.replaced = vec!["mac-3"]), "");
    // No successor comes for one that nobody asks for any more, and one that people ignore is theirs.
    let fewer = |c: &mut Case| {
        c.machines.remove(1);
        c.nodes.remove(1);
        c.sets = vec![set(2)];
    };
    assert_eq!(asks(fewer), "node-1");
    assert_eq!(asks(|c| c.machines[1].is_ignored = true), "node-1");
    let more = |c: &mut Case| {
        c.sets = vec![set(4)];
        let created = Some(created(10));
        c.machines.push(MachineFacts { node: None, phase: None, created, ..machine(4) });
    };
    assert_eq!(asks(more), "node-1");
}

/// The number and the times that count are those of the moment when one is to go.
#[test]
fn what_is_noted_of_a_machineset_is_noted_anew_when_it_changes() {
    let grown = made(4).with(|c| (c.refused, c.host_keys) = (vec!["mac-2"], vec![going(2)]));
    grown.look(|out| {
        let of = Some(MachinesThen { count: 4, newest: created(1) });
        let set = "win".to_owned();
        assert_eq!(out.changes[&key("mac-2")], RecordChange::ToReplace { set, of });
    });
}

/// A MachineSet that was to grow meanwhile, and cannot, has what it had.
#[test]
fn a_machineset_that_cannot_grow_holds_no_slot() {
    let grown = |of: &str| {
        let case = succeeded().with(|c| {
            c.host_keys = vec![record(2, &format!(r#", "replacementMachineSet": "win"{of}"#))];
            c.sets = vec![set(4)];
            c.machines.push(MachineFacts { node: None, phase: None, ..machine(4) });
            (c.budget, c.claims) = (1, vec!["node-3"]);
            c.refused.clear();
        });
        case.permits()
    };
    assert_eq!(grown(&of_three()), "node-3");
    assert_eq!(grown(""), "", "an older version did not say how many it had");
}

/// While the operator runs, nobody makes it forget what it began.
#[test]
fn a_replacement_that_somebody_took_off_record_goes_on() {
    let lost = || {
        expected().with(not_ready_for_long).with(|c| {
            c.host_keys.clear();
            c.replacing = vec![("mac-2", "uid-2")];
        })
    };
    next(lost(), "mac-1", waits_for("mac-9"));
    lost().with(|c| (c.budget, c.claims) = (1, vec!["node-3"])).look(|out| {
        assert!(out.instances.iter().all(|it| it.intent.permit().is_none()), "the slot is held");
        let (machine, set) = (Some("uid-2".to_owned()), "win".to_owned());
        assert_eq!(out.changes[&key("mac-2")], RecordChange::Replaced { machine, set, of: None });
        assert_eq!(out.replacing.keys().collect::<Vec<_>>(), ["mac-2"]);
    });
    // Somebody has put back what was on record before.
    let older = lost().with(|c| {
        c.host_keys = vec![record(2, "")];
    });
    older.look(|out| {
        let change = &out.changes[&key("mac-2")];
        assert!(matches!(change, RecordChange::Replaced { .. }), "{change:?}");
    });
    // One that is still there was not deleted.
    let there = made(1).with(|c| c.replacing = vec![("mac-1", "uid-1")]);
    there.look(|out| assert_eq!((out.changes, out.replacing), Default::default()));
}

#[test]
fn what_was_begun_is_remembered_with_its_machine() {
    let case = made(1).with(|c| (c.refused, c.host_keys) = (vec!["mac-1"], vec![going(1)]));
    case.look(|out| {
        let one = Replacement {
            set: "win".into(),
            uid: Some("uid-1".into()),
            of: Some(MachinesThen { count: 1, newest: created(1) }),
        };
        assert_eq!(out.replacing, [("mac-1".to_owned(), one)].into());
    });
}

fn next_of(case: &Case, machine: &str) -> Result<(), Held> {
    case.look(|out| {
        let it = out.instances.iter().find(|it| it.address == key(machine)).unwrap();
        match &it.because {
            Because::ReplacementHeld(held) => Err(held.clone()),
            other => {
                assert!(matches!(it.intent, Intent::Replace(_)), "{other}");
                Ok(())
            }
        }
    })
}

/// People took our cordon off `mac-1`: it is in service. It refuses our keys.
fn put_back() -> Case {
    made(3).with(|c| {
        held(&mut c.nodes[0]);
        c.nodes[0].unschedulable = false;
        c.refused = vec!["mac-1"];
        c.host_keys = vec![going(1)];
    })
}

/// Another one of the MachineSet is out of service by us.
#[test]
fn one_with_a_mark_that_serves_waits_for_one_that_we_took_out_of_service() {
    let case = put_back().with(|c| {
        held(&mut c.nodes[2]);
        c.claims = vec!["node-3"];
        c.budget = 2;
    });
    assert_eq!(next_of(&case, "mac-1"), waits_for("mac-3"));
}

#[test]
fn one_with_a_mark_that_serves_waits_for_one_that_is_not_ready() {
    let case = put_back().with(|c| c.nodes[2].ready = false);
    assert_eq!(next_of(&case, "mac-1"), waits_for("mac-3"));
}

/// The same with a label that somebody left on a node that never left service.
#[test]
fn one_with_a_leftover_mark_waits_for_one_that_is_not_ready() {
    let case = made(3).with(|c| {
        labelled(&mut c.nodes[0]);
        c.nodes[2].ready = false;
        c.refused = vec!["mac-1"];
        c.host_keys = vec![going(1)];
    });
    assert_eq!(next_of(&case, "mac-1"), waits_for("mac-3"));
}

/// The other one waits for the slot that the mark takes.
#[test]
fn one_with_a_leftover_mark_waits_for_none_that_is_cordoned_and_refuses() {
    let case = made(3).with(|c| {
        labelled(&mut c.nodes[0]);
        let mark = (names::CORDONED_ANNOTATION.to_owned(), names::CORDONED_BY_US.to_owned());
        c.nodes[2].annotations.extend([mark]);
        c.refused = vec!["mac-1", "mac-3"];
        c.host_keys = vec![going(1), going(3)];
        c.budget = 1;
    });
    assert_eq!(next_of(&case, "mac-1"), Ok(()));
}

/// `mac-2` is gone, its successor `mac-9` is in service (people uncordoned it) and refuses us; `mac-1` is not ready
/// for a moment.
#[test]
fn a_successor_that_people_put_into_service_waits_for_one_that_is_not_ready() {
    let case = made(3).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.machines[1].created = Some(created(9));
        c.host_keys = vec![going(2), going(9)];
        c.refused = vec!["mac-9"];
        held(&mut c.nodes[1]);
        c.nodes[1].unschedulable = false;
        c.nodes[0].ready = false;
    });
    assert_eq!(next_of(&case, "mac-9"), waits_for("mac-1"));
}

/// The successor waits for `mac-3`, which waits for the slot that is held until the successor works.
#[test]
fn a_successor_and_one_that_waits_for_its_slot_do_not_wait_for_each_other() {
    let case = made(3).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.machines[1].created = Some(created(9));
        c.host_keys = vec![going(2), going(9)];
        c.nodes[1].annotations.clear();
        c.nodes[2].annotations.clear();
        c.refused = vec!["mac-9"];
        c.claims = vec!["node-3"];
    });
    let goes = next_of(&case, "mac-9");
    assert!(goes.is_ok() || case.permits() == "node-3", "{goes:?}, {:?}", case.told());
    // One that serves nobody is missed.
    assert_eq!(next_of(&case.with(|c| c.nodes[2].ready = false), "mac-9"), waits_for("mac-3"));
}
