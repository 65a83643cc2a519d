//! How far the exchange of the operator's key is.
//!
//! The next key is put on one host after the other, whenever it is reached. The current one stays on all
//! until each host that anything is known of lets the next one in: until then the rotation can be taken
//! back. Source: `spec/features.md`, N11.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Assignment, Desired, Observed};
use crate::host_record::HostRecord;
use crate::login_keys::{KeyExchange, KeyRotation};
use crate::machines::{Unfit, key};

/// How far the exchange of the operator's key is.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// What instances are known by whose hosts let the next key in, and not the current one any more.
    pub done: BTreeSet<String>,
    /// Those whose hosts let both in.
    pub proven: BTreeSet<String>,
    /// Those whose hosts are not known to let the next one in. While there is one, the current key stays
    /// on all.
    pub waits_for: BTreeSet<String>,
    /// Whether the list of instances is absent, so that nobody knows whom else to wait for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub list_absent: bool,
}

impl Rotation {
    /// Counts the hosts that people ask for, also where an entry is wrong or in doubt, those of Machines
    /// likewise, and all others that we have logged in to and that are still to be cleaned.
    pub(super) fn of(
        rotation: &KeyRotation,
        desired: &Desired<'_>,
        observed: &Observed<'_>,
        instances: &[Assignment<'_>],
    ) -> Self {
        let mut out = Self { list_absent: desired.entries.is_none(), ..Self::default() };
        let mut former = BTreeSet::new();
        let is_listed =
            |address: &str| desired.entries.is_some_and(|all| all.get(address).is_some());
        let is_made = |address: &str| {
            let machine = desired.machines.with_key(address);
            machine.is_some_and(|machine| machine.instance.is_ok())
        };
        let counts =
            |it: &&Assignment<'_>| it.is_wanted() || is_listed(&it.address) || is_made(&it.address);
        for assignment in instances.iter().filter(counts) {
            let record = assignment.record(observed.hosts);
            former.extend(assignment.formerly.iter().map(String::as_str));
            let known = if rotation.is_over(record) {
                &mut out.done
            } else if rotation.is_proven(record) {
                &mut out.proven
            } else {
                &mut out.waits_for
            };
            known.insert(assignment.address.clone());
        }
        let lacks = |record: Option<&HostRecord>| {
            record.is_none_or(|it| it.pinned.is_some() && !rotation.is_proven(Some(it)))
        };
        for (address, kept) in observed.hosts.of_others() {
            let is_host = kept.record.is_some() || kept.is_damaged;
            if is_host && !former.contains(address) && lacks(kept.record) {
                out.waits_for.insert(address.to_owned());
            }
        }
        for (name, kept) in observed.hosts.of_machines() {
            let is_ours = desired.machines.get(name).is_some_and(|machine| {
                !machine.facts.is_deleted && machine.instance != Err(Unfit::Ignored)
            });
            if is_ours && kept.record.is_some_and(|record| lacks(Some(record))) {
                out.waits_for.insert(key(name));
            }
        }
        out
    }

    /// What is to be done on the host of an instance with this record.
    pub fn due(&self, rotation: &KeyRotation, record: Option<&HostRecord>) -> Option<KeyExchange> {
        rotation.due(record, self.is_everywhere())
    }

    /// Whether every host lets the next key in.
    fn is_everywhere(&self) -> bool {
        self.waits_for.is_empty() && !self.list_absent
    }

    /// If the next key may become the current one: instances whose hosts may let the one before in for good,
    /// since they do not answer. All hosts let the next one in then.
    pub(super) fn may_end(&self, observed: &Observed<'_>) -> Option<&BTreeSet<String>> {
        let is_away = |address: &String| observed.unanswered.contains(address);
        (self.is_everywhere() && self.proven.iter().all(is_away)).then_some(&self.proven)
    }

    /// Instances whose hosts hold up the rotation, when nothing but hosts that cannot be reached holds it
    /// up and others could be: then it is not our own network that is down. Their Machines can only be
    /// made anew.
    pub(super) fn stranded(&self, observed: &Observed<'_>) -> BTreeSet<String> {
        let out_of_reach = |address: &String| {
            observed.refused.contains(address) || observed.unanswered.contains(address)
        };
        let others_reached = !(self.proven.is_empty() && self.done.is_empty());
        if others_reached && !self.list_absent && self.waits_for.iter().all(out_of_reach) {
            self.waits_for.clone()
        } else {
            BTreeSet::new()
        }
    }
}
