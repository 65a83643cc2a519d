//! The Events about one instance.

use wmco_core::facts::{DrainNotice, PodFacts};
use wmco_core::host_key::HostKey;
use wmco_core::instances::Called;
use wmco_core::machines::name_in;
use wmco_core::names::{UPGRADING_LABEL, events, host};
use wmco_core::node::{Action, Because, Outcome, Purpose, Step, pods_came_back};
use wmco_core::preflight::Finding;
use wmco_core::protocol::Quarantined;
use wmco_core::winpath::WindowsPath;

use crate::other_writer::changes_again_and_again;

/// The cause of an Event about an instance, beside its failures.
#[derive(Clone, Debug)]
pub enum News {
    /// It became a configured node.
    Configured,
    /// It was removed.
    Removed,
    /// A host key was trusted on first use.
    KeyPinned {
        /// The name under which it is kept.
        name: String,
        /// The key.
        key: HostKey,
    },
    /// What lay below an open root of its host was moved away: recorded on the ConfigMap and on the Node.
    Quarantined(Quarantined),
    /// Folders stay on its host, which was given back, since something is in them.
    LeftBehind(Vec<WindowsPath>),
    /// Its host is not fit to become a node, so it waits; or it is one, with a doubt.
    Preflight(Finding),
    /// Its Node is gone, so its kubelet is started again.
    NodeGone,
    /// Its Node is taken out of service.
    TakenOut(Purpose),
    /// The restart that its Node asked for is over.
    Restarted,
    /// Its Node is back in service.
    GivenBack,
    /// Pods block the drain of its Node.
    DrainBlocked(DrainNotice),
    /// Somebody changes its Node again and again. Who removes a field is not on record.
    OtherWriter,
    /// These pods came to its Node after the cordon.
    PodsCameBack(Vec<PodFacts>),
    /// Its Machine was deleted, so that its MachineSet makes another.
    MachineDeleted,
}

impl News {
    /// What people hear of a step that was taken.
    pub fn of(step: &Step, outcome: &Outcome) -> Option<Self> {
        let Action::PatchNode(patch) = &step.action else { return None };
        if !matches!(outcome, Outcome::NodeChanged { is_ours: true, .. }) {
            return None;
        }
        // The label goes with the slot, whoever set it.
        let slot = patch.labels.get(UPGRADING_LABEL);
        match (&step.because, slot) {
            (Because::DisruptionDue { purpose }, Some(Some(_))) => Some(Self::TakenOut(*purpose)),
            (Because::Restarted, _) => Some(Self::Restarted),
            (Because::Configured, Some(None)) => Some(Self::GivenBack),
            _ => None,
        }
    }

    /// Whether somebody should do something.
    pub(super) const fn is_warning(&self) -> bool {
        match self {
            Self::Configured
            | Self::Removed
            | Self::KeyPinned { .. }
            | Self::MachineDeleted
            | Self::TakenOut(_)
            | Self::Restarted
            | Self::GivenBack => false,
            Self::Quarantined(_)
            | Self::LeftBehind(_)
            | Self::Preflight(_)
            | Self::NodeGone
            | Self::DrainBlocked(_)
            | Self::OtherWriter
            | Self::PodsCameBack(_) => true,
        }
    }

    /// Whether an Event is recorded on the Node, and on the Machine or else the list of instances.
    pub(super) const fn told_on(&self) -> (bool, bool) {
        match self {
            Self::Configured
            | Self::Removed
            | Self::KeyPinned { .. }
            | Self::LeftBehind(_)
            | Self::Preflight(_)
            | Self::NodeGone
            | Self::MachineDeleted => (false, true),
            Self::Quarantined(_) => (true, true),
            Self::DrainBlocked(_)
            | Self::PodsCameBack(_)
            | Self::OtherWriter
            | Self::TakenOut(_)
            | Self::Restarted
            | Self::GivenBack => (true, false),
        }
    }

    /// Reason of the Event about an instance, whose host may be a Machine's.
    pub(super) const fn reason(&self, of_machine: bool) -> &'static str {
        match self {
            Self::Configured if of_machine => events::MACHINE_SETUP,
            Self::MachineDeleted => events::MACHINE_DELETED,
            Self::Configured => events::INSTANCE_SETUP,
            Self::Removed => events::INSTANCE_TEARDOWN,
            Self::KeyPinned { .. } => events::HOST_KEY_PINNED,
            Self::Quarantined(_) | Self::LeftBehind(_) => events::QUARANTINED,
            Self::Preflight(finding) => finding.reason(),
            Self::NodeGone => events::NODE_GONE,
            Self::TakenOut(_) => events::NODE_TAKEN_OUT,
            Self::Restarted => events::HOST_RESTARTED,
            Self::GivenBack => events::NODE_GIVEN_BACK,
            Self::DrainBlocked(notice) => notice.stage.reason(),
            Self::PodsCameBack(_) => events::PODS_CAME_BACK,
            Self::OtherWriter => events::OWNED_OBJECT_FAILURE,
        }
    }

    /// Its text, about the instance that is known by `address`.
    pub(super) fn note(&self, address: &str) -> String {
        let called = Called(address);
        let named = |paths: &[WindowsPath]| {
            paths.iter().map(WindowsPath::as_str).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Configured if name_in(address).is_some() => {
                format!("Configured {called} as a worker node")
            }
            Self::Configured => {
                format!("Configured instance with address {address} as a worker node")
            }
            Self::MachineDeleted => format!(
                "Deleted {called}, whose host does not let us in, so that its machineset makes another one"
            ),
            Self::Removed => format!("Deconfigured node with addresses {address}"),
            Self::KeyPinned { name, key } => format!(
                "{called}: trusted host key {} {} on first use and pinned it as `{name}`, compare it \
                 with what `ssh-keygen -l` says on the host",
                key.algorithm(),
                key.fingerprint()
            ),
            Self::Quarantined(found) => format!(
                "{called}: moved {} files, folders and links to {}, since others could write to {} and \
                 they are not ours; find out who put them there, then remove that folder; the first: {}",
                found.things,
                found.folder,
                host::ROOT,
                named(&found.first)
            ),
            Self::LeftBehind(folders) => format!(
                "{called}: {} stays on the host because something is in it, closed to all but \
                 administrators; look at {} and remove it by hand",
                named(folders),
                host::QUARANTINE
            ),
            Self::Preflight(finding) if finding.blocks() => {
                format!("{called} is left as it is until it is fit to become a node: {finding}")
            }
            Self::Preflight(finding) => format!("{called}: {finding}"),
            Self::NodeGone if name_in(address).is_some() => format!(
                "{called}: its Node is gone while its kubelet runs, which is started again to register it; \
                 delete the machine to take it out of the cluster"
            ),
            Self::NodeGone => format!(
                "{address}: its Node is gone while its kubelet runs, which is started again to register \
                 it; remove the entry to take the instance out of the cluster"
            ),
            Self::TakenOut(purpose) => {
                format!("{called}: its node is cordoned and drained for {purpose}")
            }
            Self::Restarted => format!("{called}: its host has restarted, as its node asked for"),
            Self::GivenBack => format!("{called}: its node takes pods again"),
            Self::DrainBlocked(notice) => notice.message.clone(),
            Self::PodsCameBack(pods) => pods_came_back(pods),
            Self::OtherWriter => changes_again_and_again(None, "our marks of this Node"),
        }
    }
}
