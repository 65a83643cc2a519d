//! Why an instance does not get a name or an address that it claims, as text.

use std::fmt;
use std::net::IpAddr;

use super::machines::Title;
use super::{Instance, Source};

/// Why an instance does not get a name that it claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict<'a> {
    pub(super) claimant: (&'a Instance, Source),
    pub(super) against: Against<'a>,
}

/// A fact that contradicts a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Against<'a> {
    /// Another instance has an equally good claim.
    Claim(&'a Instance, Source),
    /// The DNS leads the name to an address that is not the host's; with the owner of that address, if it has one.
    Dns(IpAddr, Option<Owner<'a>>),
    /// It belongs to another owner.
    Owner(Owner<'a>),
}

/// The owner of a name or an address, other than the host that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    /// The entry or the Machine of this instance.
    Instance(&'a Instance),
    /// The Machine of this name.
    Machine(&'a str),
    /// The Node of this name.
    Node(&'a str),
    /// This instance, whose host reported it.
    Report(&'a Instance),
    /// Reserved: no host may have it.
    Reserved(&'static str),
}

/// A name or an address that several hosts claim, or a host's claim to the name of another host.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Dispute {
    /// The name, or the address.
    pub name: String,
    /// The claimant, the contradiction, and what to do. One line.
    pub message: String,
}

impl Source {
    /// The source as in "known by ...".
    pub(crate) fn how(self) -> &'static str {
        match self {
            Self::Address => "by its address",
            Self::Names => "by `names=` of its entry",
            Self::Machine => "by the Machine API",
            Self::MachineName => "by the name of its Machine",
            Self::HostName => "by its host name",
            Self::ReverseDns => "by reverse DNS",
        }
    }
}

impl<'a> Conflict<'a> {
    /// Formats the conflict about `name`.
    pub(crate) fn of(&self, name: &str) -> impl fmt::Display {
        let Self { claimant: (instance, source), against } = self;
        let (claimant, how) = (instance.title(), source.how());
        match against {
            Against::Claim(other, source) => format!(
                "{claimant} ({how}) and {} ({}) both claim the name {name}, rename one of the hosts or \
                 correct the DNS",
                other.title(),
                source.how()
            ),
            Against::Dns(..) | Against::Owner(_) => format!(
                "{claimant} ({how}) claims the name {name}, but {against}; {}",
                self.ways_out(name)
            ),
        }
    }

    /// How a person solves the conflict about `name`.
    fn ways_out(&self, name: &str) -> &'static str {
        let Self { claimant: (instance, source), against } = self;
        match (source, against) {
            (_, Against::Claim(..) | Against::Dns(..)) => against.ways_out(instance),
            (Source::Address, Against::Owner(_)) => "list the host by another name",
            (Source::Names, Against::Owner(Owner::Node(node))) if *node != name => {
                "take it out of `names=`, or list the host by that name if it is the host's own"
            }
            (Source::Names, Against::Owner(_)) => "take it out of `names=`",
            (Source::Machine | Source::MachineName, Against::Owner(_)) => {
                "give the Machine another name"
            }
            // The key of an entry outranks the status of another Node.
            (Source::HostName | Source::ReverseDns, Against::Owner(Owner::Node(node)))
                if *node != name && instance.machine.is_none() =>
            {
                "if it is the host's own, list the host by that name, else rename the host or correct the DNS"
            }
            (Source::HostName | Source::ReverseDns, Against::Owner(_)) => {
                "rename the host or correct the DNS"
            }
        }
    }

    /// The fact that contradicts the claim.
    pub(crate) fn against(&self) -> Against<'a> {
        self.against
    }

    /// How a person solves it, as the next step.
    pub(crate) fn advice(&self) -> &'static str {
        self.against.ways_out(self.claimant.0)
    }
}

impl<'a> Against<'a> {
    /// How a person solves it for `instance`. Nothing that is there already or that cannot help is proposed: a Machine
    /// has no entry, and no entry gives what is reserved.
    pub(crate) fn ways_out(&self, instance: &Instance) -> &'static str {
        let is_listed = instance.machine.is_none();
        match self {
            Self::Claim(..) => {
                "give each host a name of its own, and list a host by its DNS name to say whose it is"
            }
            Self::Owner(Owner::Reserved(_)) => {
                "no host may have it, so take it from the host, its node, the list and the DNS"
            }
            Self::Dns(_, Some(Owner::Reserved(_))) => "correct the DNS",
            Self::Dns(_, None) if is_listed => {
                "list the host by that name or write it in `names=` of its entry, or correct the DNS"
            }
            Self::Dns(_, Some(_)) if is_listed => {
                "if it is the host's own, list the host by that name or write it in `names=` of its entry, \
                 or correct the DNS"
            }
            Self::Dns(..) => "correct the DNS",
            Self::Owner(
                Owner::Instance(_) | Owner::Machine(_) | Owner::Node(_) | Owner::Report(_),
            ) => "remove it from the other that has it, or find out why this one claims it",
        }
    }

    /// The Node that contradicts the claim, if it is a Node.
    pub(crate) fn node(&self) -> Option<&'a str> {
        match self {
            Self::Dns(_, Some(Owner::Node(node))) | Self::Owner(Owner::Node(node)) => Some(node),
            Self::Claim(..) | Self::Dns(..) | Self::Owner(_) => None,
        }
    }
}

impl fmt::Display for Against<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(other, source) => {
                write!(f, "{} claims it {}, too", other.title(), source.how())
            }
            Self::Dns(to, None) => write!(f, "the DNS leads it to {to}"),
            Self::Dns(to, Some(owner)) => write!(f, "the DNS leads it to {to}, and {owner}"),
            Self::Owner(owner) => owner.fmt(f),
        }
    }
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(instance) => write!(f, "that is {}'s", Owning(instance)),
            Self::Machine(name) => write!(f, "that is {}'s", Title(name)),
            Self::Node(name) => write!(f, "that is node {name}'s"),
            Self::Report(instance) => {
                write!(f, "the host of {} reports it, too", Owning(instance))
            }
            Self::Reserved(what) => write!(f, "that is {what}"),
        }
    }
}

/// Formats an instance as the owner of a name or an address.
struct Owning<'a>(&'a Instance);

impl fmt::Display for Owning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.0.machine.is_none() { "entry " } else { "" };
        write!(f, "{kind}{}", self.0.title())
    }
}
