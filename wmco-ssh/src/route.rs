//! The route to a host: its address, credentials, jump host, and the accepted host keys.

use std::fmt;
use std::sync::Arc;

use wmco_core::limits;

use crate::host_key::HostKeyPolicy;
use crate::key::PrivateKey;

/// The address of a host.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    /// IP address or name, resolved by the [`Dialer`](crate::Dialer) or the jump host.
    pub address: String,
    /// TCP port.
    pub port: u16,
}

impl Target {
    /// Creates a target at the default port, 22.
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

/// User and keys for login.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// SSH user name.
    pub user: String,
    /// The user's private keys, in the order in which they are offered.
    pub keys: Vec<Arc<PrivateKey>>,
}

impl Credentials {
    /// Creates credentials with a single key.
    pub fn new(user: impl Into<String>, key: PrivateKey) -> Self {
        Self { user: user.into(), keys: vec![Arc::new(key)] }
    }

    /// Whether both have the same user and the same keys in the same order.
    fn are_same(&self, other: &Self) -> bool {
        let publics = |credentials: &Self| {
            credentials.keys.iter().map(|key| key.public().clone()).collect::<Vec<_>>()
        };
        self.user == other.user && publics(self) == publics(other)
    }
}

/// The route to a host. Two are equal if they lead to the same login under the same conditions.
///
/// ```
/// use wmco_core::host_key::BadHostKey;
/// use wmco_ssh::{Credentials, HostKeyPolicy, PrivateKey, Route, Target};
///
/// fn through_a_bastion(key: PrivateKey, pinned: &str) -> Result<Route, BadHostKey> {
///     let admin = Credentials::new("Administrator", key);
///     let bastion = Credentials { user: "jump".to_owned(), ..admin.clone() };
///     let jump = Route::new(Target::new("bastion.example.test"), bastion);
///     Ok(Route::new(Target::new("10.0.0.7"), admin)
///         .host_key(HostKeyPolicy::Pinned(pinned.parse()?))
///         .via(jump))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Route {
    /// Address and port.
    pub target: Target,
    /// User and keys.
    pub credentials: Credentials,
    /// The accepted host keys.
    pub host_key: HostKeyPolicy,
    /// The jump host; `None`: a direct connection.
    pub via: Option<Arc<Route>>,
}

impl Route {
    /// Creates a direct route to `target` that accepts any host key on first use.
    pub const fn new(target: Target, credentials: Credentials) -> Self {
        Self { target, credentials, host_key: HostKeyPolicy::TrustOnFirstUse, via: None }
    }

    /// Sets the accepted host keys.
    #[must_use]
    pub fn host_key(mut self, policy: HostKeyPolicy) -> Self {
        self.host_key = policy;
        self
    }

    /// Sets the jump host.
    #[must_use]
    pub fn via(mut self, jump: Self) -> Self {
        self.via = Some(Arc::new(jump));
        self
    }

    /// Whether both have the same targets, credentials and jump hosts; host keys are not compared.
    pub(crate) fn same_login(&self, other: &Self) -> bool {
        self.target == other.target
            && self.credentials.are_same(&other.credentials)
            && match (&self.via, &other.via) {
                (None, None) => true,
                (Some(one), Some(other)) => one.same_login(other),
                (Some(_), None) | (None, Some(_)) => false,
            }
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.same_login(other) && self.host_key == other.host_key && self.via == other.via
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
