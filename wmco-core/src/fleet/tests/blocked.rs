//! A cluster that is not fit for new work.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// One host that is a node, and one host that is no node yet.
fn one_of_two() -> Case {
    Case {
        listed: vec![entry(1), entry(2)],
        nodes: vec![node(1)],
        claims: vec!["win-1"],
        budget: 1,
        ..Case::default()
    }
}

fn blocked(case: Case) -> Case {
    Case { blocked: true, ..case }
}

rows! { lines:
    a_new_host_waits_and_a_node_is_kept: blocked(one_of_two())
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: leave, because the cluster is not fit for another node";
    one_that_a_removal_waits_for_is_looked_at: blocked(Case {
            listed: vec![entry(2), entry(3)],
            ..one_of_two()
        }.with(|c| c.never_contacted = vec!["10.0.0.3"]))
        => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.3 may be its host until a look at that is on record\n\
            10.0.0.2: leave, because the cluster is not fit for another node\n\
            10.0.0.3: look, because the cluster is not fit for another node";
    a_fit_cluster_goes_on: one_of_two()
        => "10.0.0.1: configure with a disruption permit (node win-1), because it is listed\n\
            10.0.0.2: configure, because it is listed";
    a_removal_goes_on: blocked(Case { listed: vec![], ..one_of_two() })
        => "10.0.0.1: remove with a disruption permit (node win-1), because it is no longer listed";
}

rows! { permits:
    a_node_that_waits_for_its_turn_gets_none: blocked(Case::three()) => "";
    a_node_that_has_begun_goes_on: blocked(Case::three().with(|c| held(&mut c.nodes[1]))) => "win-2";
    only_what_has_begun_goes_on: blocked(Case::three().with(|c| {
        c.budget = 3;
        held(&mut c.nodes[1]);
    })) => "win-2";
}

/// A host: whether it is listed, whether it has a Node, how that stands, and whether it asks for a slot.
type Host = (bool, bool, u8, bool);

const NAMES: [&str; 4] = ["win-1", "win-2", "win-3", "win-4"];

fn case(hosts: &[Host], budget: usize) -> Case {
    let mut case = Case { budget, ..Case::default() };
    for ((number, name), (is_listed, has_node, stands, claims)) in (1..).zip(NAMES).zip(hosts) {
        if *is_listed {
            case.listed.push(entry(number));
        }
        if *has_node {
            let mut node = node(number);
            match stands {
                0 => held(&mut node),
                1 => labelled(&mut node),
                _ => {}
            }
            case.nodes.push(node);
        }
        if *claims {
            case.claims.push(name);
        }
    }
    case
}

proptest! {
    /// Nothing begins on a host that is no node, no node is disrupted for an upgrade that has not begun, and
    /// all else is as in a cluster that is fit.
    #[test]
    fn a_finding_that_blocks_holds_back_new_work_alone(
        hosts in vec(any::<Host>(), 1..=NAMES.len()),
        budget in 0..=NAMES.len(),
    ) {
        let wanted = |case: &Case| case.look(|out| {
            let one = |it: &Assignment<'_>| {
                (it.address.clone(), it.node_name().map(str::to_owned), it.intent.verb())
            };
            out.instances.iter().map(one).collect::<Vec<_>>()
        });
        let fit = case(&hosts, budget);
        let mut expected = wanted(&fit);
        for (_, node, verb) in &mut expected {
            if node.is_none() && *verb == "configure" {
                *verb = "leave";
            }
        }
        let unfit = blocked(fit);
        prop_assert_eq!(wanted(&unfit), expected);
        let begun = |name: &str| unfit.nodes.iter().any(|node| node.name == name && node.holds_slot());
        let disrupts_more = unfit.look(|out| out.instances.iter().any(|it| match &it.intent {
            Intent::Configure(Some(permit)) => !begun(permit.node()),
            Intent::Replace(_) => true,
            Intent::Configure(None) | Intent::Remove(_) | Intent::Look | Intent::Leave => false,
        }));
        prop_assert!(!disrupts_more, "{}", unfit.lines());
    }
}
