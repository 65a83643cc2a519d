//! Changes of many records, within what one ConfigMap may hold.

use std::collections::{BTreeMap, BTreeSet};

use super::change::write;
use super::{HostRecord, ListedHost, RecordChange, RecordRefused};
use crate::instances::Instance;
use crate::limits;
use crate::names::objects::HOST_KEYS_CONFIG_MAP;

/// Length of an encrypted user name of 13 letters, as SSH13 of `docs/contract/ssh.md` has it.
const SEALED_USERNAME: usize = 188;

/// More listed hosts than the ConfigMap of host keys can hold records of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{listed} hosts are listed, and ConfigMap {HOST_KEYS_CONFIG_MAP} can hold records of about {fit} (1 MiB): the operator \
     begins nothing on hosts that are not on record, so list fewer"
)]
pub struct TooManyListed {
    /// Number of listed hosts.
    pub listed: usize,
    /// Number of hosts that there is room for.
    pub fit: usize,
}

/// Whether there is room for the records of these hosts.
///
/// # Errors
/// [`TooManyListed`] if there is not.
pub fn fit<'a>(listed: impl Iterator<Item = &'a Instance>) -> Result<(), TooManyListed> {
    let mut records = Records::new(BTreeMap::new());
    let username = "x".repeat(SEALED_USERNAME);
    let (mut all, mut fit) = (0, 0);
    for instance in listed {
        all += 1;
        let change = RecordChange::Listed(ListedHost::of(instance, &username));
        if fit + 1 == all && records.change(&instance.address, &change).is_ok() {
            fit += 1;
        }
    }
    if fit == all { Ok(()) } else { Err(TooManyListed { listed: all, fit }) }
}

/// The data of the ConfigMap of host keys while it is changed.
///
/// A change that makes it larger than the API server takes is refused by itself, so that it neither costs a request
/// nor holds up others.
///
/// ```
/// use std::collections::BTreeMap;
/// use wmco_core::host_record::{RecordChange, RecordRefused, Records};
/// use wmco_core::limits;
///
/// let change = |length: usize| RecordChange::Adopted {
///     ipv4: [10, 0, 0, 5].into(),
///     node: "win-1".to_owned(),
///     username: "x".repeat(length),
/// };
/// let mut records = Records::new(BTreeMap::new());
/// assert_eq!(records.change("10.0.0.5", &change(limits::CONFIG_MAP_BYTES)), Err(RecordRefused::Full));
/// assert_eq!(records.change("10.0.0.5", &change(100)), Ok(()));
/// assert_eq!(records.into_data().len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Records {
    data: BTreeMap<String, String>,
    /// Length of all values.
    bytes: usize,
}

impl Records {
    /// The data as they are.
    pub fn new(data: BTreeMap<String, String>) -> Self {
        let bytes = data.values().map(String::len).sum();
        Self { data, bytes }
    }

    /// Makes one change.
    ///
    /// # Errors
    /// [`RecordRefused`]; nothing is changed then.
    pub fn change(&mut self, address: &str, change: &RecordChange) -> Result<(), RecordRefused> {
        let written = change.written(address, &self.data)?;
        let length = |key: &String| self.data.get(key).map_or(0, String::len);
        let before: usize = written.keys().map(length).sum();
        let after: usize = written.values().flatten().map(String::len).sum();
        let bytes = self.bytes - before + after;
        if after > before && bytes > limits::CONFIG_MAP_BYTES {
            return Err(RecordRefused::Full);
        }
        let mut made = written.iter().filter(|(_, value)| value.is_some());
        if made.any(|(key, _)| key.len() > limits::CONFIG_MAP_KEY_BYTES) {
            return Err(RecordRefused::NoKey);
        }
        write(written, &mut self.data);
        self.bytes = bytes;
        Ok(())
    }

    /// Whether there is a record of the host with the listed address `address`.
    pub fn has(&self, address: &str) -> bool {
        self.data.contains_key(&HostRecord::key_name(address))
    }

    /// Removes keys.
    pub fn forget(&mut self, keys: &BTreeSet<String>) {
        for key in keys {
            self.bytes -= self.data.remove(key).map_or(0, |value| value.len());
        }
    }

    /// The data to write.
    pub fn into_data(self) -> BTreeMap<String, String> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::instances::{Entries, Resolutions, parse};

    fn adopted(length: usize) -> RecordChange {
        let (ipv4, node) = ([10, 0, 0, 5].into(), "win-1".to_owned());
        RecordChange::Adopted { ipv4, node, username: "x".repeat(length) }
    }

    #[test]
    fn an_address_that_no_key_can_hold_is_told() {
        let mut records = Records::new(BTreeMap::new());
        let longest = "a".repeat(limits::CONFIG_MAP_KEY_BYTES - "_host".len());
        assert_eq!(records.change(&longest, &adopted(1)), Ok(()));
        assert_eq!(records.change(&format!("{longest}a"), &adopted(1)), Err(RecordRefused::NoKey));
    }

    fn list_of(hosts: u16) -> Entries {
        let hosts = (0..hosts).map(|host| {
            let [high, low] = host.to_be_bytes();
            (format!("10.1.{high}.{low}"), "username=Administrator")
        });
        parse(hosts, &Resolutions::default())
    }

    #[test]
    fn a_list_that_is_too_long_is_told_with_both_numbers() {
        assert_eq!(fit(list_of(2_000).instances()), Ok(()));
        let error = fit(list_of(12_000).instances()).unwrap_err();
        assert_eq!(error.listed, 12_000);
        assert_eq!(fit(list_of(error.fit.try_into().unwrap()).instances()), Ok(()));
        // It is a little more or less, since addresses differ in length.
        assert!(fit(list_of(u16::try_from(error.fit).unwrap() + 100).instances()).is_err());
        let text = error.to_string();
        assert!(
            text.starts_with("12000 hosts are listed") && text.contains("list fewer"),
            "{text}"
        );
    }

    proptest! {
        // Each holds a megabyte.
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

        /// Whatever is asked for, in any order: the result fits, and a host is only refused when it does not.
        #[test]
        fn all_that_fits_is_taken(hosts in prop::collection::vec((0_usize..8, 0_usize..4, any::<bool>()), 0..40)) {
            let mut records = Records::new(BTreeMap::new());
            for (host, quarters, goes) in hosts {
                let address = format!("10.0.0.{host}");
                if goes {
                    records.forget(&[format!("{address}_host")].into());
                    continue;
                }
                let change = adopted(quarters * limits::CONFIG_MAP_BYTES / 4);
                let before = records.clone();
                let taken = records.change(&address, &change);
                let size = |data: &BTreeMap<String, String>| data.values().map(String::len).sum::<usize>();
                prop_assert!(size(&records.data) <= limits::CONFIG_MAP_BYTES);
                prop_assert_eq!(size(&records.data), records.bytes);
                if taken == Err(RecordRefused::Full) {
                    prop_assert_eq!(&records.data, &before.data);
                    let mut with = before.data;
                    change.apply(&address, &mut with).unwrap();
                    prop_assert!(size(&with) > limits::CONFIG_MAP_BYTES);
                }
            }
        }
    }
}
