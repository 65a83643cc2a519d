//! Events for people. Source of the reasons: `spec/operator.md`, section 8.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use wmco_core::fleet::Assignment;
use wmco_core::limits;
use wmco_core::names::{events, objects};
use wmco_core::node::NodeFacts;
use wmco_core::text::cut;
use wmco_csr::Warning;

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

    /// A step failed: told on the ConfigMap, and on the Node too when it is about its host key.
    pub async fn failed(
        &self,
        assignment: &Assignment,
        node: Option<&NodeFacts>,
        error: &StepError,
        retry_at: Timestamp,
    ) {
        let reason = error.event_reason();
        let what = format!(
            "{}: {}; next attempt {:.0}",
            assignment.address,
            crate::chain(error),
            retry_at
        );
        if let (events::HOST_KEY_MISMATCH, Some(node)) = (reason, node) {
            self.publish(EventType::Warning, reason, what.clone(), &reference(&node.name)).await;
        }
        self.on_instances(EventType::Warning, reason, what).await;
    }

    /// Something on the list of instances is wrong.
    pub async fn instances_wrong(&self, note: String) {
        self.on_instances(EventType::Warning, events::INSTANCE_SETUP_FAILURE, note).await;
    }

    /// Something is wrong with a certificate request, or with what it meets: told on the request,
    /// and on a Node that stands in its way.
    pub async fn warn_of(&self, csr: &ObjectReference, warning: Warning) {
        let Warning { reason, message, node } = warning;
        if let Some(node) = node {
            self.publish(EventType::Warning, reason, message.clone(), &reference(&node)).await;
        }
        self.publish(EventType::Warning, reason, message, csr).await;
    }

    async fn on_instances(&self, type_: EventType, reason: &str, note: String) {
        let reference = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            name: Some(objects::INSTANCES_CONFIG_MAP.into()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        };
        self.publish(type_, reason, note, &reference).await;
    }

    /// An Event that does not get through changes nothing; the log has it too.
    async fn publish(&self, type_: EventType, reason: &str, note: String, on: &ObjectReference) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            // The recorder takes Events that differ in their note alone for one and keeps the first
            // note, so the action tells which problem it is.
            action: cut(&note, limits::EVENT_ACTION_BYTES).to_owned(),
            note: Some(cut(&note, limits::EVENT_NOTE_BYTES).to_owned()),
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
