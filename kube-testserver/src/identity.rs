//! Users: the senders of requests.

use std::collections::BTreeMap;

/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of unauthenticated requests.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group with all rights.
pub(crate) const MASTERS: &str = "system:masters";
/// The name of the unauthenticated user.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// A user of the cluster, for [`TestServer::client_as`](crate::TestServer::client_as).
///
/// ```
/// use kube_testserver::User;
///
/// let node = User::new("system:node:w1").group("system:nodes");
/// let controller = User::service_account("default", "my-controller");
/// assert_ne!(node, controller);
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct User {
    /// For example `system:node:w1`.
    pub(crate) name: String,
    /// Set for service accounts; empty for client certificates.
    pub(crate) uid: String,
    /// All groups, [`AUTHENTICATED`] or [`UNAUTHENTICATED`] among them.
    pub(crate) groups: Vec<String>,
    /// Extra attributes, for example the id of the credential.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user without groups except `system:authenticated`, the group of every authenticated user.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let groups = vec![AUTHENTICATED.to_owned()];
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// An administrator: in `system:masters`, the group with all rights.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("admin").group(MASTERS)
    }

    /// The user of a service account. The ServiceAccount need not exist.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("system:serviceaccount:{namespace}:{name}"))
            .group("system:serviceaccounts")
            .group(format!("system:serviceaccounts:{namespace}"))
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        let group = group.into();
        if !self.in_group(&group) {
            self.groups.push(group);
        }
        self
    }

    /// The user of a request without credentials.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// An authenticated user; adds [`AUTHENTICATED`].
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
