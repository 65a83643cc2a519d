//! Machines without a ready Node, with the duration.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::facts::NodeFacts;
use crate::machines::Machines;

/// Machines whose Nodes are absent or not ready, with the duration. If this state is lost, work is only delayed.
///
/// Times are those of a monotonic clock with any start.
#[derive(Clone, Debug, Default)]
pub(super) struct Unready {
    /// By name of the Machine: its UID, and the time of the first look that showed it.
    pub(super) since: BTreeMap<String, (String, Duration)>,
}

impl Unready {
    /// Compares with the current Nodes and Machines. One look at a ready Node ends the duration.
    pub(super) fn update(&mut self, nodes: &[NodeFacts], machines: &Machines, now: Duration) {
        let mut before = std::mem::take(&mut self.since);
        if machines.iter().next().is_none() {
            return;
        }
        let ready: HashMap<&str, bool> =
            nodes.iter().map(|node| (node.uid.as_str(), node.ready)).collect();
        for machine in machines.iter().map(|machine| &machine.facts) {
            let node = machine.node.as_ref().and_then(|node| ready.get(node.uid.as_str()));
            if node.copied().unwrap_or_default() {
                continue;
            }
            let known = before.remove(&machine.name).filter(|(uid, _)| *uid == machine.uid);
            let since = known.unwrap_or_else(|| (machine.uid.clone(), now));
            self.since.insert(machine.name.clone(), since);
        }
    }

    /// Whether a Machine has had no ready Node for at least `patience`, usually
    /// [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED).
    pub(super) fn lasts(&self, machine: &str, patience: Duration, now: Duration) -> bool {
        self.since.get(machine).is_some_and(|(_, since)| now.saturating_sub(*since) >= patience)
    }

    /// The next time when another Machine will have been without a ready Node for `patience`.
    pub(super) fn next_end(&self, patience: Duration, now: Duration) -> Option<Duration> {
        let ends = self.since.values().map(|(_, since)| *since + patience);
        ends.filter(|end| *end > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{MachineFacts, Reference};

    const WAIT: Duration = Duration::from_secs(300);

    fn machine(uid: &str) -> Machines {
        let facts = MachineFacts {
            name: "win".into(),
            uid: uid.into(),
            is_windows: true,
            node: Some(Reference { name: "node".into(), uid: "n-1".into() }),
            ..MachineFacts::default()
        };
        Machines::read([facts], [], "")
    }

    fn node(ready: bool) -> Vec<NodeFacts> {
        vec![NodeFacts { name: "node".into(), uid: "n-1".into(), ready, ..NodeFacts::default() }]
    }

    #[test]
    fn one_look_at_a_ready_node_begins_the_patience_anew() {
        let (machines, mut unready) = (machine("u-1"), Unready::default());
        for (looks, ready) in [(0, false), (1, true), (2, false), (3, false)] {
            let now = WAIT * looks;
            unready.update(&node(ready), &machines, now);
            assert_eq!(unready.lasts("win", WAIT, now), looks == 3, "{looks}");
            let expected = (looks % 3 != 1 && looks < 3).then_some(now + WAIT);
            assert_eq!(unready.next_end(WAIT, now), expected, "{looks}");
        }
    }

    #[test]
    fn another_machine_of_the_same_name_begins_anew() {
        let mut unready = Unready::default();
        unready.update(&[], &machine("u-1"), Duration::ZERO);
        unready.update(&[], &machine("u-2"), WAIT);
        assert!(!unready.lasts("win", WAIT, WAIT));
        unready.update(&[], &machine("u-2"), WAIT * 2);
        assert!(unready.lasts("win", WAIT, WAIT * 2));
    }
}
