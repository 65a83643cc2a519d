//! Trusted root certificates of the machine.

use std::collections::BTreeSet;

use wmco_core::digest::Sha256;

use super::WindowsError;

/// The system store `ROOT` of the local machine. Source: `docs/contract/wicd.md`, WICD65.
pub trait RootStore: Send + Sync {
    /// Returns the SHA-256 of the DER form of every certificate in the store.
    fn list(&self) -> Result<BTreeSet<Sha256>, WindowsError>;

    /// Whether Windows can decode a certificate, given in DER form. A certificate that it cannot decode can never be
    /// added.
    fn takes(&self, der: &[u8]) -> Result<bool, WindowsError>;

    /// Adds a certificate, given in DER form; it may already be there.
    fn add(&self, der: &[u8]) -> Result<(), WindowsError>;

    /// Whether the store differs from its content before the first change through this trait since the host started, so
    /// that programs may still trust the old roots. Kept as [`Environment`](super::Environment) keeps its changes.
    fn changed_since_boot(&self) -> Result<bool, WindowsError>;

    /// Removes the certificate with this SHA-256 of its DER form; returns whether it existed.
    fn remove(&self, sha256: Sha256) -> Result<bool, WindowsError>;
}
