//! Addresses and names that belong to the cluster as a whole, and so to none of its hosts.
//!
//! ```
//! use wmco_core::cluster_addresses::ClusterAddresses;
//!
//! let platform = serde_json::json!({"type": "VSphere", "vsphere": {"apiServerInternalIPs": ["10.0.0.2"]}});
//! let mut cluster = ClusterAddresses::default();
//! cluster.add_platform(&platform);
//! assert_eq!(cluster.owner("10.0.0.2".parse()?), Some("an address of the API server"));
//! assert_eq!(cluster.owner("10.0.0.5".parse()?), None);
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::ip_network::IpNetwork;
use crate::reserved::behind;

/// The members of `status.platformStatus` of the Infrastructure that hold addresses of the API server, on whichever
/// platform.
const API_MEMBERS: [&str; 4] =
    ["apiServerInternalIP", "apiServerInternalIPs", "apiIntLoadBalancerIPs", "apiLoadBalancerIPs"];

/// The same for the ingress.
const INGRESS_MEMBERS: [&str; 3] = ["ingressIP", "ingressIPs", "ingressLoadBalancerIPs"];

/// The label below a cluster's domain under which the ingress has all of its names.
const APPS: &str = "apps";

/// The addresses of the cluster itself, and the names of its API server.
///
/// Source: `docs/contract/certificate-requests.md`, CSR48.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClusterAddresses {
    /// Addresses of the API server.
    pub api: BTreeSet<IpAddr>,
    /// Host names of the API server in lower case, besides those that it has in every cluster.
    pub api_names: BTreeSet<String>,
    /// Addresses of the ingress.
    pub ingress: BTreeSet<IpAddr>,
    /// Networks of pods.
    pub pods: Vec<IpNetwork>,
    /// Networks of services; `None` while they are unknown.
    pub services: Option<Vec<IpNetwork>>,
}

impl ClusterAddresses {
    /// Adds what `status.platformStatus` of the Infrastructure says. Each platform has a member of its own there, so
    /// the names of the members below count, wherever they stand.
    pub fn add_platform(&mut self, status: &Value) {
        collect(status, &API_MEMBERS, &mut self.api);
        collect(status, &INGRESS_MEMBERS, &mut self.ingress);
    }

    /// What of the cluster `address` belongs to, be it in an IPv6 form that leads to it; `None` if a host may have it.
    pub fn owner(&self, address: IpAddr) -> Option<&'static str> {
        let (address, behind) = (address.to_canonical(), behind(address));
        self.owner_of(address).or_else(|| self.owner_of(behind))
    }

    fn owner_of(&self, address: IpAddr) -> Option<&'static str> {
        let is_in = |networks: &[IpNetwork]| networks.iter().any(|net| net.contains(address));
        if self.api.contains(&address) {
            Some("an address of the API server")
        } else if self.ingress.contains(&address) {
            Some("an address of the ingress")
        } else if self.services.as_deref().is_some_and(is_in) {
            Some("an address of the service network")
        } else if is_in(&self.pods) {
            Some("an address of the pod network")
        } else {
            None
        }
    }
}

impl ClusterAddresses {
    /// What of the cluster `name` (lower case) belongs to: a name of the API server, whole or as its first label, which
    /// search domains complete; or a name of the ingress, in the same domain. `None` if a host may have it.
    ///
    /// ```
    /// use wmco_core::cluster_addresses::ClusterAddresses;
    ///
    /// let api_names = ["api-int.c1.example.test".to_owned()].into();
    /// let cluster = ClusterAddresses { api_names, ..ClusterAddresses::default() };
    /// assert_eq!(cluster.owner_of_name("api-int"), Some("a name of the API server"));
    /// assert_eq!(cluster.owner_of_name("x.apps.c1.example.test"), Some("a name of the ingress"));
    /// assert_eq!(cluster.owner_of_name("win-1.c1.example.test"), None);
    /// ```
    pub fn owner_of_name(&self, name: &str) -> Option<&'static str> {
        let api = self.api_names.iter().map(|api| (api, api.split_once('.')));
        let is_api = |(api, parts): (&String, Option<(&str, &str)>)| {
            name == api || parts.is_some_and(|(label, _)| label == name)
        };
        let is_apps = |(_, parts): (&String, Option<(&str, &str)>)| {
            let before = parts.and_then(|(_, domain)| name.strip_suffix(domain));
            let apps = before.and_then(|before| before.strip_suffix('.')?.strip_suffix(APPS));
            apps.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        if api.clone().any(is_api) {
            Some("a name of the API server")
        } else if api.clone().any(is_apps) {
            Some("a name of the ingress")
        } else {
            None
        }
    }
}

