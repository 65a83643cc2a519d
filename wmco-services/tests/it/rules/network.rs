//! The network script: `docs/contract/services.md`, SVC50 to SVC52.

use wmco_core::content::Digests;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::render::network_script;

#[test]
fn a_network_script_for_a_network_of_one_address() {
    let script = network_script(&"10.0.0.1/32".parse().expect("a network"));
    let lines = |part: &str| script.lines().filter(|line| line.contains(part)).count();
    // The search, its message, and both configurations.
    assert_eq!(lines(&format!("-eq '{}'", host::OVERLAY_NETWORK)), 1);
    assert_eq!(lines(&format!("HNS network with name {}", host::OVERLAY_NETWORK)), 1);
    assert_eq!(lines(&format!("\"name\": \"{}\"", host::OVERLAY_NETWORK)), 1);
    assert_eq!(lines(&format!("\"networkName\": \"{}\"", host::OVERLAY_NETWORK)), 1);
    // Once as an exception of the NAT, once as the destination of the route.
    assert_eq!(lines("10.0.0.1/32"), 2);
    assert_eq!(lines("\"destinationPrefix\": \"10.0.0.1/32\""), 1);
    assert!(script.contains(host::HNS_MODULE) && script.contains(host::CNI_CONFIG_FILE));
    // Replaced on the host.
    assert!(script.contains("\"@subnet@\"") && script.contains("\"@managementAddress@\""));
}

#[test]
fn checksums_by_base_name() {
    let (first, second) = (Sha256::of(b"1"), Sha256::of(b"2"));
    let text = format!("{first}  /payload/kubelet.exe\n\n{second}  /payload/cni/host-local.exe\n");
    let digests = Digests::parse(&text).expect("two lines");
    assert_eq!(digests.get("kubelet.exe"), Some(first));
    assert_eq!(digests.get("host-local.exe"), Some(second));
    assert_eq!(digests.get("cni/host-local.exe"), None);
}
