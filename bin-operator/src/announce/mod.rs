//! Events for people. Source of the reasons: `docs/contract/cluster.md`, CLU18.

mod news;
mod queue;

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use wmco_core::digest::Sha256;
use wmco_core::fleet::Intent;
use wmco_core::host_record::HostRecord;
use wmco_core::instances::{Called, OfMachine};
use wmco_core::limits;
use wmco_core::names::machine_api::MACHINE_SET_KIND;
use wmco_core::names::monitoring::{CLUSTER_MONITORING_LABEL, OPERATOR_CONDITION};
use wmco_core::names::{events, objects};
use wmco_core::node::InstanceInputs;
use wmco_core::text::cut;
use wmco_csr::{Dispute, Warning};

pub use news::News;

use crate::metrics::Metrics;
use crate::problems::{About, Problem};
use crate::registries;
use queue::{Queue, Queued};

/// Publishes Events; cheap to clone.
#[derive(Clone)]
pub struct Announcer {
    queue: Queue,
    namespace: String,
}

impl Announcer {
    /// Publishes in the name of the process `instance`, in a task of its own.
    pub fn new(client: Client, namespace: &str, instance: &str, metrics: Metrics) -> Self {
        let reporter =
            Reporter { controller: objects::OPERATOR.into(), instance: Some(instance.to_owned()) };
        Self {
            queue: Queue::new(Recorder::new(client, reporter), metrics),
            namespace: namespace.to_owned(),
        }
    }

    /// Waits until all Events so far are sent, for so long at most.
    pub async fn sent(&self, most: Duration) {
        self.queue.sent(most).await;
    }

    /// Tells all that happened with an instance.
    pub fn tell_all(&self, instance: &InstanceInputs, all: impl Iterator<Item = News>) {
        for news in all {
            self.tell(instance, &news);
        }
    }

    /// Tells what happened with an instance.
    pub fn tell(&self, instance: &InstanceInputs, news: &News) {
        let reason = news.reason(instance.machine.is_some());
        let note = news.note(&instance.address);
        let type_ = if news.is_warning() {
            tracing::warn!(instance = %instance.address, reason, "{note}");
            EventType::Warning
        } else {
            tracing::info!(instance = %instance.address, reason, "{note}");
            EventType::Normal
        };
        let (on_node, on_origin) = news.told_on();
        if let Some(node) = instance.node.as_ref().filter(|_| on_node) {
            self.publish(type_, reason, &note, &reference(&node.name), &instance.address);
        }
        if on_origin {
            let origin = self.origin(instance.machine.as_ref());
            self.publish(type_, reason, &note, &origin, &instance.address);
        }
    }

    /// A step failed for a `reason`: told on the Machine or on the ConfigMap, and on the Node too when it
    /// is about its host key. Repetitions are counted by the same Event, so its words fit every pause.
    pub fn failed(&self, instance: &InstanceInputs, reason: &str, error: &str) {
        let InstanceInputs { address, machine, node, desired, .. } = instance;
        let mut next = match reason {
            // User data that were wrong once have to be right for a while.
            events::MACHINE_DELETION_FAILED => {
                "it is tried again once all conditions for it hold".to_owned()
            }
            _ => format!("it is tried again, after {} s at most", limits::RETRY_MOST.as_secs()),
        };
        if node.is_none() && matches!(desired.intent, Intent::Remove(_)) {
            let give_up = HostRecord::give_up_command(&self.namespace, address);
            next = format!("{next}; if this host is gone, give it up by `{give_up}`");
        }
        let what = format!("{}: {error}", Called(address));
        let note = format!("{}; {next}", cut(&what, limits::EVENT_NOTE_BYTES - 2 - next.len()));
        let put = |on| {
            let event = event(EventType::Warning, reason, &what, &note);
            self.queue.put(Queued { event, on, subject: address.clone(), is_repeated: true });
        };
        if let (events::HOST_KEY_MISMATCH, Some(node)) = (reason, node) {
            put(reference(&node.name));
        }
        put(self.origin(machine.as_ref()));
    }

    /// Something is wrong with what people or others of the cluster wrote, or it is their turn.
    pub fn told(&self, problem: &Problem) {
        let Problem { text, reason, about, .. } = problem;
        let on = match about {
            About::Cluster | About::Instances | About::Settings => self.origin(None),
            About::Machine(machine) => self.origin(Some(machine)),
            About::Node(node) => reference(node),
            About::MachineSet { name, uid } => of_machine_api(MACHINE_SET_KIND, name, uid),
            About::Registries(object) => registries::reference(object),
            About::OperatorCondition(name) => self.operator_condition(name),
            About::Namespace => self.own_namespace(),
        };
        let good = problem.is_good_news();
        let type_ = if good { EventType::Normal } else { EventType::Warning };
        self.publish(type_, reason, text, &on, problem.subject());
    }

