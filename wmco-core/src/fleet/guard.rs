//! Removals that wait for an administrator's confirmation.

use super::ascending::Ascending;
use super::identity::Hosts;
use super::{Assignments, Because, Intent, Notice, RemovalGuard};
use crate::host_record::RecordChange;

/// Holds back removals that need a confirmation. A confirmed removal is recorded as confirmed before it begins, so
/// that it continues whatever happens to other removals. `out` is sorted by address.
pub(super) fn hold_back(guard: RemovalGuard, hosts: &Hosts<'_>, out: &mut Assignments<'_>) {
    let Some(most) = guard.most else { return };
    // A host without a record cannot be reached. Those that wait for another reason are part of the number.
    let left = || hosts.left().iter().filter(|host| host.removal_confirmed() == Some(false));
    let count = left().count();
    out.confirmation_used = guard.confirmed.is_some() && count == 0;
    let mut unconfirmed = Ascending::new(left().map(|host| (host.address, ())));
    let removals = out.instances.iter_mut().filter(|it| matches!(it.intent, Intent::Remove(_)));
    let pending: Vec<_> = removals.filter(|it| unconfirmed.at(&it.address).is_some()).collect();
    if pending.is_empty() {
        return;
    }
    let lets_go = guard.lets_go(count);
    // What is confirmed by its number goes on whenever it may; within the limit, only what goes now.
    let waiting = left().filter(|_| guard.confirmed == Some(count));
    let mut confirmed: Vec<String> = waiting.map(|host| host.address.to_owned()).collect();
    for instance in pending {
        instance.intent = Intent::Leave;
        instance.because = if lets_go { Because::RecordDue } else { Because::Unconfirmed };
        confirmed.push(instance.address.clone());
    }
    if lets_go {
        let change = |address| (address, RecordChange::RemovalConfirmed(true));
        out.changes.extend(confirmed.into_iter().map(change));
    } else {
        out.notices.insert(Notice::Unconfirmed { count, most, confirmed: guard.confirmed });
    }
}
