//! Plans for one node, as data.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::inputs::InstanceInputs;
use super::search::NodeSearch;
use super::work::HostWork;
use crate::digest::Sha256;
use crate::facts::{DrainNotice, PodFacts};
use crate::fleet::{DisruptionPermit, Intent, ReplacementPermit};
use crate::machines::key;
use crate::names;
use crate::protocol::{AgentLocation, RebootReason, RootAccess};

/// Steps to take now, in order, and when to decide again.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps that can be taken now.
    pub steps: Vec<Step>,
    /// When to decide again.
    pub next: Next,
}

/// An action with its reason.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The reason.
    pub because: Because,
}

/// A side effect, complete enough that the executor has nothing left to decide. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Run the installed agent's `probe`, on a host that is known to be closed.
    Probe,
    /// Upload our agent, with this digest, into a fresh folder of the login user and run the `probe` of that copy,
    /// which closes the root folder.
    ProbeWithOurs(Sha256),
    /// Run the `probe` of our agent, with this digest, from the closed staging folder.
    ProbeStaged(Sha256),
    /// Write into the host's record who may change files below the root folder.
    RecordRoot(RootAccess),
    /// Open a new connection with the key of this hash alone, and record that the host accepts the key.
    ProveKey(Sha256),
    /// Open a new connection with the key of this hash alone, which the host has to refuse, and record that.
    ProveKeyRemoved(Sha256),
    /// Upload these contents into the host's staging folder.
    Upload(Vec<Sha256>),
    /// Change labels, annotations or schedulability of the Node.
    PatchNode(NodePatch),
    /// Ask the API server itself for the Node, because a cache may be stale.
    SeekNode(NodeSearch),
    /// List the node's pods that a drain has to evict.
    ListPods,
    /// Evict these pods, without waiting for their end.
    Evict {
        /// The pods.
        pods: Vec<PodFacts>,
        /// The permit.
        permit: DisruptionPermit,
    },
    /// Report on the Node, and in an Event, that pods block its drain, or no longer block it.
    TellDrain {
        /// The content of the condition; `None` clears it.
        notice: Option<DrainNotice>,
        /// Whether to record an Event, too.
        event: bool,
    },
    /// Run an agent's `apply`.
    Apply {
        /// The copy of our agent to run.
        agent: AgentLocation,
        /// The work to do.
        work: HostWork,
    },
    /// Remove over SFTP the files that the agent cannot remove itself: its own file and our root folder.
    RemoveLeftovers(HostWork),
    /// Delete the Node object.
    DeleteNode(DisruptionPermit),
    /// Look in the API server itself whether the user data of new Machines let every key in, and fail if not: a cache
    /// that is told nothing any more, as without the rights, shows what was there before.
    ProveUserData,
    /// Delete the Machine, so that its MachineSet creates a replacement.
    DeleteMachine(ReplacementPermit),
    /// Remove the host's key and record from the ConfigMap of host keys.
    ForgetHost,
}

/// A change of a Node's metadata and schedulability, sent as one merge patch.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct NodePatch {
    /// Labels to set, or to remove if the value is `None`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations to set, or to remove if the value is `None`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// Whether to cordon or uncordon the node; `None` leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unschedulable: Option<bool>,
}

/// Why a step is due.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// The host has not been probed.
    NeverProbed,
    /// It is unknown whether others may write below the root folder.
    NotKnownClosed,
    /// Others may write, or might have written, below the root folder.
    RootOpen,
    /// Only administrators may write below the root folder, and our agent is installed there.
    RootClosed,
    /// Our agent does not answer on the host.
    NoAgent,
    /// An agent other than ours answers on the host.
    OtherAgent {
        /// The version that it claims.
        version: String,
    },
    /// The host lacks content or has other content.
    ContentDiffers {
        /// Number of files.
        files: usize,
    },
    /// The host differs from the desired state of this version.
    HostDiffers,
    /// The Node's version mark differs.
    VersionDiffers {
        /// The Node's version.
        seen: Option<String>,
    },
    /// The node is released for another content of the services ConfigMap.
    ServicesDiffer,
    /// The cluster's trusted CAs have changed.
    RootsDiffer,
    /// The Node's labels or annotations differ.
    MetadataDiffers,
    /// The host needs a restart.
    RestartPending {
        /// The reasons.
        reasons: Vec<RebootReason>,
    },
    /// The Node requests a restart.
    RestartAsked,
    /// The host came back with another boot identity.
    Restarted,
    /// The kubelet did not register its Node in time.
    NodeOverdue,
    /// The Node was deleted while its kubelet runs.
    NodeGone,
    /// A Node, and pods, could appear meanwhile.
    NodeMayCome,
    /// The version mark was not written in time.
    VersionOverdue,
    /// The node is about to be disrupted.
    DisruptionDue {
        /// The work that is due then.
        purpose: Purpose,
    },
    /// Pods that tolerate the cordon came after it.
    PodsCameBack,
    /// Pods block the drain.
    DrainBlocked,
    /// No pod blocks the drain any more.
    DrainUnblocked,
    /// Pods did not leave in time.
    DrainOverdue,
    /// The node is configured.
    Configured,
    /// The instance is no longer listed.
    Unlisted,
    /// The operator's key is exchanged.
    KeyExchange,
    /// The host refuses our key.
    LoginRefused,
}

