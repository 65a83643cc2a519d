//! Machines, by their names and addresses.
//!
//! A Machine reserves its names and addresses, whatever its state. Whether its host may ask for certificates is
//! another question: see [`MachineFacts::host`].

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use wmco_core::machines::Unfit;

use super::index::Index;
use super::{Instance, MachineFacts, View, fold};

/// All Machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machines {
    list: Vec<Arc<MachineFacts>>,
    by_name: Index<String, usize>,
    by_address: Index<IpAddr, usize>,
}

impl FromIterator<MachineFacts> for Machines {
    fn from_iter<I: IntoIterator<Item = MachineFacts>>(machines: I) -> Self {
        let mut all = Self::default();
        for (number, mut machine) in machines.into_iter().enumerate() {
            machine.names.iter_mut().for_each(|name| *name = fold(name));
            machine.addresses.iter_mut().for_each(|address| *address = address.to_canonical());
            all.by_name.add(&machine.own_names(), &number);
            all.by_address.add(&machine.addresses, &number);
            all.list.push(Arc::new(machine));
        }
        all
    }
}

impl Machines {
    /// All Machines.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<MachineFacts>> {
        self.list.iter()
    }

    /// The Machines with the name `name` (lower case).
    pub(crate) fn with_name(&self, name: &str) -> impl Iterator<Item = &Arc<MachineFacts>> {
        self.by_name.holders(name).filter_map(|number| self.list.get(*number))
    }

    /// The Machines with `address`.
    pub(crate) fn with_address(&self, address: IpAddr) -> impl Iterator<Item = &Arc<MachineFacts>> {
        self.by_address.holders(&address).filter_map(|number| self.list.get(*number))
    }

    /// A Machine that has `address` and is not the host of `instance`.
    pub(super) fn other_with_address(
        &self,
        address: IpAddr,
        instance: &Instance,
    ) -> Option<&MachineFacts> {
        let mut others = self.with_address(address).filter(|machine| !instance.is_on(machine));
        others.next().map(Arc::as_ref)
    }
}

impl View {
    /// Whether a Machine with the name `name` (lower case) reserves it against `instance`: unless `instance` is its
    /// host, or has a better claim to the name. Source: `docs/contract/certificate-requests.md`, CSR18.
    pub(crate) fn keeps(
        &self,
        machine: &Arc<MachineFacts>,
        name: &str,
        instance: &Instance,
    ) -> bool {
        let named = self.cluster.hosts_named_as_machines;
        let is_given = match machine.host {
            None => !machine.is_only_named(name),
            Some(_) => machine.is_given_name(name, named),
        };
        !instance.is_on(machine) && (is_given || !self.is_listed_as(instance, name))
    }

    /// Whether a Machine without the Windows label leaves the name `name` to `instance`: the Machine has other names,
    /// and this own name counts only against hosts that are not listed by it.
    pub(crate) fn yields(&self, machine: &MachineFacts, name: &str, instance: &Instance) -> bool {
        machine.is_only_named(name) && self.is_listed_as(instance, name)
    }

    /// Whether the list or the Machine API gives `instance` the name `name`, or a name of which that is the Node's.
    fn is_listed_as(&self, instance: &Instance, name: &str) -> bool {
        let shortens = |full: &str| self.cluster.node_names.shortens(full);
        instance.is_called(name) || instance.has_first_label(name, shortens)
    }

    /// The Machine that reserves the name `name` (lower case) against `instance`.
    pub(super) fn other_with_name(&self, name: &str, instance: &Instance) -> Option<&MachineFacts> {
        let mut machines = self.machines.with_name(name);
        machines.find(|machine| self.keeps(machine, name, instance)).map(Arc::as_ref)
    }
}

impl MachineFacts {
    /// The names that the Machine reserves: names from its cloud and the name of its Node. With the Windows label
    /// also their first labels and the Machine's own name, which its host has on some platforms. Without that
    /// label, the own name counts only while it has no Node, because it may become a node of that name; with other
    /// names it counts less, see [`View::yields`].
    fn own_names(&self) -> Vec<String> {
        let mut names = self.names.clone();
        if self.host.is_some() {
            let label = |name: &String| name.split_once('.').map(|(label, _)| label.to_owned());
            names.extend(self.names.iter().filter_map(label));
        }
        names.extend(self.node.iter().map(|node| fold(&node.name)));
        if self.host.is_some() || self.node.is_none() {
            names.push(fold(&self.name));
        }
        names.retain(|name| !name.is_empty());
        names
    }

    /// Whether the cloud gave it the name `name` (lower case), or the platform names hosts as their Machines. The
    /// name of its Node is a weaker claim: the Machine API finds a Node by the Node's own status.
    pub(super) fn is_given_name(&self, name: &str, hosts_named_as_machines: bool) -> bool {
        self.names.iter().any(|own| own == name)
            || (hosts_named_as_machines && fold(&self.name) == name)
    }

    /// Whether `name` is its own name alone, and it has others.
    fn is_only_named(&self, name: &str) -> bool {
        !self.names.is_empty() && self.node.is_none() && !self.names.iter().any(|own| own == name)
    }

    /// Whether it has the ignore label, so that its host may be listed.
    pub(crate) fn is_ignored(&self) -> bool {
        self.host == Some(Err(Unfit::Ignored))
    }

    /// The name of the Machine in messages.
    pub(crate) fn title(&self) -> impl fmt::Display {
        Title(&self.name)
    }
}

/// Formats the name of a Machine for messages.
pub(super) struct Title<'a>(pub(super) &'a str);

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("a Machine"),
            name => write!(f, "Machine {name}"),
        }
    }
}
