//! A client of a configuration, whose errors show no credentials.

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Instant;
use std::{fmt, io};

use http::header::AUTHORIZATION;
use http::{Request, Uri};
use kube::client::{AuthError, Body, ClientBuilder};
use kube::config::AuthInfo;
use kube::{Client, Config};
use tower::BoxError;
use tower::util::{MapErrLayer, MapRequestLayer, option_layer};

use super::FieldError;
use super::token::TokenFile;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The program that gives credentials.
    #[error(transparent)]
    PlugIn(#[from] PlugInError),
    /// TLS cannot be set up.
    #[error(
        "the certificates of the kubeconfig, or of its credential plug-in, cannot be used, or their key is another one: \
         see `client-certificate` and `client-key`"
    )]
    Tls(#[source] Box<kube::Error>),
    /// The file with the token.
    #[error("no token is in {}, correct `tokenFile`", .path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: FieldError,
    },
}

/// The program that a kubeconfig names for credentials gave none. Shows neither its arguments nor its output.
#[derive(Debug, thiserror::Error)]
#[error("the credential plug-in `{command}` {problem}; run it by itself to see why")]
pub struct PlugInError {
    command: String,
    problem: PlugInProblem,
}

/// What the program did.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlugInProblem {
    /// It reported a failure.
    Ended(ExitStatus),
    /// Its output has no credentials.
    NoCredentials,
    /// It cannot be run.
    NoStart(io::Error),
    /// No header of HTTP can hold its token.
    Token,
    /// Anything else; kube has no program of this kind.
    Unsupported,
}

impl fmt::Display for PlugInProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status) => write!(f, "ended with {status}"),
            Self::NoCredentials => f.write_str("printed no credentials of kind ExecCredential"),
            Self::NoStart(error) => write!(f, "does not start ({error})"),
            Self::Token => f.write_str("printed a token with a line end or a control character"),
            Self::Unsupported => f.write_str("gives no credentials in a way that is known here"),
        }
    }
}

impl From<AuthError> for PlugInProblem {
    /// What kube says repeats arguments, environment and output of the program.
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::AuthExecRun { out, .. } => Self::Ended(out.status),
            AuthError::AuthExecStart(error) => Self::NoStart(error),
            AuthError::InvalidBearerToken(_) => Self::Token,
            AuthError::AuthExecParse(_)
            | AuthError::ExecPluginFailed
            | AuthError::MalformedTokenExpirationDate(_)
            | AuthError::ParseTokenKey(_)
            | AuthError::UnrefreshableTokenResponse => Self::NoCredentials,
            _ => Self::Unsupported,
        }
    }
}

/// Nothing came back through the proxy.
#[derive(Debug, thiserror::Error)]
#[error("the cluster does not answer through the proxy {proxy}, check that it can be reached")]
struct ThroughProxy {
    /// Its host and port.
    proxy: String,
    source: BoxError,
}

/// A client that names the proxy, if there is one, when it gets no answer, and its program for credentials, when that
/// gives none.
///
/// # Errors
/// [`ClientError`].
pub fn client(mut config: Config) -> Result<Client, ClientError> {
    let token = token_file(&mut config.auth_info).map(|path| {
        let token = TokenFile::open(&path, Instant::now());
        token.map_err(|source| ClientError::TokenFile { path, source })
    });
    let token = token.transpose()?.map(Arc::new);
    let proxy = config.proxy_url.as_ref().map(host_and_port);
    if let Some(proxy) = &proxy {
        tracing::info!(proxy, "the cluster is reached through a proxy");
    }
    let command = command(&config.auth_info);
    let plug_in = move |problem| PlugInError { command: command.clone(), problem };
    // Where a plug-in prints a token that no header can hold, kube panics rather than to tell.
    let builder = panic::catch_unwind(AssertUnwindSafe(|| ClientBuilder::try_from(config)))
        .map_err(|_| plug_in(PlugInProblem::Token))?
        .map_err(|error| match error {
            kube::Error::Auth(error) => plug_in(error.into()).into(),
            error => ClientError::Tls(Box::new(error)),
        })?;
    let authorize = token.map(|token| {
        MapRequestLayer::new(move |mut request: Request<Body>| {
            request.headers_mut().insert(AUTHORIZATION, token.header(Instant::now()));
            request
        })
    });
    let name = move |error: BoxError| match (error.downcast::<AuthError>(), &proxy) {
        (Ok(error), _) => plug_in((*error).into()).into(),
        (Err(source), Some(proxy)) => ThroughProxy { proxy: proxy.clone(), source }.into(),
        (Err(source), None) => source,
    };
    Ok(builder.with_layer(&option_layer(authorize)).with_layer(&MapErrLayer::new(name)).build())
}

/// Takes the file with the token out, unless the user has other credentials that come first.
fn token_file(user: &mut AuthInfo) -> Option<PathBuf> {
    let has_others =
        user.auth_provider.is_some() || user.username.is_some() || user.token.is_some();
    user.token_file.take_if(|_| !has_others).map(PathBuf::from)
}

/// Name of the program that gives credentials.
fn command(user: &AuthInfo) -> String {
    let provider = user.auth_provider.as_ref().map(|provider| &provider.name);
    provider
        .or(user.exec.as_ref().and_then(|exec| exec.command.as_ref()))
        .cloned()
        .unwrap_or_default()
}

/// Before the host name there can be user and password.
fn host_and_port(url: &Uri) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host().unwrap_or_default())
}
