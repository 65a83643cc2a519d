//! The private key with which the operator logs in to hosts.

use std::sync::Arc;
use std::time::Duration;

use wmco_core::names::objects::{NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY, PRIVATE_KEY_SECRET};
use wmco_core::secret::Secret;
use wmco_ssh::PrivateKey;

use crate::problems::Found;
use crate::snapshot;
use crate::sources::Sources;

/// The private key and what follows from it.
pub(super) struct Key {
    pub(super) pem: Secret,
    pub(super) parsed: Arc<PrivateKey>,
}

impl Key {
    /// Reads it from its Secret. What is wrong there goes to `problems`, also with the key that comes
    /// next, which holds up nothing.
    pub(super) fn read(sources: &Sources, namespace: &str, problems: &mut Found) -> Option<Self> {
        let mut tell = |problem: String| problems.insert(problem.into(), Duration::ZERO);
        let Some(pem) = snapshot::private_key(sources, namespace) else {
            tell(format!(
                "secret {PRIVATE_KEY_SECRET} has no key {PRIVATE_KEY_KEY}, create it with the private key \
                 of the instances"
            ));
            return None;
        };
        let key = match PrivateKey::parse(&pem) {
            Ok(parsed) => Self { pem, parsed: Arc::new(parsed) },
            Err(error) => {
                tell(format!("secret {PRIVATE_KEY_SECRET}: {}", crate::chain(&error)));
                return None;
            }
        };
        let next = snapshot::next_private_key(sources, namespace);
        if let Some(problem) = next.and_then(|next| key.problem_of_next(&next)) {
            tell(format!("secret {PRIVATE_KEY_SECRET}, key {NEXT_PRIVATE_KEY_KEY}: {problem}"));
        }
        Some(key)
    }

    /// Why nothing is done with the key that is to come next.
    fn problem_of_next(&self, next: &Secret) -> Option<String> {
        match PrivateKey::parse(next) {
            Ok(next) if next.public().hash() == self.parsed.public().hash() => Some(format!(
                "it is the key in {PRIVATE_KEY_KEY}, write another one or take it out"
            )),
            Ok(_) => None,
            Err(error) => Some(crate::chain(&error)),
        }
    }
}
