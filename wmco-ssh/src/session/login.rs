//! The login: offers keys, and keeps what the server's answer says.

use std::sync::Arc;

use russh::client::{AuthResult, Handle};
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg};
use russh::{Disconnect, MethodKind, MethodSet};

use super::handler::{Farewell, Handler, SAID, dropped};
use super::steps::Steps;
use crate::error::{ConnectError, Stage, printable};
use crate::key::{PrivateKey, PublicKey};
use crate::route::{Credentials, Target};

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
/// [`ConnectError::AuthenticationRefused`] only when the server has refused every key, and has not announced that it takes
/// none of the kind of one.
pub(super) async fn log_in(
    handle: &mut Handle<Handler>,
    farewell: &Farewell,
    steps: &Steps,
    target: &Target,
    credentials: &Credentials,
) -> Result<PublicKey, ConnectError> {
    let user = &credentials.user;
    let mut keys = credentials.keys.iter().enumerate().peekable();
    let mut is_unlisted = false;
    while let Some((number, key)) = keys.next() {
        steps.offers(key.public());
        let kinds = match Algorithms::of(handle, key).await {
            Ok(kinds) => kinds,
            Err(error) => return Err(ended(farewell, target, error)),
        };
        is_unlisted |= kinds.are_unlisted;
        match offer(handle, farewell, target, user, key, kinds.hashes).await? {
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
    let (target, keys) = (target.to_string(), keys.join(", ").into());
    Err(if is_unlisted {
        ConnectError::NoAlgorithm { target, keys }
    } else {
        ConnectError::AuthenticationRefused { target, user: user.clone(), keys }
    })
}

/// How a key is offered.
struct Algorithms {
    /// One after the other; never SHA-1.
    hashes: &'static [Option<HashAlg>],
    /// Whether the server has listed what it takes, and none of these is in the list.
    are_unlisted: bool,
}

impl Algorithms {
    /// Of other keys than RSA keys the library does not tell whether they are listed.
    async fn of(handle: &Handle<Handler>, key: &PrivateKey) -> Result<Self, russh::Error> {
        if !matches!(key.inner().algorithm(), Algorithm::Rsa { .. }) {
            return Ok(Self { hashes: &[None], are_unlisted: false });
        }
        let listed = handle.best_supported_rsa_hash().await?;
        let hashes: &[_] = if matches!(listed, Some(Some(HashAlg::Sha512))) {
            &[Some(HashAlg::Sha512), Some(HashAlg::Sha256)]
        } else {
            &[Some(HashAlg::Sha256), Some(HashAlg::Sha512)]
        };
        // Of RSA it lists SHA-1 alone. That a list has no RSA at all the library does not tell.
        let are_unlisted = matches!(listed, Some(None));
        Ok(Self { hashes, are_unlisted })
    }
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
    hashes: &[Option<HashAlg>],
) -> Result<Answer, ConnectError> {
    let key = key.inner();
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
                return closed(farewell, target, was_refused, russh::Error::Disconnect);
            }
            Ok(AuthResult::Failure { remaining_methods, .. })
                if !remaining_methods.contains(&MethodKind::PublicKey) && !was_refused =>
            {
                let (target, methods) = (target.to_string(), names(&remaining_methods));
                return Err(ConnectError::NoPublicKey { target, methods });
            }
            Ok(AuthResult::Failure { .. }) => was_refused = true,
            Err(error) => return closed(farewell, target, was_refused, error),
        }
    }
    Ok(Answer::Refused)
}

/// What the end of the connection says of the key that was offered last.
///
/// # Errors
/// [`ended`] where it says nothing of it.
fn closed(
    farewell: &Farewell,
    target: &Target,
    was_refused: bool,
    error: russh::Error,
) -> Result<Answer, ConnectError> {
    let Some(said) = farewell.take() else { return Err(ended(farewell, target, error)) };
    let of_failures = matches!(said.reason_code, Disconnect::NoMoreAuthMethodsAvailable)
        || said.message.to_ascii_lowercase().contains("too many authentication failures");
    match (of_failures, was_refused) {
        (true, true) => Ok(Answer::RefusedAndClosed),
        (true, false) => Ok(Answer::Closed { said: printable(&said.message, SAID) }),
        (false, _) => Err(dropped(target.to_string(), Stage::Authenticate, &said.message)),
    }
}

/// The end of the connection during the login, with the server's words.
fn ended(farewell: &Farewell, target: &Target, error: russh::Error) -> ConnectError {
    farewell
        .dropped(target.to_string(), Stage::Authenticate)
        .unwrap_or_else(|| ConnectError::from_ssh(target.to_string(), Stage::Authenticate, error))
}

fn names(methods: &MethodSet) -> String {
    let names: Vec<&str> = methods.iter().map(Into::into).collect();
    if names.is_empty() { "nothing that we know".to_owned() } else { names.join(", ") }
}
