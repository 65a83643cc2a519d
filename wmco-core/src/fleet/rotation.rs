//! Progress of the exchange of the operator's key.
//!
//! The next key is added to each host when it is reached. The current key stays on all hosts until every known host
//! accepts the next key: until then the rotation can be undone. Source: `docs/contract/lifecycle.md`, LIFE36 and
//! LIFE37.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::memory::UserData;
use super::{Assignment, Desired, Memory};
use crate::host_record::{HostRecord, KnownHosts, StoredHost};
use crate::login_keys::{KeyExchange, KeyState, LoginKeys};
use crate::machines::{Machine, Unfit, key};

/// The phase of a Machine whose host is being created.
const PROVISIONING: &str = "Provisioning";

/// Progress of the exchange of the operator's key.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// Addresses of instances whose hosts accept the next key and no longer the current one.
    pub done: BTreeSet<String>,
    /// Addresses of instances whose hosts accept both keys.
    pub proven: BTreeSet<String>,
    /// Addresses of instances whose hosts are not known to accept the next key. While there is one, the current key
    /// stays on all hosts.
    pub waits_for: BTreeSet<String>,
    /// Whether the list of instances is absent, so that the hosts to wait for are unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub list_absent: bool,
    /// Whether the user data of new Machines lacks the next key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub user_data_due: bool,
}

impl Rotation {
    /// Counts the listed hosts, even with an invalid or doubtful entry, the hosts of Machines, even without an
    /// address, and all other hosts that are still to be cleaned.
    pub(super) fn of(
        keys: &LoginKeys,
        desired: &Desired<'_>,
        hosts: &KnownHosts,
        user_data: UserData,
        instances: &[Assignment<'_>],
    ) -> Self {
        let machines = desired.machines;
        let mut out = Self {
            list_absent: desired.entries.is_none(),
            user_data_due: user_data == UserData::Due && machines.may_come(),
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
            let known = match keys.state(record) {
                KeyState::Next => &mut out.done,
                KeyState::Both => &mut out.proven,
                KeyState::Unknown | KeyState::Current | KeyState::Lost { .. } => &mut out.waits_for,
            };
            known.insert(assignment.address.clone());
        }
        let lacks = |kept: StoredHost<'_>| {
            let is_due =
                |it: &HostRecord| !it.is_untouched() && !keys.state(Some(it)).accepts_next();
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

    /// The key exchange that is due on the host of an instance with this record.
    pub fn due(&self, keys: &LoginKeys, record: Option<&HostRecord>) -> Option<KeyExchange> {
        keys.next(keys.state(record), self.is_everywhere())
    }

    /// Whether every host accepts the next key.
    fn is_everywhere(&self) -> bool {
        self.waits_for.is_empty() && !self.list_absent && !self.user_data_due
    }

    /// Returns a set if the next key may become the current one, because all hosts accept it. The set has the
    /// instances whose hosts do not answer and so may keep the former key forever.
    pub(super) fn may_end(&self, memory: &Memory) -> Option<&BTreeSet<String>> {
        let is_away = |address: &String| memory.is_unanswered(address);
        (self.is_everywhere() && self.proven.iter().all(is_away)).then_some(&self.proven)
    }

    /// Instances whose hosts block the rotation, if only unreachable hosts block it. Their Machines can only be
    /// replaced.
    pub(super) fn stranded(&self, memory: &Memory) -> BTreeSet<String> {
        let out_of_reach =
            |address: &String| memory.is_refused(address) || memory.is_unanswered(address);
        if !self.list_absent && self.waits_for.iter().all(out_of_reach) {
            self.waits_for.clone()
        } else {
            BTreeSet::new()
        }
    }
}

/// Whether a Machine has a host, or may get one that was created before the next key was.
fn may_get_host(machine: &Machine) -> bool {
    match &machine.instance {
        Ok(_) | Err(Unfit::NoAddress | Unfit::NoPhase) => true,
        Err(Unfit::Phase(phase)) => phase == PROVISIONING,
        Err(Unfit::Ignored | Unfit::Deleted | Unfit::LongName) => false,
    }
}

impl Assignment<'_> {
    /// The record of the host that its entry or Machine leads to now, if it was reached the same way; the record of
    /// another host proves nothing.
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
