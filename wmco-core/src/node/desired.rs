//! What the cluster asks for of one instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;

use super::KnownAs;
use crate::digest::Sha256;
use crate::fleet::Intent;
use crate::host_key::HostKey;
use crate::login_keys::KeyExchange;
use crate::names;
use crate::protocol::{Access, ServicesData};
use crate::winpath::WindowsPath;

/// What is wanted of one instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Desired {
    /// Whether it is to be configured, removed or left.
    pub intent: Intent,
    /// What its Node can be found by.
    pub known_as: KnownAs,
    /// What every configured host has.
    pub release: Arc<Release>,
    /// First label of the host's wanted name, where the platform asks for one.
    pub host_name: Option<String>,
    /// Labels of the Node that the operator owns.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Node that the operator owns, but the desired version.
    pub annotations: BTreeMap<String, String>,
    /// What a rotation of our key asks of the host.
    pub exchange: Option<KeyExchange>,
}

/// What is the same for all hosts until the cluster changes; shared by all instances.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// Operator version, for example `11.0.0-1a2b3c4`.
    pub version: String,
    /// Digest of our agent.
    pub agent: Sha256,
    /// All files that the operator puts on a host, but the agent.
    pub files: BTreeMap<WindowsPath, DesiredFile>,
    /// Arguments of the daemon's service.
    pub daemon_arguments: Vec<String>,
    /// Data of the services ConfigMap of `version`.
    pub manifest: ServicesData,
    /// Names of the bootstrap services in `manifest`.
    pub bootstrap_services: Vec<String>,
    /// Data of every services ConfigMap that may be in force on a host, ours included.
    pub known_manifests: Vec<ServicesData>,
    /// How long a drain may take before the node is given back.
    pub drain_timeout: SignedDuration,
}

/// One file on a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DesiredFile {
    /// Digest of its content.
    pub sha256: Sha256,
    /// Who may read it.
    pub access: Access,
    /// Whether its readers notice a change by themselves, so that it may be replaced while they run.
    pub live: bool,
}

/// How the Node of an instance is marked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Marks<'a> {
    /// The entry's address as written; none: a Machine is behind it, whose labels are the Machine API's.
    pub listed_as: Option<&'a str>,
    /// The encrypted user name.
    pub username: &'a str,
    /// Hash of the public key with which the user name is encrypted.
    pub key_hash: Sha256,
    /// The pinned host key.
    pub host_key: Option<&'a HostKey>,
}

impl Desired {
    /// What one instance is to become; `marks` of one that people or the Machine API ask for.
    pub fn new(
        release: Arc<Release>,
        intent: Intent,
        known_as: KnownAs,
        marks: Option<&Marks<'_>>,
    ) -> Self {
        let listed = marks.and_then(|marks| marks.listed_as);
        let labels = listed.map(|_| byoh_labels()).unwrap_or_default();
        let annotations = marks.map(annotations).unwrap_or_default();
        Self { intent, known_as, release, host_name: None, labels, annotations, exchange: None }
    }
}

impl Release {
    /// The whole command line of the daemon's service.
    pub fn daemon_command(&self) -> String {
        std::iter::once(names::host::AGENT)
            .chain(self.daemon_arguments.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Labels of a Node that comes from an entry. Source: `spec/node-config.md`, section 2.1.
fn byoh_labels() -> BTreeMap<String, String> {
    let labels = [(names::BYOH_LABEL, names::TRUE), (names::WORKER_LABEL, "")];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Its annotations. Source: the same.
fn annotations(marks: &Marks<'_>) -> BTreeMap<String, String> {
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
