//! Why Windows did not do what was asked.

use jiff::SignedDuration;

/// A failed call. `object` is a path, a service, a variable or the like; never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WindowsError {
    /// The process may not do that.
    #[error("no right to change {object}, run the agent as an administrator")]
    AccessDenied {
        /// What was to be changed or read.
        object: String,
    },
    /// The content that was to be written could not be read to its end; nothing was changed.
    #[error("{object} was not written, its content could not be read; send it again")]
    Content {
        /// The file that was to be written.
        object: String,
        /// What the reader of the content said.
        source: std::io::Error,
    },
    /// Services that need this one still run.
    #[error("service {service} cannot stop while {} need it, stop them first", .dependents.join(", "))]
    DependentsRun {
        /// The service that was to stop.
        service: String,
        /// Services that need it and are not stopped.
        dependents: Vec<String>,
    },
    /// A folder that was to be removed as empty is not.
    #[error("folder {object} is not empty, remove what is in it first")]
    DirectoryNotEmpty {
        /// The folder.
        object: String,
    },
    /// The disk is full; nothing was left half written.
    #[error("no space left for {object}, free space on its disk and try again")]
    DiskFull {
        /// The file that was to be written.
        object: String,
    },
    /// It is there already.
    #[error("{object} exists already, look at it again before creating it")]
    Exists {
        /// What was to be created.
        object: String,
    },
    /// The caller does not wait for it any more; it may still happen.
    #[error("{object} was not awaited, since the daemon is told to stop; look again")]
    Interrupted {
        /// What was waited for.
        object: String,
    },
    /// Another program holds the file.
    #[error("{object} is in use by a running program, stop that program and try again")]
    Locked {
        /// The file.
        object: String,
    },
    /// The service is deleted as soon as its last user closes it.
    #[error(
        "service {service} is still being deleted, close programs that show services and try again"
    )]
    MarkedForDeletion {
        /// The service.
        service: String,
    },
    /// It is not there.
    #[error("{object} does not exist")]
    Missing {
        /// What was asked for.
        object: String,
    },
    /// A service cannot start without another one that is not there.
    #[error("service {service} needs {dependency}, which does not exist, create that first")]
    MissingDependency {
        /// The service that was to start.
        service: String,
        /// The one that is missing.
        dependency: String,
    },
    /// Anything else that Windows said.
    #[error("cannot {what}")]
    Other {
        /// What was tried, for example `list the services`.
        what: String,
        /// What Windows said.
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
    /// It took longer than allowed.
    #[error("{object} did not finish within {limit:#}, look at what holds it up")]
    TimedOut {
        /// The service, script or the like.
        object: String,
        /// How long it was given.
        limit: SignedDuration,
    },
    /// The file is larger than the caller can use.
    #[error("{object} is larger than {most_bytes} bytes, replace it")]
    TooLarge {
        /// The file.
        object: String,
        /// How much would have been read.
        most_bytes: usize,
    },
}

impl WindowsError {
    /// An [`Other`](Self::Other) from any cause.
    pub fn other(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Other { what: what.into(), source: source.into() }
    }
}
