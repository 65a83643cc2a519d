//! Names and addresses of instances, resolved beside the reconcile passes and kept for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use tokio::sync::watch;
use wmco_core::instances::{self, Resolutions, Unresolved};
use wmco_core::limits;

/// Questions that are asked side by side; each holds a thread.
const SIDE_BY_SIDE: usize = 32;

/// Answers so far; cheap to clone.
#[derive(Clone)]
pub struct Resolver {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
    dns: Dns,
}

/// Gives all addresses of a name, in the order in which the DNS gives them.
pub type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Gives the name of an address, or the address itself, as the system's resolver does.
pub type ReverseLookup = Arc<dyn Fn(IpAddr) -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// Where names and addresses are looked up.
#[derive(Clone)]
pub struct Dns {
    /// From names to addresses.
    pub forward: Lookup,
    /// From addresses to names.
    pub reverse: ReverseLookup,
}

impl Dns {
    /// Asks the system.
    pub fn system() -> Self {
        Self {
            forward: Arc::new(|name| Box::pin(addresses_of(name))),
            reverse: Arc::new(|address| Box::pin(system_name_of(address))),
        }
    }

    /// Knows no name and asks nobody: for clusters that are made up.
    pub fn none() -> Self {
        Self {
            forward: Arc::new(|_| Box::pin(ready(Err(std::io::ErrorKind::NotFound.into())))),
            reverse: Arc::new(|_| Box::pin(ready(None))),
        }
    }
}

#[derive(Default)]
struct State {
    answers: Resolutions,
    names: Round<String>,
    addresses: Round<Ipv4Addr>,
    reported: Round<String>,
    leads: Leads,
    requested: Round<IpAddr>,
    pointers: Pointers,
}

/// Names that were looked up, and all addresses that they lead to.
pub type Leads = BTreeMap<String, Vec<IpAddr>>;

/// Addresses that were looked up, and the names that they have, whether or not these lead back.
pub type Pointers = BTreeMap<IpAddr, Vec<String>>;

/// Questions of one sort. They are asked in rounds, one at a time: a DNS that is slow gets no more
/// of them by that.
struct Round<Q> {
    questions: BTreeSet<Q>,
    asked_at: Option<Timestamp>,
    runs: bool,
    /// Others were wanted while it ran.
    behind: bool,
}

impl<Q> Default for Round<Q> {
    fn default() -> Self {
        Self { questions: BTreeSet::new(), asked_at: None, runs: false, behind: false }
    }
}

impl<Q: Clone + Ord> Round<Q> {
    /// The questions of a round that begins now, if one is due.
    fn begin(&mut self, wanted: BTreeSet<Q>, now: Timestamp) -> Option<BTreeSet<Q>> {
        let old = |at: Timestamp| now.duration_since(at) > limits::NAME_LIFETIME;
        let due = wanted != self.questions || self.asked_at.is_some_and(old);
        self.behind |= due && self.runs;
        if !due || self.runs {
            return None;
        }
        self.questions.clone_from(&wanted);
        self.asked_at = Some(now);
        self.runs = !wanted.is_empty();
        self.runs.then_some(wanted)
    }

    /// Whether there is more to ask.
    fn end(&mut self) -> bool {
        self.runs = false;
        std::mem::take(&mut self.behind)
    }
}

impl Resolver {
    /// No answers yet; asks `dns`.
    pub fn new(dns: Dns) -> Self {
        Self { state: Arc::default(), changed: watch::channel(0).0, dns }
    }

    /// The answers so far about the hosts that are listed in `data`. Those without an answer, or
    /// with an old one, are looked up meanwhile; [`Self::changes`] reports a change.
    pub fn answers(&self, data: &BTreeMap<String, String>, now: Timestamp) -> Resolutions {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = state.names.begin(instances::names(data), now) {
            tokio::spawn(self.clone().look_up(names));
        }
        if let Some(addresses) = state.addresses.begin(instances::addresses(data), now) {
            tokio::spawn(self.clone().look_up_reverse(addresses));
        }
        state.answers.clone()
    }

