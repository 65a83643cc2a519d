//! Why an instance is not given a name or an address that it claims, in words.

use std::fmt;
use std::net::IpAddr;

use super::machines::Title;
use super::{Instance, Source};

/// Why an instance is not given a name that it claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict<'a> {
    pub(super) claimant: (&'a Instance, Source),
    pub(super) against: Against<'a>,
}

/// What speaks against a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Against<'a> {
    /// Another instance has a claim that is as good.
    Claim(&'a Instance, Source),
    /// The DNS leads the name to an address that is not the host's, but its owner's if there is one.
    Dns(IpAddr, Option<Owner<'a>>),
    /// It is somebody else's.
    Owner(Owner<'a>),
}

/// Who has a name or an address, other than the host that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    /// The entry or the Machine of this instance.
    Instance(&'a Instance),
    /// The Machine of this name, if it has one.
    Machine(&'a str),
    /// The Node of this name.
    Node(&'a str),
    /// The host of this instance reported it.
    Report(&'a Instance),
    /// No host may have it.
    Reserved(&'static str),
}

/// Hosts that claim one name or one address, or one host that claims the name of another.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Dispute {
    /// The name, or the address.
    pub name: String,
    /// Who claims it, what speaks against that, and what to do. One line.
    pub message: String,
}

impl Source {
    /// As in "known by ...".
    pub(crate) fn how(self) -> &'static str {
        match self {
            Self::Address => "by its address",
            Self::Machine => "by the Machine API",
            Self::MachineName => "by the name of its Machine",
            Self::HostName => "by its host name",
            Self::ReverseDns => "by reverse DNS",
        }
    }
}

impl<'a> Conflict<'a> {
    /// In words, for the name that it is about.
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
                "{claimant} ({how}) claims the name {name}, but {against}; rename the host or correct \
                 the DNS"
            ),
        }
    }

    /// What speaks against the claim.
    pub(crate) fn against(&self) -> Against<'a> {
        self.against
    }
}

impl<'a> Against<'a> {
    /// The Node that speaks against it, if it is one.
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

/// An instance as the owner of something.
struct Owning<'a>(&'a Instance);

impl fmt::Display for Owning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.0.machine.is_none() { "entry " } else { "" };
        write!(f, "{kind}{}", self.0.title())
    }
}
