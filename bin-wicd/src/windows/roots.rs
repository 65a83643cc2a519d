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

/// Value of the key of [`boot`] that is there when the store was changed.
const CHANGED: &str = "roots";

/// The machine's store of roots.
#[derive(Default)]
pub(super) struct MachineRoots;

fn failed(what: &'static str) -> impl Fn(io::Error) -> WindowsError {
    move |error| WindowsError::other(what, error)
}

fn store() -> io::Result<CertStore> {
    CertStore::open_local_machine(STORE)
}

/// Notes that the store changes, before it does.
fn note() -> io::Result<()> {
    boot::key()?.set_value(CHANGED, &"changed")
}

impl RootStore for MachineRoots {
    fn list(&self) -> Result<BTreeSet<Sha256>, WindowsError> {
        let store = store().map_err(failed("open the store of roots"))?;
        Ok(store.certs().map(|certificate| Sha256::of(certificate.to_der())).collect())
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
            note()?;
            store()?.add_cert(&certificate, CertAdd::ReplaceExisting)?;
            Ok(())
        };
        add().map_err(failed("add a trusted root"))
    }

    fn changed_since_boot(&self) -> Result<bool, WindowsError> {
        let seen = boot::key().and_then(|key| boot::text(&key, CHANGED));
        Ok(seen.map_err(failed("read whether roots changed"))?.is_some())
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
                note()?;
            }
            found.into_iter().try_for_each(CertContext::delete)?;
            Ok(was_there)
        };
        remove().map_err(failed("remove a trusted root"))
    }
}
