//! System-wide environment variables, in the registry.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use winreg::RegKey;
use winreg::enums::{HKEY_LOCAL_MACHINE, KEY_QUERY_VALUE, KEY_SET_VALUE, REG_EXPAND_SZ, REG_SZ};
use wmco_core::digest::Sha256;
use wmco_services::windows::{Environment, WindowsError};

use super::{boot, failure};

/// Where they are, below `HKEY_LOCAL_MACHINE`.
const KEY: &str = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment";

/// Start of the names under which [`boot`] remembers what variables were when the host started.
const BEFORE: &str = "variable ";

/// What is remembered of a variable that was not set.
const UNSET: &str = "unset";

/// The variables that every process gets.
#[derive(Default)]
pub(super) struct SystemVariables;

/// The error for a variable; its value is never told.
fn failed<'a>(what: &'a str, name: &'a str) -> impl Fn(io::Error) -> WindowsError + use<'a> {
    move |error| failure::file(what, &format!("environment variable {name}"), error)
}

fn key(rights: u32) -> io::Result<RegKey> {
    RegKey::predef(HKEY_LOCAL_MACHINE).open_subkey_with_flags(KEY, rights)
}

fn value(name: &str) -> io::Result<Option<String>> {
    match key(KEY_QUERY_VALUE)?.get_raw_value(name) {
        Ok(value) if value.vtype == REG_SZ || value.vtype == REG_EXPAND_SZ => {
            winreg::types::FromRegValue::from_reg_value(&value).map(Some)
        }
        Ok(_) => Ok(Some(String::new())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is remembered of a value: it may hold a password. No program sees an empty one.
fn mark(value: Option<&str>) -> String {
    let value = value.filter(|value| !value.is_empty());
    value.map_or_else(|| UNSET.to_owned(), |value| Sha256::of(value.as_bytes()).to_string())
}

/// Remembers what a variable is now, unless it was changed before.
fn remember(name: &str) -> io::Result<()> {
    let known = boot::key()?;
    // Windows ignores case, so one variable has one record.
    let record = format!("{BEFORE}{}", name.to_uppercase());
    if boot::text(&known, &record)?.is_none() {
        known.set_value(record, &mark(value(name)?.as_deref()))?;
    }
    Ok(())
}

impl Environment for SystemVariables {
    fn get(&self, name: &str) -> Result<Option<String>, WindowsError> {
        value(name).map_err(failed("read", name))
    }

    fn set(&self, name: &str, value: &str) -> Result<(), WindowsError> {
        remember(name)
            .and_then(|()| key(KEY_SET_VALUE)?.set_value(name, &value))
            .map_err(failed("set", name))
    }

    fn remove(&self, name: &str) -> Result<bool, WindowsError> {
        remember(name).map_err(failed("remove", name))?;
        match key(KEY_SET_VALUE).and_then(|key| key.delete_value(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("remove", name)(error)),
        }
    }

    fn changed_since_boot(&self) -> Result<BTreeSet<String>, WindowsError> {
        let changed = || -> io::Result<BTreeSet<String>> {
            let known = boot::key()?;
            let mut changed = BTreeSet::new();
            for record in known.enum_values() {
                let (record, _) = record?;
                let Some(name) = record.strip_prefix(BEFORE) else { continue };
                if boot::text(&known, &record)? != Some(mark(value(name)?.as_deref())) {
                    changed.insert(name.to_owned());
                }
            }
            Ok(changed)
        };
        changed().map_err(|error| WindowsError::other("read which variables changed", error))
    }
}
