//! Trusted root certificates of the machine.

use std::collections::BTreeSet;
use std::io;

use schannel::cert_context::CertContext;
use schannel::cert_store::{CertAdd, CertStore};
use wmco_core::digest::Sha256;
use wmco_services::windows::{RootStore, WindowsError};

use super::boot;

/// The store.
const STORE: &str = "ROOT";

/// Value of the key of [`boot`] with the [`mark`] of the store before its first change.
const BEFORE: &str = "roots";

/// The machine's store of roots.
#[derive(Default)]
pub(super) struct MachineRoots;

fn failed(what: &'static str) -> impl Fn(io::Error) -> WindowsError {
    move |error| WindowsError::other(what, error)
}

fn store() -> io::Result<CertStore> {
    CertStore::open_local_machine(STORE)
}

fn all(store: &CertStore) -> BTreeSet<Sha256> {
    store.certs().map(|certificate| Sha256::of(certificate.to_der())).collect()
}

/// What is remembered of the roots.
fn mark(roots: &BTreeSet<Sha256>) -> String {
    let all: Vec<String> = roots.iter().map(ToString::to_string).collect();
    Sha256::of(all.join(" ").as_bytes()).to_string()
}

/// Remembers what is in the store now, unless it was changed before.
fn remember(store: &CertStore) -> io::Result<()> {
    let known = boot::key()?;
    if boot::text(&known, BEFORE)?.is_none() {
        known.set_value(BEFORE, &mark(&all(store)))?;
    }
    Ok(())
}

impl RootStore for MachineRoots {
    fn list(&self) -> Result<BTreeSet<Sha256>, WindowsError> {
        Ok(all(&store().map_err(failed("open the store of roots"))?))
    }

    fn takes(&self, der: &[u8]) -> Result<bool, WindowsError> {
        Ok(CertContext::new(der).is_ok())
    }

    fn add(&self, der: &[u8]) -> Result<(), WindowsError> {
        if self.list()?.contains(&Sha256::of(der)) {
            return Ok(());
        }
        let add = || -> io::Result<()> {
            let certificate = CertContext::new(der)?;
            let mut store = store()?;
            remember(&store)?;
            store.add_cert(&certificate, CertAdd::ReplaceExisting)?;
            Ok(())
        };
        add().map_err(failed("add a trusted root"))
    }

    fn changed_since_boot(&self) -> Result<bool, WindowsError> {
        let before = boot::key().and_then(|key| boot::text(&key, BEFORE));
        match before.map_err(failed("read whether roots changed"))? {
            None => Ok(false),
            Some(before) => Ok(before != mark(&self.list()?)),
        }
    }

    fn remove(&self, sha256: Sha256) -> Result<bool, WindowsError> {
        let remove = || -> io::Result<bool> {
            // Open to the end: what goes from a closed store may stay in the registry.
            let store = store()?;
            // Deleting while the store is walked through would never end, so all are found first.
            let found: Vec<CertContext> = store
                .certs()
                .filter(|certificate| Sha256::of(certificate.to_der()) == sha256)
                .collect();
            let was_there = !found.is_empty();
            if was_there {
                remember(&store)?;
            }
            found.into_iter().try_for_each(CertContext::delete)?;
            Ok(was_there)
        };
        remove().map_err(failed("remove a trusted root"))
    }
}
