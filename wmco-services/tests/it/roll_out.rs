//! Tests proxies and certificates on their way to nodes, in all orders: the decisions of fleet, node, agent and daemon
//! together, on two hosts in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{self, Intent};
use wmco_core::instances::{Resolutions, parse};
use wmco_core::limits;
use wmco_core::names::{self, host, objects};
use wmco_core::node::{
    self, Action, Desired, DesiredFile, DrainMarks, DrainSeen, HostSeen, KnownAs, NodeMarks,
    NodePatch, Release, claims_slot,
};
use wmco_core::protocol::{
    Access, AgentLocation, HostPlan, ServiceRunState, staged_agent, staged_content, staged_plan,
};
use wmco_core::winpath::WindowsPath;
use wmco_services::agent::Agent;
use wmco_services::certs::Bundle;
use wmco_services::daemon::{self, NodeIntent, PassContext, Released, pass};
use wmco_services::fake::FakeWindows;
use wmco_services::manifest::{Manifest, Parts, Service};
use wmco_services::services::ScriptResults;
use wmco_services::windows::{ServiceManager as _, Windows as _};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const VERSION: &str = "1.0.0";
const AGENT: &[u8] = b"agent";

/// Bound on the rounds until everything is settled.
const ROUNDS: usize = 60;

fn path(text: &str) -> WindowsPath {
    text.parse().expect("a constant path is valid")
}

/// The desired state of the nodes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Wanted {
    proxy: Option<&'static str>,
    registry: bool,
}

/// A change of the desired state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    ProxyOn,
    ProxyChanged,
    ProxyOff,
    CaAdded,
    CaRemoved,
}

const CHANGES: [Change; 5] =
    [Change::ProxyOn, Change::ProxyChanged, Change::ProxyOff, Change::CaAdded, Change::CaRemoved];

impl Wanted {
    fn after(self, change: Change) -> Self {
        match change {
            Change::ProxyOn => Self { proxy: Some("http://one:1"), ..self },
            Change::ProxyChanged => Self { proxy: self.proxy.map(|_| "http://two:2"), ..self },
            Change::ProxyOff => Self { proxy: None, ..self },
            Change::CaAdded => Self { registry: true, ..self },
            Change::CaRemoved => Self { registry: false, ..self },
        }
    }

    fn manifest(self) -> Manifest {
        let service = |name: &str, needs: &[&str], bootstrap: bool| Service {
            name: name.parse().expect("a name"),
            command: format!("{name} --run"),
            node_variables_in_command: Vec::new(),
            powershell_pre_scripts: Vec::new(),
            dependencies: needs.iter().map(|need| need.parse().expect("a name")).collect(),
            bootstrap,
            priority: u64::from(!bootstrap),
        };
        let variables = self.proxy.map(|proxy| (host::HTTPS_PROXY.to_owned(), proxy.to_owned()));
        Manifest::new(Parts {
            services: vec![service("kubelet", &[], true), service("overlay", &["kubelet"], false)],
            environment: variables.into_iter().collect(),
            watched: host::PROXY_VARIABLES.map(str::to_owned).to_vec(),
            ..Parts::default()
        })
        .expect("a manifest")
    }
}

/// The certificates of the world: one comes with a proxy, one with a registry.
struct Authorities([String; 2]);

impl Authorities {
    fn new() -> Self {
        Self(["proxy", "registry"].map(|name| {
            let key = rcgen::KeyPair::generate().expect("a key");
            let params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
            params.self_signed(&key).expect("a certificate").pem()
        }))
    }

    fn bundle(&self, wanted: Wanted) -> String {
        let Self([proxy, registry]) = self;
        let parts = [(wanted.registry, registry), (wanted.proxy.is_some(), proxy)];
        parts.into_iter().filter(|(is_in, _)| *is_in).map(|(_, pem)| pem.as_str()).collect()
    }
}

/// A host with its Node and the state of its daemon.
struct Member {
    address: String,
    host: FakeWindows,
    node: Option<NodeFacts>,
    released: Released,
    boot: String,
    restarts: usize,
    away: bool,
}

struct World {
    members: Vec<Member>,
    authorities: Authorities,
    /// The roots of Windows itself.
    own_roots: BTreeSet<Sha256>,
    wanted: Wanted,
}

impl World {
    /// Creates two settled nodes.
    fn new() -> Self {
        let members: Vec<Member> = (1..=2).map(Member::new).collect();
        let own_roots = members[0].host.snapshot().roots;
        let wanted = Wanted::default();
        let mut world = Self { members, authorities: Authorities::new(), own_roots, wanted };
        world.settle();
        world.members.iter_mut().for_each(|member| member.restarts = 0);
        world
    }

