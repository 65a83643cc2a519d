//! Changes of the stored data of hosts.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

use super::{HostRecord, MachinesThen};
use crate::digest::Sha256;
use crate::host_key::HostKey;
use crate::instances::Instance;
use crate::limits::SSH_PORT;
use crate::names::objects::HOST_KEYS_CONFIG_MAP;
use crate::protocol::RootAccess;

/// A change of the stored data of a host. It contains only its own fields, so that writers of different facts do
/// not overwrite each other, in any order.
///
/// ```
/// use std::collections::BTreeMap;
/// use wmco_core::host_record::{KnownHosts, RecordChange};
///
/// let mut data = BTreeMap::from([("10.0.0.5_host".to_owned(), r#"{"node": "win-1"}"#.to_owned())]);
/// RecordChange::RemovalConfirmed(true).apply("10.0.0.5", &mut data)?;
/// let known = KnownHosts::read(&data);
/// let record = known.record("10.0.0.5").unwrap();
/// assert!(record.removal_confirmed && record.node.is_some());
/// Ok::<(), wmco_core::host_record::RecordRefused>(())
/// ```
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordChange {
    /// Facts about a listed host. Creates the record if there is none.
    Listed(ListedHost),
    /// A host that the Go operator configured and that is not listed; all facts come from its Node. An existing
    /// record is not changed.
    Adopted {
        /// Address of the Node.
        ipv4: Ipv4Addr,
        /// Its name.
        node: String,
        /// The encrypted user of its annotation.
        username: String,
    },
    /// Whether its removal is confirmed.
    RemovalConfirmed(bool),
    /// The Node of a host that is no longer listed, and left before that was known.
    Joined {
        /// The Node's name.
        node: String,
    },
    /// Its Machine is to be replaced.
    ToReplace {
        /// The MachineSet in which it is replaced.
        set: String,
        /// The Machines of the MachineSet, if it is known when they were created.
        of: Option<MachinesThen>,
    },
    /// Its Machine is no longer to be replaced.
    ToKeep,
    /// A Machine that was deleted to be replaced, if its record is lost.
    Replaced {
        /// UID of the Machine, if it is known.
        machine: Option<String>,
        /// The MachineSet in which it is replaced.
        set: String,
        /// The Machines of the MachineSet then, if they are known.
        of: Option<MachinesThen>,
    },
    /// The keys that a login showed and accepted.
    Pinned {
        /// The host's key.
        #[schemars(with = "String")]
        key: HostKey,
        /// The key of its jump host, after the name of that key.
        #[schemars(with = "Option<(String, String)>")]
        jump: Option<(String, HostKey)>,
    },
    /// Report of our agent on the host with this key.
    Seen {
        /// The host's key.
        #[schemars(with = "String")]
        key: HostKey,
        /// Name of the host, which goes on record if there is none.
        host_name: Option<String>,
        /// Who may write below its root folder.
        root: RootAccess,
    },
    /// The key with which alone a login succeeded; `None` if the recorded key no longer works.
    LetsIn(Option<Sha256>),
    /// This key of ours was removed from the host.
    KeyRemoved(Sha256),
    /// The host is cleaned: its key and its record are deleted.
    Forgotten,
}

/// Keys with their new values; `None`: the key is removed.
pub(super) type Written = BTreeMap<String, Option<String>>;

/// Facts about a listed host from its entry, the cluster and the host itself.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHost {
    /// The address that its address resolves to.
    pub ipv4: Ipv4Addr,
    /// SSH user, encrypted; `None` for a Machine's host, whose user follows from the platform.
    pub username: Option<String>,
    /// TCP port of its SSH server.
    pub port: u16,
    /// Jump host, as in the entry.
    pub via: Option<String>,
    /// The host's Node, if it is certain.
    pub node: Option<String>,
    /// The name that it reported, if it was asked.
    pub host_name: Option<String>,
    /// Former listed addresses of the same host that are still recorded.
    pub formerly: Vec<String>,
    /// UID of its Machine. The data of another Machine of the same name is deleted.
    pub machine: Option<String>,
}

