//! What offline commands are told instead of asking the network.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::instances::{Resolve, Unresolved, canonical};

/// Answers of the DNS and of the hosts, as in a `--facts` file.
///
/// What is not listed does not exist; `localhost` always is 127.0.0.1. A null lists nothing.
///
/// ```
/// use wmco_core::facts::Facts;
/// use wmco_core::instances::Resolve;
///
/// let facts: Facts = serde_json::from_str(
///     r#"{
///         "dns": {
///             "forward": {"win-1.example.test": "10.0.0.5"},
///             "reverse": {"10.0.0.5": ["win-1.example.test."]}
///         },
///         "hostnames": {"10.0.0.5": "WIN-1"}
///     }"#,
/// )?;
/// assert_eq!(facts.resolve("Win-1.example.test").unwrap().to_string(), "10.0.0.5");
/// assert!(facts.resolve("win-2.example.test").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// Answers of the DNS.
    #[serde(deserialize_with = "or_nothing")]
    pub dns: Dns,
    /// Address of an instance, as written in the ConfigMap, to the host name that the host reports.
    /// An instance that is not listed cannot be reached.
    #[serde(deserialize_with = "or_nothing")]
    pub hostnames: BTreeMap<String, String>,
}

/// Answers of the DNS.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dns {
    /// Name to IPv4 address. Case and a dot at the end do not matter.
    #[serde(deserialize_with = "or_nothing")]
    pub forward: BTreeMap<String, Ipv4Addr>,
    /// IP address to its names (PTR records), with or without a dot at the end.
    #[serde(deserialize_with = "or_nothing")]
    pub reverse: BTreeMap<IpAddr, Vec<String>>,
}

/// Programs write null for a map that they never filled.
fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Resolve for Facts {
    fn resolve(&self, name: &str) -> Result<Ipv4Addr, Unresolved> {
        let name = canonical(name);
        if name == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST);
        }
        let forward = &self.dns.forward;
        let is_name =
            |listed: &str| listed.strip_suffix('.').unwrap_or(listed).eq_ignore_ascii_case(&name);
        let other_spelling = || forward.iter().find(|(listed, _)| is_name(listed));
        let found = forward.get_key_value(&name).or_else(other_spelling);
        found.map(|(_, address)| *address).ok_or(Unresolved::NoSuchName)
    }

    fn reverse(&self, address: IpAddr) -> &[String] {
        self.dns.reverse.get(&address).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_needs_no_fact() {
        for name in ["localhost", "LocalHost", "localhost."] {
            assert_eq!(Facts::default().resolve(name), Ok(Ipv4Addr::LOCALHOST));
        }
    }

    #[test]
    fn unknown_members_are_refused_and_all_may_be_missing() {
        let empty = [
            "{}",
            r#"{"dns": null, "hostnames": null}"#,
            r#"{"dns": {"forward": null, "reverse": null}}"#,
        ];
        for text in empty {
            assert_eq!(serde_json::from_str::<Facts>(text).unwrap(), Facts::default());
        }
        for text in [r#"{"dsn": {}}"#, r#"{"dns": {"forward": {"a": "::1"}}}"#] {
            assert!(serde_json::from_str::<Facts>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reverse_names_are_given_as_listed() {
        let facts: Facts =
            serde_json::from_str(r#"{"dns": {"reverse": {"10.0.0.5": ["a.test."]}}}"#).unwrap();
        assert_eq!(facts.reverse(IpAddr::from([10, 0, 0, 5])), ["a.test."]);
        assert!(facts.reverse(IpAddr::from([10, 0, 0, 6])).is_empty());
    }
}
