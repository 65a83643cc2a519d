//! Trusted root certificates of the machine.

use std::collections::BTreeSet;

use wmco_core::digest::Sha256;

use super::WindowsError;

/// The system store `ROOT` of the local machine. Source: `spec/wicd.md`, section 11.4.
pub trait RootStore: Send + Sync {
    /// SHA-256 of the DER form of every certificate in the store.
    fn list(&self) -> Result<BTreeSet<Sha256>, WindowsError>;

    /// Adds a certificate, given in DER form; one that is there already is fine.
    fn add(&self, der: &[u8]) -> Result<(), WindowsError>;

    /// Removes the certificate with this SHA-256 of its DER form; tells whether it was there.
    fn remove(&self, sha256: Sha256) -> Result<bool, WindowsError>;
}