    /// Where `names` lead, as far as they were looked up: a name that leads nowhere, or that the DNS
    /// fails for, has no addresses. Otherwise as [`Self::answers`].
    pub fn leads(&self, names: BTreeSet<String>, now: Timestamp) -> Leads {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = state.reported.begin(names, now) {
            tokio::spawn(self.clone().look_up_reported(names));
        }
        state.leads.clone()
    }

    /// The names of `addresses`, as far as they were looked up. Otherwise as [`Self::leads`].
    pub fn pointers(&self, addresses: BTreeSet<IpAddr>, now: Timestamp) -> Pointers {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = state.requested.begin(addresses, now) {
            tokio::spawn(self.clone().look_up_requested(addresses));
        }
        state.pointers.clone()
    }

    /// Tells of new answers, and when it is time to ask again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    async fn look_up(self, names: BTreeSet<String>) {
        let found: Vec<_> = stream::iter(names)
            .map(|name| async { (self.ask(&name).await, name) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect()
            .await;
        self.take(|state| {
            for (answer, name) in found {
                state.answers.insert(&name, answer);
            }
            state.names.end()
        });
    }

    async fn look_up_reverse(self, addresses: BTreeSet<Ipv4Addr>) {
        let this = &self;
        let found: Vec<_> = stream::iter(addresses)
            .map(|address| async move { (address, this.name_of(address).await) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect()
            .await;
        self.take(|state| {
            for (address, name) in found {
                state.answers.insert_reverse(address.into(), name.into_iter().collect());
            }
            state.addresses.end()
        });
    }

    /// Each answer counts as soon as it is there: a DNS that is slow holds up nobody else.
    async fn look_up_reported(self, names: BTreeSet<String>) {
        let mut found = stream::iter(names.clone())
            .map(|name| async {
                let mut addresses = (self.dns.forward)(name.clone()).await.unwrap_or_default();
                // Servers give them in turns, which is no change.
                addresses.sort_unstable();
                (name, addresses)
            })
            .buffer_unordered(SIDE_BY_SIDE);
        while let Some((name, addresses)) = found.next().await {
            self.take(|state| {
                state.leads.insert(name, addresses);
                false
            });
        }
        self.take(|state| {
            state.leads.retain(|name, _| names.contains(name));
            state.reported.end()
        });
    }

    async fn look_up_requested(self, addresses: BTreeSet<IpAddr>) {
        let this = &self;
        let mut found = stream::iter(addresses.clone())
            .map(|address| async move { (address, this.pointer(address).await) })
            .buffer_unordered(SIDE_BY_SIDE);
        while let Some((address, name)) = found.next().await {
            self.take(|state| {
                state.pointers.insert(address, name.into_iter().collect());
                false
            });
        }
        self.take(|state| {
            state.pointers.retain(|address, _| addresses.contains(address));
            state.requested.end()
        });
    }

    /// Tells of a change when the answers are others now, or `answer` says that more is to be asked.
    fn take(&self, answer: impl FnOnce(&mut State) -> bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (state.answers.clone(), state.leads.clone(), state.pointers.clone());
        let behind = answer(&mut state);
        let after = (&state.answers, &state.leads, &state.pointers);
        if behind || after != (&before.0, &before.1, &before.2) {
            self.changed.send_modify(|count| *count += 1);
        }
    }
}

impl Resolver {
    async fn ask(&self, name: &str) -> Result<Ipv4Addr, Unresolved> {
        let all = (self.dns.forward)(name.to_owned()).await.map_err(|error| {
            // The system's resolver does not tell "no such name" from "no answer".
            Unresolved::Failed { reason: error.to_string() }
        })?;
        let first = all.into_iter().find_map(|address| match address {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        });
        first.ok_or(Unresolved::NoIpv4)
    }

    /// The name of `address`, if it has one that leads back to it: the operator of a reverse zone could
    /// claim any. Source: `docs/contract/certificate-requests.md`, CSR42.
    async fn name_of(&self, address: Ipv4Addr) -> Option<String> {
        let name = self.pointer(address.into()).await?;
        let addresses = (self.dns.forward)(name.clone()).await.ok()?;
        addresses.contains(&IpAddr::V4(address)).then_some(name)
    }

    /// The name of `address`. Without one, the system's resolver gives the address itself.
    async fn pointer(&self, address: IpAddr) -> Option<String> {
        let name = (self.dns.reverse)(address).await?;
        name.parse::<IpAddr>().is_err().then_some(name)
    }
}

async fn addresses_of(name: String) -> std::io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, 0)).await?;
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
    addresses.dedup();
    Ok(addresses)
}

