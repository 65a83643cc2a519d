//! Finds the way to the host of an assignment: address, port, user, host key.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;

use crate::fleet::Assignment;
use crate::host_key::{BadHostKey, HostKey};
use crate::host_record::{HostRecord, KnownHosts};
use crate::instances::{Entries, Field, Jump};
use crate::limits::SSH_PORT;
use crate::names;
use crate::text::{cut, printable};

/// Source of a pinned host key. Displays how to make another key trusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Pin {
    /// The entry.
    Entry {
        /// The entry's key.
        address: String,
        /// The line's key.
        field: Field,
    },
    /// An annotation of a Node that the Go operator made; the key is stored at the first login.
    Node {
        /// The Node.
        node: String,
    },
    /// The ConfigMap of host keys.
    Kept {
        /// Its key there.
        name: String,
    },
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { address, field } => write!(
                f,
                "change `{field}=` of entry `{address}` in ConfigMap {}",
                names::objects::INSTANCES_CONFIG_MAP
            ),
            Self::Node { node } => {
                write!(f, "correct annotation {} of node {node}", names::HOST_KEY_ANNOTATION)
            }
            Self::Kept { name } => write!(
                f,
                "replace `{name}` in ConfigMap {} by its new key",
                names::objects::HOST_KEYS_CONFIG_MAP
            ),
        }
    }
}

/// A pinned host key with its source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pinned {
    /// The key.
    pub key: HostKey,
    /// The source.
    pub by: Pin,
}

/// Address and user of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
    /// IPv4 address to dial.
    pub address: Ipv4Addr,
    /// TCP port.
    pub port: u16,
    /// SSH user.
    pub username: String,
    /// The key that the host has to show.
    pub host_key: Option<Pinned>,
    /// Whether the key still has to be stored under the listed address, or in its record.
    pub to_keep: bool,
    /// The jump host; `None` for a direct connection.
    pub via: Option<Via>,
}

/// Address and user of the jump host of a [`Reach`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Via {
    /// Address to dial; a name is not resolved here.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// SSH user.
    pub username: String,
    /// The key that it has to show.
    pub host_key: Option<Pinned>,
    /// Name under which its key is stored; see [`Jump::key_name`].
    pub key_name: String,
    /// Whether its key still has to be stored under that name.
    pub to_keep: bool,
}

/// Why the way to a host is unknown.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// The pinned key cannot be read.
    #[error("the pinned host key cannot be used ({problem}); look at the host's own and {by}")]
    BadPin {
        /// Source of the pinned key.
        by: Pin,
        /// Why the pinned key is invalid.
        problem: BadHostKey,
    },
    /// Neither an entry nor a record has the address.
    #[error("nobody knows the address of {host}, delete its node if the host is gone")]
    NoAddress {
        /// The host, or its Node.
        host: String,
    },
    /// Neither an entry nor a record has the user.
    #[error(
        "nobody knows the ssh user of {host}: it is not listed and its {} {problem}; \
         list its address again, or delete its node if the host is gone",
        .annotation.then_some(names::USERNAME_ANNOTATION).unwrap_or("record")
    )]
    NoUsername {
        /// The host, or its Node.
        host: String,
        /// Whether the problem is in the Node's annotation; otherwise it is in the record.
        annotation: bool,
        /// The problem.
        problem: &'static str,
    },
    /// The pinned key of a host with an earlier login is gone, so it is unknown which host answers there.
    #[error(
        "the pinned key `{name}` is gone from ConfigMap {}, {known}; nobody logs in until it is back: \
         compare with `ssh-keygen -lf` on the host and write the key there again",
        names::objects::HOST_KEYS_CONFIG_MAP
    )]
    PinGone {
        /// Key in the ConfigMap.
        name: String,
        /// Other known facts about the key.
        known: String,
    },
}

