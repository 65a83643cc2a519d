//! Who gets what, and why: one named line per rule.

use super::*;

/// What there is and what is asked for.
#[derive(Clone, Default)]
struct Case {
    listed: Vec<Listed>,
    nodes: Vec<NodeFacts>,
    claims: Vec<&'static str>,
    granted: Vec<&'static str>,
    kept_keys: Vec<&'static str>,
    budget: usize,
}

impl Case {
    /// Three listed nodes that all claim the only slot.
    fn three() -> Self {
        Self {
            listed: vec![entry(1), entry(2), entry(3)],
            nodes: vec![node(1), node(2), node(3)],
            claims: vec!["win-1", "win-2", "win-3"],
            budget: 1,
            ..Self::default()
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn assignments(&self) -> Assignments {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        reconcile(
            &Desired { listed: &self.listed, budget: self.budget },
            &Observed {
                nodes: &self.nodes,
                claims: &set(&self.claims),
                granted: &set(&self.granted),
                kept_keys: &set(&self.kept_keys),
            },
        )
    }

    /// Node names with a permit.
    fn permits(&self) -> String {
        let assignments = self.assignments();
        let permits = assignments.instances.iter().filter_map(|i| i.intent.permit());
        permits.map(DisruptionPermit::node).collect::<Vec<_>>().join(" ")
    }

    /// One line per instance.
    fn lines(&self) -> String {
        let assignments = self.assignments();
        assignments.instances.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

fn entry(number: u8) -> Listed {
    let ip = Ipv4Addr::new(10, 0, 0, number);
    Listed { address: ip.to_string(), ipv4: Some(ip) }
}

fn broken(address: &str) -> Listed {
    Listed { address: address.to_owned(), ipv4: None }
}

fn node(number: u8) -> NodeFacts {
    let address = format!("10.0.0.{number}");
    let mark = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    NodeFacts {
        name: format!("win-{number}"),
        uid: number.to_string(),
        labels: [mark(names::OS_LABEL, names::OS_WINDOWS), mark(names::BYOH_LABEL, names::TRUE)]
            .into(),
        annotations: [mark(names::INSTANCE_ANNOTATION, &address)].into(),
        addresses: vec![address],
        unschedulable: false,
        ready: true,
        host_key_mismatch: None,
        drain_notice: None,
        drain_blocked_since: None,
    }
}

fn labelled(node: &mut NodeFacts) {
    node.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
}

/// In the middle of our work.
fn held(node: &mut NodeFacts) {
    labelled(node);
    node.unschedulable = true;
    node.annotations.insert(names::CORDONED_ANNOTATION.into(), names::CORDONED_BY_US.into());
}

fn foreign(node: &mut NodeFacts) {
    node.labels.remove(names::BYOH_LABEL);
    node.annotations.clear();
}

fn behind_machine(node: &mut NodeFacts) {
    foreign(node);
    node.annotations.insert(names::MACHINE_ANNOTATION.into(), "openshift-machine-api/m".into());
}

macro_rules! rows {
    ($method:ident: $($name:ident: $case:expr => $expected:expr;)*) => {
        $(#[test]
        fn $name() {
            let case: Case = $case;
            assert_eq!(case.$method(), $expected);
        })*
    };
}

/// Its drain was given up so often.
fn given_up(node: &mut NodeFacts, times: u32) {
    let turns = format!("{times} 1970-01-01T00:00:00Z");
    node.annotations.insert(names::DRAIN_GIVEN_UP_ANNOTATION.into(), turns);
}

rows! { permits:
    one_that_had_its_turn_comes_last: Case::three().with(|c| given_up(&mut c.nodes[0], 1)) => "win-2";
    who_had_fewer_turns_comes_first: Case::three().with(|c| {
        given_up(&mut c.nodes[0], 3);
        given_up(&mut c.nodes[1], 2);
        c.claims = vec!["win-1", "win-2"];
    }) => "win-2";
    one_that_had_its_turn_goes_on_once_it_holds_a_slot: Case::three().with(|c| {
        given_up(&mut c.nodes[2], 1);
        held(&mut c.nodes[2]);
    }) => "win-3";
    one_slot: Case::three() => "win-1";
    two_slots: Case::three().with(|c| c.budget = 2) => "win-1 win-2";
    no_slot: Case::three().with(|c| c.budget = 0) => "";
    nobody_claims: Case::three().with(|c| c.claims.clear()) => "";
    unreachable_hosts_hold_nobody_up: Case::three().with(|c| c.claims = vec!["win-3"]) => "win-3";
    holder_goes_on: Case::three().with(|c| held(&mut c.nodes[2])) => "win-3";
    holder_without_a_claim_keeps_its_slot: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.claims = vec!["win-1", "win-2"];
    }) => "";
    holder_goes_on_though_the_budget_shrank: Case::three().with(|c| {
        held(&mut c.nodes[1]);
        held(&mut c.nodes[2]);
    }) => "win-2 win-3";
    holder_goes_on_after_a_person_uncordoned_it: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.nodes[2].unschedulable = false;
    }) => "win-3";
    granted_counts_before_its_mark_is_seen: Case::three().with(|c| {
        c.granted = vec!["win-2"];
        c.claims = vec!["win-1", "win-3"];
    }) => "";
    granted_goes_on: Case::three().with(|c| c.granted = vec!["win-2"]) => "win-2";
    granted_and_marked_counts_once: Case::three().with(|c| {
        held(&mut c.nodes[1]);
        c.granted = vec!["win-2"];
        c.budget = 2;
    }) => "win-1 win-2";
    granted_to_a_node_that_is_gone: Case::three().with(|c| c.granted = vec!["win-9"]) => "win-1";
    leftover_mark_keeps_others_waiting: Case::three().with(|c| {
        labelled(&mut c.nodes[2]);
        c.claims = vec!["win-1"];
    }) => "";
    leftover_marks_take_turns: Case::three().with(|c| {
        labelled(&mut c.nodes[1]);
        labelled(&mut c.nodes[2]);
    }) => "win-2";
    leftover_mark_waits_for_a_holder: Case::three().with(|c| {
        labelled(&mut c.nodes[0]);
        held(&mut c.nodes[2]);
    }) => "win-3";
    mark_of_a_machine_node_counts: Case::three().with(|c| {
        let mut machine = node(9);
        behind_machine(&mut machine);
        labelled(&mut machine);
        c.nodes.push(machine);
    }) => "";
    mark_on_a_linux_node_does_not_count: Case::three().with(|c| {
        let mut linux = node(9);
        labelled(&mut linux);
        linux.labels.remove(names::OS_LABEL);
        c.nodes.push(linux);
    }) => "win-1";
    mark_on_a_node_that_nobody_manages: Case::three().with(|c| {
        let mut other = node(9);
        foreign(&mut other);
        labelled(&mut other);
        c.nodes.push(other);
    }) => "win-1";
    removal_takes_a_slot: Case::three().with(|c| {
        c.listed.remove(0);
    }) => "win-1";
    a_claim_of_a_left_node_is_not_heard: Case::three().with(|c| {
        behind_machine(&mut c.nodes[0]);
    }) => "win-2";
}

