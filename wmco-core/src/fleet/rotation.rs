//! How far the exchange of the operator's key is.
//!
//! The next key is put on one host after the other, whenever it is reached. The current one stays on all
//! until each host that anything is known of lets the next one in: until then the rotation can be taken
//! back. Source: `spec/features.md`, N11.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Assignment, Desired, Observed};
use crate::host_record::{HostRecord, Kept, KnownHosts};
use crate::login_keys::{KeyExchange, KeyRotation};
use crate::machines::{Machine, Unfit, key};

/// The phase of a Machine whose host is being made.
const PROVISIONING: &str = "Provisioning";

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
    /// Whether new Machines do not let the next key in yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub user_data_due: bool,
}

impl Rotation {
    /// Counts the hosts that people ask for, also where an entry is wrong or in doubt, those of Machines
    /// likewise, though they have no address yet, and all others that are still to be cleaned.
    pub(super) fn of(
        rotation: &KeyRotation,
        desired: &Desired<'_>,
        observed: &Observed<'_>,
        instances: &[Assignment<'_>],
    ) -> Self {
        let (machines, hosts) = (desired.machines, observed.hosts);
        let mut out = Self {
            list_absent: desired.entries.is_none(),
            user_data_due: !observed.user_data_ready && machines.iter().next().is_some(),
            ..Self::default()
        };
        let mut former = BTreeSet::new();
        let is_listed =
            |address: &str| desired.entries.is_some_and(|all| all.get(address).is_some());
        let may_come = |address: &str| machines.with_key(address).is_some_and(may_get_host);
        let counts = |it: &&Assignment<'_>| {
            it.is_wanted() || is_listed(&it.address) || may_come(&it.address)
        };
        for assignment in instances.iter().filter(counts) {
            let record = assignment.proof(hosts);
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
        let lacks = |kept: Kept<'_>| {
            let is_due = |it: &HostRecord| !it.is_untouched() && !rotation.is_proven(Some(it));
            kept.is_damaged || kept.record.is_some_and(is_due)
        };
        let others = hosts.of_others().filter(|(address, _)| !former.contains(address));
        let others = others.filter(|(_, kept)| lacks(*kept));
        out.waits_for.extend(others.map(|(address, _)| address.to_owned()));
        let is_ours = |name: &str| {
            let machine = machines.get(name);
            machine.is_some_and(|it| !it.facts.is_deleted && it.instance != Err(Unfit::Ignored))
        };
        let made = hosts.of_machines().filter(|(name, kept)| is_ours(name) && lacks(*kept));
        out.waits_for.extend(made.map(|(name, _)| key(name)));
        out
    }

    /// What is to be done on the host of an instance with this record.
    pub fn due(&self, rotation: &KeyRotation, record: Option<&HostRecord>) -> Option<KeyExchange> {
        rotation.due(record, self.is_everywhere())
    }

    /// Whether every host lets the next key in.
    fn is_everywhere(&self) -> bool {
        self.waits_for.is_empty() && !self.list_absent && !self.user_data_due
    }

    /// If the next key may become the current one: instances whose hosts may let the one before in for good,
    /// since they do not answer. All hosts let the next one in then.
    pub(super) fn may_end(&self, observed: &Observed<'_>) -> Option<&BTreeSet<String>> {
        let is_away = |address: &String| observed.unanswered.contains(address);
        (self.is_everywhere() && self.proven.iter().all(is_away)).then_some(&self.proven)
    }

    /// Instances whose hosts hold up the rotation, when nothing but hosts that cannot be reached holds it
    /// up. Their Machines can only be made anew.
    pub(super) fn stranded(&self, observed: &Observed<'_>) -> BTreeSet<String> {
        let out_of_reach = |address: &String| {
            observed.refused.contains(address) || observed.unanswered.contains(address)
        };
        if !self.list_absent && self.waits_for.iter().all(out_of_reach) {
            self.waits_for.clone()
        } else {
            BTreeSet::new()
        }
    }
}

/// Whether a Machine has a host, or may get one: a host that exists already may have been made before the
/// next key was.
fn may_get_host(machine: &Machine) -> bool {
    match &machine.instance {
        Ok(_) | Err(Unfit::NoAddress | Unfit::NoPhase) => true,
        Err(Unfit::Phase(phase)) => phase == PROVISIONING,
        Err(Unfit::Ignored | Unfit::Deleted | Unfit::LongName) => false,
    }
}

impl Assignment<'_> {
    /// What is on record of the host that its entry or Machine leads to now, by the way that it names; that
    /// of another host proves nothing.
    pub fn proof<'h>(&self, hosts: &'h KnownHosts) -> Option<&'h HostRecord> {
        let record = self.record(hosts).filter(|record| record.pinned.is_some())?;
        let leads_there = self.instance.is_none_or(|instance| {
            record.ipv4 == Some(instance.ipv4)
                && record.via == instance.via.as_ref().map(ToString::to_string)
                && record.machine.as_ref() == instance.machine.as_ref().map(|it| &it.uid)
        });
        leads_there.then_some(record)
    }
}
