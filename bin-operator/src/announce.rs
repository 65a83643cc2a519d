//! Events for people. Source of the reasons: `spec/operator.md`, section 8.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use wmco_core::facts::{DrainNotice, NodeFacts};
use wmco_core::fleet::Assignment;
use wmco_core::fleet::Intent;
use wmco_core::host_key::HostKey;
use wmco_core::host_record::HostRecord;
use wmco_core::limits;
use wmco_core::names::{events, host, objects};
use wmco_core::protocol::Quarantined;
use wmco_core::text::cut;
use wmco_core::winpath::WindowsPath;
use wmco_csr::{Dispute, Warning};

use crate::instance::StepError;

/// Publishes Events; cheap to clone.
#[derive(Clone)]
pub struct Announcer {
    recorder: Arc<Recorder>,
    namespace: String,
}

impl Announcer {
    /// Publishes in the name of the process `instance`.
    pub fn new(client: Client, namespace: &str, instance: &str) -> Self {
        let reporter =
            Reporter { controller: objects::OPERATOR.into(), instance: Some(instance.to_owned()) };
        Self {
            recorder: Arc::new(Recorder::new(client, reporter)),
            namespace: namespace.to_owned(),
        }
    }

    /// An instance became a configured node.
    pub async fn configured(&self, assignment: &Assignment) {
        let note =
            format!("Configured instance with address {} as a worker node", assignment.address);
        self.on_instances(EventType::Normal, events::INSTANCE_SETUP, note).await;
    }

    /// An instance was removed.
    pub async fn removed(&self, assignment: &Assignment) {
        let note = format!("Deconfigured node with addresses {}", assignment.address);
        self.on_instances(EventType::Normal, events::INSTANCE_TEARDOWN, note).await;
    }

    /// A host key was trusted on first use, and is kept as `name`.
    pub async fn pinned(&self, assignment: &Assignment, name: &str, key: &HostKey) {
        let note = format!(
            "{}: trusted host key {} {} on first use and pinned it as `{name}`, compare it with \
             what `ssh-keygen -l` says on the host",
            assignment.address,
            key.algorithm(),
            key.fingerprint()
        );
        tracing::info!("{note}");
        self.on_instances(EventType::Normal, events::HOST_KEY_PINNED, note).await;
    }

    /// What lay below an open root of a host was moved away: told on the ConfigMap and on the Node.
    pub async fn quarantined(
        &self,
        assignment: &Assignment,
        facts: Option<&NodeFacts>,
        found: &Quarantined,
    ) {
        let named: Vec<&str> = found.first.iter().map(WindowsPath::as_str).collect();
        let note = format!(
            "{}: moved {} files, folders and links to {}, since others could write to {} and they are \
             not ours; find out who put them there, then remove that folder; the first: {}",
            assignment.address,
            found.things,
            found.folder,
            host::ROOT,
            named.join(", ")
        );
        tracing::warn!("{note}");
        if let Some(on) = facts.map(|facts| reference(&facts.name)) {
            self.publish(EventType::Warning, events::QUARANTINED, &note, &note, &on).await;
        }
        self.on_instances(EventType::Warning, events::QUARANTINED, note).await;
    }

    /// Folders stay on a host that was given back, since something is in them.
    pub async fn left_behind(&self, assignment: &Assignment, folders: &[WindowsPath]) {
        let named: Vec<&str> = folders.iter().map(WindowsPath::as_str).collect();
        let note = format!(
            "{}: {} stays on the host because something is in it, closed to all but administrators; \
             look at {} and remove it by hand",
            assignment.address,
            named.join(", "),
            host::QUARANTINE
        );
        tracing::warn!("{note}");
        self.on_instances(EventType::Warning, events::QUARANTINED, note).await;
    }

