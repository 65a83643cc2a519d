//! IP networks of the cluster, and the address of the DNS service in the service network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::limits;
use crate::text::{cut, printable};

/// Number of the DNS service's address in the service network. Source:
/// `docs/contract/node-files.md`, FILE10.
const DNS_HOST: u8 = 10;

/// Number of host bits that [`DNS_HOST`] needs.
const DNS_HOST_BITS: u8 = 4;

/// A network in CIDR notation, for example `172.30.0.0/16`. Host bits may be set.
///
/// ```
/// use wmco_core::ip_network::IpNetwork;
///
/// let network: IpNetwork = "10.0.128.8/24".parse()?;
/// assert_eq!(network.cluster_dns()?.to_string(), "10.0.128.10");
/// Ok::<(), wmco_core::ip_network::NetworkError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

/// Why a network cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Not CIDR notation.
    #[error("`{text}` is no network, write an address and a prefix length like 172.30.0.0/16")]
    Cidr {
        /// The input, shortened and printable.
        text: String,
    },
    /// An IPv4 network in IPv6 notation, which is ambiguous.
    #[error("`{text}` is an IPv4 network in IPv6 form, write it as IPv4")]
    Mapped {
        /// The input, shortened and printable.
        text: String,
    },
    /// The list has no IPv4 network.
    #[error(
        "networks.config.openshift.io/cluster lists no IPv4 service network, Windows needs one"
    )]
    NoIpv4,
    /// Windows cannot reach the address of the DNS service.
    #[error(
        "service network {network} has its DNS service at {dns}, which is {is}, and Windows sends nothing there; \
         nodes need a service network of ordinary addresses such as 172.30.0.0/16"
    )]
    Reserved {
        /// The network.
        network: IpNetwork,
        /// The address of the DNS service.
        dns: Ipv4Addr,
        /// The reserved range of the address.
        is: &'static str,
    },
    /// The network has no host 10.
    #[error("service network {network} is too small for its DNS address, number {DNS_HOST}")]
    Small {
        /// The network.
        network: IpNetwork,
    },
}

impl IpNetwork {
    /// Chooses the network for Windows nodes from `spec.serviceNetwork` of the cluster's network configuration: the
    /// first IPv4 network, at any place in the list.
    ///
    /// Source: `docs/contract/node-files.md`, FILE10.
    ///
    /// # Errors
    /// An entry is not a network, no network is IPv4, or Windows cannot reach the DNS service in the network.
    pub fn choose<S: AsRef<str>>(
        networks: impl IntoIterator<Item = S>,
    ) -> Result<Self, NetworkError> {
        let mut chosen = None;
        for text in networks {
            let network: Self = text.as_ref().parse()?;
            if network.address.is_ipv4() {
                chosen = chosen.or(Some(network));
            }
        }
        let network = chosen.ok_or(NetworkError::NoIpv4)?;
        match network.cluster_dns()? {
            IpAddr::V4(dns) => match (Self { address: dns.into(), prefix: 32 }).reserved() {
                Some(is) => Err(NetworkError::Reserved { network, dns, is }),
                None => Ok(network),
            },
            IpAddr::V6(_) => Err(NetworkError::NoIpv4),
        }
    }

    /// Address of the cluster's DNS service: host 10 of the network.
    ///
    /// # Errors
    /// [`NetworkError::Small`] if the network has no such host.
    pub fn cluster_dns(&self) -> Result<IpAddr, NetworkError> {
        let host_bits = self.length() - self.prefix;
        if host_bits < DNS_HOST_BITS {
            return Err(NetworkError::Small { network: *self });
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

    const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    /// Whether the two networks overlap.
    ///
    /// ```
    /// use wmco_core::ip_network::IpNetwork;
    ///
    /// let [pods, hybrid]: [IpNetwork; 2] = ["10.128.0.0/14".parse()?, "10.132.0.0/14".parse()?];
    /// assert!(!pods.overlaps(&hybrid) && pods.overlaps(&"10.130.0.0/16".parse()?));
    /// Ok::<(), wmco_core::ip_network::NetworkError>(())
    /// ```
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// Whether both have the same addresses, whatever their host bits.
    pub fn is_same(&self, other: &Self) -> bool {
        self.prefix == other.prefix && self.contains(other.address)
    }

    /// A reserved range of which it has addresses: Windows then cannot use the network for its own traffic. `None`
    /// for ordinary networks and for IPv6.
    pub fn reserved(&self) -> Option<&'static str> {
        let mut ranges = RESERVED.iter();
        ranges.find(|(range, _)| range.overlaps(self)).map(|(_, is)| *is)
    }

    /// Length of the prefix, in bits.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether it is an IPv4 network.
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether `address` lies in the network; an IPv4 address may be in IPv6 notation.
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

    /// Number of bits in an address of this family.
    const fn length(&self) -> u8 {
        match self.address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        }
    }
}

