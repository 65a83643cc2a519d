//! Errors of an entry.

use std::fmt;

use super::{BadHost, BadItem, BadJump, Unresolved};
use crate::host_key::BadHostKey;
use crate::limits;
use crate::names::objects::INSTANCES_CONFIG_MAP;

/// Why an entry gives no instance. The message names ConfigMap, entry, field and the next step, and repeats nothing
/// from the value, because a secret may be in the wrong place.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("entry `{address}` of ConfigMap {INSTANCES_CONFIG_MAP}, {field}: {problem}")]
pub struct EntryError {
    /// The entry's key.
    pub address: String,
    /// The field with the error.
    pub field: Field,
    /// The problem.
    #[source]
    pub problem: Problem,
}

impl EntryError {
    /// Whether nothing is wrong so far: its name has not been looked up yet.
    pub fn is_pending(&self) -> bool {
        self.problem == Problem::Unresolved(Unresolved::Pending)
    }
}

/// Keys of the lines of a value.
pub(super) mod keys {
    pub(crate) const USERNAME: &str = "username";
    pub(crate) const PORT: &str = "port";
    pub(crate) const HOST_KEY: &str = "hostKey";
    pub(crate) const VIA: &str = "via";
    pub(crate) const VIA_HOST_KEY: &str = "viaHostKey";
    pub(crate) const NAMES: &str = "names";
}

/// The invalid part of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Field {
    /// The key.
    Address,
    /// The value of `username`.
    Username,
    /// The value of `port`.
    Port,
    /// The value of `hostKey`.
    HostKey,
    /// The value of `via`.
    Via,
    /// The value of `viaHostKey`.
    ViaHostKey,
    /// The value of `names`.
    Names,
    /// A whole line of the value, by its number from 1.
    Line(usize),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("address"),
            Self::Username => f.write_str(keys::USERNAME),
            Self::Port => f.write_str(keys::PORT),
            Self::HostKey => f.write_str(keys::HOST_KEY),
            Self::Via => f.write_str(keys::VIA),
            Self::ViaHostKey => f.write_str(keys::VIA_HOST_KEY),
            Self::Names => f.write_str(keys::NAMES),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}

/// The problem with a [`Field`], and the next step.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No valid list of names and addresses.
    #[error(transparent)]
    AlsoNamed(#[from] BadItem),
    /// A user name with a colon. Source: `docs/contract/instances.md`, INST9.
    #[error("it holds a colon, which no Windows user name does; write the name only, no password")]
    Colon,
    /// A user name with a control character.
    #[error("it holds a control character, leave that out")]
    Control,
    /// Another entry already lists the machine.
    #[error("it is the same machine and port as entry `{first}`, keep one of the two")]
    Duplicate {
        /// Key of the other entry, which counts.
        first: String,
    },
    /// Another entry has one of the names or addresses, too.
    #[error("entry `{other}` has one of these names or addresses, too; leave it to one of the two")]
    Shared {
        /// Key of the other entry.
        other: String,
    },
    /// No value after the equals sign.
    #[error("it has no value, write one after the `=`")]
    Empty,
    /// No valid address.
    #[error(transparent)]
    Host(#[from] BadHost),
    /// A name or an address belongs to the cluster itself. Source: `docs/contract/instances.md`, INST18.
    #[error("that is {0}, which no host has; write one of the host's own")]
    OfCluster(&'static str),
    /// No valid host key.
    #[error(transparent)]
    HostKey(#[from] BadHostKey),
    /// No valid jump host.
    #[error(transparent)]
    Jump(#[from] BadJump),
    /// The jump host is the host itself.
    #[error("it is the host itself, write the jump host or remove the line")]
    Itself,
    /// A key for a jump host without a jump host.
    #[error("there is no `via=` that it could be the key of, add that line or remove this one")]
    NoVia,
    /// A user name that no Windows has.
    #[error(
        "it has more than {} characters, which no Windows user name has; write the name only",
        limits::USERNAME_CHARACTERS
    )]
    LongUsername,
    /// The value does not start with `username=`.
    #[error("it does not start with `username=`, make `username=NAME` the first line")]
    NotUsername,
    /// Not a port.
    #[error("it is no port, write a number from 1 to 65535")]
    Port,
    /// The same key on two lines.
    #[error("it stands there twice, keep one line")]
    Repeated,
    /// An unknown line.
    #[error(
        "it is none of `port=`, `hostKey=`, `via=`, `viaHostKey=` and `names=`, correct the line or \
         remove it"
    )]
    Unknown,
    /// The name has no IPv4 address.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
}
