//! Why the agent did not do what the plan says.

use wmco_core::authorized_key::BadKeyExchange;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use crate::lifecycle::LifecycleError;
use crate::manifest::ManifestError;
use crate::windows::{BadServiceName, WindowsError};

/// Why a step or a look at the host failed. The message becomes a line of the report: it names the
/// object and the next step and never holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// An argument would need quotes.
    #[error("argument `{argument}` of the daemon holds blanks or quotes, choose another value")]
    Argument {
        /// The argument.
        argument: String,
    },
    /// The staged content is not what its name says, or cannot be unpacked.
    #[error("the content staged for {path} is damaged and was removed, upload it again")]
    Damaged {
        /// The file that it was for.
        path: WindowsPath,
        /// What went wrong.
        source: WindowsError,
    },
    /// Somebody keeps something open that he could go on changing.
    #[error(
        "a program keeps {path} open, so others may still change what lies there; find out whose it is \
         and end it, or restart the host"
    )]
    Held {
        /// What is open.
        path: WindowsPath,
    },
    /// The keys of administrators cannot be exchanged as it was asked for.
    #[error(transparent)]
    Keys(#[from] BadKeyExchange),
    /// Something else stands where their keys should be.
    #[error("{} is a folder or a link, put a file there", host::AUTHORIZED_KEYS)]
    KeysAreNoFile,
    /// Some services could not be brought up or removed.
    #[error(transparent)]
    Lifecycle(#[from] LifecycleError),
    /// The plan's manifest is wrong.
    #[error("the services ConfigMap of the plan is refused, correct it")]
    Manifest(#[from] ManifestError),
    /// The name of a service is wrong.
    #[error(transparent)]
    Name(#[from] BadServiceName),
    /// The path is not one that we may remove.
    #[error("{path} is not in a folder of ours and stays, remove it by hand if it must go")]
    NotOurs {
        /// The path.
        path: WindowsPath,
    },
    /// Others than administrators may have put keys into the file of administrators.
    #[error(
        "others than administrators may write to {file}; remove keys that nobody knows, then close it by \
         `icacls.exe {file} /setowner *S-1-5-32-544`, `icacls.exe {file} /reset` and \
         `icacls.exe {file} /inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F`",
        file = host::AUTHORIZED_KEYS
    )]
    OpenKeys,
    /// The plan is of another protocol.
    #[error("the plan speaks protocol {found}, this agent {ours}, replace the agent")]
    OtherProtocol {
        /// The plan's.
        found: u32,
        /// Ours.
        ours: u32,
    },
    /// The plan file is not there, or is not what its name says.
    #[error("plan {path} {problem}, upload it again")]
    Plan {
        /// The plan file.
        path: WindowsPath,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Services run from the root folder, and it is no folder of its own.
    #[error("{} is a link and services run through it, make it a folder", host::ROOT)]
    RootIsLink,
    /// The content for a file is not staged.
    #[error("the content of {path} is not staged, upload it again")]
    Unstaged {
        /// The file.
        path: WindowsPath,
    },
    /// The plan was made for a host that no Node stands for, and one may have come since.
    #[error("the plan is for a host without a node, but {why}; look at the host again")]
    NotVacant {
        /// What tells.
        why: &'static str,
    },
    /// Windows did not do it.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}
