//! Permits that were given, until their marks are seen.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use super::Assignments;
use crate::facts::NodeFacts;
use crate::limits;

/// How long a permit counts that nobody claims any more.
const PATIENCE: Duration = limits::CATCH_UP.unsigned_abs();

/// Nodes with a permit whose mark has not come back through the watch yet, each with the time when it
/// claimed its slot last. Losing it may let one pass more disrupt a node: the marks tell the rest.
///
/// Times are those of a clock that never goes back, since any moment: one that somebody sets would drop
/// permits too early, or keep them for hours.
///
/// ```
/// use wmco_core::fleet::{Assignments, Grants};
///
/// let mut grants = Grants::default();
/// let now = std::time::Duration::ZERO;
/// grants.update(&[], &[].into(), now);
/// grants.note(&Assignments::default(), now);
/// assert!(grants.names().is_empty() && grants.next_end().is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Grants(BTreeMap<String, Duration>);

impl Grants {
    /// Drops those whose marks `nodes` show, and those that nobody has claimed for
    /// [`limits::CATCH_UP`]: the mark of a worker that has just ended may be on its way to us still.
    pub fn update(&mut self, nodes: &[NodeFacts], claims: &BTreeSet<String>, now: Duration) {
        if self.0.is_empty() {
            return;
        }
        for (name, claimed) in &mut self.0 {
            if claims.contains(name) {
                *claimed = now;
            }
        }
        let marked: HashSet<&str> =
            nodes.iter().filter(|node| node.holds_slot()).map(|node| node.name.as_str()).collect();
        self.0.retain(|name, claimed| !marked.contains(name.as_str()) && now < *claimed + PATIENCE);
    }

    /// Notes the permits that were given.
    pub fn note(&mut self, out: &Assignments<'_>, now: Duration) {
        let permits = out.instances.iter().filter_map(|instance| instance.intent.permit());
        self.0.extend(permits.map(|permit| (permit.node().to_owned(), now)));
    }

    /// Names of the Nodes, as in [`Observed::granted`](super::Observed::granted).
    pub fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    /// When the first of them is dropped, if nobody claims it meanwhile.
    pub fn next_end(&self) -> Option<Duration> {
        self.0.values().min().map(|claimed| *claimed + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::assignment;
    use crate::fleet::{Because, DisruptionPermit, Intent};
    use crate::names;

    const NOW: Duration = Duration::ZERO;

    fn granted() -> Grants {
        let intent = Intent::Configure(Some(DisruptionPermit::for_node("win-1")));
        let instance = assignment("10.0.0.1", intent, Because::Listed);
        let mut grants = Grants::default();
        let out = Assignments { instances: vec![instance], ..Assignments::default() };
        grants.note(&out, NOW);
        grants
    }

    #[test]
    fn a_permit_counts_until_its_mark_is_seen() {
        let mut node = NodeFacts { name: "win-1".into(), ..NodeFacts::default() };
        let mut grants = granted();
        grants.update(std::slice::from_ref(&node), &BTreeSet::new(), NOW);
        assert_eq!(grants.names(), ["win-1".to_owned()].into());
        node.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
        grants.update(&[node], &["win-1".to_owned()].into(), NOW);
        assert_eq!(grants.names(), BTreeSet::new());
    }

    #[test]
    fn a_permit_that_nobody_claims_any_more_is_dropped_after_a_while() {
        let (mut grants, claims) = (granted(), ["win-1".to_owned()].into());
        let later = NOW + PATIENCE;
        assert_eq!(grants.next_end(), Some(later));
        grants.update(&[], &claims, later);
        assert_eq!(grants.names(), claims);
        grants.update(&[], &BTreeSet::new(), later + PATIENCE);
        assert_eq!(grants.names(), BTreeSet::new());
    }
}