/// Why a change was not made. The next pass decides again from the current data.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordRefused {
    /// The record to change cannot be read.
    #[error("its record in ConfigMap {HOST_KEYS_CONFIG_MAP} cannot be read, remove it")]
    Damaged,
    /// The host has been forgotten.
    #[error("it is not on record any more")]
    Gone,
    /// The ConfigMap is full.
    #[error(
        "ConfigMap {HOST_KEYS_CONFIG_MAP} cannot hold the records of all listed hosts (1 MiB), so nothing is begun on \
         hosts that are not on record; list fewer hosts"
    )]
    Full,
    /// The address cannot be in the key of a record.
    #[error(
        "its address is too long for a key of ConfigMap {HOST_KEYS_CONFIG_MAP}, list a shorter one"
    )]
    NoKey,
    /// The API server refuses the change.
    #[error(
        "the api server does not take it, see who or what keeps ConfigMap {HOST_KEYS_CONFIG_MAP} as it is"
    )]
    NotTaken,
    /// The new record has no JSON form.
    #[error("its record has no json form, this is a mistake in the operator")]
    NoJson,
}

impl RecordChange {
    /// Changes `data` of the ConfigMap of host keys for the host listed as `address`.
    ///
    /// # Errors
    /// [`RecordRefused`]; `data` is unchanged.
    pub fn apply(
        &self,
        address: &str,
        data: &mut BTreeMap<String, String>,
    ) -> Result<(), RecordRefused> {
        let written = self.written(address, data)?;
        write(written, data);
        Ok(())
    }

    /// The keys of `data` to write, with their new values, or `None` for those to remove.
    pub(super) fn written(
        &self,
        address: &str,
        data: &BTreeMap<String, String>,
    ) -> Result<Written, RecordRefused> {
        let mut written = Written::new();
        let record = read(data, address)?;
        let there = || record.clone().ok_or(RecordRefused::Gone);
        let changed = match self {
            Self::Listed(host) => {
                let former = host.formerly.iter().map(|name| read(data, name));
                let former: Vec<_> = former.collect::<Result<_, _>>()?;
                if record.as_ref().is_some_and(|record| record.machine != host.machine) {
                    written.insert(address.to_owned(), None);
                }
                host.record(record.as_ref(), former.iter().flatten())
            }
            Self::Adopted { ipv4, node, username } => {
                record.clone().unwrap_or_else(|| HostRecord {
                    ipv4: Some(*ipv4),
                    node: Some(node.clone()),
                    username: Some(username.clone()),
                    ..HostRecord::default()
                })
            }
            Self::RemovalConfirmed(removal_confirmed) => {
                HostRecord { removal_confirmed: *removal_confirmed, ..there()? }
            }
            Self::Joined { node } => {
                let before = there()?;
                HostRecord { node: before.node.or_else(|| Some(node.clone())), ..before }
            }
            Self::LetsIn(key) => {
                let before = there()?;
                // A key removed while another key was proven may be on the host again.
                let removed_key = before.removed_key.filter(|_| before.accepted_key == *key);
                HostRecord { accepted_key: *key, removed_key, ..before }
            }
            Self::KeyRemoved(key) => HostRecord { removed_key: Some(*key), ..there()? },
            Self::Replaced { machine, set, of } => {
                let lost = || HostRecord { machine: machine.clone(), ..HostRecord::default() };
                let before = record.clone().unwrap_or_else(lost);
                // Another Machine has taken its name.
                if before.machine == *machine {
                    HostRecord {
                        replacement_machine_set: Some(set.clone()),
                        machines_before: *of,
                        ..before
                    }
                } else {
                    before
                }
            }
            Self::ToReplace { set, of } => HostRecord {
                replacement_machine_set: Some(set.clone()),
                machines_before: *of,
                ..there()?
            },
            Self::ToKeep => {
                HostRecord { replacement_machine_set: None, machines_before: None, ..there()? }
            }
            Self::Pinned { key, jump } => {
                let mut changed = there()?.showing(key);
                if let Some((name, key)) = jump {
                    changed.jump_pinned = Some((name.clone(), key.fingerprint()));
                }
                changed
            }
            Self::Seen { key, host_name, root } => {
                // The key may have been pinned by this connection only.
                let shown = there()?.showing(key);
                HostRecord {
                    root_closed_with_host_key: (*root == RootAccess::Closed)
                        .then(|| key.fingerprint()),
                    host_name: shown.host_name.clone().or_else(|| host_name.clone()),
                    ..shown
                }
            }
            Self::Forgotten => {
                let keys = [address.to_owned(), HostRecord::key_name(address)];
                return Ok(keys.map(|key| (key, None)).into());
            }
        };
        let json = serde_json::to_string(&changed).map_err(|_| RecordRefused::NoJson)?;
        written.insert(HostRecord::key_name(address), Some(json));
        if let Self::Pinned { key, jump } = self {
            written.insert(address.to_owned(), Some(key.to_string()));
            let jump = jump.iter().map(|(name, key)| (name.clone(), Some(key.to_string())));
            written.extend(jump);
        }
        Ok(written)
    }
}

