//! Names and addresses that no single host may have, in any cluster.

use std::net::{IpAddr, Ipv6Addr};

/// Why no host may have the name `name` (lower case, without a last dot); `None` if it may.
///
/// ```
/// use wmco_core::reserved::reserved_name;
///
/// assert!(reserved_name("kubernetes.default.svc").is_some());
/// assert_eq!(reserved_name("win-1.example.test"), None);
/// ```
pub fn reserved_name(name: &str) -> Option<&'static str> {
    if name.contains('*') {
        Some("a wildcard")
    } else if name.rsplit('.').next() == Some("localhost") {
        Some("every host's own name")
    } else if let Some(what) = cluster_name(name) {
        Some(what)
    } else if name.split('.').next().is_none_or(str::is_empty) {
        Some("no host name")
    } else {
        None
    }
}

/// What of every cluster has the name `name` (lower case, without a last dot): the API server, or its services; `None`
/// for all other names.
///
/// ```
/// use wmco_core::reserved::cluster_name;
///
/// assert_eq!(cluster_name("kubernetes"), Some("a name of the API server"));
/// assert_eq!(cluster_name("web.shop.svc"), Some("a name of the cluster's services"));
/// assert_eq!(cluster_name("localhost"), None);
/// ```
#[must_use]
pub fn cluster_name(name: &str) -> Option<&'static str> {
    let third = name.split('.').nth(2);
    let last = name.rsplit('.').next();
    let is_api = ["kubernetes", "openshift"].iter().any(|service| {
        let rest = name.strip_prefix(service);
        rest.is_some_and(|rest| ["", ".default"].contains(&rest))
    });
    if is_api {
        Some("a name of the API server")
    } else if third == Some("svc")
        || last == Some("svc")
        || name == "cluster.local"
        || name.ends_with(".cluster.local")
    {
        Some("a name of the cluster's services")
    } else {
        None
    }
}

/// Why no host may have `address`, in any cluster; `None` if it may.
///
/// ```
/// use wmco_core::reserved::reserved_address;
///
/// assert!(reserved_address("127.0.0.1".parse()?).is_some());
/// assert_eq!(reserved_address("10.0.0.5".parse()?), None);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn reserved_address(address: IpAddr) -> Option<&'static str> {
    let is_of_everybody = match behind(address) {
        IpAddr::V4(ip) => {
            // 0.0.0.0/8 is "this network"; 224.0.0.0 and above are multicast, reserved and broadcast.
            let first = ip.octets()[0];
            first == 0 || first >= 224 || ip.is_loopback() || ip.is_link_local()
        }
        IpAddr::V6(ip) => {
            // Unspecified, loopback, and the obsolete IPv4-compatible addresses.
            let embedded = ip.segments()[..6] == [0; 6];
            embedded || ip.is_multicast() || ip.is_unicast_link_local()
        }
    };
    is_of_everybody.then_some("no single host's address")
}

/// The prefix under which NAT64 gateways reach IPv4 addresses. Source: RFC 6052, section 2.1.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The address that answers at `address`: of an IPv6 form of an IPv4 address, IPv4-mapped or under the well-known
/// prefix of NAT64, that IPv4 address; of any other address itself. Compare what is reserved or somebody's with both,
/// so that no form hides the owner.
///
/// ```
/// use wmco_core::reserved::behind;
///
/// for form in ["::ffff:10.0.0.2", "64:ff9b::10.0.0.2", "64:ff9b::a00:2", "10.0.0.2"] {
///     assert_eq!(behind(form.parse()?).to_string(), "10.0.0.2");
/// }
/// assert_eq!(behind("2001:db8::a00:2".parse()?).to_string(), "2001:db8::a00:2");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn behind(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) if ip.segments()[..6] == NAT64 => last_four_bytes(ip),
        canonical => canonical,
    }
}

fn last_four_bytes(ip: Ipv6Addr) -> IpAddr {
    let [.., a, b, c, d] = ip.octets();
    IpAddr::from([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_reserved(address: &str) -> bool {
        reserved_address(address.parse().unwrap()).is_some()
    }

    #[test]
    fn no_form_of_an_address_hides_that_it_is_reserved() {
        for v4 in ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255"] {
            for prefix in ["", "::ffff:", "64:ff9b::", "::"] {
                assert!(is_reserved(&format!("{prefix}{v4}")), "{prefix}{v4}");
            }
        }
    }

    #[test]
    fn other_addresses_are_what_they_are() {
        for v6 in ["64:ff9b:0:1::a00:2", "64:ff9b:1::a00:2", "64:ff9a::a00:2", "2001:db8::1"] {
            let address = v6.parse().unwrap();
            assert_eq!(behind(address), address);
            assert!(!is_reserved(v6), "{v6}");
        }
        assert!(!is_reserved("64:ff9b::10.0.0.5") && !is_reserved("::ffff:10.0.0.5"));
    }
}
