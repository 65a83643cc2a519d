//! What the model operator keeps of hosts.

use std::collections::{BTreeMap, BTreeSet};

use wmco_core::host_record::{HostRecord, KnownHosts, RecordChange};
use wmco_core::instances::{Entries, Resolutions, parse};

use super::World;

impl World {
    /// Names that hosts reported, to this operator or to one before.
    pub(super) fn host_names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let known = self.known_hosts();
        let recorded =
            known.records().filter_map(|(a, r)| Some((a.to_owned(), r.host_name.clone()?)));
        let reported = self.operator.host_names.clone();
        recorded.chain(reported).map(|(address, name)| (address, [name].into())).collect()
    }

    /// Removes keys of the ConfigMap. A host whose entry has taken its key over may be trusted on first
    /// use at the address that it had before.
    pub(super) fn forget_keys(&mut self, keys: &BTreeSet<String>) {
        let known = self.known_hosts();
        self.api.host_keys.retain(|key, _| !keys.contains(key));
        for key in keys.iter().filter_map(|key| HostRecord::address_in(key)) {
            let ipv4 = known.record(key).and_then(|record| record.ipv4);
            let Some(ipv4) = ipv4.filter(|_| !self.listed.contains_key(key)) else { continue };
            let left = self.known_hosts();
            for host in self.hosts.iter_mut().filter(|host| host.owns(ipv4)) {
                let shown = host.key().to_string();
                let pinned = left.records().filter(|(a, _)| left.pin(a) == Some(&shown));
                let pinned: Vec<_> = pinned.map(|(_, record)| record.ipv4).collect();
                if !pinned.is_empty() && !pinned.contains(&Some(ipv4)) {
                    host.known.remove(&ipv4);
                }
            }
        }
    }

    /// The entries, as the operator reads them.
    pub(super) fn entries(&self) -> Entries {
        let mut names = Resolutions::default();
        for (address, entry) in &self.listed {
            names.insert(address, Ok(entry.ipv4));
        }
        parse(self.listed.iter().map(|(address, entry)| (address, entry.value())), &names)
    }

    pub(super) fn known_hosts(&self) -> KnownHosts {
        KnownHosts::read(&self.api.host_keys)
    }

    pub(super) fn change_record(&mut self, address: &str, change: &RecordChange) {
        let ipv4 = |known: &KnownHosts| known.record(address).and_then(|record| record.ipv4);
        let before = ipv4(&self.known_hosts());
        change.apply(address, &mut self.api.host_keys).unwrap();
        let now = self.known_hosts();
        if let Some(before) = before.filter(|_| before != ipv4(&now))
            && !now.records().any(|(_, record)| record.ipv4 == Some(before))
        {
            // Its name leads elsewhere now, so nobody knows who answers there.
            self.hosts.iter_mut().for_each(|host| {
                host.known.remove(&before);
            });
        }
    }
}
