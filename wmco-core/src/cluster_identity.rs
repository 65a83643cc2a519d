//! Which cluster this is, and which hosts of other clusters it may take.

use std::collections::BTreeSet;

use crate::protocol::HostState;

/// The identity of this cluster, which is kept in the state file of each of its hosts.
///
/// ```
/// use wmco_core::cluster_identity::ClusterIdentity;
/// use wmco_core::protocol::HostState;
///
/// let mut ours = ClusterIdentity::new("11111111-aaaa");
/// let theirs = HostState { cluster: Some("22222222-bbbb".to_owned()), ..HostState::default() };
/// assert_eq!(ours.owner_besides(&theirs), Some("22222222-bbbb"));
/// // A person said that the hosts of that cluster may be taken.
/// ours.takes_hosts_of = ClusterIdentity::listed("22222222-bbbb, 33333333-cccc");
/// assert_eq!(ours.owner_besides(&theirs), None);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterIdentity {
    /// `spec.clusterID` of the ClusterVersion; in a cluster without that kind the UID of the namespace
    /// `kube-system`.
    pub id: String,
    /// Identities of the clusters whose hosts a person allowed to take, in the annotation
    /// [`TAKE_OVER_ANNOTATION`](crate::names::TAKE_OVER_ANNOTATION).
    pub takes_hosts_of: BTreeSet<String>,
}

impl ClusterIdentity {
    /// The identity `id`; hosts of other clusters are left.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), takes_hosts_of: BTreeSet::new() }
    }

    /// Identities in a value of the annotation, with commas or blanks between them.
    pub fn listed(annotation: &str) -> BTreeSet<String> {
        let words = annotation.split(|c: char| c == ',' || c.is_whitespace());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// The other cluster that a host belongs to, unless it may be taken from there.
    ///
    /// A host that another cluster took from this one is not taken back, whatever is allowed: two clusters that
    /// allow it to each other would fight for the host. It is free again when that cluster has cleaned it.
    pub fn owner_besides<'s>(&self, state: &'s HostState) -> Option<&'s str> {
        let owner = state.cluster.as_deref().filter(|owner| *owner != self.id)?;
        let may_take = self.takes_hosts_of.contains(owner) && !self.lost(state);
        (!may_take).then_some(owner)
    }

    /// Whether another cluster took the host from this one.
    pub fn lost(&self, state: &HostState) -> bool {
        state.taken_from.contains(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identities_are_divided_by_commas_and_blanks() {
        let listed = |text| ClusterIdentity::listed(text).into_iter().collect::<Vec<_>>().join("|");
        assert_eq!(listed("a"), "a");
        assert_eq!(listed(" a,b\n c ,,"), "a|b|c");
        assert_eq!(listed(" , "), "");
    }

    proptest! {
        /// Clusters that allow everything to each other, each of which takes the host whenever it may: a host goes
        /// to each cluster once at most.
        #[test]
        fn nobody_fights_for_a_host(turns in prop::collection::vec(0_usize..3, 0..40)) {
            let ids = ["a", "b", "c"];
            let takes_hosts_of: BTreeSet<String> = ids.map(str::to_owned).into();
            let clusters = ids.map(|id| ClusterIdentity {
                id: id.to_owned(),
                takes_hosts_of: takes_hosts_of.clone(),
            });
            let mut state = HostState::default();
            let mut taken = 0;
            for turn in turns {
                let cluster = &clusters[turn];
                let is_ours = state.cluster.as_ref() == Some(&cluster.id);
                if !is_ours && cluster.owner_besides(&state).is_none() {
                    state.join(&cluster.id);
                    taken += 1;
                }
            }
            prop_assert!(taken <= ids.len(), "{state:?}");
        }
    }
}
