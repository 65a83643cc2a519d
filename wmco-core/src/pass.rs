//! One pass over all instances: what the world shows becomes work for each worker, records to write, and what people hear.
//!
//! The operator fills a [`World`] in and carries a [`Pass`] out, and so does the model of which its promises are proven:
//! between both, nothing is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::fleet::{Assignment, Assignments, Desired, Intent, Memory, Observed};
use crate::host_record::{HostRecord, KnownHosts, RecordChange};
use crate::login_keys::LoginKeys;
use crate::node::{InstanceInputs, Login, Order, Release};
use crate::reach::forgotten_jump_keys;
use crate::upgradeable::Standing;

/// What one pass goes by.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// What people and the Machine API want, of a cluster for which something can be rendered.
    pub desired: Desired<'a>,
    /// What there is.
    pub observed: Observed<'a>,
    /// What hosts get; `None` while it cannot be rendered, so that nobody can tell what a node needs.
    pub release: Option<&'a Arc<Release>>,
    /// What is needed to clean hosts meanwhile.
    pub release_to_leave: Option<&'a Arc<Release>>,
    /// The names of Windows that hosts reported, by address.
    pub reported: &'a BTreeMap<String, String>,
}

/// Encrypted user names of instances. An effect of its own, since it takes random bytes.
pub trait UserNames {
    /// Why a name cannot be encrypted.
    type Error;

    /// The user name of an instance, encrypted; `None` if it is not needed. The one in use, if any, is decrypted.
    ///
    /// # Errors
    /// It cannot be encrypted now.
    fn sealed(
        &mut self,
        assignment: &Assignment<'_>,
        hosts: &KnownHosts,
        keys: &LoginKeys,
    ) -> Result<Option<String>, Self::Error>;

    /// A user name that was decrypted before.
    fn opened(&self, text: &str) -> Option<String>;
}

/// What follows from one pass.
#[derive(Debug)]
#[must_use = "a pass does nothing until an executor carries it out"]
pub struct Pass<'a, E> {
    /// The decisions about all instances. Its changes and forgotten keys are in `records` and `forgotten_keys`.
    pub decided: Assignments<'a>,
    /// Addresses of instances that have a worker. All other workers end after their step.
    pub workers: BTreeSet<String>,
    /// What workers go by from now on, by address. Those without work go by what they have.
    pub work: BTreeMap<String, Work>,
    /// Addresses of those without work and without a permit. One that they have may be another node's now, so they go on
    /// [without it](crate::fleet::Intent::without_permit).
    pub without_permit: BTreeSet<String>,
    /// Changes of records. Nothing is done with these hosts before, since it is needed to undo the work.
    pub records: BTreeMap<String, RecordChange>,
    /// Unused keys in the ConfigMap of host keys.
    pub forgotten_keys: BTreeSet<String>,
    /// How all instances stand.
    pub standings: Vec<Standing>,
    /// Instances whose user names cannot be encrypted, and why.
    pub not_sealed: BTreeMap<String, E>,
}

/// The work of one instance's worker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Work {
    /// What it goes by.
    pub inputs: InstanceInputs,
    /// Former listed addresses of the same host.
    formerly: Vec<String>,
}

