//! Tests of single plans: rows here, one node with nothing to do as the fixture.

mod display;
mod drain_law;
mod drains;
mod exchange;
mod inputs;
mod memory;
mod other_cluster;
mod other_machine;
mod other_name;
mod release;
mod rows;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::cluster_identity::ClusterIdentity;
use crate::digest::Sha256;
use crate::fleet::{self, DisruptionPermit};
use crate::instances::{Resolutions, parse};
use crate::names;
use crate::protocol::{
    Access, Agent, FeatureState, FileState, ForeignService, HostState, PROTOCOL, ServiceFacts,
};
use crate::protocol::{HostFitness, RebootReason, ServiceRunState, ServicesData};
use crate::winpath::WindowsPath;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// One node, its host and what is asked for.
struct Case {
    desired: Desired,
    observed: Observed,
}

impl Case {
    /// A configured node with nothing to do.
    fn new() -> Self {
        Self { desired: desired(), observed: observed() }
    }

    /// The same without a Node, which has not come yet.
    fn vacant() -> Self {
        let mut case = Self::new();
        case.observed.node = None;
        case.probe().daemon_certificate_valid = false;
        case
    }

    /// The same while it is configured for the first time: only kubelet and daemon run.
    fn joining(mut self) -> Self {
        self.probe().services.remove("kube-proxy");
        self.node().annotations.remove(names::VERSION_ANNOTATION);
        self.node().labels.remove(names::BYOH_LABEL);
        self
    }

    /// The same, no longer listed.
    fn unlisted() -> Self {
        let mut case = Self::new();
        case.desired.intent = Intent::Remove(Some(permit()));
        case
    }

    /// The same with the mark, the cordon and the empty list of a node that may be disrupted.
    fn emptied(mut self) -> Self {
        let node = self.node();
        node.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
        node.annotations.insert(names::CORDONED_ANNOTATION.into(), names::CORDONED_BY_US.into());
        for name in [names::DRAIN_SINCE_ANNOTATION, names::CORDONED_SINCE_ANNOTATION] {
            node.annotations.insert(name.into(), NOW.to_string());
        }
        node.unschedulable = true;
        self.observed.pods = Some(Vec::new());
        self.observed.drain.marks.since = Some(NOW);
        self.observed.drain.marks.cordoned = Some(NOW);
        self.permitted()
    }

