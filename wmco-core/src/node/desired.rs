//! Desired state of an instance.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::SignedDuration;

use super::KnownAs;
use crate::cluster_identity::ClusterIdentity;
use crate::digest::Sha256;
use crate::facts::NodeFacts;
use crate::fleet::Intent;
use crate::host_key::HostKey;
use crate::host_record::{calls, forms};
use crate::login_keys::KeyExchange;
use crate::preflight::OtherMachine;
use crate::protocol::{Access, Probe, ServicesData};
use crate::winpath::WindowsPath;
use crate::{limits, names};

/// Desired state of an instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Desired {
    /// Whether to configure, remove, replace or leave it.
    pub intent: Intent,
    /// Names and address by which its Node is found.
    pub known_as: KnownAs,
    /// Content of every configured host.
    pub release: Arc<Release>,
    /// First label of the host's desired name, if the platform requires one.
    pub host_name: Option<String>,
    /// Name on record of the host with its key; the one that registered its Node, if one did (HOST67).
    pub name_on_record: Option<String>,
    /// Labels of the Node that the operator owns.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Node that the operator owns, except the desired version.
    pub annotations: BTreeMap<String, String>,
    /// The key exchange that a rotation needs on the host.
    pub exchange: Option<KeyExchange>,
    /// Whether the host was made for this cluster: that of a Machine, whose image may be of another one's host.
    pub is_made_for_us: bool,
    /// Whether a person wrote the host's key into its entry, and so said that this very host is meant.
    pub has_listed_key: bool,
}

/// Content that is the same for all hosts until the cluster changes; shared by all instances.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// Operator version, for example `11.0.0-1a2b3c4`.
    pub version: String,
    /// Digest of the release's agent.
    pub agent: Sha256,
    /// All files that the operator puts on a host, except the agent.
    pub files: BTreeMap<WindowsPath, DesiredFile>,
    /// Arguments of the daemon's service.
    pub daemon_arguments: Vec<String>,
    /// Data of the services ConfigMap of `version`.
    pub manifest: ServicesData,
    /// Digest of the roots in [`CA_BUNDLE`](names::host::CA_BUNDLE) among `files`.
    pub roots: Sha256,
    /// Names of the bootstrap services in `manifest`.
    pub bootstrap_services: Vec<String>,
    /// Data of every services ConfigMap that a host may use, ours included.
    pub known_manifests: Vec<ServicesData>,
    /// The port of the cluster's overlay network, if it is not the default.
    pub vxlan_port: Option<u16>,
    /// The cluster that its hosts belong to.
    pub cluster: ClusterIdentity,
    /// How long a drain may take before the node is uncordoned.
    pub drain_timeout: SignedDuration,
}

/// A file on a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DesiredFile {
    /// Digest of its content.
    pub sha256: Sha256,
    /// Its readers.
    pub access: Access,
    /// Whether its readers notice a change by themselves, so that it may be replaced while they run.
    pub live: bool,
}

/// Data for the Node's labels and annotations.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeMarks<'a> {
    /// The entry's address as written; `None` for a Machine, whose labels belong to the Machine API.
    pub listed_as: Option<&'a str>,
    /// The encrypted user name.
    pub username: &'a str,
    /// Hash of the public key that encrypts the user name.
    pub key_hash: Sha256,
    /// The pinned host key.
    pub host_key: Option<&'a HostKey>,
}

impl Desired {
    /// Desired state of an instance; `marks` for an instance from the list or the Machine API.
    pub fn new(
        release: Arc<Release>,
        intent: Intent,
        known_as: KnownAs,
        marks: Option<&NodeMarks<'_>>,
    ) -> Self {
        let listed = marks.and_then(|marks| marks.listed_as);
        let labels = listed.map(|_| byoh_labels()).unwrap_or_default();
        let annotations = marks.map(annotations).unwrap_or_default();
        Self {
            intent,
            known_as,
            release,
            host_name: None,
            name_on_record: None,
            labels,
            annotations,
            exchange: None,
            is_made_for_us: false,
            has_listed_key: false,
        }
    }

    /// The other cluster that the host belongs to, unless it may be taken from there.
    pub(super) fn other_owner<'p>(&self, probe: &'p Probe) -> Option<&'p str> {
        let state = probe.state.as_ref().filter(|_| !self.is_made_for_us)?;
        self.release.cluster.owner_besides(state)
    }

    /// What shows that the Node is another machine's: the host is a copy of that machine, with the key and the name that tie
    /// the Node to its host, unless a person said that this host is meant; it has the key of that machine and another name; or
    /// the Machine API shows an address of another host.
    ///
    /// Source: `docs/contract/host.md`, HOST67.
    pub(super) fn other_machine<'n>(
        &'n self,
        node: Option<&'n NodeFacts>,
        probe: &Probe,
    ) -> Option<OtherMachine<'n>> {
        let node = node?;
        // A host behind a translated address does not know the one that reaches it.
        let own: Vec<Ipv4Addr> =
            self.known_as.ipv4.into_iter().chain(probe.addresses.iter().copied()).collect();
        if !self.has_listed_key && node.is_ready_elsewhere(&own) {
            return Some(OtherMachine::RunsElsewhere(node));
        }
        let name = self.name_on_record.as_deref().filter(|name| calls(name, &node.name))?;
        let told = probe.valid_host_name()?;
        // We have renamed it.
        let is_wanted = self.host_name.as_ref().is_some_and(|wanted| calls(told, wanted));
        let mut names = [told].into_iter().chain(probe.valid_metadata_name());
        // With another domain it is the same host.
        let is_its_own =
            is_wanted || calls(told, forms(name)[1]) || names.any(|told| calls(told, &node.name));
        (!is_its_own).then_some(OtherMachine::HasOtherName(node, name))
    }
}

impl Release {
    /// A release with an agent only: no files, services or roots. Callers fill in the rest.
    pub fn new(version: impl Into<String>, agent: Sha256, cluster: ClusterIdentity) -> Self {
        Self {
            version: version.into(),
            agent,
            files: BTreeMap::new(),
            daemon_arguments: Vec::new(),
            manifest: ServicesData::default(),
            roots: Sha256::of(&[]),
            bootstrap_services: Vec::new(),
            known_manifests: Vec::new(),
            vxlan_port: None,
            cluster,
            drain_timeout: limits::DRAIN_TIMEOUT,
        }
    }

    /// The whole command line of the daemon's service.
    pub fn daemon_command(&self) -> String {
        std::iter::once(names::host::AGENT)
            .chain(self.daemon_arguments.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Labels of a Node made from an entry. Source: `docs/contract/nodes.md`, NODE4.
fn byoh_labels() -> BTreeMap<String, String> {
    let labels = [(names::BYOH_LABEL, names::TRUE), (names::WORKER_LABEL, "")];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Annotations of such a Node. Source: `docs/contract/nodes.md`, NODE4.
fn annotations(marks: &NodeMarks<'_>) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from([
        (names::USERNAME_ANNOTATION, marks.username.to_owned()),
        (names::PUBLIC_KEY_HASH_ANNOTATION, marks.key_hash.to_string()),
    ]);
    if let Some(address) = marks.listed_as {
        annotations.insert(names::INSTANCE_ANNOTATION, address.to_owned());
    }
    if let Some(key) = marks.host_key {
        annotations.insert(names::HOST_KEY_ANNOTATION, key.to_string());
        annotations.insert(names::HOST_KEY_TYPE_ANNOTATION, key.algorithm().to_owned());
    }
    annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