/// Adds the addresses in all members of `value` that are called like one of `members`.
fn collect(value: &Value, members: &[&str], found: &mut BTreeSet<IpAddr>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let Some(object) = value.as_object() else { continue };
        for (name, value) in object {
            if members.contains(&name.as_str()) {
                let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                let addresses = listed.iter().filter_map(Value::as_str);
                let addresses = addresses.filter_map(|text| text.parse::<IpAddr>().ok());
                found.extend(addresses.map(|address| address.to_canonical()));
            } else {
                open.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner(cluster: &ClusterAddresses, address: &str) -> Option<&'static str> {
        cluster.owner(address.parse().unwrap())
    }

    /// Every platform that has such addresses, in the older form with one and the newer with several.
    #[test]
    fn addresses_of_the_api_server_and_the_ingress_are_the_clusters_on_every_platform() {
        for platform in ["baremetal", "openstack", "ovirt", "nutanix", "vsphere", "yetToCome"] {
            for of in [
                json!({"apiServerInternalIP": "10.0.0.2", "ingressIP": "10.0.0.3"}),
                json!({"apiServerInternalIPs": ["fd00::2", "10.0.0.2"], "ingressIPs": ["10.0.0.3"]}),
            ] {
                let mut cluster = ClusterAddresses::default();
                cluster.add_platform(&json!({"type": platform, platform: of}));
                assert_eq!(owner(&cluster, "10.0.0.2"), Some("an address of the API server"));
                assert_eq!(owner(&cluster, "::ffff:10.0.0.3"), Some("an address of the ingress"));
                assert_eq!(owner(&cluster, "10.0.0.5"), None, "{platform}");
            }
        }
    }

    /// A name for such a form in a certificate would be believed by everybody who asks through NAT64.
    #[test]
    fn no_form_of_an_address_hides_that_it_is_the_clusters() {
        let cluster = ClusterAddresses {
            api: ["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()].into(),
            ingress: ["10.0.0.3".parse().unwrap()].into(),
            pods: vec!["10.128.0.0/14".parse().unwrap()],
            services: Some(vec!["172.30.0.0/16".parse().unwrap()]),
            ..ClusterAddresses::default()
        };
        for v4 in ["10.0.0.2", "10.0.0.3", "10.128.0.1", "172.30.0.1"] {
            for prefix in ["", "::ffff:", "64:ff9b::"] {
                let form = format!("{prefix}{v4}");
                assert_eq!(owner(&cluster, &form), owner(&cluster, v4), "{form}");
                assert!(owner(&cluster, &form).is_some(), "{form}");
            }
        }
        assert_eq!(owner(&cluster, "fd00::2"), Some("an address of the API server"));
        assert_eq!(owner(&cluster, "64:ff9b::10.0.0.5"), None);
    }

    #[test]
    fn load_balancers_that_the_cluster_hosts_are_its_own() {
        let hosted = json!({
            "apiIntLoadBalancerIPs": ["10.0.0.2"],
            "apiLoadBalancerIPs": ["192.0.2.2"],
            "ingressLoadBalancerIPs": ["192.0.2.3"],
        });
        let platform = json!({"aws": {"cloudLoadBalancerConfig": {"clusterHosted": hosted}}});
        let mut cluster = ClusterAddresses::default();
        cluster.add_platform(&platform);
        for address in ["10.0.0.2", "192.0.2.2", "192.0.2.3"] {
            assert!(owner(&cluster, address).is_some(), "{address}");
        }
    }

    #[test]
    fn what_makes_no_sense_there_is_nobodys() {
        for status in [json!(null), json!([]), json!({"vsphere": {"ingressIP": 7}}), json!("")] {
            let mut cluster = ClusterAddresses::default();
            cluster.add_platform(&status);
            assert_eq!(cluster, ClusterAddresses::default());
        }
    }

    #[test]
    fn names_of_api_server_and_ingress_are_told_from_names_of_hosts() {
        let api_names = ["api.c1.example.test", "api-int.c1.example.test"].map(str::to_owned);
        let cluster = ClusterAddresses { api_names: api_names.into(), ..Default::default() };
        for name in ["api", "api-int", "api.c1.example.test", "apps.c1.example.test"] {
            assert!(cluster.owner_of_name(name).is_some(), "{name}");
        }
        assert!(cluster.owner_of_name("console.x.apps.c1.example.test").is_some());
        for name in ["api-1", "c1.example.test", "myapps.c1.example.test", "apps", "apps.test"] {
            assert_eq!(cluster.owner_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn networks_of_services_and_pods_are_the_clusters() {
        let cluster = ClusterAddresses {
            pods: vec!["10.128.0.0/14".parse().unwrap(), "fd01::/48".parse().unwrap()],
            services: Some(vec!["172.30.0.0/16".parse().unwrap()]),
            ..ClusterAddresses::default()
        };
        for address in ["10.131.255.255", "fd01::1", "172.30.0.1"] {
            assert!(owner(&cluster, address).is_some(), "{address}");
        }
        assert_eq!(owner(&cluster, "10.132.0.0"), None);
    }
}