    /// A step failed: told on the ConfigMap, and on the Node too when it is about its host key.
    pub async fn failed(
        &self,
        assignment: &Assignment,
        node: Option<&NodeFacts>,
        error: &StepError,
        pause: Duration,
    ) {
        let reason = error.event_reason();
        let mut next = format!("next attempt within {} s", pause.as_secs());
        if assignment.node.is_none() && matches!(assignment.intent, Intent::Remove(_)) {
            let give_up = HostRecord::give_up_command(&self.namespace, &assignment.address);
            next = format!("{next}; if this host is gone, give it up by `{give_up}`");
        }
        let what = format!("{}: {}", assignment.address, crate::chain(error));
        // Another pause is another Event, so that what the note says of the next attempt is true.
        let action = format!("{next}: {what}");
        let what = format!("{}; {next}", cut(&what, limits::EVENT_NOTE_BYTES - 2 - next.len()));
        if let (events::HOST_KEY_MISMATCH, Some(node)) = (reason, node) {
            self.publish(EventType::Warning, reason, &action, &what, &reference(&node.name)).await;
        }
        self.publish(EventType::Warning, reason, &action, &what, &self.instances()).await;
    }

    /// The Node of an instance is gone, so its kubelet is started again.
    pub async fn node_gone(&self, assignment: &Assignment) {
        let note = format!(
            "{}: its Node is gone while its kubelet runs, which is started again to register it; \
             remove the entry to take the instance out of the cluster",
            assignment.address
        );
        self.on_instances(EventType::Warning, events::NODE_GONE, note).await;
    }

    /// Pods block the drain of a Node.
    pub async fn drain_blocked(&self, node: &NodeFacts, notice: &DrainNotice) {
        let (reason, text) = (notice.stage.reason(), &notice.message);
        tracing::warn!(node = %node.name, reason, "{text}");
        self.publish(EventType::Warning, reason, text, text, &reference(&node.name)).await;
    }

    /// Something on the list of instances is wrong.
    pub async fn instances_wrong(&self, note: String) {
        self.on_instances(EventType::Warning, events::INSTANCE_SETUP_FAILURE, note).await;
    }

    /// A host claims a name that is not its own, or that another one claims, too.
    pub async fn disputed(&self, dispute: &Dispute) {
        tracing::warn!(name = dispute.name, "{}", dispute.message);
        let note = dispute.message.clone();
        self.on_instances(EventType::Warning, events::NAME_CONFLICT, note).await;
    }

    /// Something is wrong with a certificate request, or with what it meets: told on the request,
    /// and on a Node that stands in its way.
    pub async fn warn_of(&self, csr: &ObjectReference, warning: &Warning) {
        let Warning { reason, message, node } = warning;
        if let Some(node) = node {
            self.publish(EventType::Warning, reason, message, message, &reference(node)).await;
        }
        self.publish(EventType::Warning, reason, message, message, csr).await;
    }

    async fn on_instances(&self, type_: EventType, reason: &str, note: String) {
        self.publish(type_, reason, &note, &note, &self.instances()).await;
    }

    /// The list of instances.
    fn instances(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            name: Some(objects::INSTANCES_CONFIG_MAP.into()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        }
    }

    /// An Event that does not get through changes nothing; the log has it too.
    ///
    /// The recorder takes Events that differ in their note alone for one and keeps the first note,
    /// so `action` tells which problem it is.
    async fn publish(
        &self,
        type_: EventType,
        reason: &str,
        action: &str,
        note: &str,
        on: &ObjectReference,
    ) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            action: cut(action, limits::EVENT_ACTION_BYTES).to_owned(),
            note: Some(cut(note, limits::EVENT_NOTE_BYTES).to_owned()),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, on).await {
            tracing::debug!(%error, reason, "event not published");
        }
    }
}

/// A Node, as the object of Events.
fn reference(node: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Node".into()),
        name: Some(node.to_owned()),
        // Events on Nodes carry the name as UID, so that kubectl describe finds them.
        uid: Some(node.to_owned()),
        ..ObjectReference::default()
    }
}