/// The work for which a node is taken out of service.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// Services stop, content changes, services start.
    Upgrade,
    /// The daemon applies other services or roots of the same version.
    Release,
    /// The host restarts.
    Restart,
    /// The host is cleaned.
    Removal,
}

/// When to decide again.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Next {
    /// Nothing is left to do.
    Settled,
    /// As soon as the steps are done.
    Now,
    /// On the event `what`, at the latest at `deadline`.
    Await {
        /// The event.
        what: Awaited,
        /// The time to decide again without the event.
        deadline: Timestamp,
    },
}

/// States that a node can wait for.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaited {
    /// The host answers.
    HostReachable,
    /// The host is back from a restart.
    HostBack,
    /// The kubelet registers its Node.
    NodeAppears,
    /// Pods leave.
    PodsGone,
    /// WICD writes the version mark.
    VersionMark,
    /// The node is ready again after a restart.
    NodeReady,
    /// The budget has a free slot.
    DisruptionSlot,
    /// An administrator makes the host ready to become a node; see [`unfit`](super::unfit).
    HostFit,
    /// Another writer stops changing what we write on the Node, or enough time passes for a correction.
    OtherWriter,
}

impl Plan {
    /// A plan with nothing to do.
    pub fn settled() -> Self {
        Self { steps: Vec::new(), next: Next::Settled }
    }

    /// A plan that waits until `what` happens or `deadline` passes.
    pub fn wait(what: Awaited, deadline: Timestamp) -> Self {
        Self { steps: Vec::new(), next: Next::Await { what, deadline } }
    }

    /// A plan of one step, after which to decide again.
    pub fn step(action: Action, because: Because) -> Self {
        Self { steps: vec![Step { action, because }], next: Next::Now }
    }

    /// The same steps, but decide again only when `what` happens or `deadline` passes.
    pub fn until(self, what: Awaited, deadline: Timestamp) -> Self {
        Self { next: Next::Await { what, deadline }, ..self }
    }

    /// Adds a step at the end.
    pub fn and(mut self, action: Action, because: Because) -> Self {
        self.steps.push(Step { action, because });
        self
    }
}

impl Step {
    /// Whether it brings its instance further, beyond a look and beyond metadata that somebody changed.
    pub fn is_work(&self) -> bool {
        !self.action.looks() && self.because != Because::MetadataDiffers
    }

    /// Whether it may be taken though the plan is older than `inputs`. What takes a slot needs a permit at that moment: the
    /// steps before it may have lasted, and the permit may be another node's by now.
    /// `node` is the Node of the plan.
    pub fn is_permitted_in(&self, node: &str, inputs: &InstanceInputs) -> bool {
        let intent = &inputs.desired.intent;
        match &self.action {
            Action::DeleteMachine(permit) => {
                matches!(intent, Intent::Replace(now) if now == permit)
            }
            action if action.takes_slot_of(node).is_some() => {
                intent.permit().is_some_and(|permit| permit.node() == node)
            }
            _ => true,
        }
    }
}

impl Action {
    /// Whose disruption slot it takes, if it takes one: the name of the plan's Node if it puts the mark there that says so, or
    /// the [`key`](crate::machines::key) of a Machine that it deletes. From before the look at [`Step::is_permitted_in`] until
    /// it is over, the slot is [being taken](crate::fleet::Observed::taking).
    pub fn takes_slot_of(&self, node: &str) -> Option<String> {
        match self {
            Self::PatchNode(patch) => {
                let mark = patch.labels.get(names::UPGRADING_LABEL)?;
                mark.is_some().then(|| node.to_owned())
            }
            Self::DeleteMachine(permit) => Some(key(permit.machine())),
            _ => None,
        }
    }

