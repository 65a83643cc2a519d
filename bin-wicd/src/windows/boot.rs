//! What is remembered until the host starts again: a volatile registry key, which Windows empties.

use std::io::{self, ErrorKind};
use std::time::Duration;

use jiff::Timestamp;
use winreg::RegKey;
use winreg::enums::{HKEY_LOCAL_MACHINE, KEY_ALL_ACCESS, REG_CREATED_NEW_KEY, REG_OPTION_VOLATILE};

/// The key, below `HKEY_LOCAL_MACHINE`.
const KEY: &str = r"SOFTWARE\windows-instance-config-daemon-since-boot";

/// Value that names this run of the host.
const BOOT: &str = "boot";

/// Another process that makes the key fills it within this time.
const RACE: Duration = Duration::from_millis(500);

/// The key, made if this is the first use since the host started.
pub(super) fn key() -> io::Result<RegKey> {
    let machine = RegKey::predef(HKEY_LOCAL_MACHINE);
    let (key, made) =
        machine.create_subkey_with_options_flags(KEY, REG_OPTION_VOLATILE, KEY_ALL_ACCESS)?;
    if made == REG_CREATED_NEW_KEY {
        key.set_value(BOOT, &fresh())?;
    }
    Ok(key)
}

/// A text that no other run of the host has.
fn fresh() -> String {
    format!("{}-{}", Timestamp::now(), std::process::id())
}

/// Names this run of the host.
pub(super) fn id() -> io::Result<String> {
    let key = key()?;
    if let Some(id) = text(&key, BOOT)? {
        return Ok(id);
    }
    std::thread::park_timeout(RACE);
    if let Some(id) = text(&key, BOOT)? {
        return Ok(id);
    }
    // Who made the key died before it was filled.
    let id = fresh();
    key.set_value(BOOT, &id)?;
    Ok(id)
}

/// A text value; `None` when it is not there.
pub(super) fn text(key: &RegKey, name: &str) -> io::Result<Option<String>> {
    match key.get_value(name) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
