//! Errors of Windows calls.

use jiff::SignedDuration;

/// A failed call. `object` is a path, a service, a variable or the like; never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WindowsError {
    /// The process lacks the right.
    #[error("no right to change {object}, run the agent as an administrator")]
    AccessDenied {
        /// The object to be changed or read.
        object: String,
    },
    /// The content to write could not be read to its end; nothing was changed.
    #[error("{object} was not written, its content could not be read; send it again")]
    Content {
        /// The file to be written.
        object: String,
        /// The reader's error.
        source: std::io::Error,
    },
    /// Services that depend on this one still run.
    #[error("service {service} cannot stop while {} need it, stop them first", .dependents.join(", "))]
    DependentsRun {
        /// The service to be stopped.
        service: String,
        /// Its dependents that are not stopped.
        dependents: Vec<String>,
    },
    /// A folder to be removed is not empty.
    #[error("folder {object} is not empty, remove what is in it first")]
    DirectoryNotEmpty {
        /// The folder.
        object: String,
    },
    /// The disk is full; no partly written file is left.
    #[error("no space left for {object}, free space on its disk and try again")]
    DiskFull {
        /// The file to be written.
        object: String,
    },
    /// The object exists already.
    #[error("{object} exists already, look at it again before creating it")]
    Exists {
        /// The object to be created.
        object: String,
    },
    /// The caller stopped waiting; the operation may still finish.
    #[error("{object} was not awaited, since the daemon is stopping; try again")]
    Interrupted {
        /// The operation.
        object: String,
    },
    /// Another program holds the file.
    #[error("{object} is in use by a running program, stop that program and try again")]
    Locked {
        /// The file.
        object: String,
    },
    /// The service is deleted when the last handle to it is closed.
    #[error(
        "service {service} is still being deleted, close programs that show services and try again"
    )]
    MarkedForDeletion {
        /// The service.
        service: String,
    },
    /// The object does not exist.
    #[error("{object} does not exist")]
    Missing {
        /// The object.
        object: String,
    },
    /// A service cannot start because a dependency does not exist.
    #[error("service {service} needs {dependency}, which does not exist, create that first")]
    MissingDependency {
        /// The service to be started.
        service: String,
        /// The missing dependency.
        dependency: String,
    },
    /// Any other error of Windows.
    #[error("cannot {what}")]
    Other {
        /// The operation, for example `list the services`.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A service ended by itself instead of staying up.
    #[error("service {service} ended right after its start with code {code}, look at its log")]
    ServiceEnded {
        /// The service.
        service: String,
        /// Its exit code.
        code: u32,
    },
    /// The operation exceeded its limit.
    #[error("{object} did not finish within {limit:#}, look at what holds it up")]
    TimedOut {
        /// The service, script or the like.
        object: String,
        /// The limit.
        limit: SignedDuration,
    },
    /// The file is larger than the caller accepts.
    #[error("{object} is larger than {most_bytes} bytes, replace it")]
    TooLarge {
        /// The file.
        object: String,
        /// Most bytes that the caller accepts.
        most_bytes: usize,
    },
}

impl WindowsError {
    /// Creates an [`Other`](Self::Other) from any cause.
    pub fn other(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Other { what: what.into(), source: source.into() }
    }
}
