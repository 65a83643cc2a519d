//! Why a step failed, and whom to tell.

use std::sync::Arc;

use wmco_core::host_record::RecordRefused;
use wmco_core::names::{events, host, objects};
use wmco_core::node::{FailureKind, HostSeen, InstanceInputs};
use wmco_core::protocol::HostStep;
use wmco_core::reach::{Reach, Unreachable};
use wmco_ssh::{ConnectError, HostError, PrivateKey, Route};

use crate::leader::NotLeading;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Our own agent does not run on the host.
    #[error(
        "our agent does not do its work on the host ({what}); unless that says what to do, check that \
         nothing there blocks programs in {} and in the login user's own folder, where sftp and \
         commands start",
        host::ROOT
    )]
    AgentFails {
        /// What it did instead.
        what: String,
    },
    /// The API server did not take a write.
    #[error("the api server did not {doing}")]
    Api {
        /// What was asked of it.
        doing: &'static str,
        /// What it said.
        source: kube::Error,
    },
    /// There is no connection to the host.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A content is not in this release.
    #[error("content {digest} is not in this release, this is a mistake in the operator")]
    Content {
        /// Its digest.
        digest: wmco_core::digest::Sha256,
    },
    /// Something on the host did not work.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host itself, and no jump host, refuses our key.
    #[error(
        "{refusal}; the line for {} (for SYSTEM and Administrators only) is `{line}`",
        host::AUTHORIZED_KEYS
    )]
    LoginRefused {
        /// The host and the user.
        refusal: ConnectError,
        /// Our public key.
        line: String,
    },
    /// The jump host refuses our key.
    #[error("{refusal}; that is the jump host, and the line of the key is `{line}`")]
    JumpLoginRefused {
        /// The refusal, with the jump host and the user.
        refusal: String,
        /// Our public key.
        line: String,
    },
    /// The host lets in a key that was just taken off it.
    #[error(
        "the host still lets the former key in, whose line was taken out of {}; see which file of keys the \
         configuration of sshd there names for this user, and remove the line",
        host::AUTHORIZED_KEYS
    )]
    RemovedKeyLetIn,
    /// The host refuses the key that was just added.
    #[error(
        "{refusal}; its line was added to {} before, so see which file of keys the configuration of sshd on \
         the host names for administrators; meanwhile the current key stays in use",
        host::AUTHORIZED_KEYS
    )]
    NextKeyRefused {
        /// The host and the user.
        refusal: ConnectError,
    },
    /// The API server keeps a Machine for another one than is seen here.
    #[error(
        "the machine is not deleted for replacement, since the api server has changed it or has another one \
         of its name, which its watch does not show; see who writes the machine all the time, and whether \
         the api server is well"
    )]
    MachineKept,
    /// A Node is in the API that could be the host's, but is not known as that.
    #[error(
        "node {node} may be the one of this host but is not known as that, so nothing is changed on the \
         host: {remedy}"
    )]
    NodeInTheWay {
        /// The Node.
        node: String,
        /// What to do about it.
        remedy: String,
    },
    /// The API server does not delete the Machine.
    #[error("the api server did not delete the machine, which is to be replaced")]
    NotDeleted {
        /// What it said.
        source: kube::Error,
    },
    /// A Machine that is made now would refuse us as well.
    #[error(
        "the machine is not deleted for replacement, since secret {} of {} does not let our keys in, so that the next \
         one would refuse us, too; see who writes it",
        objects::USER_DATA_SECRET,
        objects::MACHINE_API_NAMESPACE
    )]
    UserDataRefuses,
    /// Nobody knows whether a Machine that is made now would let us in.
    #[error(
        "the machine is not deleted for replacement, since the api server did not show the user data of new machines, \
         secret {} of {}; if the operator may not read it, apply the rights in its deployment again",
        objects::USER_DATA_SECRET,
        objects::MACHINE_API_NAMESPACE
    )]
    UserDataUnread {
        /// What it said.
        source: kube::Error,
    },
    /// Another process leads.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes, look at the operator's own host")]
    Random,
    /// What was learned of a host is not kept.
    #[error("nothing is kept of the host")]
    Record(#[from] RecordRefused),
    /// The agent refused the whole plan.
    #[error("the agent refused its plan: {error}")]
    Refused {
        /// What it said.
        error: String,
    },
    /// The host, or its jump host, shows another key than the pinned one.
    #[error("{mismatch}; if it was reinstalled, {accept} to have its new key trusted")]
    OtherHostKey {
        /// The host and both fingerprints.
        mismatch: String,
        /// What to change, see [`Pin`](wmco_core::reach::Pin).
        accept: String,
    },
    /// It is not known how to reach the host.
    #[error(transparent)]
    Route(Unreachable),
    /// The agent could not do a step.
    #[error("{step} failed on the host: {error}")]
    Step {
        /// The step.
        step: String,
        /// What the agent said.
        error: String,
    },
}

