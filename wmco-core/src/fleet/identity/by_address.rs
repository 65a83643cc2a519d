//! A map with addresses as keys.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv4Addr;

use crate::instances::canonical;

/// Values by an address: an IPv4 address, or any other text. An IPv4 address has exactly one text, and is compared
/// as a number; other texts are compared as names of the DNS.
///
/// A writer of Nodes can choose names and addresses, so the maps hash with a secret.
pub(super) struct ByAddress<'a, T> {
    ipv4: HashMap<Ipv4Addr, T>,
    texts: HashMap<Cow<'a, str>, T>,
}

impl<'a, T: Copy> ByAddress<'a, T> {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { ipv4: HashMap::with_capacity(count), texts: HashMap::new() }
    }

    /// Inserts `value` unless the key exists. Returns the value that is stored.
    pub(super) fn or_insert(&mut self, address: &'a str, value: T) -> T {
        match address.parse() {
            Ok(ipv4) => self.or_insert_ipv4(ipv4, value),
            Err(_) => *self.texts.entry(as_name(address)).or_insert(value),
        }
    }

    /// Like `or_insert`, for an IPv4 address.
    pub(super) fn or_insert_ipv4(&mut self, ipv4: Ipv4Addr, value: T) -> T {
        *self.ipv4.entry(ipv4).or_insert(value)
    }

    pub(super) fn get(&self, address: &str) -> Option<T> {
        match address.parse() {
            Ok(ipv4) => self.ipv4.get(&ipv4).copied(),
            Err(_) => self.texts.get(&as_name(address)).copied(),
        }
    }
}

fn as_name(text: &str) -> Cow<'_, str> {
    let is_canonical = !text.ends_with('.') && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if is_canonical { text.into() } else { canonical(text).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_key_in_both_forms() {
        let mut map = ByAddress::with_capacity(0);
        assert_eq!(map.or_insert("10.0.0.1", 1), 1);
        assert_eq!(map.or_insert_ipv4([10, 0, 0, 1].into(), 2), 1);
        assert_eq!(map.or_insert("win-1", 3), 3);
        let texts = ["10.0.0.1", "win-1", "10.0.0.01"];
        assert_eq!(texts.map(|text| map.get(text)), [Some(1), Some(3), None]);
    }

    #[test]
    fn a_name_is_one_key_in_all_forms() {
        let mut map = ByAddress::with_capacity(0);
        assert_eq!(map.or_insert("Win-1.example.", 1), 1);
        assert_eq!(map.or_insert("win-1.example", 2), 1);
        let texts = ["WIN-1.EXAMPLE", "win-1.example.", "win-1"];
        assert_eq!(texts.map(|text| map.get(text)), [Some(1), Some(1), None]);
    }
}