impl ListedHost {
    /// Makes the facts from its entry.
    pub fn of(instance: &Instance, username: &str) -> Self {
        Self {
            ipv4: instance.ipv4,
            username: instance.machine.is_none().then(|| username.to_owned()),
            port: instance.port,
            via: instance.via.as_ref().map(ToString::to_string),
            node: None,
            host_name: None,
            formerly: Vec::new(),
            machine: instance.machine.as_ref().map(|machine| machine.uid.clone()),
        }
    }

    /// The new record of the host; `own` is its existing record, `former` are the records of the same host under
    /// other addresses.
    pub fn record<'a>(
        &self,
        own: Option<&'a HostRecord>,
        former: impl Iterator<Item = &'a HostRecord>,
    ) -> HostRecord {
        let told = HostRecord {
            ipv4: Some(self.ipv4),
            node: self.node.clone(),
            host_name: self.host_name.clone(),
            username: self.username.clone(),
            machine: self.machine.clone(),
            port: (self.port != SSH_PORT).then_some(self.port),
            via: self.via.clone(),
            ..HostRecord::default()
        };
        let own = own.filter(|own| own.machine == self.machine);
        // Machines from one image show the same key, so at another address it may be another host.
        let is_there = |it: &HostRecord| {
            self.machine.is_none() || it.ipv4.is_none_or(|ipv4| ipv4 == self.ipv4)
        };
        let is_way = |it: &HostRecord| it.ipv4 == Some(self.ipv4) && it.via == self.via;
        own.into_iter().chain(former).fold(told, |known, before| HostRecord {
            node: known.node.or_else(|| before.node_of(self.host_name.as_deref()).cloned()),
            host_name: known.host_name.or_else(|| before.host_name.clone()),
            pinned: known.pinned.or_else(|| before.pinned.clone()),
            jump_pinned: known.jump_pinned.or_else(|| before.jump_pinned.clone()),
            root_closed_with_host_key: known
                .root_closed_with_host_key
                .or_else(|| before.root_closed_with_host_key.clone().filter(|_| is_there(before))),
            replacement_machine_set: known
                .replacement_machine_set
                .or_else(|| before.replacement_machine_set.clone()),
            machines_before: known.machines_before.or(before.machines_before),
            // Another address may lead to another host, and another jump host may refuse the key; a new proof is
            // cheap.
            accepted_key: known.accepted_key.or(before.accepted_key.filter(|_| is_way(before))),
            removed_key: known.removed_key.or(before.removed_key.filter(|_| is_way(before))),
            ..known
        })
    }
}

/// Writes and removes keys.
pub(super) fn write(written: Written, data: &mut BTreeMap<String, String>) {
    for (key, value) in written {
        match value {
            Some(value) => data.insert(key, value),
            None => data.remove(&key),
        };
    }
}

fn read(
    data: &BTreeMap<String, String>,
    address: &str,
) -> Result<Option<HostRecord>, RecordRefused> {
    let Some(text) = data.get(&HostRecord::key_name(address)) else { return Ok(None) };
    HostRecord::parse(text).map(Some).ok_or(RecordRefused::Damaged)
}

#[cfg(test)]
mod tests;
