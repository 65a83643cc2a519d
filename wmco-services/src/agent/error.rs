//! Errors of the agent.

use wmco_core::authorized_key::BadKeyExchange;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use crate::lifecycle::LifecycleError;
use crate::manifest::ManifestError;
use crate::windows::{BadServiceName, WindowsError};

/// Why a step or a probe failed. The message becomes a line of the report: it names the object and the next step and
/// never holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// An argument would need quotes.
    #[error("argument `{argument}` of the daemon holds blanks or quotes, choose another value")]
    Argument {
        /// The argument.
        argument: String,
    },
    /// The staged content does not match its name, or cannot be unpacked.
    #[error("the content staged for {path} is damaged and was removed, upload it again")]
    Damaged {
        /// The file that it was for.
        path: WindowsPath,
        /// The cause.
        source: WindowsError,
    },
    /// A program may hold a handle through which it can still change the file or folder.
    #[error(
        "a program keeps {path} open, so others may still change what lies there; find out whose it is \
         and end it, or restart the host"
    )]
    Held {
        /// The file or folder that is held open.
        path: WindowsPath,
    },
    /// The login user may change nothing on the host.
    #[error(
        "the login user has no rights of an administrator; list an administrator, or add the user to the host's group \
         Administrators (Add-LocalGroupMember)"
    )]
    NoRights,
    /// The exchange of administrators' keys is invalid.
    #[error(transparent)]
    Keys(#[from] BadKeyExchange),
    /// The administrators' key file is a folder or a link.
    #[error("{} is a folder or a link, put a file there", host::AUTHORIZED_KEYS)]
    KeysAreNoFile,
    /// Some services could not be brought up or removed, or imported certificates could not be removed.
    #[error(transparent)]
    Lifecycle(#[from] LifecycleError),
    /// The plan's services ConfigMap is refused.
    #[error("the services ConfigMap of the plan is refused, correct it")]
    Manifest(#[from] ManifestError),
    /// The name of a service is invalid.
    #[error(transparent)]
    Name(#[from] BadServiceName),
    /// The path is outside the folders from which we may remove.
    #[error("{path} is not in a folder of ours and stays, remove it by hand if it must go")]
    NotOurs {
        /// The path.
        path: WindowsPath,
    },
    /// Users other than administrators may write to the administrators' key file.
    #[error(
        "others than administrators may write to {file}; remove keys that nobody knows, then close it by \
         `icacls.exe {file} /setowner *S-1-5-32-544`, `icacls.exe {file} /reset` and \
         `icacls.exe {file} /inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F`",
        file = host::AUTHORIZED_KEYS
    )]
    OpenKeys,
    /// The plan has another protocol version.
    #[error("the plan speaks protocol {found}, this agent {ours}, replace the agent")]
    OtherProtocol {
        /// The plan's.
        found: u32,
        /// Ours.
        ours: u32,
    },
    /// The plan file is missing, or its content does not match its name or cannot be parsed.
    #[error("plan {path} {problem}, upload it again")]
    Plan {
        /// The plan file.
        path: WindowsPath,
        /// The problem, as the message words it.
        problem: &'static str,
    },
    /// The root is a link or a file, and services run from it.
    #[error("{} is a link and services run through it, make it a folder", host::ROOT)]
    RootIsNoFolder,
    /// The content for a file is not staged.
    #[error("the content of {path} is not staged, upload it again")]
    Unstaged {
        /// The file.
        path: WindowsPath,
    },
    /// The plan was made for a host without a Node, and a Node may have been registered since.
    #[error("the plan is for a host without a node, but {why}; look at the host again")]
    NotVacant {
        /// The evidence for that.
        why: &'static str,
    },
    /// A call to Windows failed.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}
