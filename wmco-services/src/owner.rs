//! The owner of services, variables and trusted roots on a host.
//!
//! [`services`](crate::services), [`mod@env`](crate::env) and [`certs`](crate::certs) change only objects that an
//! [`Owner`] declares. Everything that they know of the owner is in this value, so that other programs can manage their
//! own services beside ours.

use std::sync::LazyLock;

use wmco_core::names::{host, objects};
use wmco_core::payload;
use wmco_core::winpath::{BadPath, WindowsPath};

use crate::windows::{Service, ServiceName};

/// Marks by which an owner's objects on a host are recognised, and the records of changes made for the owner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Owner {
    /// Start of the description of each declared service; a blank and the service's name follow. Each owner on a host
    /// needs its own tag.
    pub tag: String,
    /// Service that has the tag but is managed by its installer.
    pub installed: Option<ServiceName>,
    /// The folder of the owner's files. Processes of programs below it that outlive their service are ended, and files
    /// below it are watched for changes by scripts.
    pub root: WindowsPath,
    /// Programs below the root whose processes are never ended.
    pub spared: Vec<WindowsPath>,
    /// Program that runs another program and writes its output to a log, if the owner has one.
    pub log_runner: Option<WindowsPath>,
    /// Paths of scripts in the manifest, and of the copies that are run in their place.
    pub scripts: Vec<(WindowsPath, WindowsPath)>,
    /// File that records which variables were set. Only administrators may write to it.
    pub variables_record: WindowsPath,
    /// File that records which trusted roots were imported.
    pub roots_record: WindowsPath,
    /// File with the manifest that was released for the node last.
    pub released_record: WindowsPath,
}

static OURS: LazyLock<Owner> = LazyLock::new(|| Owner {
    tag: host::SERVICE_TAG.to_owned(),
    installed: objects::WICD.parse().ok(),
    root: path(host::ROOT),
    spared: vec![path(host::AGENT)],
    log_runner: Some(path(host::LOG_RUNNER)),
    scripts: payload::scripts().collect(),
    variables_record: path(host::VARIABLES_RECORD),
    roots_record: path(host::IMPORTED_CERTIFICATES),
    released_record: path(host::RELEASED_SERVICES),
});

impl Owner {
    /// Creates an owner that declares services and nothing else. Its records are below its root, where therefore only
    /// administrators may write: see [`variables_record`](Self::variables_record).
    pub fn new(tag: impl Into<String>, root: WindowsPath) -> Result<Self, BadPath> {
        Ok(Self {
            tag: tag.into(),
            installed: None,
            variables_record: root.join("variables.json")?,
            roots_record: root.join("roots.pem")?,
            released_record: root.join("services.json")?,
            root,
            spared: Vec::new(),
            log_runner: None,
            scripts: Vec::new(),
        })
    }

    /// Returns the owner for this operator and its daemon.
    pub fn ours() -> &'static Self {
        &OURS
    }

    /// Returns the description that identifies a declared service.
    pub fn description(&self, service: &ServiceName) -> String {
        format!("{} {service}", self.tag)
    }

    /// Whether the service carries the owner's tag and is managed.
    pub fn has(&self, service: &Service) -> bool {
        service.config.description == self.description(&service.name)
            && self.installed.as_ref() != Some(&service.name)
    }
}

#[expect(clippy::expect_used, reason = "a test parses the constants")]
fn path(text: &str) -> WindowsPath {
    text.parse().expect("a constant is a path")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`path`] panics on an invalid constant.
    #[test]
    fn our_names_are_paths_and_names_of_services() {
        let ours = Owner::ours();
        assert_eq!(ours.installed.as_ref().map(ServiceName::as_str), Some(objects::WICD));
        for path in [&ours.variables_record, &ours.roots_record].into_iter().chain(&ours.spared) {
            assert!(path.is_within(&ours.root), "{path}");
        }
    }
}
