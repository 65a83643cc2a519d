//! The jump host of an instance.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::host::port;
use super::{BadHost, Host};
use crate::limits::SSH_PORT;

/// A jump host, written `[USER@]HOST[:PORT]`. The operator logs in with the private key of the instances.
///
/// ```
/// use wmco_core::instances::Jump;
///
/// let jump: Jump = "core@bastion.example.test:2222".parse()?;
/// assert_eq!((jump.username.as_deref(), jump.port), (Some("core"), 2222));
/// assert_eq!(jump.key_name(), "bastion.example.test_2222");
/// assert_eq!("10.0.0.9".parse::<Jump>()?.port, 22);
/// Ok::<(), wmco_core::instances::BadJump>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Jump {
    /// SSH user; `None`: the same user as on the host behind it.
    pub username: Option<String>,
    /// Its address. A name is resolved again for each connection.
    pub host: Host,
    /// TCP port of its SSH server.
    pub port: u16,
}

/// Why a text is not a [`Jump`]. Each message ends with what to write instead.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadJump {
    /// No address, or an unusable one.
    #[error("its host is wrong: {0}")]
    Host(BadHost),
    /// Not a port.
    #[error("what follows its colon is no port, write a number from 1 to 65535")]
    Port,
    /// An empty user name, or one with a character that user names cannot have.
    #[error(
        "its user name is empty or holds a colon or control character, write `USER@HOST` or `HOST`"
    )]
    Username,
}

impl Jump {
    /// Name under which its host key is stored. No entry has such a name, because addresses have no `_`, but it is
    /// a valid key of a ConfigMap.
    pub fn key_name(&self) -> String {
        format!("{}_{}", self.host, self.port)
    }

    /// Whether `name` has the form of [`key_name`](Self::key_name).
    ///
    /// ```
    /// use wmco_core::instances::Jump;
    ///
    /// let names = ["bastion_22", "10.0.0.5", "win-x7k2p_machine"];
    /// assert_eq!(names.map(Jump::is_key_name), [true, false, false]);
    /// ```
    pub fn is_key_name(name: &str) -> bool {
        name.rsplit_once('_').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
    }
}

impl FromStr for Jump {
    type Err = BadJump;

    fn from_str(text: &str) -> Result<Self, BadJump> {
        let (username, place) = match text.rsplit_once('@') {
            Some((username, place)) => (Some(username), place),
            None => (None, text),
        };
        let strange = |letter: char| letter == ':' || letter.is_control();
        if username.is_some_and(|name| name.is_empty() || name.contains(strange)) {
            return Err(BadJump::Username);
        }
        let (host, port) = match place.split_once(':') {
            // More than one colon means an IPv6 address, which the check of the host reports.
            Some((host, text)) if !text.contains(':') => (host, port(text).ok_or(BadJump::Port)?),
            Some(_) | None => (place, SSH_PORT),
        };
        Ok(Self {
            username: username.map(str::to_owned),
            host: host.parse().map_err(BadJump::Host)?,
            port,
        })
    }
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(username) = &self.username {
            write!(f, "{username}@")?;
        }
        fmt::Display::fmt(&self.host, f)?;
        if self.port == SSH_PORT { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl Serialize for Jump {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn refused(text: &str, why: &BadJump) {
        assert_eq!(text.parse::<Jump>().as_ref(), Err(why), "{text}");
    }

    #[test]
    fn wrong_parts_are_told() {
        refused("", &BadJump::Host(BadHost::Empty));
        refused("core@", &BadJump::Host(BadHost::Empty));
        refused("@bastion.test", &BadJump::Username);
        refused("a\tb@bastion.test", &BadJump::Username);
        refused("bastion.test:", &BadJump::Port);
        refused("bastion.test:0", &BadJump::Port);
        refused("fd00::7", &BadJump::Host(BadHost::Ipv6));
        refused("-oProxyCommand=x", &BadJump::Host(BadHost::Label));
    }

    #[test]
    fn a_user_name_may_hold_an_at_sign() {
        let jump: Jump = "me@corp@10.0.0.9".parse().unwrap();
        assert_eq!(jump.username.as_deref(), Some("me@corp"));
    }

    proptest! {
        /// Written text is read back unchanged, and reading any text terminates.
        #[test]
        fn text_and_back(text in "\\PC{0,9}@?[a-z0-9.]{0,9}(:\\PC{0,6})?") {
            if let Ok(jump) = text.parse::<Jump>() {
                prop_assert_eq!(jump.to_string().parse::<Jump>(), Ok(jump));
            }
        }
    }
}