async fn system_name_of(address: IpAddr) -> Option<String> {
    let look_up = move || dns_lookup::lookup_addr(&address).ok();
    tokio::task::spawn_blocking(look_up).await.ok()?
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use wmco_core::instances::Resolve as _;

    use super::*;

    #[test]
    fn a_round_waits_for_the_one_before() {
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let (one, two) = (BTreeSet::from([1]), BTreeSet::from([1, 2]));
        let mut round = Round::default();
        assert_eq!(round.begin(BTreeSet::new(), at(0)), None, "nothing to ask");
        assert_eq!(round.begin(one.clone(), at(0)), Some(one.clone()));
        assert_eq!(round.begin(one.clone(), at(1)), None, "asked just now");
        assert!(!round.end(), "nobody wanted more");
        assert_eq!(round.begin(one.clone(), at(2)), None, "the answers are fresh");
        assert_eq!(round.begin(one.clone(), at(61)), Some(one.clone()));
        assert_eq!(round.begin(two.clone(), at(62)), None, "it runs");
        assert_eq!(round.begin(one, at(200)), None, "it still runs");
        assert!(round.end());
        assert_eq!(round.begin(two.clone(), at(201)), Some(two));
    }

    #[tokio::test]
    async fn names_that_lead_nowhere_were_looked_up_too() {
        let resolver = Resolver::new(Dns::system());
        let mut changes = resolver.changes();
        let names = BTreeSet::from(["localhost".to_owned(), "no such name".to_owned()]);
        let mut leads = resolver.leads(names.clone(), Timestamp::UNIX_EPOCH);
        assert!(leads.is_empty());
        while leads.len() < names.len() {
            changes.changed().await.unwrap();
            leads = resolver.leads(names.clone(), Timestamp::UNIX_EPOCH);
        }
        assert!(leads["localhost"].contains(&Ipv4Addr::LOCALHOST.into()));
        assert!(leads["no such name"].is_empty());
    }

    /// Every system knows these two, without a network.
    #[tokio::test]
    async fn names_and_addresses_are_looked_up_once() {
        let resolver = Resolver::new(Dns::system());
        let mut changes = resolver.changes();
        let hosts = ["127.0.0.1", "localhost"];
        let data = hosts.map(|host| (host.to_owned(), String::new())).into();
        let now = Timestamp::UNIX_EPOCH;
        let loopback = Ipv4Addr::LOCALHOST;
        let mut answers = resolver.answers(&data, now);
        assert_eq!(answers.resolve("localhost"), Err(Unresolved::Pending));
        // Either may be known first.
        let is_pending = |answers: &Resolutions| {
            answers.reverse(loopback.into()).is_empty()
                || answers.resolve("localhost") == Err(Unresolved::Pending)
        };
        while is_pending(&answers) {
            changes.changed().await.unwrap();
            answers = resolver.answers(&data, now);
        }
        assert_eq!(answers.resolve("localhost"), Ok(loopback));
        assert_eq!(answers.reverse(loopback.into()), ["localhost"]);
    }
}
