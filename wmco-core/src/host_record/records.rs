//! Changes of many records, within what one ConfigMap may hold.

use std::collections::{BTreeMap, BTreeSet};

use super::change::write;
use super::{HostRecord, RecordChange, RecordRefused};
use crate::limits;

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

    proptest! {
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