    fn release(&self) -> Arc<Release> {
        let (manifest, text) = (self.wanted.manifest(), self.authorities.bundle(self.wanted));
        let sha256 = Sha256::of(text.as_bytes());
        let file = DesiredFile { sha256, access: Access::Inherited, live: true };
        Arc::new(Release {
            files: [(path(host::CA_BUNDLE), file)].into(),
            daemon_arguments: vec!["controller".to_owned()],
            manifest: manifest.render(),
            roots: Bundle::parse(text.as_bytes()).digest(),
            bootstrap_services: vec!["kubelet".to_owned()],
            known_manifests: vec![manifest.render()],
            ..Release::new(VERSION, Sha256::of(AGENT), ClusterIdentity::new("ours"))
        })
    }

    /// Returns the desired and observed state of each member.
    fn views(&self) -> Vec<(Desired, node::Observed)> {
        let release = self.release();
        let seen = |member: &Member| {
            let marks = NodeMarks {
                listed_as: Some(&member.address),
                username: "core",
                key_hash: Sha256::of(b"key"),
                host_key: None,
            };
            let known_as = KnownAs { names: BTreeSet::new(), ipv4: member.address.parse().ok() };
            let desired =
                Desired::new(Arc::clone(&release), Intent::Configure(None), known_as, Some(&marks));
            (desired, member.observed())
        };
        self.members.iter().map(seen).collect()
    }

    /// Runs at most one plan of each operator worker, as the fleet permits.
    fn operate(&mut self) {
        let views = self.views();
        let listed: Vec<_> =
            self.members.iter().map(|member| (member.address.as_str(), "username=core")).collect();
        let entries = parse(listed, &Resolutions::default());
        let nodes: Vec<NodeFacts> =
            self.members.iter().filter_map(|member| member.node.clone()).collect();
        let claim = |(desired, observed): &(Desired, node::Observed)| {
            let node = observed.node.as_ref().map(|node| node.name.clone());
            node.filter(|_| claims_slot(desired, observed, NOW) == Some(true))
        };
        let claims: BTreeSet<String> = views.iter().filter_map(claim).collect();
        let assignments = fleet::reconcile(
            &fleet::Desired::new(Some(&entries), VERSION),
            &fleet::Observed { claims: &claims, ..fleet::Observed::new(&nodes) },
        );
        let intents: BTreeMap<String, Intent> = assignments
            .instances
            .iter()
            .map(|instance| (instance.address.clone(), instance.intent.clone()))
            .collect();
        let text = self.authorities.bundle(self.wanted);
        for (member, (desired, observed)) in self.members.iter_mut().zip(views) {
            if !member.away {
                let intent = intents[&member.address].clone();
                member.take(&Desired { intent, ..desired }, &observed, &text);
            }
        }
    }

    /// Lets the operator and each member act once.
    fn round(&mut self) {
        self.operate();
        let data = self.wanted.manifest().render();
        self.members.iter_mut().for_each(|member| member.act(&data));
        // New nodes are cordoned until they are configured; no pod runs there that could be disrupted.
        let out = |member: &&Member| member.node.as_ref().is_some_and(NodeFacts::holds_slot);
        assert!(self.members.iter().filter(out).count() <= 1, "two nodes are disrupted at once");
    }

    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            self.round();
            if self.members.iter().all(|member| member.away || self.is_right(member)) {
                return;
            }
        }
        panic!("{:?} does not come to rest: {:#?}", self.wanted, self.members[0].node);
    }

    /// Whether everything is as desired and in force, and no work is left.
    fn is_right(&self, member: &Member) -> bool {
        let marked = member.node.as_ref().is_some_and(|node| {
            let mark = |name| node.annotation(name);
            mark(names::VERSION_ANNOTATION) == Some(VERSION)
                && mark(names::REBOOT_ANNOTATION).is_none()
                && !node.unschedulable
                && !node.holds_slot()
                && node.ready
        });
        if !marked {
            return false;
        }
        let seen = member.host.snapshot();
        let text = self.authorities.bundle(self.wanted);
        let wanted: BTreeSet<Sha256> =
            Bundle::parse(text.as_bytes()).certificates.keys().copied().collect();
        let roots: BTreeSet<Sha256> = seen.roots.difference(&self.own_roots).copied().collect();
        let windows = member.daemon();
        let in_force = windows.environment().changed_since_boot().expect("known").is_empty()
            && !windows.roots().changed_since_boot().expect("known");
        in_force && roots == wanted && &seen.environment == self.wanted.manifest().environment()
    }

    fn restarts(&mut self) -> Vec<usize> {
        self.members.iter_mut().map(|member| std::mem::take(&mut member.restarts)).collect()
    }
}

