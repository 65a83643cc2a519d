//! Answers scripts of the generated manifest without PowerShell.
//!
//! Their PowerShell text is part of the wire format, but it prints several lines on a host with several routes, parses
//! a program's English output, and queries a metadata service that may require a token.
//!
//! Source: `docs/contract/services.md`, SVC45.

use std::net::Ipv4Addr;

use wmco_core::text::chain;

use crate::limits;
use crate::metadata::Cloud;
use crate::scripts::{AWS_HOST_NAME, FULL_HOST_NAME, NODE_IP};
use crate::windows::Machine;

/// Whether the answer to a script is constant for the lifetime of the machine.
pub(super) fn is_constant(script: &str) -> bool {
    script == AWS_HOST_NAME
}

/// Returns the answer to one of these scripts, or the reason of a failure; `None` for other scripts.
pub(super) fn answer(script: &str, machine: &dyn Machine) -> Option<Result<String, String>> {
    match script {
        AWS_HOST_NAME => Some(Cloud::Amazon.host_name(machine, limits::METADATA)),
        FULL_HOST_NAME => Some(machine.host_name().map_err(|error| chain(&error))),
        NODE_IP => Some(node_ip(machine)),
        _ => None,
    }
}

/// Returns the first address of the best default route that other hosts can reach.
fn node_ip(machine: &dyn Machine) -> Result<String, String> {
    let mut routes = machine.default_routes().map_err(|error| chain(&error))?;
    // Between equal metrics the system's order decides.
    routes.sort_by_key(|route| route.metric);
    let usable = |address: &&Ipv4Addr| {
        !(address.is_loopback() || address.is_link_local() || address.is_unspecified())
    };
    let address = routes.iter().flat_map(|route| &route.addresses).find(usable);
    address.map(ToString::to_string).ok_or_else(|| {
        "no interface with an IPv4 default route has an address, set one up".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Call, FakeWindows, Fault};
    use crate::windows::{DefaultRoute, HttpAnswer};

    fn told(script: &str, host: &FakeWindows) -> Result<String, String> {
        answer(script, host).expect("it is a question of ours")
    }

    fn route(metric: u32, addresses: &[[u8; 4]]) -> DefaultRoute {
        DefaultRoute { metric, addresses: addresses.iter().copied().map(Ipv4Addr::from).collect() }
    }

    fn node_ip_of(routes: Vec<DefaultRoute>) -> Result<String, String> {
        let host = FakeWindows::new("winhost");
        host.set_default_routes(routes);
        told(NODE_IP, &host)
    }

    #[test]
    fn the_best_route_names_the_address() {
        let routes = vec![route(20, &[[10, 0, 0, 1]]), route(5, &[[10, 0, 0, 2], [10, 0, 0, 3]])];
        assert_eq!(node_ip_of(routes), Ok("10.0.0.2".to_owned()));
        let equal = vec![route(5, &[[10, 0, 0, 1]]), route(5, &[[10, 0, 0, 2]])];
        assert_eq!(node_ip_of(equal), Ok("10.0.0.1".to_owned()));
    }

    #[test]
    fn an_address_that_nobody_reaches_is_passed_over() {
        let routes =
            vec![route(1, &[[169, 254, 3, 4]]), route(2, &[[127, 0, 0, 1], [10, 0, 0, 2]])];
        assert_eq!(node_ip_of(routes), Ok("10.0.0.2".to_owned()));
    }

    #[test]
    fn without_a_route_or_an_address_there_is_none() {
        let problem =
            Err("no interface with an IPv4 default route has an address, set one up".to_owned());
        assert_eq!(node_ip_of(vec![]), problem);
        assert_eq!(node_ip_of(vec![route(1, &[])]), problem);
        let host = FakeWindows::new("winhost");
        host.fail(Call::MachineFacts, "routes", 1, Fault::Other);
        assert!(told(NODE_IP, &host).is_err());
    }

    #[test]
    fn the_full_name_is_the_machines_own() {
        assert_eq!(
            told(FULL_HOST_NAME, &FakeWindows::new("w.example")),
            Ok("w.example".to_owned())
        );
    }

    /// Returns a host whose metadata service offers tokens, requires them, or has none.
    fn metadata(tokens: bool, demanded: bool) -> FakeWindows {
        let host = FakeWindows::new("winhost");
        host.set_http(move |request| {
            let answer = |status, body: &str| Some(HttpAnswer { status, body: body.to_owned() });
            assert_eq!(request.address.to_string(), "169.254.169.254:80");
            let has = |header: (&str, &str)| request.headers.contains(&header);
            match (request.method, request.path) {
                ("PUT", "/latest/api/token") if tokens => {
                    assert!(has(("X-aws-ec2-metadata-token-ttl-seconds", "60")));
                    answer(200, "abc")
                }
                ("PUT", _) => answer(403, ""),
                ("GET", "/latest/meta-data/local-hostname") => {
                    // A service that offers no tokens must not be sent one.
                    assert!(tokens || request.headers.is_empty());
                    if has(("X-aws-ec2-metadata-token", "abc")) || !demanded {
                        answer(200, "ip-10-0-0-1.internal\n")
                    } else {
                        answer(401, "")
                    }
                }
                _ => answer(404, ""),
            }
        });
        host
    }

    #[test]
    fn the_metadata_service_is_asked_with_a_token_or_without() {
        let name = Ok("ip-10-0-0-1.internal".to_owned());
        assert_eq!(told(AWS_HOST_NAME, &metadata(true, true)), name);
        assert_eq!(told(AWS_HOST_NAME, &metadata(false, false)), name);
        let refused = told(AWS_HOST_NAME, &metadata(false, true)).unwrap_err();
        assert!(refused.contains("answers 401"), "{refused}");
    }

    #[test]
    fn a_metadata_service_that_is_not_there_is_told() {
        let host = FakeWindows::new("winhost");
        host.set_http(|_| None);
        let problem = told(AWS_HOST_NAME, &host).unwrap_err();
        assert!(problem.contains("check the route to 169.254.169.254"), "{problem}");
    }

    #[test]
    fn all_else_is_left_to_powershell() {
        let host = FakeWindows::new("winhost");
        for script in ["", "Get-NetRoute", r"C:\Temp\gcp-get-hostname.ps1"] {
            assert!(answer(script, &host).is_none());
        }
    }
}