    /// Whether it only observes or records the state of the host, so that its success does not mean that a later,
    /// formerly failing step works.
    pub fn looks(&self) -> bool {
        match self {
            Self::Probe
            | Self::ProbeWithOurs(_)
            | Self::ProbeStaged(_)
            | Self::RecordRoot(_)
            | Self::ProveKey(_)
            | Self::ProveKeyRemoved(_)
            | Self::ProveUserData => true,
            // Only the login counts as proof of the key.
            Self::Apply { work, .. } => work.only_exchanges_keys(),
            Self::Upload(_)
            | Self::PatchNode(_)
            | Self::SeekNode(_)
            | Self::ListPods
            | Self::Evict { .. }
            | Self::TellDrain { .. }
            | Self::RemoveLeftovers(_)
            | Self::DeleteNode(_)
            | Self::DeleteMachine(_)
            | Self::ForgetHost => false,
        }
    }

    /// Whether it uses the connection to the host; a key is proven over a connection of its own.
    pub const fn is_on_host(&self) -> bool {
        match self {
            Self::Probe
            | Self::ProbeWithOurs(_)
            | Self::ProbeStaged(_)
            | Self::RecordRoot(_)
            | Self::Upload(_)
            | Self::Apply { .. }
            | Self::RemoveLeftovers(_) => true,
            Self::ProveKey(_)
            | Self::ProveKeyRemoved(_)
            | Self::PatchNode(_)
            | Self::SeekNode(_)
            | Self::ListPods
            | Self::Evict { .. }
            | Self::TellDrain { .. }
            | Self::DeleteNode(_)
            | Self::ProveUserData
            | Self::DeleteMachine(_)
            | Self::ForgetHost => false,
        }
    }

    /// Short stable name for logs, metric labels, events and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::ProbeWithOurs(_) => "probe-with-ours",
            Self::ProbeStaged(_) => "probe-staged",
            Self::RecordRoot(_) => "record-root",
            Self::ProveKey(_) => "prove-key",
            Self::ProveKeyRemoved(_) => "prove-key-removed",
            Self::Upload(_) => "upload",
            Self::PatchNode(_) => "patch-node",
            Self::SeekNode(_) => "seek-node",
            Self::ListPods => "list-pods",
            Self::Evict { .. } => "evict",
            Self::TellDrain { .. } => "tell-drain",
            Self::Apply { .. } => "apply",
            Self::RemoveLeftovers(_) => "remove-leftovers",
            Self::DeleteNode(_) => "delete-node",
            Self::ProveUserData => "prove-user-data",
            Self::DeleteMachine(_) => "delete-machine",
            Self::ForgetHost => "forget-host",
        }
    }
}

impl NodePatch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.unschedulable.is_none()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{}, because {}", step.action, step.because)?;
        }
        match &self.next {
            Next::Settled if self.steps.is_empty() => f.write_str("settled"),
            Next::Settled => f.write_str("then settled"),
            Next::Now => f.write_str("then look again"),
            Next::Await { what, deadline } => {
                let then = if self.steps.is_empty() { "" } else { "then " };
                write!(f, "{then}await {what}, until {deadline}")
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())?;
        match self {
            Self::Probe
            | Self::ProbeStaged(_)
            | Self::ListPods
            | Self::ProveUserData
            | Self::ForgetHost => Ok(()),
            Self::ProveKeyRemoved(_) => f.write_str(" by a login with it that is refused"),
            Self::SeekNode(search) => write!(f, " {search}"),
            Self::ProbeWithOurs(_) => f.write_str(" (brought in a fresh folder)"),
            Self::RecordRoot(RootAccess::Closed) => f.write_str(" closed"),
            Self::RecordRoot(RootAccess::Open) => f.write_str(" open"),
            Self::ProveKey(_) => f.write_str(" by a login with it alone"),
            Self::Upload(contents) => write!(f, " {}", Counted(contents.len(), "content")),
            Self::PatchNode(patch) => write!(f, " {patch}"),
            Self::Evict { pods, .. } => write!(f, " {}", Counted(pods.len(), "pod")),
            Self::TellDrain { notice: Some(notice), .. } => write!(f, " ({})", notice.message),
            Self::TellDrain { notice: None, .. } => f.write_str(" (no pod blocks it)"),
            Self::Apply { work, .. } | Self::RemoveLeftovers(work) => write!(f, " {work}"),
            Self::DeleteNode(permit) => write!(f, " {}", permit.node()),
            Self::DeleteMachine(permit) => write!(f, " {}", permit.machine()),
        }
    }
}