impl Member {
    /// Creates a bare host whose root our agent has closed.
    fn new(number: u8) -> Self {
        let bare = FakeWindows::new(&format!("win-{number}"));
        let brought = path(r"C:\Users\me\wmco-0123456789abcdef0123456789abcdef");
        let brought = brought.join(host::UPLOADED_AGENT).expect("a name");
        bare.put_file(&brought, AGENT);
        Agent::new(&bare.running_as(brought), "1", NOW).probe().expect("it takes the root over");
        let host = bare.running_as(staged_agent(Sha256::of(AGENT)));
        Self {
            address: format!("10.0.0.{number}"),
            host,
            node: None,
            released: Released::default(),
            boot: String::new(),
            restarts: 0,
            away: false,
        }
    }

    fn daemon(&self) -> FakeWindows {
        self.host.running_as(path(host::AGENT))
    }

    fn observed(&self) -> node::Observed {
        let probe = Agent::new(&self.host, "1", NOW).probe().expect("the host can be probed");
        let marks = self.node.as_ref().map(|node| DrainMarks::of(node, limits::DRAIN_TIMEOUT, NOW));
        node::Observed {
            node: self.node.clone(),
            drain: DrainSeen { marks: marks.unwrap_or_default(), ..DrainSeen::default() },
            node_sought: true,
            pods: Some(Vec::new()),
            host: HostSeen::Probed(Box::new(probe)),
            on_record: true,
            known_closed: true,
            ..node::Observed::default()
        }
    }