/// Decides about all instances, and what follows for their workers. Times are those of the clock of `memory`.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use wmco_core::cluster_identity::ClusterIdentity;
/// use wmco_core::digest::Sha256;
/// use wmco_core::fleet::{Assignment, Desired, Memory, Observed};
/// use wmco_core::host_record::KnownHosts;
/// use wmco_core::instances::{Resolutions, parse};
/// use wmco_core::login_keys::LoginKeys;
/// use wmco_core::node::Release;
/// use wmco_core::pass::{UserNames, World, pass};
///
/// struct Sealed;
///
/// impl UserNames for Sealed {
///     type Error = Infallible;
///
///     fn sealed(
///         &mut self,
///         _: &Assignment<'_>,
///         _: &KnownHosts,
///         _: &LoginKeys,
///     ) -> Result<Option<String>, Infallible> {
///         Ok(Some("encrypted".to_owned()))
///     }
///
///     fn opened(&self, _: &str) -> Option<String> {
///         None
///     }
/// }
///
/// // One host is listed, and nothing is known of it.
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let keys = LoginKeys::one(Sha256::of(b"public key"));
/// let cluster = ClusterIdentity::new("11111111-aaaa");
/// let release = Arc::new(Release::new("2.0.0", Sha256::of(b"agent"), cluster));
/// let world = World {
///     desired: Desired { keys: Some(&keys), ..Desired::new(Some(&entries), "2.0.0") },
///     observed: Observed::new(&[]),
///     release: Some(&release),
///     release_to_leave: None,
///     reported: &BTreeMap::new(),
/// };
/// let out = pass(&mut Memory::default(), &world, &mut Sealed, Duration::ZERO);
/// // What is needed to clean it is put on record before anything is done there.
/// assert!(out.records.contains_key("10.0.0.5") && out.work.is_empty());
/// ```
pub fn pass<'a, N: UserNames>(
    memory: &mut Memory,
    world: &World<'a>,
    names: &mut N,
    now: Duration,
) -> Pass<'a, N::Error> {
    let World { observed, release, .. } = world;
    let blocked = world.desired.blocked || release.is_none();
    let desired = Desired { blocked, ..world.desired };
    let mut decided = memory.pass(&desired, observed, now);
    let workable = desired.keys.is_some() && release.is_some();
    let standings = Standing::of(&decided, desired.version, observed.hosts, workable);
    let mut forgotten_keys = std::mem::take(&mut decided.forgotten_keys);
    forgotten_keys.extend(
        desired.entries.into_iter().flat_map(|all| forgotten_jump_keys(all, observed.hosts)),
    );
    let mut out = Pass {
        workers: BTreeSet::new(),
        work: BTreeMap::new(),
        without_permit: BTreeSet::new(),
        records: std::mem::take(&mut decided.changes),
        forgotten_keys,
        standings,
        not_sealed: BTreeMap::new(),
        decided,
    };
    // Without both nobody can tell a worker what people want of a host now.
    if let (Some(release), Some(keys)) = (release.or(world.release_to_leave), desired.keys) {
        direct(world, release, keys, names, &mut out);
    }
    out
}

/// Hands each instance to its worker once what is needed to clean its host later is on record.
fn direct<N: UserNames>(
    world: &World<'_>,
    release: &Arc<Release>,
    keys: &LoginKeys,
    names: &mut N,
    out: &mut Pass<'_, N::Error>,
) {
    let hosts = world.observed.hosts;
    for assignment in out.decided.instances.iter().filter(|it| it.is_wanted()) {
        let address = &assignment.address;
        out.workers.insert(address.clone());
        if !assignment.is_due(world.release.is_some()) {
            continue;
        }
        let username = match names.sealed(assignment, hosts, keys) {
            Ok(username) => username,
            Err(error) => {
                out.not_sealed.insert(address.clone(), error);
                continue;
            }
        };
        let login = Login {
            keys,
            rotation: out.decided.rotation.as_ref(),
            username: username.as_deref(),
            decrypt: &|text| names.opened(text),
        };
        let reported = world.reported.get(address).map(String::as_str);
        match Order::of(assignment, release, hosts, login, reported) {
            Order::Record(change) => drop(out.records.insert(address.clone(), change)),
            Order::Work(inputs) => {
                let formerly = assignment.formerly.clone();
                out.work.insert(address.clone(), Work { inputs: *inputs, formerly });
            }
        }
    }
    let wanted = out.decided.instances.iter().filter(|it| it.is_wanted());
    let left = wanted.filter(|it| !out.work.contains_key(&it.address));
    let without_permit = left.filter(|it| it.intent.without_permit().is_none());
    out.without_permit = without_permit.map(|it| it.address.clone()).collect();
}