/// Ranges of which no host may have an address. Source: RFC 6890.
const RESERVED: [(IpNetwork, &str); 5] = [
    (IpNetwork::v4([0, 0, 0, 0], 8), "of this network (0.0.0.0/8)"),
    (IpNetwork::v4([127, 0, 0, 0], 8), "of the loopback (127.0.0.0/8)"),
    (IpNetwork::v4([169, 254, 0, 0], 16), "link-local (169.254.0.0/16)"),
    (IpNetwork::v4([224, 0, 0, 0], 4), "multicast (224.0.0.0/4)"),
    (IpNetwork::v4([240, 0, 0, 0], 4), "reserved (240.0.0.0/4)"),
];

impl FromStr for IpNetwork {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let shown = || printable(cut(text, limits::FINDING_TEXT_BYTES));
        let bad = || NetworkError::Cidr { text: shown() };
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
                Err(NetworkError::Mapped { text: shown() })
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Ok(network),
        }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dns(text: &str) -> Result<String, NetworkError> {
        text.parse::<IpNetwork>()?.cluster_dns().map(|ip| ip.to_string())
    }

    #[test]
    fn the_smallest_networks_have_a_host_10() {
        assert_eq!(dns("10.0.0.16/28").as_deref(), Ok("10.0.0.26"));
        assert_eq!(dns("fd00::/124").as_deref(), Ok("fd00::a"));
        for text in ["10.0.0.16/29", "fd00::/125"] {
            assert!(matches!(dns(text), Err(NetworkError::Small { .. })), "{text}");
        }
    }

    #[test]
    fn a_dns_address_that_windows_cannot_reach_is_refused() {
        let chosen = |text: &str| IpNetwork::choose([text]);
        for text in ["240.0.0.0/12", "255.255.255.0/24", "224.0.0.0/8", "127.0.0.0/16"] {
            assert!(matches!(chosen(text), Err(NetworkError::Reserved { .. })), "{text}");
        }
        for text in ["0.0.0.0/0", "169.254.0.0/24"] {
            assert!(matches!(chosen(text), Err(NetworkError::Reserved { .. })), "{text}");
        }
        for text in ["223.255.255.0/24", "128.0.0.0/12", "1.0.0.0/8", "169.255.0.0/16"] {
            assert!(chosen(text).is_ok(), "{text}");
        }
        assert!(matches!(chosen("172.30.0.0/29"), Err(NetworkError::Small { .. })));
    }

    #[test]
    fn reserved_addresses_in_the_middle_of_a_network_count() {
        let is = |text: &str| text.parse::<IpNetwork>().unwrap().reserved();
        assert_eq!(is("169.0.0.0/8"), Some("link-local (169.254.0.0/16)"));
        assert_eq!(is("192.0.0.0/2"), Some("multicast (224.0.0.0/4)"));
        assert_eq!(is("127.1.2.3/32"), Some("of the loopback (127.0.0.0/8)"));
        for text in ["169.255.0.0/16", "192.0.0.0/3", "1.0.0.0/8", "::/0"] {
            assert_eq!(is(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "fd00::/129", "/8"]
        {
            assert!(matches!(dns(text), Err(NetworkError::Cidr { .. })), "{text}");
        }
    }

    #[test]
    fn the_ipv4_network_of_a_dual_stack_cluster_is_chosen() {
        let chosen = IpNetwork::choose(["fd02::/112", "172.30.0.0/16", "10.0.0.0/8"]);
        assert_eq!(chosen.unwrap().to_string(), "172.30.0.0/16");
        assert_eq!(IpNetwork::choose(["fd02::/112"]), Err(NetworkError::NoIpv4));
        assert_eq!(IpNetwork::choose([""; 0]), Err(NetworkError::NoIpv4));
    }

    #[test]
    fn addresses_lie_in_their_network_in_either_form() {
        let has = |network: &str, address: &str| {
            let network: IpNetwork = network.parse().unwrap();
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
