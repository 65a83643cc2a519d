//! What hosts reported of themselves in probes, by the address that they are listed under.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// What was learned so far; cheap to clone.
#[derive(Clone, Debug)]
pub struct Learned {
    reports: Arc<Mutex<BTreeMap<String, HostReport>>>,
    changed: watch::Sender<u64>,
}

/// What a host says of itself. It counts for that host alone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostReport {
    /// Where it was asked; at another address there may be another host.
    pub at: Option<Ipv4Addr>,
    /// Its host name, as Windows spells it.
    pub host_name: String,
    /// The addresses of its interfaces.
    pub addresses: Vec<Ipv4Addr>,
}

impl Learned {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { reports: Arc::default(), changed: watch::channel(0).0 }
    }

    /// Remembers what the host that is listed as `address` says of itself.
    pub fn set(&self, address: &str, mut report: HostReport) {
        report.addresses.sort_unstable();
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.get(address) != Some(&report) {
            reports.insert(address.to_owned(), report);
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Everything learned.
    pub fn all(&self) -> BTreeMap<String, HostReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The host names in it.
    pub fn host_names(&self) -> BTreeMap<String, String> {
        let names = self.all().into_iter();
        names.map(|(address, report)| (address, report.host_name)).collect()
    }

    /// Counts changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

impl Default for Learned {
    fn default() -> Self {
        Self::new()
    }
}
