//! What the environment asks for.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use kube::config::Kubeconfig;

/// Set to `yes`: a cluster that does not look like one to throw away may be used all the same.
pub(crate) const ANY_CLUSTER: &str = "E2E_ANY_CLUSTER";
/// How many hosts are listed.
pub(crate) const HOSTS: &str = "E2E_HOSTS";

const KUBECONFIG: &str = "KUBECONFIG";
const KUBEBUILDER_ASSETS: &str = "KUBEBUILDER_ASSETS";
const DEFAULT_HOSTS: u8 = 5;
const MOST_HOSTS: u8 = 200;

/// What to run against, and how much.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Request {
    pub(crate) api: Asked,
    pub(crate) hosts: u8,
}

/// An API server.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Asked {
    /// A server to be started, from a folder with kube-apiserver and etcd.
    Assets(PathBuf),
    /// A running server.
    Cluster {
        /// Kubeconfigs, merged as kubectl does.
        paths: Vec<PathBuf>,
        /// Whether it may be used whatever is in it.
        any: bool,
    },
}

/// Why nothing can be run.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "there is no API server to run against, so nothing was tested; set {KUBECONFIG} to a kubeconfig of \
         a cluster that may be thrown away, or {KUBEBUILDER_ASSETS} to a folder with kube-apiserver and \
         etcd, as setup-envtest makes it"
    )]
    NothingAsked,
    #[error("{name} is {value:?}, set it to {needed} or leave it out")]
    Value { name: &'static str, value: String, needed: String },
}

/// Reads the environment. What is started here belongs to nobody else, so `KUBEBUILDER_ASSETS` outweighs a
/// `KUBECONFIG` that may have been set for something else.
///
/// # Errors
/// [`Refusal`] says what to set.
pub(crate) fn asked(lookup: impl Fn(&str) -> Option<String>) -> Result<Request, Refusal> {
    let set = |name| lookup(name).filter(|value: &String| !value.is_empty());
    let wrong = |name, value, needed: &str| Refusal::Value { name, value, needed: needed.into() };
    let any = match set(ANY_CLUSTER).as_deref() {
        None | Some("no") => false,
        Some("yes") => true,
        Some(other) => return Err(wrong(ANY_CLUSTER, other.to_owned(), "yes or no")),
    };
    let hosts = match set(HOSTS) {
        None => DEFAULT_HOSTS,
        Some(text) => {
            let number = text.parse().ok().filter(|number| (1..=MOST_HOSTS).contains(number));
            let needed = format!("a number from 1 to {MOST_HOSTS}");
            number.ok_or_else(|| wrong(HOSTS, text, &needed))?
        }
    };
    let api = match (set(KUBEBUILDER_ASSETS), set(KUBECONFIG)) {
        (Some(folder), _) => Asked::Assets(folder.into()),
        (None, Some(list)) => {
            let paths = env::split_paths(&list).filter(|path| !path.as_os_str().is_empty());
            Asked::Cluster { paths: paths.collect(), any }
        }
        (None, None) => return Err(Refusal::NothingAsked),
    };
    Ok(Request { api, hosts })
}

/// Reads and merges kubeconfigs.
///
/// # Errors
/// Names the file that cannot be read.
pub(crate) fn kubeconfig(paths: &[PathBuf]) -> anyhow::Result<Kubeconfig> {
    paths.iter().try_fold(Kubeconfig::default(), |merged, path| {
        let next = Kubeconfig::read_from(path)
            .with_context(|| format!("cannot use kubeconfig {}", path.display()))?;
        Ok(merged.merge(next)?)
    })
}
