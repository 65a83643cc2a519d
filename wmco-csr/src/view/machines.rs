//! Machines, by the names and addresses that their Nodes have.

use std::net::IpAddr;

use super::index::Index;
use super::{Instance, MachineFacts, fold};

/// All Machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machines {
    by_name: Index<String, usize>,
    by_address: Index<IpAddr, usize>,
}

impl FromIterator<MachineFacts> for Machines {
    fn from_iter<I: IntoIterator<Item = MachineFacts>>(machines: I) -> Self {
        let mut all = Self::default();
        for (number, machine) in machines.into_iter().enumerate() {
            let names: Vec<String> = machine.names.iter().map(|name| fold(name)).collect();
            let addresses: Vec<IpAddr> =
                machine.addresses.iter().map(IpAddr::to_canonical).collect();
            all.by_name.add(&names, &number);
            all.by_address.add(&addresses, &number);
        }
        all
    }
}

impl Machines {
    /// Whether one has the name `name` (lower case).
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.by_name.holders(name).next().is_some()
    }

    /// Whether one has `address`.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.by_address.holders(&address).next().is_some()
    }

    /// Whether one has the name `name`, other than the one that is the host of `instance`.
    pub(super) fn has_other_with_name(&self, name: &str, instance: &Instance) -> bool {
        self.by_name.holders(name).any(|machine| !self.is_host_of(*machine, instance))
    }

    /// As [`Self::has_other_with_name`], for an address.
    pub(super) fn has_other_with_address(&self, address: IpAddr, instance: &Instance) -> bool {
        self.by_address.holders(&address).any(|machine| !self.is_host_of(*machine, instance))
    }

    /// Whether an entry means a Machine, as where no other approver takes care of Machines.
    fn is_host_of(&self, machine: usize, instance: &Instance) -> bool {
        let at = instance.ipv4.map(IpAddr::V4);
        at.is_some_and(|at| self.by_address.holders(&at).any(|own| *own == machine))
    }
}