    /// Carries out the operator's decisions; `bundle` is the only content.
    fn take(&mut self, desired: &Desired, observed: &node::Observed, bundle: &str) {
        for step in node::reconcile(desired, observed, NOW).steps {
            match step.action {
                Action::Upload(digests) => {
                    for digest in digests {
                        let packed = zstd::encode_all(bundle.as_bytes(), 3).expect("memory");
                        self.host.put_file(&staged_content(digest), packed);
                    }
                }
                Action::Apply { agent, work } => self.apply(agent, work.plan()),
                Action::PatchNode(patch) => self.patch(patch),
                Action::ListPods | Action::SeekNode(_) | Action::TellDrain { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn apply(&mut self, agent: AgentLocation, plan: &HostPlan) {
        self.host = self.host.running_as(match agent {
            AgentLocation::Installed => path(host::AGENT),
            AgentLocation::Staged(digest) => staged_agent(digest),
            AgentLocation::Brought(_) => {
                panic!("a closed host is never worked on by a brought agent")
            }
        });
        let json = serde_json::to_vec(plan).expect("plain data");
        let file = staged_plan(Sha256::of(&json));
        self.host.put_file(&file, json);
        let mut lines = Vec::new();
        let agent = Agent::new(&self.host, "1", NOW);
        // A restart ends the agent before it can report.
        let _ = agent.apply(&file, &mut |line| lines.push(line));
    }

    fn patch(&mut self, patch: NodePatch) {
        let Some(node) = &mut self.node else { return };
        let change = |map: &mut BTreeMap<String, String>,
                      with: BTreeMap<String, Option<String>>| {
            for (name, value) in with {
                match value {
                    Some(value) => drop(map.insert(name, value)),
                    None => drop(map.remove(&name)),
                }
            }
        };
        change(&mut node.labels, patch.labels);
        change(&mut node.annotations, patch.annotations);
        node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
        node.resource_version += 1;
    }

    /// Registers and reports as the kubelet does; runs a pass of the daemon.
    fn act(&mut self, data: &wmco_core::protocol::ServicesData) {
        let boot = self.host.machine().boot_id().expect("known");
        if self.boot != boot {
            self.restarts += usize::from(!self.boot.is_empty());
            // The daemon is another process now.
            self.released = Released::default();
            self.boot = boot;
        }
        let runs = |name: &str| {
            let name = name.parse().expect("a name");
            let found = self.host.query(&name).expect("it can be asked");
            found.is_some_and(|service| service.state == ServiceRunState::Running)
        };
        let (kubelet, overlay, daemon) = (runs("kubelet"), runs("overlay"), runs(objects::WICD));
        if kubelet && self.node.is_none() {
            let labels = [(names::OS_LABEL.to_owned(), names::OS_WINDOWS.to_owned())].into();
            self.node = Some(NodeFacts {
                name: format!("node-{}", self.address),
                uid: self.address.clone(),
                labels,
                annotations: BTreeMap::new(),
                addresses: vec![self.address.clone()],
                resource_version: 1,
                unschedulable: false,
                ready: false,
                is_deleted: false,
                host_key_mismatch: None,
                drain_notice: None,
                drain_blocked_since: None,
            });
        }
        let Some(node) = self.node.as_mut() else { return };
        node.ready = kubelet && overlay;
        if !daemon {
            return;
        }
        let seen: Value = json!({
            "metadata": {"name": node.name, "annotations": node.annotations},
            "status": {"conditions": [{
                "type": "Ready", "status": if node.ready { "True" } else { "False" },
            }]},
        });
        let digest = NodeIntent::of(&seen).released;
        let windows = self.host.running_as(path(host::AGENT));
        let found =
            self.released.choose_kept(windows.files(), digest.as_deref(), Some(data.clone()));
        let found = found.expect("what is kept can be read");
        let desired = daemon::Desired { node: Some(&seen), manifest: found.state() };
        let bundle = path(host::CA_BUNDLE);
        let context =
            PassContext { windows: &windows, bundle: Some(&bundle), should_continue: &|| true };
        let pass = pass(context, desired, &mut ScriptResults::new(), NOW).expect("it can be seen");
        assert_eq!(pass.failures, Vec::<String>::new());
        node.annotations.extend(pass.annotations);
        node.resource_version += 1;
    }
}

/// Returns all orders of the changes.
fn orders(changes: &[Change]) -> Vec<Vec<Change>> {
    if changes.is_empty() {
        return vec![Vec::new()];
    }
    let mut orders = Vec::new();
    for first in changes {
        let rest: Vec<Change> = changes.iter().copied().filter(|other| other != first).collect();
        for mut order in self::orders(&rest) {
            order.insert(0, *first);
            orders.push(order);
        }
    }
    orders
}

/// A change that comes after the previous one has arrived costs each node one restart, or none if it changes nothing,
/// and leads to the desired state.
#[test]
fn changes_in_any_order_cost_one_restart_each() {
    let mut world = World::new();
    let (mut restarts, mut none) = (0, 0);
    for order in orders(&CHANGES) {
        for change in &order {
            let before = world.wanted;
            world.wanted = before.after(*change);
            world.settle();
            let expected = usize::from(world.wanted != before);
            assert_eq!(world.restarts(), [expected; 2], "{change:?} of {order:?}");
            restarts += expected;
            none += 1 - expected;
        }
    }
    assert_eq!(restarts + none, 600);
    assert!(restarts > 200 && none > 50, "{restarts} {none}");
}

/// A change that comes before the previous one has arrived costs no more, and the last one takes effect.
#[test]
fn changes_that_overtake_each_other_end_as_the_last_one_says() {
    let mut world = World::new();
    for (number, order) in orders(&CHANGES).into_iter().enumerate() {
        let mut effective = 0;
        for (place, change) in order.iter().enumerate() {
            let before = world.wanted;
            world.wanted = before.after(*change);
            effective += usize::from(world.wanted != before);
            for _ in 0..(number + place) % 9 {
                world.round();
            }
        }
        world.settle();
        for restarts in world.restarts() {
            assert!(restarts <= effective, "{restarts} restarts for {effective}: {order:?}");
        }
    }
}

/// A host that starts by itself while others have their turn runs what it was released, and nothing newer.
#[test]
fn a_host_that_starts_before_its_turn_serves_on() {
    let mut world = World::new();
    world.members[1].away = true;
    world.wanted = Wanted::default().after(Change::ProxyOn);
    world.settle();
    world.members[1].host.power_off();
    world.members[1].host.boot();
    for _ in 0..ROUNDS {
        world.round();
    }
    let waits = &world.members[1];
    assert!(waits.node.as_ref().is_some_and(|node| node.ready));
    assert!(!waits.host.snapshot().environment.contains_key(host::HTTPS_PROXY));
    world.members[1].away = false;
    world.settle();
    assert_eq!(world.restarts(), [1, 2]);
}

/// A change that is reverted before it reaches a node never affects that node.
#[test]
fn a_node_that_was_away_sees_the_last_change_only() {
    for back in [Wanted::default(), Wanted { proxy: Some("http://two:2"), registry: true }] {
        let mut world = World::new();
        world.members[1].away = true;
        world.wanted = Wanted::default().after(Change::ProxyOn);
        world.settle();
        world.wanted = back;
        world.settle();
        world.members[1].away = false;
        world.settle();
        assert_eq!(world.restarts(), [2, usize::from(back != Wanted::default())], "{back:?}");
    }
}
