//! Reports of hosts about themselves, from probes, by the address that they are listed under.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;
use wmco_core::fleet::{LoginResult, LoginTry};
use wmco_core::instances::{Entries, EntryError, Instance, Problem};
use wmco_core::protocol::Probe;

/// The reports so far; cheap to clone.
#[derive(Clone, Debug)]
pub struct HostReports {
    reports: Arc<Mutex<BTreeMap<String, HostReport>>>,
    /// Entries whose hosts were tried in vain.
    tried: Arc<Mutex<BTreeSet<String>>>,
    /// Since they were taken last.
    logins: Arc<Mutex<Vec<LoginReport>>>,
    changed: watch::Sender<u64>,
}

/// What came of a login to the host of an instance.
#[derive(Clone, Debug)]
pub struct LoginReport {
    /// What the instance is known by.
    pub instance: String,
    /// Where, and with which keys.
    pub login: LoginTry,
    /// What came of it.
    pub result: LoginResult,
    /// From when to when that took.
    pub tried: Range<Instant>,
}

/// What a host says of itself. It counts for that host alone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostReport {
    /// Where it was asked; at another address there may be another host.
    pub at: Option<Ipv4Addr>,
    /// Its host name, as Windows spells it; empty if it is none.
    pub host_name: String,
    /// Its name in the metadata service of its cloud, if the kubelet takes its name from there.
    pub metadata_name: Option<String>,
    /// The addresses of its interfaces, of both families.
    pub addresses: Vec<IpAddr>,
}

impl HostReport {
    /// What `probe` says of the host that was asked at `at`. It may say anything; what is no name helps nobody.
    pub fn of(probe: &Probe, at: Option<Ipv4Addr>) -> Self {
        Self {
            at,
            host_name: probe.valid_host_name().unwrap_or_default().to_owned(),
            metadata_name: probe.valid_metadata_name().map(str::to_owned),
            addresses: probe.all_addresses().collect(),
        }
    }

    /// Its names: that of Windows and that of the cloud.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let host_name = Some(self.host_name.as_str()).filter(|name| !name.is_empty());
        host_name.into_iter().chain(self.metadata_name.as_deref())
    }
}

