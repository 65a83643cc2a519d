//! How many hosts may leave at once without a person's word.

use super::side_by_side::Beside;
use super::{Assignment, Assignments, Because, Notice};
use crate::fleet::Intent;
use crate::host_record::{KnownHosts, RecordChange};

/// The limit for removals at once. By default there is none, as in the Go operator.
///
/// ```
/// use wmco_core::fleet::RemovalGuard;
///
/// let guard = RemovalGuard { most: Some(2), confirmed: None };
/// assert!(!guard.lets_go(3));
/// assert!(RemovalGuard { confirmed: Some(3), ..guard }.lets_go(3));
/// assert!(RemovalGuard::default().lets_go(100));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RemovalGuard {
    /// Most removals that may begin at once; `None`: any number.
    pub most: Option<usize>,
    /// The number in the annotation
    /// [`CONFIRM_REMOVAL_ANNOTATION`](crate::names::CONFIRM_REMOVAL_ANNOTATION).
    pub confirmed: Option<usize>,
}

impl RemovalGuard {
    /// Whether so many removals may begin together.
    pub fn lets_go(&self, count: usize) -> bool {
        self.most.is_none_or(|most| count <= most) || self.confirmed == Some(count)
    }

    /// Holds back removals that need a confirmation. One that may begin gets that on record first, so
    /// that it goes on when others are done or added. `out` is sorted by address.
    pub(super) fn apply(&self, known: &KnownHosts, out: &mut Assignments<'_>) {
        let Some(most) = self.most else { return };
        let is_removal = |intent: &Intent| matches!(intent, Intent::Remove(_));
        let mut pending = Vec::new();
        let mut records = Beside::new(known.records());
        for instance in out.instances.iter_mut().filter(|i| is_removal(&i.intent)) {
            // Without a record nobody can reach the host.
            if records.at(&instance.address).is_some_and(|record| !record.removal_confirmed) {
                pending.push(instance);
            }
        }
        let count = pending.len();
        if count == 0 {
            // Those that wait for something else are part of what was confirmed.
            let waits = |instance: &Assignment<'_>| {
                let reason = matches!(
                    instance.because,
                    Because::LookDue { .. }
                        | Because::MayBeListed { .. }
                        | Because::Contested { .. }
                );
                reason && known.record(&instance.address).is_some_and(|r| !r.removal_confirmed)
            };
            out.confirmation_used = self.confirmed.is_some() && !out.instances.iter().any(waits);
            return;
        }
        let lets_go = self.lets_go(count);
        for instance in pending {
            instance.intent = Intent::Leave;
            instance.because = if lets_go { Because::RecordDue } else { Because::Unconfirmed };
            if lets_go {
                let confirmed = RecordChange::RemovalConfirmed(true);
                out.changes.insert(instance.address.clone(), confirmed);
            }
        }
        if !lets_go {
            out.notices.insert(Notice::Unconfirmed { count, most, confirmed: self.confirmed });
        }
    }
}