/// Finds the way to the host of `assignment`.
///
/// For a listed host the entry counts; otherwise the record, and from the Node only the key that the Go operator
/// pinned. `decrypt` decrypts user names, `hosts` is the ConfigMap of host keys. A key in the entry outranks the
/// stored one, because an administrator wrote it. Source: `docs/contract/ssh.md`, SSH21 to SSH25; a Windows node
/// may write its own annotations, so they only count if nothing is stored yet.
///
/// # Errors
/// [`Unreachable`] for a host with too few known facts, or whose pinned key is gone.
pub fn reach(
    assignment: &Assignment<'_>,
    hosts: &KnownHosts,
    decrypt: impl Fn(&str) -> Option<String>,
) -> Result<Reach, Unreachable> {
    let known = Known { assignment, hosts };
    match assignment.instance {
        Some(instance) => {
            let host_key = match &instance.host_key {
                Some(key) => Some(known.in_entry(key, Field::HostKey)),
                None => known.kept()?,
            };
            let via = match &instance.via {
                Some(jump) => {
                    let pinned = instance.via_host_key.as_ref();
                    let pinned = pinned.map(|key| known.in_entry(key, Field::ViaHostKey));
                    Some(known.via(jump, pinned, &instance.username)?)
                }
                None => None,
            };
            Ok(Reach {
                address: instance.ipv4,
                port: instance.port,
                username: instance.username.clone(),
                to_keep: known.is_to_keep(host_key.as_ref()),
                host_key,
                via,
            })
        }
        None => unlisted(&known, decrypt),
    }
}

/// Most bytes that are shown of a key or fingerprint. That of RSA with 4,096 bits has 724.
const SHOWN_BYTES: usize = 1024;

/// The way to a host that is not listed, by its record.
fn unlisted(
    known: &Known<'_>,
    decrypt: impl Fn(&str) -> Option<String>,
) -> Result<Reach, Unreachable> {
    let host = || {
        known.assignment.node.map_or_else(|| known.assignment.address.clone(), |n| n.name.clone())
    };
    let no_username =
        |annotation, problem| Unreachable::NoUsername { host: host(), annotation, problem };
    let Some(record) = known.records().next() else {
        // No record could be made, for this reason.
        return Err(
            match known.assignment.node.map(|node| node.annotation(names::USERNAME_ANNOTATION)) {
                Some(None) => no_username(true, "is missing"),
                Some(Some(_)) | None => Unreachable::NoAddress { host: host() },
            },
        );
    };
    let address = record.ipv4.ok_or_else(|| Unreachable::NoAddress { host: host() })?;
    let sealed =
        record.username.as_deref().ok_or_else(|| no_username(false, "does not tell it"))?;
    let username =
        decrypt(sealed).ok_or_else(|| no_username(false, "cannot be read with this key"))?;
    let host_key = known.kept()?;
    let jump: Option<Jump> = record.via.as_deref().and_then(|via| via.parse().ok());
    let via = jump.map(|jump| known.via(&jump, None, &username)).transpose()?;
    let port = record.port.unwrap_or(SSH_PORT);
    let to_keep = known.is_to_keep(host_key.as_ref());
    Ok(Reach { address, port, username, host_key, to_keep, via })
}

/// Stored facts about a host.
struct Known<'a> {
    assignment: &'a Assignment<'a>,
    hosts: &'a KnownHosts,
}

