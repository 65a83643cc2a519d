//! Events on the own Node. Source: `docs/contract/wicd.md`, WICD54.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use wmco_core::limits;
use wmco_core::names::objects;
use wmco_core::text::cut;

/// Tells people on the Node that something is wrong. An Event that does not get through changes
/// nothing; the log has it too.
pub(super) async fn publish(
    client: &Client,
    node: &str,
    reason: &str,
    text: &str,
) -> kube::Result<()> {
    let reporter = Reporter {
        controller: objects::WICD_CONTROLLER.to_owned(),
        instance: Some(node.to_owned()),
    };
    let on = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.to_owned()),
        // Events on Nodes carry the name as UID, so that kubectl describe finds them.
        uid: Some(node.to_owned()),
        ..ObjectReference::default()
    };
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        // Events that differ in their note alone count as one, so the action tells them apart.
        action: cut(text, limits::EVENT_ACTION_BYTES).to_owned(),
        note: Some(cut(text, limits::EVENT_NOTE_BYTES).to_owned()),
        secondary: None,
    };
    let published = Recorder::new(client.clone(), reporter).publish(&event, &on).await;
    if let Err(error) = &published {
        tracing::debug!(%error, reason, "an event was not published");
    }
    published
}
