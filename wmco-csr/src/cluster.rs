//! Facts about the cluster: how its Nodes are named, and which names and addresses its services use.

use std::net::IpAddr;

use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_core::names::platforms;
use wmco_core::reserved::{reserved_address, reserved_name};

/// Longest host name that a Node on GCP keeps whole, in bytes.
const GCP_NAME_BYTES: usize = 63;

/// Facts about the cluster as a whole that a decision may use.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClusterFacts {
    /// Naming of Nodes.
    pub node_names: NodeNames,
    /// Whether a Machine's host has the Machine's name, as on Azure, Nutanix and vSphere.
    pub hosts_named_as_machines: bool,
    /// Addresses of the cluster itself. While its service networks are unknown, no certificate for an address is
    /// approved.
    pub addresses: ClusterAddresses,
}

/// The part of a host's full name that is the name of its Node.
///
/// The services `ConfigMap` may start the kubelet with a name that the platform chooses. Otherwise the kubelet uses
/// the host's name without the domain. A full name is always accepted as a Node's name.
///
/// Source: `docs/contract/services.md`, SVC44; `docs/contract/certificate-requests.md`, CSR43.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NodeNames {
    /// The first label, for example `win-1` for `win-1.corp.example`: on bare metal, Azure, Nutanix and every
    /// platform without its own rule.
    FirstLabel,
    /// The full name: AWS takes it from its metadata service, vSphere from the host.
    Full,
    /// The full name, or its first label when it is longer than 63 bytes: GCP.
    FullOrShort,
    /// Not known yet.
    #[default]
    Unknown,
}

impl NodeNames {
    /// The rule of a platform, as Infrastructure `cluster` spells it in
    /// `status.platformStatus.type`.
    ///
    /// ```
    /// use wmco_csr::NodeNames;
    ///
    /// assert_eq!(NodeNames::of_platform("VSphere"), NodeNames::Full);
    /// assert_eq!(NodeNames::of_platform("None"), NodeNames::FirstLabel);
    /// ```
    pub fn of_platform(platform: &str) -> Self {
        match platform {
            platforms::AWS | platforms::VSPHERE => Self::Full,
            platforms::GCP => Self::FullOrShort,
            _ => Self::FirstLabel,
        }
    }

    /// Whether the Node of a host with the full name `name` has its first label as name.
    pub(crate) fn shortens(self, name: &str) -> bool {
        match self {
            Self::FirstLabel => true,
            Self::FullOrShort => name.len() > GCP_NAME_BYTES,
            Self::Full | Self::Unknown => false,
        }
    }
}

impl ClusterFacts {
    /// Why no host may have the name `name` (lower case); `None` if the name is not reserved.
    pub(crate) fn reserves_name(&self, name: &str) -> Option<&'static str> {
        reserved_name(name).or_else(|| self.addresses.owner_of_name(name))
    }

    /// Why no certificate may contain `address`; `None` if the address is not reserved.
    pub(crate) fn reserves_address(&self, address: IpAddr) -> Option<&'static str> {
        reserved_address(address).or_else(|| self.addresses.owner(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<&'static str> {
        let api_names = ["api-int.c.test".to_owned()].into();
        let addresses = ClusterAddresses { api_names, ..ClusterAddresses::default() };
        let facts = ClusterFacts { addresses, ..ClusterFacts::default() };
        facts.reserves_name(text)
    }

    #[test]
    fn names_of_services_are_told_from_names_of_hosts() {
        for reserved in [
            "*",
            "*.a.test",
            "a.*.test",
            "localhost",
            "a.localhost",
            "kubernetes",
            "openshift",
            "kubernetes.default",
            "openshift.default.svc",
            "a.b.svc",
            "a.b.svc.other.domain",
            "svc",
            "a.svc",
            "cluster.local",
            "x.cluster.local",
            "api-int.c.test",
            "api-int",
            "console.apps.c.test",
            "",
            ".a",
        ] {
            assert!(name(reserved).is_some(), "{reserved}");
        }
        for host in
            ["kubernetes-1", "kubernetes.corp.test", "win-1.svc.corp.test", "localhost.test"]
        {
            assert_eq!(name(host), None, "{host}");
        }
    }

    #[test]
    fn addresses_of_nobody_in_particular_are_known() {
        let networks = ["172.30.0.0/16", "fd02::/112"].map(|text| text.parse().unwrap());
        let services = Some(networks.into());
        let addresses = ClusterAddresses { services, ..ClusterAddresses::default() };
        let facts = ClusterFacts { addresses, ..ClusterFacts::default() };
        let is_reserved = |text: &str| {
            let address: IpAddr = text.parse().unwrap();
            facts.reserves_address(address).is_some()
        };
        for reserved in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.1.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "172.30.0.1",
            "172.30.255.255",
            "fd02::a",
        ] {
            assert!(is_reserved(reserved), "{reserved}");
        }
        for usual in
            ["10.0.0.5", "192.168.1.1", "100.64.0.1", "172.31.0.1", "fd02::1:a", "2001:db8::1"]
        {
            assert!(!is_reserved(usual), "{usual}");
        }
    }
}
