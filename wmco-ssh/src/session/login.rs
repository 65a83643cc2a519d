//! The login: offers keys, and keeps what the server's answer says.

use russh::client::{AuthResult, Handle};
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg};
use russh::{Disconnect, MethodKind, MethodSet};

use super::handler::{Farewell, Handler, SAID, dropped};
use super::steps::Steps;
use crate::error::{ConnectError, Stage, printable};
use crate::key::{PrivateKey, PublicKey};
use crate::route::{Credentials, Target};

/// Answer to an offer of a key.
enum Answer {
    Accepted,
    /// The server would look at another one.
    Refused,
    /// The server ended the connection because of failed attempts, perhaps without a look at this key.
    Closed {
        said: String,
    },
}

/// Offers one key after the other, and then the RSA keys among them with their other hash; returns the accepted one.
///
/// So each key costs one of the attempts that the server allows, as long as another one is not yet offered.
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
    let (mut offers, mut again) = (Vec::new(), Vec::new());
    let mut is_unlisted = false;
    for key in &credentials.keys {
        let kinds = match Algorithms::of(handle, key).await {
            Ok(kinds) => kinds,
            Err(error) => return Err(ended(farewell, target, error)),
        };
        is_unlisted |= kinds.are_unlisted;
        offers.push((key, kinds.first));
        again.extend(kinds.other.map(|other| (key, Some(other))));
    }
    let keys = offers.len();
    for (number, (key, hash)) in offers.into_iter().chain(again).enumerate() {
        steps.offers(key.public());
        let is_first = number < keys;
        match offer(handle, farewell, target, user, (key, hash), is_first).await? {
            Answer::Accepted => return Ok(key.public().clone()),
            Answer::Refused => {}
            // Each was refused before.
            Answer::Closed { .. } if !is_first => break,
            // The only attempt that the server can mean is that of this key.
            Answer::Closed { .. } if keys == 1 => break,
            Answer::Closed { said } => {
                return Err(ConnectError::TooManyTries { target: target.to_string(), said });
            }
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

/// How a key is offered: never with SHA-1.
struct Algorithms {
    /// Hash of an RSA key; others have none to choose.
    first: Option<HashAlg>,
    /// The other one that the server may take: OpenSSH lists what it knows, not what its configuration takes.
    other: Option<HashAlg>,
    /// Whether the server has listed what it takes, and none of these is in the list.
    are_unlisted: bool,
}

impl Algorithms {
    /// Of other keys than RSA keys the library does not tell whether they are listed.
    async fn of(handle: &Handle<Handler>, key: &PrivateKey) -> Result<Self, russh::Error> {
        if !matches!(key.inner().algorithm(), Algorithm::Rsa { .. }) {
            return Ok(Self { first: None, other: None, are_unlisted: false });
        }
        let listed = handle.best_supported_rsa_hash().await?;
        let (first, other) = if matches!(listed, Some(Some(HashAlg::Sha512))) {
            (HashAlg::Sha512, HashAlg::Sha256)
        } else {
            (HashAlg::Sha256, HashAlg::Sha512)
        };
        // Of RSA it lists SHA-1 alone. That a list has no RSA at all the library does not tell.
        let are_unlisted = matches!(listed, Some(None));
        Ok(Self { first: Some(first), other: Some(other), are_unlisted })
    }
}

async fn offer(
    handle: &mut Handle<Handler>,
    farewell: &Farewell,
    target: &Target,
    user: &str,
    (key, hash): (&PrivateKey, Option<HashAlg>),
    is_first: bool,
) -> Result<Answer, ConnectError> {
    let key = PrivateKeyWithHashAlg::new(key.inner(), hash);
    match handle.authenticate_publickey(user, key).await {
        Ok(AuthResult::Success) => Ok(Answer::Accepted),
        Ok(AuthResult::Failure { remaining_methods, partial_success: true }) => {
            let (target, methods) = (target.to_string(), names(&remaining_methods));
            Err(ConnectError::WantsMore { target, methods })
        }
        // The library reports the end of the connection in this way, too.
        Ok(AuthResult::Failure { remaining_methods, .. })
            if remaining_methods.is_empty() && handle.is_closed() =>
        {
            closed(farewell, target, russh::Error::Disconnect)
        }
        Ok(AuthResult::Failure { remaining_methods, .. })
            if !remaining_methods.contains(&MethodKind::PublicKey) && is_first =>
        {
            let (target, methods) = (target.to_string(), names(&remaining_methods));
            Err(ConnectError::NoPublicKey { target, methods })
        }
        Ok(AuthResult::Failure { .. }) => Ok(Answer::Refused),
        Err(error) => closed(farewell, target, error),
    }
}

/// What the end of the connection says of the key that was offered last.
///
/// # Errors
/// [`ended`] where it says nothing of it.
fn closed(
    farewell: &Farewell,
    target: &Target,
    error: russh::Error,
) -> Result<Answer, ConnectError> {
    let Some(said) = farewell.take() else { return Err(ended(farewell, target, error)) };
    let of_failures = matches!(said.reason_code, Disconnect::NoMoreAuthMethodsAvailable)
        || said.message.to_ascii_lowercase().contains("too many authentication failures");
    if of_failures {
        Ok(Answer::Closed { said: printable(&said.message, SAID) })
    } else {
        Err(dropped(target.to_string(), Stage::Authenticate, &said.message))
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