impl fmt::Display for NodePatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        match self.unschedulable {
            Some(true) => f.write_str("cordon")?,
            Some(false) => f.write_str("uncordon")?,
            None => {}
        }
        if self.unschedulable.is_some() {
            separator = " ";
        }
        for (key, value) in self.labels.iter().chain(&self.annotations) {
            let sign = if value.is_some() { '+' } else { '-' };
            write!(f, "{separator}{sign}{}", key.rsplit('/').next().unwrap_or(key))?;
            separator = " ";
        }
        Ok(())
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverProbed => f.write_str("the host has not been looked at"),
            Self::NotKnownClosed => {
                f.write_str("nobody knows yet whether others may write to our folder there")
            }
            Self::RootOpen => f.write_str("others may write to our folder there"),
            Self::RootClosed => f.write_str("only administrators may write to our folder there"),
            Self::NoAgent => f.write_str("no agent of ours answers"),
            Self::OtherAgent { version } => write!(f, "agent {version} answers"),
            Self::ContentDiffers { files } => {
                write!(f, "the content of {} differs", Counted(*files, "file"))
            }
            Self::HostDiffers => f.write_str("the host differs"),
            Self::VersionDiffers { seen: Some(seen) } => write!(f, "it runs {seen}"),
            Self::VersionDiffers { seen: None } => f.write_str("it is not configured yet"),
            Self::RootsDiffer => f.write_str("the certificates that nodes trust changed"),
            Self::ServicesDiffer => f.write_str("the content of the services ConfigMap changed"),
            Self::MetadataDiffers => f.write_str("its metadata differs"),
            Self::RestartPending { reasons } => {
                f.write_str("a restart is pending for")?;
                let mut separator = " ";
                for reason in reasons {
                    f.write_str(separator)?;
                    f.write_str(match reason {
                        RebootReason::Feature => "a feature",
                        RebootReason::Rename => "the computer's name",
                        RebootReason::Environment => "variables",
                        RebootReason::Roots => "trusted roots",
                        RebootReason::Other => "another reason",
                    })?;
                    separator = ", ";
                }
                Ok(())
            }
            Self::RestartAsked => f.write_str("the node asks for a restart"),
            Self::Restarted => f.write_str("the host has restarted"),
            Self::NodeOverdue => f.write_str("the kubelet did not register in time"),
            Self::NodeGone => {
                f.write_str("its node is gone, and a kubelet registers when it starts")
            }
            Self::NodeMayCome => f.write_str("a node could come meanwhile"),
            Self::VersionOverdue => f.write_str("the version mark did not come in time"),
            Self::DisruptionDue { purpose } => {
                write!(f, "it is about to be disrupted for {purpose}")
            }
            Self::PodsCameBack => f.write_str("pods that tolerate the cordon came back"),
            Self::DrainBlocked => f.write_str("pods block its drain"),
            Self::DrainUnblocked => f.write_str("no pod blocks its drain any more"),
            Self::DrainOverdue => f.write_str("its pods did not leave in time"),
            Self::Configured => f.write_str("it is configured"),
            Self::Unlisted => f.write_str("it is no longer listed"),
            Self::KeyExchange => f.write_str("the key that lets us in is exchanged"),
            Self::LoginRefused => f.write_str("its host does not let us in"),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upgrade => "its upgrade",
            Self::Release => "other services or certificates",
            Self::Restart => "its restart",
            Self::Removal => "its removal",
        })
    }
}

/// A number with its noun, such as `1 file` or `2 files`.
struct Counted(usize, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostReachable => "the host's answer",
            Self::HostBack => "the host's return",
            Self::NodeAppears => "the node",
            Self::PodsGone => "its pods' departure",
            Self::VersionMark => "the version mark",
            Self::NodeReady => "the node's readiness",
            Self::DisruptionSlot => "a disruption slot",
            Self::HostFit => "a host that is fit to become a node",
            Self::OtherWriter => "the next correction of the node",
        })
    }
}