    /// The cluster's Prometheus scrapes the exporters on nodes from now on, or no more.
    pub fn monitoring(&self, enabled: bool) {
        let (type_, reason, note) = if enabled {
            let note = "Prometheus scrapes the exporters on windows nodes".to_owned();
            (EventType::Normal, events::MONITORING_ENABLED, note)
        } else {
            let note = format!(
                "Prometheus does not scrape windows nodes; label this namespace \
                 {CLUSTER_MONITORING_LABEL}=true to have it do so"
            );
            (EventType::Warning, events::MONITORING_DISABLED, note)
        };
        self.publish(type_, reason, &note, &self.own_namespace(), reason);
    }

    /// An object of the operator's own was put right.
    pub fn put_right(&self, object: &str, note: &str) {
        let reason = events::OWNED_OBJECT_PUT_RIGHT;
        self.publish(EventType::Normal, reason, note, &self.origin(None), object);
    }

    /// A host claims a name that is not its own, or that another one claims, too.
    pub fn disputed(&self, dispute: &Dispute) {
        tracing::warn!(name = dispute.name, "{}", dispute.message);
        let (reason, on) = (events::NAME_CONFLICT, self.origin(None));
        self.publish(EventType::Warning, reason, &dispute.message, &on, &dispute.name);
    }

    /// Something is wrong with a certificate request, or with what it meets: told on the request,
    /// and on a Node that stands in its way.
    pub fn warn_of(&self, csr: &ObjectReference, warning: &Warning) {
        let Warning { reason, message, node } = warning;
        if let Some(node) = node {
            self.publish(EventType::Warning, reason, message, &reference(node), reason);
        }
        self.publish(EventType::Warning, reason, message, csr, reason);
    }

    fn operator_condition(&self, name: &str) -> ObjectReference {
        let (group, version, kind) = OPERATOR_CONDITION;
        ObjectReference {
            api_version: Some(format!("{group}/{version}")),
            kind: Some(kind.into()),
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        }
    }

    /// A namespace is in itself for Events, so that they are where people look who may see no other.
    fn own_namespace(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Namespace".into()),
            name: Some(self.namespace.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        }
    }

    /// Where an instance comes from: its Machine, or else the list of instances.
    fn origin(&self, machine: Option<&OfMachine>) -> ObjectReference {
        if let Some(machine) = machine {
            return of_machine_api(objects::MACHINE.2, &machine.name, &machine.uid);
        }
        ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            name: Some(objects::INSTANCES_CONFIG_MAP.into()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        }
    }

    /// Records an Event on an object, about a subject. One that does not get through changes nothing; the log has it too.
    fn publish(
        &self,
        type_: EventType,
        reason: &str,
        note: &str,
        on: &ObjectReference,
        subject: &str,
    ) {
        let event = event(type_, reason, note, note);
        let (on, subject) = (on.clone(), subject.to_owned());
        self.queue.put(Queued { event, on, subject, is_repeated: false });
    }
}

/// The recorder takes Events that differ in their note alone for one and keeps the first note, so `action` tells which
/// problem it is: its text, or where that is too long its beginning and its digest.
fn event(type_: EventType, reason: &str, action: &str, note: &str) -> Event {
    let digest: String = Sha256::of(action.as_bytes()).to_string().chars().take(8).collect();
    let whole = cut(action, limits::EVENT_ACTION_BYTES);
    let begins = cut(action, limits::EVENT_ACTION_BYTES - " #".len() - digest.len());
    Event {
        type_,
        reason: reason.to_owned(),
        action: if whole == action { action.to_owned() } else { format!("{begins} #{digest}") },
        note: Some(cut(note, limits::EVENT_NOTE_BYTES).to_owned()),
        secondary: None,
    }
}

/// An object of the Machine API, as the object of Events.
fn of_machine_api(kind: &str, name: &str, uid: &str) -> ObjectReference {
    let (group, version, _) = objects::MACHINE;
    ObjectReference {
        api_version: Some(format!("{group}/{version}")),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        namespace: Some(objects::MACHINE_API_NAMESPACE.into()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What differs at the end alone is another problem.
    #[test]
    fn long_notes_that_begin_alike_are_two_events() {
        let long = "x".repeat(limits::EVENT_ACTION_BYTES);
        let action = |note: &str| event(EventType::Warning, "R", note, note).action;
        let [one, other] = ["1", "2"].map(|end| action(&format!("{long}{end}")));
        assert_ne!(one, other);
        assert_eq!(one.len(), limits::EVENT_ACTION_BYTES);
        assert_eq!(action(&long), long);
    }
}
