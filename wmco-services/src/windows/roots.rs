//! Trusted root certificates of the machine.

use std::collections::BTreeSet;

use wmco_core::digest::Sha256;

use super::WindowsError;

/// The system store `ROOT` of the local machine. Source: `spec/wicd.md`, section 11.4.
pub trait RootStore: Send + Sync {
    /// SHA-256 of the DER form of every certificate in the store.
    fn list(&self) -> Result<BTreeSet<Sha256>, WindowsError>;

    /// Whether Windows understands a certificate, given in DER form. One that it does not understand
    /// cannot be added, however often that is tried.
    fn takes(&self, der: &[u8]) -> Result<bool, WindowsError>;

    /// Adds a certificate, given in DER form; one that is there already is fine.
    fn add(&self, der: &[u8]) -> Result<(), WindowsError>;

    /// Whether the store is another than before the first change through this trait since the host
    /// started, so that programs may still trust the old roots. Kept as
    /// [`Environment`](super::Environment) keeps its changes.
    fn changed_since_boot(&self) -> Result<bool, WindowsError>;

    /// Removes the certificate with this SHA-256 of its DER form; tells whether it was there.
    fn remove(&self, sha256: Sha256) -> Result<bool, WindowsError>;
}
