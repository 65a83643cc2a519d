//! System-wide environment variables, in the registry.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use winreg::enums::{HKEY_LOCAL_MACHINE, KEY_QUERY_VALUE, KEY_SET_VALUE, REG_EXPAND_SZ, REG_SZ};
use winreg::types::FromRegValue as _;
use winreg::{RegKey, RegValue};
use wmco_core::digest::Sha256;
use wmco_core::names::objects;
use wmco_services::windows::{Environment, Inherited, WindowsError};

use super::{boot, failure};
use crate::block::Block;

/// Where they are, below `HKEY_LOCAL_MACHINE`.
const KEY: &str = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment";

/// Start of the names under which [`boot`] remembers what variables were when the host started.
const BEFORE: &str = "variable ";

/// What is remembered of a variable that was not set.
const UNSET: &str = "unset";

/// Where the manager keeps services, below `HKEY_LOCAL_MACHINE`.
const SERVICES: &str = r"SYSTEM\CurrentControlSet\Services";

/// Value of a service's key with variables that only this service gets.
const OWN: &str = "Environment";

/// The variables that every process gets.
#[derive(Default)]
pub(super) struct SystemVariables {
    /// What the manager gave this process; `None` where another program started it.
    block: Option<Block>,
}

impl SystemVariables {
    /// For a process that the manager started, before it changes anything of its own environment.
    pub(super) fn of_service() -> Self {
        let key = format!(r"{SERVICES}\{}", objects::WICD);
        let own = RegKey::predef(HKEY_LOCAL_MACHINE).open_subkey(key);
        // What cannot be read, or is no list of texts, gives the service nothing.
        let own: Vec<String> = own.and_then(|key| key.get_value(OWN)).unwrap_or_default();
        Self { block: Some(Block::new(std::env::vars_os(), &own)) }
    }

    /// What all services get of a variable.
    fn inherited(&self, name: &str) -> io::Result<Inherited> {
        let Some(block) = &self.block else { return Ok(Inherited::Unknown) };
        // Services get what such a text means, in the words of the time when the host started.
        let means_more = stored(name)?.is_some_and(|value| {
            value.vtype == REG_EXPAND_SZ && text(&value).is_ok_and(|text| text.contains('%'))
        });
        Ok(if means_more { Inherited::Unknown } else { block.get(name) })
    }

    /// Remembers what a variable was when the host started, unless it was changed before.
    fn remember(&self, name: &str) -> io::Result<()> {
        let known = boot::key()?;
        // Windows ignores case, so one variable has one record.
        let record = format!("{BEFORE}{}", name.to_uppercase());
        if boot::text(&known, &record)?.is_some() {
            return Ok(());
        }
        let before = match self.inherited(name)? {
            Inherited::Unknown => value(name)?,
            Inherited::Nothing => None,
            Inherited::Value(value) => Some(value),
        };
        known.set_value(record, &mark(before.as_deref()))
    }
}

/// The error for a variable; its value is never told.
fn failed<'a>(what: &'a str, name: &'a str) -> impl Fn(io::Error) -> WindowsError + use<'a> {
    move |error| failure::file(what, &format!("environment variable {name}"), error)
}

fn key(rights: u32) -> io::Result<RegKey> {
    RegKey::predef(HKEY_LOCAL_MACHINE).open_subkey_with_flags(KEY, rights)
}

fn stored(name: &str) -> io::Result<Option<RegValue<'static>>> {
    match key(KEY_QUERY_VALUE)?.get_raw_value(name) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A text; what is none reads as empty.
fn text(value: &RegValue<'_>) -> io::Result<String> {
    if value.vtype == REG_SZ || value.vtype == REG_EXPAND_SZ {
        String::from_reg_value(value)
    } else {
        Ok(String::new())
    }
}

fn value(name: &str) -> io::Result<Option<String>> {
    stored(name)?.map(|value| text(&value)).transpose()
}

/// What is remembered of a value: it may hold a password. No program sees an empty one.
fn mark(value: Option<&str>) -> String {
    let value = value.filter(|value| !value.is_empty());
    value.map_or_else(|| UNSET.to_owned(), |value| Sha256::of(value.as_bytes()).to_string())
}

impl Environment for SystemVariables {
    fn get(&self, name: &str) -> Result<Option<String>, WindowsError> {
        value(name).map_err(failed("read", name))
    }

    fn set(&self, name: &str, value: &str) -> Result<(), WindowsError> {
        self.remember(name)
            .and_then(|()| key(KEY_SET_VALUE)?.set_value(name, &value))
            .map_err(failed("set", name))
    }

    fn remove(&self, name: &str) -> Result<bool, WindowsError> {
        self.remember(name).map_err(failed("remove", name))?;
        match key(KEY_SET_VALUE).and_then(|key| key.delete_value(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("remove", name)(error)),
        }
    }

    fn inherited(&self, name: &str) -> Result<Inherited, WindowsError> {
        self.inherited(name).map_err(failed("read", name))
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
