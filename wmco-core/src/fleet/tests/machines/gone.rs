//! Machines that are gone, until their MachineSets are whole again.

use super::*;

/// `mac-2` of three is gone, and a node of an entry asks for the only slot.
fn beside(change: impl FnOnce(&mut Case)) -> Case {
    made(3).with(change).with(|c| {
        (c.listed, c.claims) = (vec![entry(1)], vec!["win-1"]);
        c.nodes.push(node(1));
    })
}

fn mac_2_is_made_anew(case: &mut Case) {
    case.machines[1].uid = "uid-9".into();
    case.nodes[1].ready = false;
}

#[test]
fn what_is_being_deleted_holds_a_slot() {
    let gone: [fn(&mut Case); 4] = [
        |c| drop(c.machines.remove(1)),
        |c| c.machines[1].is_deleted = true,
        // Another one of its name does not work.
        mac_2_is_made_anew,
        |_| (),
    ];
    let permits = |remembered: bool| {
        gone.map(|change| {
            let case = beside(change).with(|c| {
                if remembered {
                    c.replacing = vec![("mac-2", "uid-2")];
                } else {
                    c.host_keys.push(going(2));
                }
            });
            case.permits()
        })
    };
    assert_eq!(permits(false), ["", "", "", "win-1"]);
    assert_eq!(permits(true), ["", "", "", "win-1"]);
}

/// A permit counts until the deletion is visible; from then on what is on record does.
#[test]
fn a_permit_ends_with_its_machine() {
    let granted = |change: fn(&mut Case)| beside(change).with(|c| c.replaced = vec!["mac-2"]);
    assert_eq!(granted(|_| ()).permits(), "");
    assert_eq!(granted(|c| c.machines[1].is_deleted = true).permits(), "win-1");
}

/// What the record says of another Machine of that name, or nobody can read, is not written over.
#[test]
fn only_a_record_that_is_lost_is_written_anew() {
    let changes = |keys: &[(&'static str, &'static str)], is_there: bool| {
        let case = made(3).with(|c| {
            c.replacing = vec![("mac-2", "uid-2")];
            c.host_keys = keys.to_vec();
            if is_there {
                (c.replacing, c.replaced) = (vec![], vec!["mac-2"]);
            } else {
                c.machines.remove(1);
            }
        });
        case.changes()
    };
    assert_eq!(changes(&[], false), "mac-2_machine");
    assert_eq!(changes(&[record(2, "")], false), "mac-2_machine");
    assert_eq!(changes(&[going(2)], false), "");
    assert_eq!(changes(&[("mac-2_machine_host", r#"{"machine": "uid-9"}"#)], false), "");
    assert_eq!(changes(&[("mac-2_machine_host", "{")], false), "");
    assert_eq!(changes(&[], true), "");
}

#[test]
fn what_was_begun_goes_on_in_a_cluster_that_is_unfit() {
    let replaced = |change: fn(&mut Case)| {
        let case = made(3).with(|c| {
            (c.refused, c.host_keys) = (vec!["mac-1"], vec![going(1)]);
            c.blocked = true;
        });
        let is_replaced = |it: &Assignment<'_>| matches!(it.intent, Intent::Replace(_));
        case.with(change).look(|out| out.instances.iter().any(is_replaced))
    };
    assert!(replaced(|c| c.replaced = vec!["mac-1"]));
    assert!(!replaced(|_| ()));
}

/// Each takes one slot, whether it is seen by its mark or by its permit.
#[test]
fn a_node_with_a_mark_and_a_permit_takes_one_slot() {
    let case = Case::three().with(|c| {
        labelled(&mut c.nodes[0]);
        (c.budget, c.granted, c.claims) = (2, vec!["win-1"], vec!["win-2"]);
    });
    assert_eq!(case.permits(), "win-2");
}
