//! The desired status of a Machine, including its oddities.

use k8s_openapi::api::core::v1::{Node, ObjectReference};

use super::cloud::Instance;
use super::kinds::{Machine, MachineStatus};
use super::oddity::Oddity;

/// Facts about the host of a Machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) instance: Option<&'a Instance>,
    pub(super) node: Option<&'a Node>,
    /// Why the cloud refuses to create an instance.
    pub(super) refused: Option<&'a str>,
    pub(super) oddities: &'a [Oddity],
}

/// Returns the provider ID that a Machine should report.
pub(super) fn provider_id<'a>(facts: &Facts<'a>) -> Option<&'a str> {
    let is_shown = !facts.oddities.contains(&Oddity::NoProviderId);
    facts.instance.filter(|_| is_shown).map(|instance| instance.provider_id.as_str())
}

/// Returns the status that `machine` should report.
pub(super) fn status(machine: &Machine, facts: &Facts<'_>) -> MachineStatus {
    let has_node = facts.node.is_some();
    let phase = match (machine.is_deleting(), facts.instance) {
        (true, _) => "Deleting",
        (false, None) => "Provisioning",
        (false, Some(_)) if has_node => "Running",
        (false, Some(_)) => "Provisioned",
    };
    let mut status = MachineStatus {
        addresses: facts.instance.map(|instance| instance.addresses(instance.address)),
        node_ref: facts.node.map(reference),
        phase: Some(phase.to_owned()),
        ..MachineStatus::default()
    };
    if let Some(why) = facts.refused {
        fail(machine, &mut status, "InvalidConfiguration", why);
    }
    for oddity in facts.oddities {
        match oddity {
            Oddity::Address(address) => {
                status.addresses = facts.instance.map(|instance| instance.addresses(*address));
            }
            Oddity::Failed => fail(machine, &mut status, "CreateError", "the cloud gave it up"),
            Oddity::NoAddresses => status.addresses = None,
            Oddity::NodeUid(uid) => {
                if let Some(node) = &mut status.node_ref {
                    node.uid = Some(uid.clone());
                }
            }
            Oddity::Phase(phase) => status.phase = Some(phase.clone()),
            Oddity::NoOwner | Oddity::NoProviderId | Oddity::StuckInDeletion => {}
        }
    }
    status
}

fn fail(machine: &Machine, status: &mut MachineStatus, reason: &str, message: &str) {
    status.error_reason = Some(reason.to_owned());
    status.error_message = Some(message.to_owned());
    if !machine.is_deleting() {
        status.phase = Some("Failed".to_owned());
    }
}

fn reference(node: &Node) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
