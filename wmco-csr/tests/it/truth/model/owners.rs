//! The truth: whose a name or an address is.

use std::collections::BTreeSet;
use std::net::IpAddr;

use wmco_core::machines::key;

use super::{Dns, Further, Listing, Machine, Sort, World};

impl World {
    /// The machines that a name belongs to, as far as the cluster can know of any.
    ///
    /// People who list a host by a name leave it to the DNS, and to the host key, which host that is.
    pub(in crate::truth) fn owners_of_name(&self, name: &str) -> BTreeSet<usize> {
        let mut owners = BTreeSet::new();
        for (place, machine) in self.machines.iter().enumerate() {
            let listed = self.listed_name(place);
            let label = |full: &str| full.split('.').next().map(str::to_owned);
            let is_listed = listed.as_deref() == Some(name)
                || listed.as_deref().and_then(label).as_deref() == Some(name);
            if is_listed {
                owners.insert(place);
                owners.extend(self.reached(place));
            }
            let alias = Self::alias(place);
            if self.has_further(place, Further::Alias)
                && (name == alias || label(&alias).as_deref() == Some(name))
            {
                owners.insert(place);
                owners.extend(self.reached(place).filter(|to| self.stands_in(*to, place)));
            }
            let is_registered = machine.has_node() && self.registered(place) == name;
            let told = match machine.sort {
                Sort::Windows => self.facts().hostnames.get(&key(&Self::label(place))).cloned(),
                _ => self.facts().hostnames.get(&self.entry(place)).cloned(),
            };
            let is_reached = machine.sort == Sort::Windows || self.reached(place) == Some(place);
            let is_told = is_reached
                && machine.false_name.is_none()
                && told.is_some()
                && [self.node_name(place), self.full_name(place)].iter().any(|own| own == name);
            // The Machine API gives it its full name, and it has a name of its own.
            let is_given = machine.sort == Sort::Windows
                && [self.full_name(place), Self::label(place)].iter().any(|own| own == name);
            let leads = machine.dns == Dns::Right && name.contains('.');
            if is_given || is_registered || is_told || (leads && self.full_name(place) == name) {
                owners.insert(place);
            }
        }
        owners
    }

    /// The machine that an address belongs to, if the cluster can know of it.
    pub(in crate::truth) fn owner_of_address(&self, address: IpAddr) -> Option<usize> {
        let own = |(place, _): &(usize, &Machine)| Self::own_addresses(*place).contains(&address);
        let (place, machine) = self.machines.iter().enumerate().find(own)?;
        let is_first = address == Self::address(place);
        let is_listed = machine.sort == Sort::Listed;
        let by_entry = is_listed && is_first && self.reached(place) == Some(place);
        let reports = self.facts().addresses.unwrap();
        let by_report = match machine.sort {
            Sort::Windows => reports.contains_key(&key(&Self::label(place))),
            _ => self.reached(place) == Some(place) && reports.contains_key(&self.entry(place)),
        };
        let of_machine = match machine.sort {
            Sort::Machine => true,
            Sort::Windows => Self::given_addresses(place).contains(&address),
            Sort::Linux | Sort::Listed | Sort::Stranger => false,
        };
        let by_names = (address == Self::second(place) && self.has_further(place, Further::Second))
            || (address == Self::ipv6(place) && self.has_further(place, Further::Ipv6));
        let known = machine.has_node() || by_names || by_entry || by_report || of_machine;
        known.then_some(place)
    }

    /// Whether the DNS, forth and back, leads the name of a machine's Node to another machine without a Node.
    /// Unless the former is listed by its own address, nobody can tell that this is wrong.
    pub(in crate::truth) fn is_led_to(&self, place: usize, other: usize) -> bool {
        let node = self.registered(place);
        let reverse = self.dns().reverse;
        let names = reverse.get(&Self::address(other)).into_iter().flatten();
        let is_of_node = |name: &String| *name == node || name.split('.').next() == Some(&*node);
        let is_listed = self.machines[place].sort == Sort::Listed
            && self.machines[place].listing == Listing::Address;
        !self.machines[other].has_node() && !is_listed && { names }.any(is_of_node)
    }
}