impl Reach {
    /// Whether it equals `earlier`, except for keys that were trusted on first use and are pinned now.
    pub fn only_pins(&self, earlier: &Self) -> bool {
        let via = match (&self.via, &earlier.via) {
            (Some(jump), Some(before)) => {
                (&jump.address, jump.port, &jump.username)
                    == (&before.address, before.port, &before.username)
                    && only_pins(jump.host_key.as_ref(), before.host_key.as_ref())
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (self.address, self.port, &self.username)
            == (earlier.address, earlier.port, &earlier.username)
            && only_pins(self.host_key.as_ref(), earlier.host_key.as_ref())
            && via
    }
}

fn with_fingerprint(fingerprint: &str) -> String {
    format!("where it had the fingerprint {}", printable(cut(fingerprint, SHOWN_BYTES)))
}

fn only_pins(now: Option<&Pinned>, before: Option<&Pinned>) -> bool {
    before.is_none() || now.map(|pinned| &pinned.key) == before.map(|pinned| &pinned.key)
}

impl<'a> Known<'a> {
    /// Names under which data may be stored: the listed address and former ones.
    fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let former = self.assignment.formerly.iter().map(String::as_str);
        std::iter::once(self.assignment.address.as_str()).chain(former)
    }

    fn records(&self) -> impl Iterator<Item = &'a HostRecord> + use<'a> {
        let hosts = self.hosts;
        self.names().filter_map(|name| hosts.record(name))
    }

    fn in_entry(&self, key: &HostKey, field: Field) -> Pinned {
        let address = self.assignment.address.clone();
        Pinned { key: key.clone(), by: Pin::Entry { address, field } }
    }

    fn pinned_as(&self, name: &str) -> Result<Option<Pinned>, Unreachable> {
        let by = || Pin::Kept { name: name.to_owned() };
        match self.hosts.pinned_key(name) {
            None => Ok(None),
            Some(Ok(key)) => Ok(Some(Pinned { key: key.clone(), by: by() })),
            Some(Err(problem)) => Err(Unreachable::BadPin { by: by(), problem: problem.clone() }),
        }
    }

    /// The pinned key, without the entry; `None` before the first login.
    fn kept(&self) -> Result<Option<Pinned>, Unreachable> {
        if let Some(pinned) = self.names().find_map(|name| self.pinned_as(name).transpose()) {
            return pinned.map(Some);
        }
        let gone =
            |known| Err(Unreachable::PinGone { name: self.assignment.address.clone(), known });
        if let Some(fingerprint) = self.records().find_map(|record| record.pinned.as_ref()) {
            return gone(with_fingerprint(fingerprint));
        }
        let copy = self
            .assignment
            .node
            .and_then(|node| Some((node, node.annotation(names::HOST_KEY_ANNOTATION)?)));
        match copy {
            None => Ok(None),
            // The Go operator stores the key only there.
            Some((node, key)) if !node.is_marked_by_us() => {
                let by = Pin::Node { node: node.name.clone() };
                match key.parse() {
                    Ok(key) => Ok(Some(Pinned { key, by })),
                    Err(problem) => Err(Unreachable::BadPin { by, problem }),
                }
            }
            Some((node, key)) => {
                let key = printable(cut(key, SHOWN_BYTES));
                gone(format!("node {} says, and may be wrong, that it was {key}", node.name))
            }
        }
    }

    fn is_to_keep(&self, host_key: Option<&Pinned>) -> bool {
        let Some(pinned) = host_key else { return false };
        let address = &self.assignment.address;
        let noted = self.hosts.record(address).and_then(|record| record.pinned.as_deref());
        // Another text of the same key is written again, like the copy on its Node.
        self.hosts.pin(address) != Some(pinned.key.to_string().as_str())
            || noted != Some(&pinned.key.fingerprint())
    }

    /// The jump host; a key in the entry takes precedence.
    fn via(
        &self,
        jump: &Jump,
        in_entry: Option<Pinned>,
        username: &str,
    ) -> Result<Via, Unreachable> {
        let key_name = jump.key_name();
        let kept = self.pinned_as(&key_name);
        // The key in the entry replaces it.
        let kept = if in_entry.is_some() { kept.unwrap_or_default() } else { kept? };
        let mut noted = self.records().filter_map(|record| record.jump_pinned.as_ref());
        let noted = noted.find(|(name, _)| *name == key_name).map(|(_, fingerprint)| fingerprint);
        if let (None, None, Some(fingerprint)) = (&in_entry, &kept, noted) {
            let known = with_fingerprint(fingerprint);
            return Err(Unreachable::PinGone { name: key_name, known });
        }
        let same = in_entry
            .as_ref()
            .is_none_or(|pinned| kept.as_ref().is_some_and(|kept| kept.key == pinned.key));
        let host_key = in_entry.or_else(|| kept.clone());
        let fingerprint = host_key.as_ref().map(|pinned| pinned.key.fingerprint());
        Ok(Via {
            address: jump.host.to_string(),
            port: jump.port,
            username: jump.username.clone().unwrap_or_else(|| username.to_owned()),
            to_keep: kept.is_none() || !same || noted != fingerprint.as_ref(),
            host_key,
            key_name,
        })
    }
}

/// Names of stored keys of jump hosts that are no longer used. While an entry is invalid, its jump host is unknown,
/// so all keys stay.
pub fn forgotten_jump_keys(entries: &Entries, hosts: &KnownHosts) -> BTreeSet<String> {
    // Who cannot be read may name any jump host.
    if entries.errors().next().is_some() || hosts.damaged().next().is_some() {
        return BTreeSet::new();
    }
    let listed = entries.instances().filter_map(|instance| instance.via.clone());
    let recorded = hosts.records().filter_map(|(_, record)| record.via.as_deref()?.parse().ok());
    let needed: BTreeSet<String> =
        listed.chain(recorded).map(|jump: Jump| jump.key_name()).collect();
    let of_jump_hosts = hosts.pins().filter(|name| Jump::is_key_name(name));
    of_jump_hosts.filter(|name| !needed.contains(*name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