impl Work {
    /// Whether a new worker has to wait until the workers at the `ending` addresses have ended, because one of them
    /// may work on the same host. A host that was never logged in to, and a host to be removed, may be any of them.
    pub fn has_to_wait_for(&self, ending: &BTreeSet<&str>) -> bool {
        let record: Option<&HostRecord> = self.inputs.record.as_ref();
        let may_be_any = record.is_none_or(|record| record.pinned.is_none())
            || matches!(self.inputs.desired.intent, Intent::Remove(_));
        let mut own = std::iter::once(&self.inputs.address).chain(&self.formerly);
        may_be_any && !ending.is_empty() || own.any(|address| ending.contains(address.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_identity::ClusterIdentity;
    use crate::digest::Sha256;
    use crate::facts::NodeFacts;
    use crate::instances::{Entries, Resolutions, parse};
    use crate::names;

    /// `None`: there are no random bytes.
    struct Sealing(Option<&'static str>);

    impl UserNames for Sealing {
        type Error = &'static str;

        fn sealed(
            &mut self,
            _: &Assignment<'_>,
            _: &KnownHosts,
            _: &LoginKeys,
        ) -> Result<Option<String>, &'static str> {
            self.0.map(|text| Some(text.to_owned())).ok_or("no random bytes")
        }

        fn opened(&self, text: &str) -> Option<String> {
            Some(text.to_owned())
        }
    }

    /// A listed host, another one that is no longer listed, and what is there for them.
    struct Cluster {
        entries: Entries,
        hosts: KnownHosts,
        keys: Option<LoginKeys>,
        release: Option<Arc<Release>>,
        release_to_leave: Option<Arc<Release>>,
        sealing: Sealing,
        nodes: Vec<NodeFacts>,
        /// Nodes that ask for a permit.
        claims: BTreeSet<String>,
    }

    const LISTED: &str = "10.0.0.5";
    const LEFT: &str = "10.0.0.6";

    impl Cluster {
        fn new() -> Self {
            let cluster = ClusterIdentity::new("11111111-aaaa");
            let release = Arc::new(Release::new("2.0.0", Sha256::of(b"agent"), cluster));
            let record = |address| {
                let record = format!(
                    r#"{{"ipv4": "{address}", "username": "sealed", "pinned": "SHA256:{address}"}}"#
                );
                (HostRecord::key_name(address), record)
            };
            Self {
                entries: parse([(LISTED, "username=core")], &Resolutions::default()),
                hosts: KnownHosts::read([record(LISTED), record(LEFT)]),
                keys: Some(LoginKeys::one(Sha256::of(b"public key"))),
                release: Some(Arc::clone(&release)),
                release_to_leave: Some(release),
                sealing: Sealing(Some("sealed")),
                nodes: Vec::new(),
                claims: BTreeSet::new(),
            }
        }

        /// The listed host is a node and gets a permit.
        fn permitted(&mut self) {
            let os = (names::OS_LABEL.to_owned(), names::OS_WINDOWS.to_owned());
            self.nodes.push(NodeFacts {
                name: "win-5".into(),
                addresses: vec![LISTED.into()],
                labels: [os, (names::BYOH_LABEL.to_owned(), names::TRUE.to_owned())].into(),
                ready: true,
                ..NodeFacts::default()
            });
            self.claims.insert("win-5".into());
        }

        /// Who has a worker, who has work for it, and what is put on record.
        fn told(&mut self) -> String {
            let nobody = BTreeMap::new();
            let world = World {
                desired: Desired {
                    keys: self.keys.as_ref(),
                    ..Desired::new(Some(&self.entries), "2.0.0")
                },
                observed: Observed {
                    hosts: &self.hosts,
                    claims: &self.claims,
                    ..Observed::new(&self.nodes)
                },
                release: self.release.as_ref(),
                release_to_leave: self.release_to_leave.as_ref(),
                reported: &nobody,
            };
            let mut memory = Memory::default();
            let out = pass(&mut memory, &world, &mut self.sealing, Duration::ZERO);
            let verb = |address: &String| match out.work.get(address) {
                Some(work) => work.inputs.desired.intent.verb(),
                None if out.without_permit.contains(address) => "rests without a permit",
                None => "rests",
            };
            let workers = out.workers.iter().map(|it| format!("{it} {}", verb(it)));
            let records = out.records.keys().map(|it| format!("{it} on record"));
            let not_sealed = out.not_sealed.iter().map(|(it, why)| format!("{it}: {why}"));
            workers.chain(records).chain(not_sealed).collect::<Vec<_>>().join(", ")
        }
    }

    #[test]
    fn each_worker_gets_its_work() {
        type Change = fn(&mut Cluster);
        let rows: [(Change, &str); 7] = [
            (|_| {}, "10.0.0.5 configure, 10.0.0.6 remove"),
            (
                |it| it.hosts = KnownHosts::default(),
                "10.0.0.5 rests without a permit, 10.0.0.5 on record",
            ),
            (|it| it.release = None, "10.0.0.6 remove"),
            (
                |it| {
                    it.release = None;
                    it.release_to_leave = None;
                },
                "",
            ),
            (|it| it.keys = None, ""),
            (
                |it| it.sealing.0 = None,
                "10.0.0.5 rests without a permit, 10.0.0.6 rests without a permit, 10.0.0.5: no random bytes, \
                 10.0.0.6: no random bytes",
            ),
            (
                |it| {
                    it.permitted();
                    it.sealing.0 = None;
                },
                "10.0.0.5 rests, 10.0.0.6 rests without a permit, 10.0.0.5: no random bytes, \
                 10.0.0.6: no random bytes",
            ),
        ];
        for (change, expected) in rows {
            let mut cluster = Cluster::new();
            change(&mut cluster);
            assert_eq!(cluster.told(), expected);
        }
    }

    /// A host has one worker; by an address at which nobody was yet it may be any host.
    #[test]
    fn a_worker_waits_for_those_that_may_be_at_its_host() {
        let cluster = Cluster::new();
        let (release, hosts, keys) =
            (cluster.release.unwrap(), cluster.hosts, cluster.keys.unwrap());
        let desired = Desired::new(Some(&cluster.entries), "2.0.0");
        let decided =
            crate::fleet::reconcile(&desired, &Observed { hosts: &hosts, ..Observed::new(&[]) });
        let login = Login { keys: &keys, rotation: None, username: None, decrypt: &|_| None };
        let inputs = InstanceInputs::of(&decided.instances[0], &release, &hosts, login);
        let known = HostRecord { pinned: Some("SHA256:x".into()), ..HostRecord::default() };
        let waits = |intent: Intent, record: Option<&HostRecord>, ending: &[&'static str]| {
            let mut inputs = inputs.clone();
            (inputs.desired.intent, inputs.record) = (intent, record.cloned());
            let work = Work { inputs, formerly: vec!["old.example".into()] };
            work.has_to_wait_for(&ending.iter().copied().collect())
        };
        let (unseen, configure) = (HostRecord::default(), || Intent::Configure(None));
        assert!(waits(configure(), Some(&known), &[LISTED]));
        assert!(waits(configure(), Some(&known), &["old.example"]));
        assert!(!waits(configure(), Some(&known), &["10.0.0.9"]));
        assert!(waits(configure(), Some(&unseen), &["10.0.0.9"]));
        assert!(waits(configure(), None, &["10.0.0.9"]));
        assert!(waits(Intent::Remove(None), Some(&known), &["10.0.0.9"]));
        assert!(!waits(Intent::Remove(None), None, &[]));
    }
}
