//! Known names of hosts.

use std::collections::{BTreeMap, BTreeSet};

use crate::host_record::KnownHosts;
use crate::instances::{Entries, Host, Resolve};

/// Names of hosts, by listed address: the name in the entry, the reverse DNS names of its address, the names that
/// the host `reported` (that of Windows, and that of its cloud), and the recorded name, if its address is still the
/// same.
///
/// A name decides which Node belongs to a host, but only among Nodes with the host's address.
///
/// ```
/// use wmco_core::fleet::host_names;
/// use wmco_core::host_record::KnownHosts;
/// use wmco_core::instances::{Resolutions, parse};
///
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let reported = [("10.0.0.5".to_owned(), ["WIN-1".to_owned()].into())].into();
/// let record = r#"{"ipv4": "10.0.0.5", "hostName": "WIN-0"}"#;
/// let known = KnownHosts::read([("10.0.0.5_host", record)]);
/// let names = host_names(&entries, &Resolutions::default(), &reported, &known);
/// assert_eq!(names["10.0.0.5"], ["WIN-1".to_owned()].into());
/// let names = host_names(&entries, &Resolutions::default(), &[].into(), &known);
/// assert_eq!(names["10.0.0.5"], ["WIN-0".to_owned()].into());
/// ```
pub fn host_names(
    entries: &Entries,
    dns: &impl Resolve,
    reported: &BTreeMap<String, BTreeSet<String>>,
    known: &KnownHosts,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (address, reported) in reported {
        names.entry(address.clone()).or_default().extend(reported.iter().cloned());
    }
    for (address, record) in known.records() {
        let listed = entries.get(address).map(|entry| entry.as_ref().ok().map(|one| one.ipv4));
        let same = listed.is_none_or(|ipv4| ipv4.is_none_or(|ipv4| record.ipv4 == Some(ipv4)));
        if let Some(name) = record.host_name.as_ref().filter(|_| same) {
            // The reported name outranks the recorded one.
            names.entry(address.to_owned()).or_insert_with(|| [name.clone()].into());
        }
    }
    for instance in entries.instances() {
        let mut add = |name: &str| {
            let name = name.strip_suffix('.').unwrap_or(name).to_owned();
            names.entry(instance.address.clone()).or_default().insert(name);
        };
        match instance.address.parse() {
            Ok(Host::Name(name)) => add(&name),
            Ok(Host::Ipv4(_)) | Err(_) => {
                dns.reverse(instance.ipv4.into()).iter().for_each(|name| add(name));
            }
        }
    }
    names
}
