//! A law of entries in `windows-instances`.

use std::net::Ipv4Addr;

use wmco_core::instances::{Resolutions, names, parse};

/// An entry, its key in the first line, is one host that can be logged in to, or one error of one line.
pub(crate) fn an_entry_is_a_host_or_an_error(text: &str) {
    let (key, value) = text.split_once('\n').unwrap_or((text, ""));
    // The API server lets no other characters in.
    if !key.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        return;
    }
    let mut resolved = Resolutions::default();
    for name in names([(key, value)]) {
        resolved.insert(&name, Ok(Ipv4Addr::LOCALHOST));
    }
    let entries = parse([(key, value)], &resolved);
    assert_eq!(entries.iter().count(), 1);
    for host in entries.instances() {
        assert_eq!(host.address, key);
        assert!(host.port > 0 && !host.username.is_empty(), "{host:?}");
        assert!(!host.username.contains(|c: char| c.is_control() || c == ':'), "{host:?}");
        assert!(host.via.is_some() || host.via_host_key.is_none(), "{host:?}");
    }
    for error in entries.errors() {
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
}
