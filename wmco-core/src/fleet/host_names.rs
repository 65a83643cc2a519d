//! By which names hosts are known.

use std::collections::{BTreeMap, BTreeSet};

use crate::instances::{Entries, Host, Resolve};

/// Names of the listed hosts, by address as listed: the name in the entry, those that the DNS has for
/// its address, and the one that the host `reported`.
///
/// A name tells which Node is a host's, but only of those Nodes that show the host's address.
///
/// ```
/// use wmco_core::fleet::host_names;
/// use wmco_core::instances::{Resolutions, parse};
///
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let reported = [("10.0.0.5".to_owned(), "WIN-1".to_owned())].into();
/// let names = host_names(&entries, &Resolutions::default(), &reported);
/// assert_eq!(names["10.0.0.5"], ["WIN-1".to_owned()].into());
/// ```
pub fn host_names(
    entries: &Entries,
    dns: &impl Resolve,
    reported: &BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (address, name) in reported {
        names.entry(address.clone()).or_default().insert(name.clone());
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
