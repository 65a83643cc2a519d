//! How a host is reached: where, as whom, through whom, and which key it has to show.

use std::fmt;
use std::sync::Arc;

use wmco_core::limits;

use crate::host_key::HostKeyPolicy;
use crate::key::PrivateKey;

/// Where a host is reached.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    /// IP address or name, as the [`Dialer`](crate::Dialer) understands it, or the jump host.
    pub address: String,
    /// TCP port.
    pub port: u16,
}

impl Target {
    /// `address` at the usual port, 22.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), port: limits::SSH_PORT }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.address.contains(':') {
            write!(f, "[{}]:{}", self.address, self.port)
        } else {
            write!(f, "{}:{}", self.address, self.port)
        }
    }
}

/// As whom to log in.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// SSH user name.
    pub user: String,
    /// Its private keys, in the order in which they are offered.
    pub keys: Vec<Arc<PrivateKey>>,
}

impl Credentials {
    /// `user` with `key`.
    pub fn new(user: impl Into<String>, key: PrivateKey) -> Self {
        Self { user: user.into(), keys: vec![Arc::new(key)] }
    }

    /// Whether both log in as the same, with the same keys in the same order.
    fn are_same(&self, other: &Self) -> bool {
        let publics = |credentials: &Self| {
            credentials.keys.iter().map(|key| key.public().clone()).collect::<Vec<_>>()
        };
        self.user == other.user && publics(self) == publics(other)
    }
}

/// The way to a host. Two are equal if they lead to the same login under the same conditions.
///
/// ```
/// use wmco_ssh::{Credentials, HostKeyPolicy, PrivateKey, Route, Target};
///
/// # fn example(key: PrivateKey, pinned: &str) -> Result<Route, wmco_core::host_key::BadHostKey> {
/// let admin = Credentials::new("Administrator", key);
/// let bastion = Credentials { user: "jump".to_owned(), ..admin.clone() };
/// let jump = Route::new(Target::new("bastion.example.test"), bastion);
/// Ok(Route::new(Target::new("10.0.0.7"), admin)
///     .host_key(HostKeyPolicy::Pinned(pinned.parse()?))
///     .via(jump))
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Route {
    /// Where.
    pub target: Target,
    /// As whom.
    pub credentials: Credentials,
    /// Which host key it has to show.
    pub host_key: HostKeyPolicy,
    /// The jump host that connects on; none: directly.
    pub via: Option<Arc<Route>>,
}

impl Route {
    /// Directly to `target`, which may show any host key.
    pub const fn new(target: Target, credentials: Credentials) -> Self {
        Self { target, credentials, host_key: HostKeyPolicy::TrustOnFirstUse, via: None }
    }

    /// The same with conditions for the host key.
    #[must_use]
    pub fn host_key(mut self, policy: HostKeyPolicy) -> Self {
        self.host_key = policy;
        self
    }

    /// The same through `jump`.
    #[must_use]
    pub fn via(mut self, jump: Self) -> Self {
        self.via = Some(Arc::new(jump));
        self
    }

    /// Whether both log in at the same place, as the same, through the same; host keys aside.
    pub(crate) fn leads_where(&self, other: &Self) -> bool {
        self.target == other.target
            && self.credentials.are_same(&other.credentials)
            && match (&self.via, &other.via) {
                (None, None) => true,
                (Some(one), Some(other)) => one.leads_where(other),
                (Some(_), None) | (None, Some(_)) => false,
            }
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.leads_where(other) && self.host_key == other.host_key && self.via == other.via
    }
}

impl Eq for Route {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_print_as_socket_addresses() {
        assert_eq!(Target::new("10.0.0.7").to_string(), "10.0.0.7:22");
        assert_eq!(Target::new("fd00::7").to_string(), "[fd00::7]:22");
    }
}
