//! The cluster's service network and the address of its DNS service.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Number of the DNS service's address in the service network. Source: `spec/operator.md`,
/// section 3.
const DNS_HOST: u8 = 10;

/// Host bits that [`DNS_HOST`] needs.
const DNS_HOST_BITS: u8 = 4;

/// A network in CIDR notation, for example `172.30.0.0/16`. Host bits may be set.
///
/// ```
/// use wmco_core::render::ServiceNetwork;
///
/// let network: ServiceNetwork = "10.0.128.8/24".parse()?;
/// assert_eq!(network.cluster_dns()?.to_string(), "10.0.128.10");
/// # Ok::<(), wmco_core::render::ServiceNetworkError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceNetwork {
    address: IpAddr,
    prefix: u8,
}

/// Why a service network cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceNetworkError {
    /// Not CIDR notation.
    #[error("`{text}` is no network, write an address and a prefix length like 172.30.0.0/16")]
    Cidr {
        /// What was given.
        text: String,
    },
    /// An IPv4 network in IPv6 form, which may mean either.
    #[error("`{text}` is an IPv4 network in IPv6 form, write it as IPv4")]
    Mapped {
        /// What was given.
        text: String,
    },
    /// The list has no IPv4 network.
    #[error(
        "networks.config.openshift.io/cluster lists no IPv4 service network, Windows needs one"
    )]
    NoIpv4,
    /// There is no host 10.
    #[error("service network {network} is too small for its DNS address, number {DNS_HOST}")]
    Small {
        /// The network.
        network: ServiceNetwork,
    },
}

impl ServiceNetwork {
    /// The network that Windows nodes use, from `spec.serviceNetwork` of the cluster's network
    /// configuration: the first IPv4 one, wherever a dual-stack cluster lists it.
    ///
    /// Source: `spec/operator.md`, section 13, row 50.
    ///
    /// # Errors
    /// An entry is no network, or none is IPv4.
    pub fn choose<S: AsRef<str>>(
        networks: impl IntoIterator<Item = S>,
    ) -> Result<Self, ServiceNetworkError> {
        let mut chosen = None;
        for text in networks {
            let network: Self = text.as_ref().parse()?;
            if network.address.is_ipv4() {
                chosen = chosen.or(Some(network));
            }
        }
        chosen.ok_or(ServiceNetworkError::NoIpv4)
    }

    /// Address of the cluster's DNS service: host 10 of the network.
    ///
    /// # Errors
    /// [`ServiceNetworkError::Small`] if there is no such host.
    pub fn cluster_dns(&self) -> Result<IpAddr, ServiceNetworkError> {
        let host_bits = self.length() - self.prefix;
        if host_bits < DNS_HOST_BITS {
            return Err(ServiceNetworkError::Small { network: *self });
        }
        Ok(match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(host_bits.into()).unwrap_or_default();
                Ipv4Addr::from((u32::from(address) & mask) | u32::from(DNS_HOST)).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(host_bits.into()).unwrap_or_default();
                Ipv6Addr::from((u128::from(address) & mask) | u128::from(DNS_HOST)).into()
            }
        })
    }

    /// Whether `address` lies in the network; one of IPv4 may be in IPv6 form.
    pub fn contains(&self, address: IpAddr) -> bool {
        let host_bits = u32::from(self.length() - self.prefix);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differs = u32::from(network) ^ u32::from(address);
                differs.checked_shr(host_bits).unwrap_or_default() == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differs = u128::from(network) ^ u128::from(address);
                differs.checked_shr(host_bits).unwrap_or_default() == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Bits of an address of this family.
    const fn length(&self) -> u8 {
        match self.address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        }
    }
}

impl FromStr for ServiceNetwork {
    type Err = ServiceNetworkError;

    fn from_str(text: &str) -> Result<Self, ServiceNetworkError> {
        let bad = || ServiceNetworkError::Cidr { text: text.to_owned() };
        let (address, prefix) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        if !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let network = Self { address, prefix: prefix.parse().map_err(|_| bad())? };
        if network.prefix > network.length() {
            return Err(bad());
        }
        match address {
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
                Err(ServiceNetworkError::Mapped { text: text.to_owned() })
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Ok(network),
        }
    }
}

impl fmt::Display for ServiceNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dns(text: &str) -> Result<String, ServiceNetworkError> {
        text.parse::<ServiceNetwork>()?.cluster_dns().map(|ip| ip.to_string())
    }

    #[test]
    fn the_smallest_networks_have_a_host_10() {
        assert_eq!(dns("10.0.0.16/28").as_deref(), Ok("10.0.0.26"));
        assert_eq!(dns("fd00::/124").as_deref(), Ok("fd00::a"));
        for text in ["10.0.0.16/29", "fd00::/125"] {
            assert!(matches!(dns(text), Err(ServiceNetworkError::Small { .. })), "{text}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "fd00::/129", "/8"]
        {
            assert!(matches!(dns(text), Err(ServiceNetworkError::Cidr { .. })), "{text}");
        }
    }

    #[test]
    fn the_ipv4_network_of_a_dual_stack_cluster_is_chosen() {
        let chosen = ServiceNetwork::choose(["fd02::/112", "172.30.0.0/16", "10.0.0.0/8"]);
        assert_eq!(chosen.unwrap().to_string(), "172.30.0.0/16");
        assert_eq!(ServiceNetwork::choose(["fd02::/112"]), Err(ServiceNetworkError::NoIpv4));
        assert_eq!(ServiceNetwork::choose([""; 0]), Err(ServiceNetworkError::NoIpv4));
    }

    #[test]
    fn addresses_lie_in_their_network_in_either_form() {
        let has = |network: &str, address: &str| {
            let network: ServiceNetwork = network.parse().unwrap();
            network.contains(address.parse().unwrap())
        };
        assert!(has("172.30.1.2/16", "172.30.255.255") && !has("172.30.1.2/16", "172.31.0.0"));
        assert!(has("172.30.0.0/16", "::ffff:172.30.0.1"));
        assert!(has("0.0.0.0/0", "10.0.0.1") && !has("0.0.0.0/0", "fd00::1"));
        assert!(has("10.0.0.1/32", "10.0.0.1") && !has("10.0.0.1/32", "10.0.0.0"));
        assert!(has("fd02::/112", "fd02::ffff") && !has("fd02::/112", "fd02::1:0"));
        assert!(has("::/0", "fd02::1"));
    }

    proptest! {
        /// The DNS address shares the network's prefix and is number 10 in it.
        #[test]
        fn the_address_is_number_10(address: u32, prefix in 0..=28_u32) {
            let text = format!("{}/{prefix}", Ipv4Addr::from(address));
            let dns: Ipv4Addr = dns(&text).unwrap().parse().unwrap();
            let size = 1_u64 << (32 - prefix);
            prop_assert_eq!(u64::from(u32::from(dns)) % size, 10);
            prop_assert_eq!(u64::from(u32::from(dns)) / size, u64::from(address) / size);
        }
    }
}
