//! Names and addresses that no single host may have, in any cluster.

use std::net::IpAddr;

/// Why no host may have the name `name` (lower case, without a last dot); `None` if it may.
///
/// ```
/// use wmco_core::reserved::reserved_name;
///
/// assert!(reserved_name("kubernetes.default.svc").is_some());
/// assert_eq!(reserved_name("win-1.example.test"), None);
/// ```
pub fn reserved_name(name: &str) -> Option<&'static str> {
    let mut labels = name.split('.');
    let (first, third) = (labels.next(), labels.nth(1));
    let last = name.rsplit('.').next();
    let is_api = ["kubernetes", "openshift"].iter().any(|service| {
        let rest = name.strip_prefix(service);
        rest.is_some_and(|rest| ["", ".default"].contains(&rest))
    });
    if name.contains('*') {
        Some("a wildcard")
    } else if last == Some("localhost") {
        Some("every host's own name")
    } else if is_api {
        Some("a name of the API server")
    } else if third == Some("svc")
        || last == Some("svc")
        || name == "cluster.local"
        || name.ends_with(".cluster.local")
    {
        Some("a name of the cluster's services")
    } else if first.is_none_or(str::is_empty) {
        Some("no host name")
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
    let is_of_everybody = match address {
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