impl HostReports {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            reports: Arc::default(),
            tried: Arc::default(),
            logins: Arc::default(),
            changed: watch::channel(0).0,
        }
    }

    /// Remembers what the host that is listed as `address` says of itself. A machine keeps its name in the cloud, so one
    /// question without an answer there takes no name away.
    pub fn set(&self, address: &str, mut report: HostReport) {
        report.addresses.sort_unstable();
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if report.metadata_name.is_none() {
            let before = reports.get(address);
            let same = before
                .filter(|before| (before.at, &before.host_name) == (report.at, &report.host_name));
            report.metadata_name = same.and_then(|before| before.metadata_name.clone());
        }
        if reports.get(address) != Some(&report) {
            reports.insert(address.to_owned(), report);
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// The name that the host listed as `address` reported.
    pub fn host_name(&self, address: &str) -> Option<String> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        Some(reports.get(address)?.host_name.clone()).filter(|name| !name.is_empty())
    }

    /// Reports of hosts that are listed, unless the entry leads to another address by now.
    pub fn of_listed(&self, entries: &Entries) -> BTreeMap<String, HostReport> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let is_at =
            |entry: &Instance, report: &HostReport| report.at.is_none_or(|at| at == entry.ipv4);
        let counts = |address: &str, report: &HostReport| match entries.get(address) {
            Some(Ok(entry)) => is_at(entry, report),
            // It leads to the host of the other entry.
            Some(Err(EntryError { problem: Problem::Duplicate { first }, .. })) => {
                let first = entries.get(first).and_then(|entry| entry.as_ref().ok());
                first.is_some_and(|first| is_at(first, report))
            }
            // It may be the DNS that does not answer.
            Some(Err(_)) => true,
            None => false,
        };
        let listed = reports.iter().filter(|(address, report)| counts(address, report));
        listed.map(|(address, report)| (address.clone(), report.clone())).collect()
    }

    /// Reports of the hosts of Machines that are at these addresses, by the keys of the Machines.
    pub fn of_machines(
        &self,
        hosts: impl IntoIterator<Item = (String, Ipv4Addr)>,
    ) -> BTreeMap<String, HostReport> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let report = |(key, ipv4): (String, Ipv4Addr)| {
            let report = reports.get(&key)?;
            report.at.is_none_or(|at| at == ipv4).then(|| (key, report.clone()))
        };
        hosts.into_iter().filter_map(report).collect()
    }

    /// Notes what came of a login to the host of an instance, which `began` then and has just ended.
    pub fn logged_in(&self, instance: &str, login: LoginTry, result: LoginResult, began: Instant) {
        let (instance, tried) = (instance.to_owned(), began..Instant::now());
        let login = LoginReport { instance, login, result, tried };
        self.logins.lock().unwrap_or_else(PoisonError::into_inner).push(login);
        if result != LoginResult::Accepted {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// What came of logins since they were taken last.
    pub fn take_logins(&self) -> Vec<LoginReport> {
        std::mem::take(&mut *self.logins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that somebody tried to look at the host listed as `address`, in vain.
    pub fn tried(&self, address: &str) {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if tried.insert(address.to_owned()) {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Those of `addresses` whose hosts nobody has tried to look at in vain; the others are
    /// forgotten when they are not asked for.
    pub fn never_contacted<'a>(
        &self,
        addresses: impl Iterator<Item = &'a str>,
    ) -> BTreeSet<String> {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, never_contacted): (BTreeSet<_>, BTreeSet<_>) =
            addresses.map(str::to_owned).partition(|address| tried.contains(address));
        *tried = known;
        never_contacted
    }

    /// Forgets what the host that is listed as `address` said: another one is there, or it was reinstalled.
    pub fn forget(&self, address: &str) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
    }

    /// Forgets what hosts said that are not in `known` any more.
    pub fn keep_only(&self, known: impl Fn(&str) -> bool) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.retain(|address, _| known(address));
    }

    /// Counts changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

impl Default for HostReports {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use wmco_core::instances::{Resolutions, parse};

    use super::*;

    #[test]
    fn a_name_in_the_cloud_outlasts_a_question_without_an_answer() {
        let reports = HostReports::new();
        let named = |at: u8, host_name: &str, metadata_name: Option<&str>| HostReport {
            at: Some([10, 0, 0, at].into()),
            host_name: host_name.to_owned(),
            metadata_name: metadata_name.map(str::to_owned),
            addresses: Vec::new(),
        };
        let known = |report: HostReport| {
            reports.set("10.0.0.2", report);
            reports.reports.lock().unwrap()["10.0.0.2"].metadata_name.clone()
        };
        let name = Some("w-1.corp.example".to_owned());
        assert_eq!(known(named(2, "EC2-1", name.as_deref())), name);
        assert_eq!(known(named(2, "EC2-1", None)), name);
        // Another machine.
        assert_eq!(known(named(2, "EC2-2", None)), None);
        assert_eq!(known(named(2, "EC2-2", name.as_deref())), name);
        assert_eq!(known(named(3, "EC2-2", None)), None);
    }

    #[test]
    fn what_a_host_said_is_forgotten_with_its_key() {
        let reports = HostReports::new();
        for address in ["10.0.0.1", "10.0.0.2"] {
            reports.set(
                address,
                HostReport { host_name: address.to_owned(), ..HostReport::default() },
            );
        }
        reports.forget("10.0.0.1");
        assert_eq!(reports.host_name("10.0.0.1"), None);
        assert_eq!(reports.host_name("10.0.0.2").as_deref(), Some("10.0.0.2"));
    }

    /// Whoever has the DNS leads the key of one entry to the host of another.
    #[test]
    fn a_report_does_not_count_for_a_name_that_leads_elsewhere_now() {
        let reports = HostReports::new();
        let at = Some(Ipv4Addr::new(10, 0, 0, 2));
        reports.set("b.test", HostReport { at, ..HostReport::default() });
        let counts = |ipv4: [u8; 4]| {
            let mut answers = Resolutions::default();
            answers.insert("b.test", Ok(ipv4.into()));
            let data = [("10.0.0.1", "username=a"), ("b.test", "username=a")];
            reports.of_listed(&parse(data, &answers)).contains_key("b.test")
        };
        assert!(counts([10, 0, 0, 2]));
        assert!(!counts([10, 0, 0, 3]));
        assert!(!counts([10, 0, 0, 1]), "another entry has that host");
    }
}
