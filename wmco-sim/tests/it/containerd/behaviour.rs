//! Behaviour of the registries of a pull.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The behaviour of a registry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// It has the image.
    Image,
    /// It resolves the tag or digest, but has none of the content.
    NoContent,
    /// It has nothing.
    NotFound,
    /// It requires a token, and tells where to ask for it.
    Token,
    /// It requires other credentials.
    Unauthorized,
    /// It answers with a server error.
    ServerError,
    /// Its certificate is not trusted.
    BadCertificate,
    /// Nothing listens there.
    Refused,
}

/// The behaviour of each registry.
#[derive(Clone, Debug)]
pub(super) enum Behaviour {
    /// By `SCHEME://AUTHORITY`, else by `AUTHORITY`, else by the host alone; all others have nothing.
    Known(BTreeMap<String, Answer>),
    /// Derived from this number.
    Drawn(u64),
}

impl Behaviour {
    pub(super) fn answer(&self, scheme: &str, authority: &str) -> Answer {
        match self {
            Self::Known(known) => {
                let host = authority.split(':').next().unwrap();
                let names = [&format!("{scheme}://{authority}"), authority, host];
                *names.into_iter().find_map(|name| known.get(name)).unwrap_or(&Answer::NotFound)
            }
            Self::Drawn(seed) => {
                let mut hasher = DefaultHasher::new();
                (seed, scheme, authority).hash(&mut hasher);
                match hasher.finish() % 10 {
                    0 | 1 => Answer::Image,
                    2 => Answer::NoContent,
                    3 => Answer::Unauthorized,
                    4 => Answer::ServerError,
                    5 => Answer::BadCertificate,
                    6 => Answer::Refused,
                    _ => Answer::NotFound,
                }
            }
        }
    }
}
