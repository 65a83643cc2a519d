//! Name resolution as a value, so that parsing needs no network.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// DNS answers, known before parsing starts.
pub trait Resolve {
    /// The IPv4 address of `name`, which may be in any case and end with a dot. Of several addresses the first
    /// counts.
    ///
    /// # Errors
    /// [`Unresolved`] says whether the name does not exist or the answer is unknown.
    fn resolve(&self, name: &str) -> Result<Ipv4Addr, Unresolved>;

    /// The names of `address` (PTR records), with or without a dot at the end; empty if none.
    fn reverse(&self, address: IpAddr) -> &[String];
}

/// Why a name has no IPv4 address.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// The DNS query failed.
    #[error("the look-up failed ({reason}), check the DNS or list the IPv4 address instead")]
    Failed {
        /// The resolver's error, in one line.
        reason: String,
    },
    /// The name exists, but not with an IPv4 address.
    #[error("the name has no IPv4 address, add an A record or list the IPv4 address instead")]
    NoIpv4,
    /// The name does not exist.
    #[error("the name does not exist, add it to the DNS or list the IPv4 address instead")]
    NoSuchName,
    /// The DNS has not been asked yet.
    #[error("the name was not looked up yet")]
    Pending,
}

/// Normalizes `name` as a key of answers: lower case, without a trailing dot.
pub fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The DNS answers of one pass, for the pure functions that need them.
///
/// A name without an answer is [`Unresolved::Pending`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Resolutions {
    forward: BTreeMap<String, Result<Ipv4Addr, Unresolved>>,
    reverse: BTreeMap<IpAddr, Vec<String>>,
}

impl Resolutions {
    /// Records the answer for `name` and replaces an earlier one.
    pub fn insert(&mut self, name: &str, answer: Result<Ipv4Addr, Unresolved>) {
        self.forward.insert(canonical(name), answer);
    }

    /// Records the names of `address` and replaces earlier ones.
    pub fn insert_reverse(&mut self, address: IpAddr, names: Vec<String>) {
        self.reverse.insert(address, names);
    }
}

impl Resolve for Resolutions {
    fn resolve(&self, name: &str) -> Result<Ipv4Addr, Unresolved> {
        self.forward.get(&canonical(name)).cloned().unwrap_or(Err(Unresolved::Pending))
    }

    fn reverse(&self, address: IpAddr) -> &[String] {
        self.reverse.get(&address).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_others_are_pending() {
        let mut answers = Resolutions::default();
        answers.insert("Win-1.Example.Test.", Ok(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(answers.resolve("win-1.example.TEST"), Ok(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(answers.resolve("win-2.example.test"), Err(Unresolved::Pending));
    }
}