impl StepError {
    /// Whether the next pass has to connect and look again.
    pub const fn leaves_host_unknown(&self) -> bool {
        match self {
            Self::AgentFails { .. }
            | Self::Connect(_)
            | Self::Host(_)
            | Self::JumpLoginRefused { .. }
            | Self::LoginRefused { .. }
            | Self::OtherHostKey { .. }
            | Self::Route(_) => true,
            Self::Api { .. }
            | Self::Content { .. }
            | Self::NextKeyRefused { .. }
            | Self::MachineKept
            | Self::NodeInTheWay { .. }
            | Self::NotDeleted { .. }
            | Self::NotLeading(_)
            | Self::Random
            | Self::Record(_)
            | Self::Refused { .. }
            | Self::RemovedKeyLetIn
            | Self::Step { .. }
            | Self::UserDataRefuses
            | Self::UserDataUnread { .. } => false,
        }
    }

    /// What the pause before the next attempt depends on.
    pub const fn kind(&self) -> FailureKind {
        if matches!(self, Self::Connect(ConnectError::Busy { .. })) {
            FailureKind::TurnedAway
        } else {
            FailureKind::Other
        }
    }

    /// Reason of the Event that tells people.
    pub const fn event_reason(&self, instance: &InstanceInputs) -> &'static str {
        match self {
            Self::OtherHostKey { .. } => events::HOST_KEY_MISMATCH,
            Self::MachineKept
            | Self::NotDeleted { .. }
            | Self::UserDataRefuses
            | Self::UserDataUnread { .. } => events::MACHINE_DELETION_FAILED,
            _ if instance.machine.is_some() => events::MACHINE_SETUP_FAILURE,
            _ => events::INSTANCE_SETUP_FAILURE,
        }
    }

    /// The right variant for a failed connect by `route`, which `reach` gave, where these are all our keys.
    pub(super) fn connect(
        error: ConnectError,
        route: &Route,
        reach: &Reach,
        keys: &[Arc<PrivateKey>],
    ) -> Self {
        let target = match &error {
            ConnectError::HostKeyMismatch { target, .. } => target,
            ConnectError::AuthenticationRefused { target, .. } => {
                let is_host = *target == route.target.to_string();
                // While keys are exchanged, the one that stays.
                let line = keys.last().map(|key| key.public().authorized_key()).unwrap_or_default();
                return if is_host {
                    Self::LoginRefused { refusal: error, line }
                } else {
                    Self::JumpLoginRefused { refusal: error.to_string(), line }
                };
            }
            _ => return Self::Connect(error),
        };
        let is_host = *target == route.target.to_string();
        let jump = || reach.via.as_ref()?.host_key.as_ref();
        match if is_host { reach.host_key.as_ref() } else { jump() } {
            Some(pinned) => {
                Self::OtherHostKey { mismatch: error.to_string(), accept: pinned.by.to_string() }
            }
            None => Self::Connect(error),
        }
    }

    /// The Node `node` may be that of the host of `instance`.
    pub(super) fn in_the_way(node: String, instance: &InstanceInputs) -> Self {
        let remedy = match &instance.machine {
            Some(machine) => format!(
                "see why machine {} does not refer to the node, or delete that if it is left of another \
                 host",
                machine.name
            ),
            None => format!(
                "delete the node if it is left of another installation, or correct its addresses and \
                 annotation {}",
                wmco_core::names::INSTANCE_ANNOTATION
            ),
        };
        Self::NodeInTheWay { node, remedy }
    }

    pub(super) fn step(steps: &[HostStep], at: usize, error: &str) -> Self {
        let step = steps.get(at).map_or_else(|| format!("step {at}"), ToString::to_string);
        Self::Step { step, error: error.to_owned() }
    }
}

/// A step that failed.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: StepError,
    /// The host as it is now, if its agent came to an end, but not through the plan.
    pub host: Option<HostSeen>,
}

impl<E: Into<StepError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), host: None }
    }
}

/// What failed when the API server was asked to do something.
pub(super) fn api(doing: &'static str) -> impl FnOnce(kube::Error) -> StepError {
    move |source| StepError::Api { doing, source }
}
