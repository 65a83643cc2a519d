//! Who sent a request.

use std::collections::BTreeMap;

/// The group of everybody who proved an identity.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who did not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The name of those who did not prove an identity.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// A user as authentication found it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct User {
    /// For example `system:node:w1`.
    pub name: String,
    /// Set for service accounts; empty for client certificates.
    pub uid: String,
    /// All groups, [`AUTHENTICATED`] or [`UNAUTHENTICATED`] among them.
    pub groups: Vec<String>,
    /// What else is known, for example the id of the credential.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The user of a request without credentials.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Someone with a proven name; adds [`AUTHENTICATED`].
    pub(crate) fn authenticated(name: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// Whether the user is in `group`.
    pub(crate) fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
