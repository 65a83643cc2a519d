//! The login: offers keys, and keeps what the server's answer says.

use std::sync::Arc;

use russh::client::{AuthResult, Handle};
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg};
use russh::{Disconnect, MethodKind, MethodSet};

use super::handler::{Farewell, Handler};
use super::steps::Steps;
use crate::error::{ConnectError, Stage, printable};
use crate::key::{PrivateKey, PublicKey};
use crate::route::{Credentials, Target};

/// Letters of a server's text that are kept.
const SAID: usize = 200;

/// Answer to one key.
enum Answer {
    Accepted,
    /// The server refused it and would look at another one.
    Refused,
    /// The server refused it and ended the connection, because nothing else may be tried.
    RefusedAndClosed,
    /// The server ended the connection because of failed attempts, perhaps without a look at this key.
    Closed {
        said: String,
    },
}

/// Offers one key after the other; returns the accepted one.
///
/// # Errors
/// [`ConnectError::AuthenticationRefused`] only when the server has refused every key.
pub(super) async fn log_in(
    handle: &mut Handle<Handler>,
    farewell: &Farewell,
    steps: &Steps,
    target: &Target,
    credentials: &Credentials,
) -> Result<PublicKey, ConnectError> {
    let user = &credentials.user;
    let mut keys = credentials.keys.iter().enumerate().peekable();
    while let Some((number, key)) = keys.next() {
        steps.offers(key.public());
        match offer(handle, farewell, target, user, key).await? {
            Answer::Accepted => return Ok(key.public().clone()),
            Answer::Refused => {}
            Answer::RefusedAndClosed if keys.peek().is_none() => {}
            // The only attempt that the server can mean is that of this key.
            Answer::Closed { .. } if number == 0 && keys.peek().is_none() => {}
            Answer::RefusedAndClosed => {
                return Err(too_many(target, "it closed the connection".into()));
            }
            Answer::Closed { said } => return Err(too_many(target, said)),
        }
    }
    let keys: Vec<String> = credentials.keys.iter().map(|key| key.public().kind()).collect();
    Err(ConnectError::AuthenticationRefused {
        target: target.to_string(),
        user: user.clone(),
        keys: keys.join(", ").into(),
    })
}

fn too_many(target: &Target, said: String) -> ConnectError {
    ConnectError::TooManyTries { target: target.to_string(), said }
}

async fn offer(
    handle: &mut Handle<Handler>,
    farewell: &Farewell,
    target: &Target,
    user: &str,
    key: &PrivateKey,
) -> Result<Answer, ConnectError> {
    let failed = |error| ConnectError::from_ssh(target.to_string(), Stage::Authenticate, error);
    let key = key.inner();
    // Never SHA-1. A server announces all hashes that it knows, even ones that its configuration refuses.
    let hashes: &[Option<HashAlg>] = match key.algorithm() {
        Algorithm::Rsa { .. } => {
            match handle.best_supported_rsa_hash().await.map_err(failed)?.flatten() {
                Some(HashAlg::Sha512) => &[Some(HashAlg::Sha512), Some(HashAlg::Sha256)],
                _ => &[Some(HashAlg::Sha256), Some(HashAlg::Sha512)],
            }
        }
        _ => &[None],
    };
    let mut was_refused = false;
    for hash in hashes {
        let key = PrivateKeyWithHashAlg::new(Arc::clone(&key), *hash);
        match handle.authenticate_publickey(user, key).await {
            Ok(AuthResult::Success) => return Ok(Answer::Accepted),
            Ok(AuthResult::Failure { remaining_methods, partial_success: true }) => {
                let (target, methods) = (target.to_string(), names(&remaining_methods));
                return Err(ConnectError::WantsMore { target, methods });
            }
            // The library reports the end of the connection in this way, too.
            Ok(AuthResult::Failure { remaining_methods, .. })
                if remaining_methods.is_empty() && handle.is_closed() =>
            {
                return closed(farewell, was_refused, failed(russh::Error::Disconnect));
            }
            Ok(AuthResult::Failure { remaining_methods, .. })
                if !remaining_methods.contains(&MethodKind::PublicKey) && !was_refused =>
            {
                let (target, methods) = (target.to_string(), names(&remaining_methods));
                return Err(ConnectError::NoPublicKey { target, methods });
            }
            Ok(AuthResult::Failure { .. }) => was_refused = true,
            Err(error) => return closed(farewell, was_refused, failed(error)),
        }
    }
    Ok(Answer::Refused)
}

/// What the end of the connection says of the key that was offered last; `cut` where it says nothing.
fn closed(
    farewell: &Farewell,
    was_refused: bool,
    cut: ConnectError,
) -> Result<Answer, ConnectError> {
    let Some(said) = farewell.take() else { return Err(cut) };
    let of_failures = matches!(said.reason_code, Disconnect::NoMoreAuthMethodsAvailable)
        || said.message.to_ascii_lowercase().contains("too many authentication failures");
    match (of_failures, was_refused) {
        (true, true) => Ok(Answer::RefusedAndClosed),
        (true, false) => Ok(Answer::Closed { said: printable(&said.message, SAID) }),
        (false, _) => Err(match cut {
            ConnectError::Dropped { target, stage, .. } => ConnectError::Dropped {
                target,
                stage,
                source: format!("the server said: {}", printable(&said.message, SAID)).into(),
            },
            other => other,
        }),
    }
}

fn names(methods: &MethodSet) -> String {
    let names: Vec<&str> = methods.iter().map(Into::into).collect();
    if names.is_empty() { "nothing that we know".to_owned() } else { names.join(", ") }
}
