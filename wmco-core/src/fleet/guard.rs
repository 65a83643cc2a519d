//! Removals that wait for an administrator's confirmation.

use super::ascending::Ascending;
use super::identity::Hosts;
use super::{Assignment, Assignments, Because, Intent, Notice, RemovalGuard};
use crate::host_record::{KnownHosts, RecordChange};

/// Holds back removals that need a confirmation. A confirmed removal is recorded as confirmed before it begins, so
/// that it continues whatever happens to other removals. `out` is sorted by address.
pub(super) fn hold_back(
    guard: RemovalGuard,
    known: &KnownHosts,
    hosts: &Hosts<'_>,
    out: &mut Assignments<'_>,
) {
    let Some(most) = guard.most else { return };
    let is_removal = |intent: &Intent| matches!(intent, Intent::Remove(_));
    let mut pending = Vec::new();
    let mut records = Ascending::new(known.records());
    for instance in out.instances.iter_mut().filter(|i| is_removal(&i.intent)) {
        // A host without a record cannot be reached.
        if records.at(&instance.address).is_some_and(|record| !record.removal_confirmed) {
            pending.push(instance);
        }
    }
    let count = pending.len();
    if count == 0 {
        // Removals that wait for another reason are part of the confirmed number.
        let waits = |instance: &Assignment<'_>| {
            let reason = matches!(
                instance.because,
                Because::LookDue { .. } | Because::MayBeListed { .. } | Because::Contested { .. }
            );
            let left = || hosts.named(&instance.address).filter(|host| !host.is_listed());
            reason && left().is_some_and(|host| !host.removal_confirmed)
        };
        out.confirmation_used = guard.confirmed.is_some() && !out.instances.iter().any(waits);
        return;
    }
    let lets_go = guard.lets_go(count);
    for instance in pending {
        instance.intent = Intent::Leave;
        instance.because = if lets_go { Because::RecordDue } else { Because::Unconfirmed };
        if lets_go {
            let confirmed = RecordChange::RemovalConfirmed(true);
            out.changes.insert(instance.address.clone(), confirmed);
        }
    }
    if !lets_go {
        out.notices.insert(Notice::Unconfirmed { count, most, confirmed: guard.confirmed });
    }
}