    fn permitted(mut self) -> Self {
        self.desired.intent = match self.desired.intent {
            Intent::Configure(_) => Intent::Configure(Some(permit())),
            Intent::Remove(_) => Intent::Remove(Some(permit())),
            intent @ (Intent::Replace(_) | Intent::Look | Intent::Leave) => intent,
        };
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn node(&mut self) -> &mut NodeFacts {
        self.observed.node.as_mut().unwrap()
    }

    fn probe(&mut self) -> &mut Probe {
        match &mut self.observed.host {
            HostSeen::Probed(probe) => probe,
            other => panic!("{other:?}"),
        }
    }

    fn release(&mut self) -> &mut Release {
        Arc::make_mut(&mut self.desired.release)
    }

    fn annotate(&mut self, name: &str, value: &str) {
        self.node().annotations.insert(name.to_owned(), value.to_owned());
    }

    fn waits(&mut self, what: Awaited, since: Timestamp) {
        self.observed.waiting = Some(Waiting { what, since });
    }

    fn plan(&self) -> Plan {
        reconcile(&self.desired, &self.observed, NOW)
    }

    /// What the first step changes of the Node.
    fn patch(&self) -> NodePatch {
        let plan = self.plan();
        match &plan.steps[0].action {
            Action::PatchNode(patch) => patch.clone(),
            _ => panic!("{plan}"),
        }
    }

    /// The plan's verbs, a host's steps one by one, and what is awaited.
    fn verbs(&self) -> String {
        let plan = self.plan();
        let mut verbs = Vec::new();
        for step in &plan.steps {
            verbs.push(step.action.verb().to_owned());
            if let Action::Apply { work, .. } = &step.action {
                verbs.extend(work.plan().steps.iter().map(|step| format!("+{}", step.verb())));
            }
        }
        match plan.next {
            Next::Settled => verbs.push("settled".into()),
            Next::Now => {}
            Next::Await { what, .. } => verbs.push(format!("await {what}")),
        }
        verbs.join(" ")
    }

    #[track_caller]
    fn gives(&self, expected: &str) {
        assert_eq!(self.verbs(), expected);
    }

    /// The reasons of all steps.
    #[track_caller]
    fn because(&self, expected: &[Because]) {
        let plan = self.plan();
        assert_eq!(plan.steps.iter().map(|s| s.because.clone()).collect::<Vec<_>>(), expected);
    }
}

/// The fleet is the only maker of permits.
fn permit() -> DisruptionPermit {
    let entries = parse([("10.0.0.1", "username=core")], &Resolutions::default());
    let nodes = [node()];
    let claims = ["win-1".to_owned()].into();
    let assignments = fleet::reconcile(
        &fleet::Desired::new(Some(&entries), "2.0.0"),
        &fleet::Observed { claims: &claims, ..fleet::Observed::new(&nodes) },
    );
    assignments.instances[0].intent.permit().unwrap().clone()
}

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

fn desired() -> Desired {
    let file = |name: &str, live| {
        let sha256 = Sha256::of(name.as_bytes());
        (path(name), DesiredFile { sha256, access: Access::Inherited, live })
    };
    let release = Release {
        files: [file(r"C:\k\kubelet.exe", false), file(names::host::KUBELET_CA, true)].into(),
        daemon_arguments: vec!["controller".into()],
        roots: Sha256::of(b"roots"),
        bootstrap_services: vec!["containerd".into(), "kubelet".into()],
        known_manifests: vec![ServicesData(BTreeMap::new())],
        ..Release::new("2.0.0", Sha256::of(b"agent 2"), ClusterIdentity::new("ours"))
    };
    Desired {
        known_as: KnownAs::default(),
        intent: Intent::Configure(None),
        release: Arc::new(release),
        host_name: None,
        name_on_record: None,
        labels: [(names::BYOH_LABEL.to_owned(), names::TRUE.to_owned())].into(),
        annotations: [(names::HOST_KEY_ANNOTATION.to_owned(), "key".to_owned())].into(),
        exchange: None,
        is_made_for_us: false,
        has_listed_key: false,
    }
}

fn node() -> NodeFacts {
    NodeFacts {
        name: "win-1".into(),
        uid: "1".into(),
        labels: [(names::OS_LABEL.to_owned(), names::OS_WINDOWS.to_owned())]
            .into_iter()
            .chain(desired().labels)
            .collect(),
        annotations: [
            (names::VERSION_ANNOTATION.to_owned(), "2.0.0".to_owned()),
            (names::DESIRED_VERSION_ANNOTATION.to_owned(), "2.0.0".to_owned()),
            (
                names::SERVICES_ANNOTATION.to_owned(),
                desired().release.manifest.digest().to_string(),
            ),
            (names::ROOTS_ANNOTATION.to_owned(), desired().release.roots.to_string()),
        ]
        .into_iter()
        .chain(desired().annotations)
        .collect(),
        addresses: vec!["10.0.0.1".into()],
        resource_version: 1,
        unschedulable: false,
        ready: true,
        is_deleted: false,
        host_key_mismatch: None,
        drain_notice: None,
        drain_blocked_since: None,
    }
}

fn service(command: String) -> ServiceFacts {
    let state = ServiceRunState::Running;
    ServiceFacts { state, command, description: String::new(), dependencies: Vec::new() }
}

fn observed() -> Observed {
    let desired = desired();
    let named = |name: &str| (name.to_owned(), service(name.to_owned()));
    let daemon = (names::objects::WICD.to_owned(), service(desired.release.daemon_command()));
    let placed = |f: &DesiredFile| FileState {
        sha256: f.sha256,
        protected: f.access == Access::Administrators,
        doubted: false,
    };
    let files = desired.release.files.iter().map(|(p, f)| (p.clone(), placed(f)));
    let probe = Probe {
        protocol: PROTOCOL,
        agent: Agent {
            version: "2.0.0".into(),
            sha256: desired.release.agent,
            installed: Some(desired.release.agent),
        },
        host_name: "WIN-1.example".into(),
        os_build: "10.0.20348".into(),
        addresses: vec![[10, 0, 0, 1].into()],
        ipv6: Vec::new(),
        metadata_name: None,
        containers: FeatureState::Enabled,
        reboot: [].into(),
        boot_id: "boot 1".into(),
        files: files.collect(),
        services: [named("containerd"), named("kubelet"), named("kube-proxy"), daemon].into(),
        foreign_containerd: None,
        fitness: HostFitness::default(),
        environment: [].into(),
        networks: [].into(),
        directories: names::host::DIRECTORIES.iter().map(|text| path(text)).collect(),
        root: RootAccess::Closed,
        staged: [].into(),
        daemon_certificate_valid: true,
        state: Some(HostState {
            files: desired.release.files.keys().cloned().collect(),
            cluster: Some(desired.release.cluster.id.clone()),
            ..HostState::default()
        }),
    };
    Observed {
        node: Some(node()),
        host: HostSeen::Probed(Box::new(probe)),
        known_closed: true,
        drain: DrainSeen {
            marks: DrainMarks { since: None, cordoned: None, given_up: None },
            ..DrainSeen::default()
        },
        ..Observed::default()
    }
}

/// A file that is as open as its folder.
fn open_file(content: &[u8]) -> FileState {
    FileState { sha256: Sha256::of(content), protected: false, doubted: false }
}

/// A host on which nothing of ours is.
fn make_bare(probe: &mut Probe) {
    probe.agent.installed = None;
    probe.files.clear();
    probe.services.clear();
    probe.directories.clear();
    probe.state = None;
}
