//! Clients for a cluster, as a kubeconfig and the environment say.
//!
//! What a kubeconfig means is what kubectl makes of it. [`kube::Config`] differs where a program must not: some values
//! end it with a panic, some errors show tokens and passwords, and NO_PROXY is asked about the proxy. So each field is
//! checked here before kube sees it, and errors name entry and field, or file and line, but none of the contents.
//!
//! Source: `docs/contract/proxy-and-trust.md`, TRUST21 to TRUST27.

mod client;
mod entries;
mod files;
mod proxy;
mod token;

use std::env;
use std::io;
use std::path::Path;

use kube::Config;
use kube::config::Kubeconfig;
use wmco_core::url::UrlError;

pub use client::{ClientError, PlugInError, PlugInProblem, client};
pub use files::parse;

/// Why there is no configuration. Shows nothing of the contents of a kubeconfig but names of entries and of files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// An entry is named that is not there.
    #[error("the kubeconfig has no {entry}, which it refers to; add it, or refer to another one")]
    Absent {
        /// Kind and name, for example `cluster prod`.
        entry: String,
    },
    /// A field has a value that cannot be used.
    #[error("{entry}: correct field `{field}`")]
    Field {
        /// Kind and name of the entry.
        entry: String,
        /// The field.
        field: &'static str,
        /// What is wrong with its value.
        source: FieldError,
    },
    /// Something is wrong in these files.
    #[error("{files} does not say how to reach the cluster, correct it")]
    Files {
        /// Their paths.
        files: String,
        /// The cause.
        source: Box<Self>,
    },
    /// The files of `KUBECONFIG` are of different kinds or versions.
    #[error("give all files of KUBECONFIG the same `kind` and `apiVersion`")]
    Merge,
    /// There is no kubeconfig, and this is no pod.
    #[error(
        "set KUBECONFIG to a file that exists ({looked} does not), or run in a pod of the cluster"
    )]
    NoCluster {
        /// Where a kubeconfig was looked for.
        looked: String,
        /// What a pod would have.
        source: Box<kube::config::InClusterError>,
    },
    /// No context is chosen.
    #[error("the kubeconfig chooses no context, set its `current-context`")]
    NoContext,
    /// A file cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// A variable of the environment names no proxy.
    #[error("variable {name} names no proxy, write it such as http://HOST:PORT")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What is wrong with its value.
        source: FieldError,
    },
    /// The text is not that of a kubeconfig.
    #[error("it is no kubeconfig{}", place(*.line_and_column))]
    Yaml {
        /// The first place that is wrong.
        line_and_column: Option<(u64, u64)>,
    },
}

/// What is wrong with a value. Does not show it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// No base64.
    #[error("it is no base64")]
    Base64,
    /// No header of HTTP can hold it.
    #[error("it has a line end or another control character, remove that")]
    Character,
    /// There is none.
    #[error("it is missing or empty")]
    Missing,
    /// A certificate authority or a client certificate without a certificate.
    #[error("it has no certificate in PEM that can be read")]
    NoCertificate,
    /// Without a private key.
    #[error("it has no private key in PEM that can be read without a password")]
    NoKey,
    /// The certificate has another key.
    #[error("it is not the key of the client certificate")]
    OtherKey,
    /// TLS has no such names.
    #[error("it is no name of a host")]
    NoName,
    /// The file that it names.
    #[error("{path} cannot be read")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A proxy of SOCKS gets no user and password from us.
    #[error(
        "proxies of SOCKS with user and password are not supported, use one without or an http:// one"
    )]
    SocksUser,
    /// It is no URL, or none that can be used.
    #[error("it has {0}")]
    Url(UrlError),
}

impl From<UrlError> for FieldError {
    /// Its words are all that there is to tell.
    fn from(error: UrlError) -> Self {
        Self::Url(error)
    }
}

fn place(line_and_column: Option<(u64, u64)>) -> String {
    let place = |(line, column)| format!(", see line {line}, column {column}");
    line_and_column.map(place).unwrap_or_default()
}

/// The cluster that `KUBECONFIG` or `~/.kube/config` names, through the proxy that it names, or else that of the
/// environment; without a kubeconfig, the cluster in whose pod this runs.
///
/// # Errors
/// [`KubeconfigError`]; also when the environment names a proxy that cannot be used.
pub fn infer() -> Result<Config, KubeconfigError> {
    infer_from(None)
}

/// The same, with the kubeconfig of an option, if one is given, before all others.
///
/// # Errors
/// [`KubeconfigError`].
pub fn infer_from(given: Option<&Path>) -> Result<Config, KubeconfigError> {
    let others = || files::listed(env::var_os("KUBECONFIG"), env::home_dir());
    let files = given.map_or_else(others, |path| vec![path.to_owned()]);
    let shown = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    match files::read(&files)? {
        Some(kubeconfig) => infer_in(kubeconfig, variable).map_err(|source| match source {
            source @ KubeconfigError::Variable { .. } => source,
            source => KubeconfigError::Files { files: shown, source: Box::new(source) },
        }),
        None => Config::incluster().map_err(|source| KubeconfigError::NoCluster {
            looked: shown,
            source: Box::new(source),
        }),
    }
}

/// The cluster of the current context, through the proxy that it names, or else that of this process's environment. An
/// environment that names a proxy that cannot be used is a warning, and the cluster is reached without: a daemon
/// that stopped for that would never read the correction.
///
/// # Errors
/// [`KubeconfigError`].
pub fn config(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigError> {
    config_in(kubeconfig, variable)
}

fn infer_in(
    kubeconfig: Kubeconfig,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Config, KubeconfigError> {
    let mut config = entries::current(kubeconfig)?;
    if config.proxy_url.is_none() {
        config.proxy_url = proxy::of_environment(&config.cluster_url, environment)?;
    }
    Ok(config)
}

fn config_in(
    kubeconfig: Kubeconfig,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Config, KubeconfigError> {
    let mut config = entries::current(kubeconfig)?;
    if config.proxy_url.is_none() {
        let found = proxy::of_environment(&config.cluster_url, environment);
        config.proxy_url = found.unwrap_or_else(|error| {
            let cause = wmco_core::text::chain(&error);
            tracing::warn!(cause, "the cluster is reached without the proxy of the environment");
            None
        });
    }
    Ok(config)
}

/// What is no Unicode in it makes a proxy none, rather than no proxy at all.
fn variable(name: &str) -> Option<String> {
    Some(env::var_os(name)?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
