//! Answers of the network that offline commands get as input.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::instances::{Resolve, Unresolved, canonical};

/// Answers of the DNS and of the hosts, as in a `--facts` file.
///
/// A name that is not listed does not exist; `localhost` always is 127.0.0.1. A null lists nothing.
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
/// Ok::<(), serde_json::Error>(())
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
    /// Address of an instance, as written in the ConfigMap, to the name that its cloud's metadata service gives it, as
    /// the host reports it on Amazon's and Google's machines.
    #[serde(deserialize_with = "or_nothing", rename = "metadataNames")]
    pub metadata_names: BTreeMap<String, String>,
    /// Address of an instance, as written in the ConfigMap, to the IP addresses that the host
    /// reports. Without this member no host was asked for them.
    pub addresses: Option<BTreeMap<String, Vec<IpAddr>>>,
}

/// Answers of the DNS.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dns {
    /// Name to IP address, or to a list of them. Case and a dot at the end do not matter.
    #[serde(deserialize_with = "lists")]
    #[schemars(with = "BTreeMap<String, OneOrMany>")]
    pub forward: BTreeMap<String, Vec<IpAddr>>,
    /// IP address to its names (PTR records), with or without a dot at the end.
    #[serde(deserialize_with = "or_nothing")]
    pub reverse: BTreeMap<IpAddr, Vec<String>>,
}

/// Treats null as an empty map, because programs write null for a map that they never filled.
fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Most names have one address.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(IpAddr),
    Many(Vec<IpAddr>),
}

/// Normalizes names, so that a look-up costs the same in any spelling.
fn lists<'de, D>(deserializer: D) -> Result<BTreeMap<String, Vec<IpAddr>>, D::Error>
where
    D: Deserializer<'de>,
{
    let map: BTreeMap<String, OneOrMany> = or_nothing(deserializer)?;
    let list = |(name, addresses): (String, OneOrMany)| match addresses {
        OneOrMany::One(address) => (canonical(&name), vec![address]),
        OneOrMany::Many(list) => (canonical(&name), list),
    };
    Ok(map.into_iter().map(list).collect())
}

impl Facts {
    /// All names that each host reports.
    pub fn reported_names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (address, name) in self.hostnames.iter().chain(&self.metadata_names) {
            names.entry(address.clone()).or_default().insert(name.clone());
        }
        names
    }

    /// All addresses that the DNS gives for `name`, which may be in any case and end with a dot.
    pub fn leads_to(&self, name: &str) -> &[IpAddr] {
        const LOCALHOST: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];
        match canonical(name) {
            name if name == "localhost" => LOCALHOST,
            name => self.dns.forward.get(&name).map_or(&[], Vec::as_slice),
        }
    }
}

impl Resolve for Facts {
    fn resolve(&self, name: &str) -> Result<Ipv4Addr, Unresolved> {
        let addresses = self.leads_to(name);
        let first = addresses.iter().find_map(|address| match address.to_canonical() {
            IpAddr::V4(ipv4) => Some(ipv4),
            IpAddr::V6(_) => None,
        });
        match first {
            Some(ipv4) => Ok(ipv4),
            // Without any answer nobody asked.
            None if self.dns.forward.is_empty() => Err(Unresolved::Pending),
            None if addresses.is_empty() => Err(Unresolved::NoSuchName),
            None => Err(Unresolved::NoIpv4),
        }
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
            r#"{"dns": null, "hostnames": null, "metadataNames": null}"#,
            r#"{"dns": {"forward": null, "reverse": null}}"#,
        ];
        for text in empty {
            assert_eq!(serde_json::from_str::<Facts>(text).unwrap(), Facts::default());
        }
        for text in [r#"{"dsn": {}}"#, r#"{"dns": {"forward": {"a": "b"}}}"#] {
            assert!(serde_json::from_str::<Facts>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_may_have_several_addresses_and_is_found_in_any_spelling() {
        let text =
            r#"{"dns": {"forward": {"A.test.": ["::1", "10.0.0.5", "10.0.0.6"], "b": "::1"}}}"#;
        let facts: Facts = serde_json::from_str(text).unwrap();
        assert_eq!(facts.resolve("a.TEST"), Ok(Ipv4Addr::new(10, 0, 0, 5)));
        assert_eq!(facts.leads_to("a.test.").len(), 3);
        assert_eq!(facts.resolve("b"), Err(Unresolved::NoIpv4));
        let again = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&again).unwrap(), facts);
    }

    #[test]
    fn reverse_names_are_given_as_listed() {
        let facts: Facts =
            serde_json::from_str(r#"{"dns": {"reverse": {"10.0.0.5": ["a.test."]}}}"#).unwrap();
        assert_eq!(facts.reverse(IpAddr::from([10, 0, 0, 5])), ["a.test."]);
        assert!(facts.reverse(IpAddr::from([10, 0, 0, 6])).is_empty());
    }
}