rows! { lines:
    new_instance: Case { listed: vec![entry(1)], ..Case::default() }
        => "10.0.0.1: configure, because it is listed";
    listed_node: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        => "10.0.0.1: configure (node win-1), because it is listed";
    unlisted_node: Case { nodes: vec![node(1)], ..Case::default() }
        => "10.0.0.1: remove (node win-1), because it is no longer listed";
    permit_is_shown: Case {
        nodes: vec![node(1)], claims: vec!["win-1"], budget: 1, ..Case::default()
    } => "10.0.0.1: remove with a disruption permit (node win-1), because it is no longer listed";
    foreign_windows_node: Case { nodes: vec![node(1)], ..Case::default() }
        .with(|c| foreign(&mut c.nodes[0])) => "";
    machine_node: Case { nodes: vec![node(1)], ..Case::default() }
        .with(|c| behind_machine(&mut c.nodes[0])) => "";
    linux_node_with_our_label: Case { nodes: vec![node(1)], ..Case::default() }.with(|c| {
        c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into());
    }) => "";
    listed_machine_node: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        .with(|c| behind_machine(&mut c.nodes[0]))
        => "10.0.0.1: leave (node win-1), because a machine is behind its node";
    listed_linux_node: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        .with(|c| {
            c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into());
        }) => "10.0.0.1: leave (node win-1), because its node is no windows node";
    entry_that_became_broken: Case {
        listed: vec![broken("10.0.0.1")], nodes: vec![node(1)], ..Case::default()
    } => "10.0.0.1: leave, because its entry is broken\n\
          10.0.0.1: leave (node win-1), because it is not listed, but the broken entry 10.0.0.1 may mean it";
    name_that_no_longer_resolves: Case {
        listed: vec![broken("win-1.example")], nodes: vec![node(1)], ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "win-1.example".into());
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but the broken entry win-1.example may mean it\n\
           win-1.example: leave, because its entry is broken";
    name_that_never_resolved_may_mean_any_node: Case {
        listed: vec![broken("new.example")], nodes: vec![node(1)], ..Case::default()
    } => "10.0.0.1: leave (node win-1), because it is not listed, but the broken entry new.example may mean it\n\
          new.example: leave, because its entry is broken";
    name_of_one_node_does_not_mean_another: Case {
        listed: vec![broken("win-1.example")], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "win-1.example".into());
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but the broken entry win-1.example may mean it\n\
           10.0.0.2: remove (node win-2), because it is no longer listed\n\
           win-1.example: leave, because its entry is broken";
    broken_address_of_another_node: Case {
        listed: vec![broken("10.0.0.9")], nodes: vec![node(1)], ..Case::default()
    } => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
          10.0.0.9: leave, because its entry is broken";
    same_node_twice: Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }, entry(1)],
        nodes: vec![node(1)],
        ..Case::default()
    } => "10.0.0.1: configure (node win-1), because it is listed\n\
          win-1.example: leave (node win-1), because entry 10.0.0.1 stands for the same host";
    same_host_twice_before_it_has_a_node: Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }, entry(1)],
        ..Case::default()
    } => "10.0.0.1: configure, because it is listed\n\
          win-1.example: leave, because entry 10.0.0.1 stands for the same host";
    two_addresses_of_one_node: Case {
        listed: vec![entry(1), entry(2)], nodes: vec![node(1)], ..Case::default()
    }.with(|c| c.nodes[0].addresses.push("10.0.0.2".into()))
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: leave (node win-1), because entry 10.0.0.1 stands for the same host";
    old_node_of_a_renamed_host: Case {
        listed: vec![entry(1)], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| {
        c.nodes[0].ready = false;
        c.nodes[1].addresses = vec!["10.0.0.1".into()];
    }) => "10.0.0.1: leave (node win-1), because entry 10.0.0.1 stands for the same host\n\
           10.0.0.1: configure (node win-2), because it is listed";
    node_that_has_lost_its_addresses: Case {
        listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default()
    }.with(|c| c.nodes[0].addresses.clear())
        => "10.0.0.1: configure (node win-1), because it is listed";
}

#[test]
fn forgotten_keys() {
    let case = Case {
        listed: vec![entry(1), broken("win-3.example")],
        nodes: vec![node(2)],
        kept_keys: vec!["10.0.0.1", "10.0.0.2", "win-2.example", "win-3.example", "10.0.0.9"],
        ..Case::default()
    };
    let case = case.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "win-2.example".into());
    });
    assert_eq!(case.assignments().forgotten_keys, ["10.0.0.9".to_owned()].into());
}

#[test]
fn the_order_of_entries_and_nodes_does_not_matter() {
    let case = Case::three().with(|c| {
        c.listed.push(Listed { address: "win-1.example".into(), ..entry(1) });
        c.listed.push(broken("new.example"));
        c.nodes.push(node(4));
        held(&mut c.nodes[1]);
        labelled(&mut c.nodes[2]);
        c.budget = 2;
    });
    let expected = case.assignments();
    for turn in 1..case.listed.len() {
        let mut turned = case.clone();
        turned.listed.rotate_left(turn);
        turned.nodes.rotate_left(turn % case.nodes.len());
        assert_eq!(turned.assignments(), expected);
        turned.listed.reverse();
        turned.nodes.reverse();
        assert_eq!(turned.assignments(), expected);
    }
}
