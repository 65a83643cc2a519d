//! Situations and what people read about them, and what holds whatever the cluster says.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::protocol::{ForeignService, Probe};
use crate::proxy::ProxyError;
use crate::url::UrlError;

const DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A cluster with nothing to find.
fn fine() -> ClusterSeen {
    let infrastructure = json!({"status": {
        "platformStatus": {"type": "AWS"}, "apiServerInternalURI": "https://api-int.prod.test:6443",
        "controlPlaneTopology": "HighlyAvailable",
    }});
    let network = json!({"spec": {
        "networkType": "OVNKubernetes", "serviceNetwork": ["172.30.0.0/16"],
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
    }});
    let overlay = json!({"hybridClusterNetwork": [{"cidr": "10.132.0.0/14", "hostPrefix": 23}]});
    ClusterSeen {
        server_version: Some("v1.36.2".into()),
        infrastructure: Seen::Object(infrastructure),
        cluster_version: Seen::Object(json!({
            "spec": {"clusterID": "11111111-aaaa"}, "status": {"conditions": []},
        })),
        network: Seen::Object(network),
        operator_network: Seen::Object(with_overlay(&overlay)),
        api_server: Seen::Object(json!({"spec": {}})),
        proxy: None,
        worker_pool: Seen::Object(Value::Null),
        controller_config: Seen::Object(Value::Null),
        nodes: vec![node("win-1", "v1.36.2", "10.0.20348.2322")],
    }
}

fn with_overlay(overlay: &Value) -> Value {
    json!({"spec": {"defaultNetwork": {"ovnKubernetesConfig": {"hybridOverlayConfig": overlay}}}})
}

fn node(name: &str, kubelet: &str, windows: &str) -> NodeSeen {
    NodeSeen {
        name: name.into(),
        is_windows: true,
        kubelet: kubelet.into(),
        windows: windows.into(),
        addresses: vec!["10.0.0.5".into()],
    }
}

/// A Linux node with this address.
fn linux(address: &str) -> NodeSeen {
    NodeSeen { is_windows: false, addresses: vec![address.into()], ..node("linux-1", "", "") }
}

/// The object with another value in one place.
fn set(seen: &mut Seen, pointer: &str, value: Value) {
    let Seen::Object(object) = seen else { panic!("there is no object") };
    *object.pointer_mut(pointer).unwrap() = value;
}

fn bare_host() -> Probe {
    serde_json::from_value(json!({
        "protocol": 1, "agent": {"version": "1", "sha256": DIGEST, "installed": null},
        "hostName": "win-1.corp.test", "osBuild": "10.0.20348", "addresses": ["10.0.0.5"],
        "containers": "enabled", "reboot": [], "bootId": "1", "files": {}, "services": {},
        "environment": {}, "networks": [], "directories": [], "daemonCertificateValid": false,
        "state": null, "fitness": {"defaultRoutes": 1, "freeBytes": 50_000_000_000_u64},
    }))
    .unwrap()
}

/// A line per finding, those that block with a mark.
fn lines(findings: &[Finding]) -> String {
    let line = |it: &Finding| format!("{} {it}", if it.blocks() { "BLOCKS " } else { "warning" });
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn under_names(situations: &[(&str, String)]) -> String {
    let one = |(name, text): &(&str, String)| format!("{name}\n{text}\n");
    situations.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn told(change: impl FnOnce(&mut ClusterSeen)) -> String {
    let mut seen = fine();
    change(&mut seen);
    let text = lines(&cluster(&seen));
    assert!(!text.is_empty(), "nothing was found");
    text
}

#[track_caller]
fn told_of_host(change: impl FnOnce(&mut Probe)) -> String {
    let mut probe = bare_host();
    change(&mut probe);
    lines(&host(&HostSeen::of(&probe)))
}

#[test]
fn one_network_in_both_objects_does_not_overlap_itself() {
    for (set_up, asked) in [
        ("10.128.0.0/14", "10.129.3.4/14"),
        ("10.128.0.0/14", "10.128.0.0/13"),
        ("10.129.3.4/14", "10.128.0.0/14"),
    ] {
        let mut seen = fine();
        set(&mut seen.network, "/spec/clusterNetwork/0/cidr", json!(set_up));
        let Seen::Object(network) = &mut seen.operator_network else { panic!() };
        network["spec"]["clusterNetwork"] = json!([{"cidr": asked}]);
        set(
            &mut seen.operator_network,
            OVERLAY,
            json!({"hybridClusterNetwork": [{"cidr": "10.140.0.0/16"}]}),
        );
        assert_eq!(cluster(&seen), [], "{set_up} {asked}");
    }
}

/// The places of overlaps between the networks of pods that are set up and those that are asked for.
fn overlaps(set_up: &[&str], asked: &[&str]) -> Vec<String> {
    let list = |cidrs: &[&str]| {
        let networks = cidrs.iter().map(|cidr| json!({"cidr": cidr, "hostPrefix": 23}));
        networks.collect::<Value>()
    };
    let mut seen = fine();
    set(&mut seen.network, "/spec/clusterNetwork", list(set_up));
    let Seen::Object(network) = &mut seen.operator_network else { panic!() };
    network["spec"]["clusterNetwork"] = list(asked);
    set(
        &mut seen.operator_network,
        OVERLAY,
        json!({"hybridClusterNetwork": [{"cidr": "10.240.0.0/16"}]}),
    );
    cluster(&seen).into_iter().map(|finding| finding.at).collect()
}

#[test]
fn networks_of_one_list_may_move_and_grow_but_not_overlap() {
    let none: [&str; 0] = [];
    let (old, grown, new) = ("10.128.0.0/14", "10.128.0.0/13", "10.200.0.0/16");
    assert_eq!(overlaps(&[old], &[new, grown]), none, "it grows behind a new one");
    assert_eq!(overlaps(&[old, new], &[new, old]), none, "another order");
    let second = "networks.operator.openshift.io/cluster, field `spec.clusterNetwork[1].cidr`,";
    let first = "networks.operator.openshift.io/cluster, field `spec.clusterNetwork[0].cidr`,";
    assert_eq!(overlaps(&[old], &[old, old]), [second], "it is there twice");
    assert_eq!(overlaps(&[old], &[new, new]), [second], "another one is there twice");
    assert_eq!(overlaps(&[old], &[grown, old]), [first], "a larger one beside it");
}

#[test]
fn a_url_by_which_nodes_reach_the_api_server() {
    let is_fine = |url: &str| {
        let mut seen = fine();
        set(&mut seen.infrastructure, "/status/apiServerInternalURI", json!(url));
        cluster(&seen).is_empty()
    };
    for url in [
        "https://api-int.a.test:6443",
        "https://10.0.0.9",
        "https://[fd00::1]:6443/",
        "https://1.a",
    ] {
        assert!(is_fine(url), "{url}");
    }
    let wrong = [
        "https://api-int.a.test:6443#part",
        "https://api-int.a.test:6443/#",
        "https://10.0.0.999:6443",
        "https://10.0.0:6443",
        "https://0.0.0.0:6443",
        "https://[::]:6443",
    ];
    for url in wrong {
        assert!(!is_fine(url), "{url}");
    }
}

#[test]
fn nothing_is_found_in_a_cluster_and_on_a_host_that_are_fit() {
    assert_eq!(cluster(&fine()), []);
    assert_eq!(told_of_host(|_| {}), "");
    assert_eq!(cluster(&ClusterSeen::default()), [], "nobody has seen anything");
}

const NETWORK: &str = "/spec/networkType";
const SERVICES: &str = "/spec/serviceNetwork";
const OVERLAY: &str = "/spec/defaultNetwork/ovnKubernetesConfig/hybridOverlayConfig";

/// A kubelet writes the addresses of its Node: it could stop all upgrades otherwise.
#[test]
fn no_kubelet_holds_up_new_work_by_its_addresses() {
    for address in ["10.132.0.7", "nonsense", "fd00::1"] {
        let mut seen = fine();
        seen.nodes[0].addresses = vec![address.into()];
        let found = cluster(&seen);
        assert!(found.iter().all(|finding| !finding.blocks()), "{address}: {found:?}");
        assert_eq!(found.len(), usize::from(address == "10.132.0.7"), "{address}: {found:?}");
    }
}

fn of_ovn(seen: &mut ClusterSeen) -> &mut Value {
    let Seen::Object(network) = &mut seen.operator_network else { panic!("there is no object") };
    &mut network["spec"]["defaultNetwork"]["ovnKubernetesConfig"]
}

/// OVN-Kubernetes has a network of its own then.
#[test]
fn an_empty_join_switch_is_none() {
    let mut seen = fine();
    of_ovn(&mut seen)["ipv4"] =
        json!({"internalJoinSubnet": "", "internalTransitSwitchSubnet": null});
    assert_eq!(cluster(&seen), []);
    set(
        &mut seen.operator_network,
        OVERLAY,
        json!({"hybridClusterNetwork": [{"cidr": "100.64.0.0/14"}]}),
    );
    assert_eq!(cluster(&seen).len(), 1);
}

#[test]
fn situations_of_the_network() {
    let services = |texts: Value| told(|seen| set(&mut seen.network, SERVICES, texts));
    let overlay = |overlay: Value| told(|seen| set(&mut seen.operator_network, OVERLAY, overlay));
    let pods = |cidr: &str| json!({"hybridClusterNetwork": [{"cidr": cidr}]});
    let port = |port: Value| {
        let mut overlay = pods("10.132.0.0/14");
        overlay["hybridOverlayVXLANPort"] = port;
        overlay
    };
    let on_vsphere = |overlay: Value| {
        told(|seen| {
            let platform =
                json!({"type": "VSphere", "vsphere": {"machineNetworks": ["10.1.0.0/16"]}});
            set(&mut seen.infrastructure, "/status/platformStatus", platform);
            set(&mut seen.operator_network, OVERLAY, overlay);
        })
    };
    let of_pods = |list| told(|seen| set(&mut seen.network, "/spec/clusterNetwork", list));
    let situations = [
        ("another plug-in", told(|it| set(&mut it.network, NETWORK, json!("OpenShiftSDN")))),
        ("no overlay", overlay(Value::Null)),
        ("an overlay without a network", overlay(json!({"hybridClusterNetwork": []}))),
        ("an overlay of reserved addresses", overlay(pods("240.0.0.0/14"))),
        ("an overlay up to reserved addresses", overlay(pods("192.0.0.0/2"))),
        ("an overlay over pods", overlay(pods("10.130.0.0/16"))),
        ("an overlay over services", overlay(pods("172.16.0.0/12"))),
        ("an overlay that is too small for a node", overlay(pods("10.132.0.0/26"))),
        ("an overlay of nonsense", overlay(pods("ten\u{1b}[2J"))),
        (
            "an overlay with one network in another",
            overlay(
                json!({"hybridClusterNetwork": [{"cidr": "10.132.0.0/14"}, {"cidr": "10.132.0.0/16"}]}),
            ),
        ),
        (
            "an overlay with a prefix of nodes that divides nothing",
            overlay(json!({"hybridClusterNetwork": [{"cidr": "10.132.0.0/24", "hostPrefix": 23}]})),
        ),
        ("services among pods", services(json!(["10.130.0.0/16"]))),
        ("services around link-local addresses", services(json!(["169.0.0.0/8"]))),
        (
            "pods that are to move into the overlay",
            told(|seen| {
                let Seen::Object(network) = &mut seen.operator_network else { panic!() };
                network["spec"]["clusterNetwork"] =
                    json!([{"cidr": "10.128.0.0/14"}, {"cidr": "10.133.0.0/16"}]);
            }),
        ),
        (
            "a plug-in that is to come",
            told(|seen| {
                let Seen::Object(network) = &mut seen.operator_network else { panic!() };
                network["spec"]["defaultNetwork"]["type"] = "OpenShiftSDN".into();
            }),
        ),
        ("a port that is none", overlay(port(json!("4789")))),
        ("the port of Linux nodes", overlay(port(json!(6081)))),
        ("another port in a cloud", overlay(port(json!(9898)))),
        ("no other port on vSphere", on_vsphere(pods("10.132.0.0/14"))),
        ("no overlay on vSphere", on_vsphere(Value::Null)),
        ("an overlay over the machines of vSphere", on_vsphere(pods("10.1.0.0/14"))),
        ("an overlay over a node", overlay(pods("10.0.0.0/24"))),
        ("an overlay over the join switch", overlay(pods("100.64.0.0/14"))),
        (
            "no overlay where its usual network is one of pods",
            told(|seen| {
                set(&mut seen.operator_network, OVERLAY, Value::Null);
                set(&mut seen.network, "/spec/clusterNetwork/0/cidr", json!("10.132.0.0/14"));
            }),
        ),
        (
            "another port and Windows Server 2019",
            told(|seen| {
                set(&mut seen.operator_network, OVERLAY, port(json!(9898)));
                seen.nodes.push(node("win-old", "v1.36.2", "10.0.17763.5830"));
            }),
        ),
        ("services in reserved addresses", services(json!(["240.0.0.0/12"]))),
        ("services by IPv6 alone", services(json!(["fd02::/112"]))),
        ("too few services", services(json!(["172.30.0.0/29"]))),
        ("services that are no list", services(json!(7))),
        ("pods of which nothing is written", of_pods(Value::Null)),
        ("pods without a network", of_pods(json!([]))),
        ("pods by IPv6 alone", of_pods(json!([{"cidr": "fd01::/48"}]))),
        ("pods whose networks are a text", of_pods(json!("10.128.0.0/14"))),
        (
            "pods in reserved addresses",
            told(|seen| {
                set(&mut seen.network, "/spec/clusterNetwork", json!([{"cidr": "240.0.0.0/8"}]));
            }),
        ),
    ];
    insta::assert_snapshot!(under_names(&situations));
}

#[test]
fn situations_of_networks_around_the_overlay() {
    let ovn = |members: Value| {
        told(|seen| {
            let Value::Object(members) = members else { panic!("{members}") };
            of_ovn(seen).as_object_mut().unwrap().extend(members);
        })
    };
    let overlay = |cidr: &str, port: Option<u16>| json!({"hybridClusterNetwork": [{"cidr": cidr}], "hybridOverlayVXLANPort": port});
    let vips = json!({"type": "BareMetal", "baremetal": {"apiServerInternalIPs": ["10.140.0.2"]}});
    let in_force = |pods: &str| {
        told(|seen| {
            let Seen::Object(network) = &mut seen.network else { panic!() };
            network["status"] =
                json!({"clusterNetwork": [{"cidr": pods}], "serviceNetwork": ["172.30.0.0/16"]});
        })
    };
    let situations = [
        (
            "no overlay where all usual networks are in use",
            told(|seen| {
                set(&mut seen.operator_network, OVERLAY, Value::Null);
                let all = json!([{"cidr": "10.0.0.0/8"}, {"cidr": "192.168.0.0/16"}]);
                set(&mut seen.network, "/spec/clusterNetwork", all);
                set(&mut seen.network, SERVICES, json!(["172.16.0.0/12"]));
            }),
        ),
        (
            "an overlay over a join switch",
            ovn(json!({"ipv4": {"internalJoinSubnet": "10.134.0.0/16"}})),
        ),
        ("a join switch of nonsense", ovn(json!({"v4InternalSubnet": "ten\n"}))),
        (
            "an overlay over masqueraded addresses",
            ovn(json!({"gatewayConfig": {"ipv4": {"internalMasqueradeSubnet": "10.132.0.0/28"}}})),
        ),
        (
            "no overlay beside Linux nodes and addresses of the API server",
            told(|seen| {
                set(&mut seen.operator_network, OVERLAY, Value::Null);
                set(&mut seen.infrastructure, "/status/platformStatus", vips.clone());
                let url = json!("https://10.200.0.7:6443");
                set(&mut seen.infrastructure, "/status/apiServerInternalURI", url);
                seen.nodes.push(linux("10.132.0.7"));
            }),
        ),
        ("an overlay over pods that are about to move", in_force("10.132.0.0/16")),
        ("an overlay that is the network of pods", in_force("10.132.0.0/14")),
        ("an overlay over a Linux node", told(|seen| seen.nodes.push(linux("10.132.0.7")))),
        (
            "an overlay over the address of the API server",
            told(|seen| {
                set(&mut seen.infrastructure, "/status/platformStatus", vips);
                set(&mut seen.operator_network, OVERLAY, overlay("10.140.0.0/14", None));
            }),
        ),
    ];
    insta::assert_snapshot!(under_names(&situations));
}

#[test]
fn situations_of_the_overlays_port() {
    let overlay = |cidr: &str, port: Option<u16>| json!({"hybridClusterNetwork": [{"cidr": cidr}], "hybridOverlayVXLANPort": port});
    let geneve = |platform: &str, port: u16, overlay: Value| {
        told(|seen| {
            set(&mut seen.infrastructure, "/status/platformStatus/type", json!(platform));
            set(&mut seen.operator_network, OVERLAY, overlay);
            of_ovn(seen)["genevePort"] = port.into();
        })
    };
    let situations = [
        (
            "an overlay by the port of Linux nodes, which is another one",
            told(|seen| {
                set(&mut seen.infrastructure, "/status/platformStatus/type", json!("None"));
                let pods = json!([{"cidr": "10.132.0.0/14"}]);
                let overlay = json!({"hybridClusterNetwork": pods, "hybridOverlayVXLANPort": 9000});
                set(&mut seen.operator_network, OVERLAY, overlay);
                of_ovn(seen)["genevePort"] = 9000.into();
            }),
        ),
        (
            "the usual port and Windows Server 2019 on vSphere",
            told(|seen| {
                set(&mut seen.infrastructure, "/status/platformStatus/type", json!("VSphere"));
                seen.nodes.push(node("win-old", "v1.36.2", "10.0.17763.5830"));
            }),
        ),
        ("no overlay where Linux nodes have its usual port", geneve("None", 4789, Value::Null)),
        ("no overlay where there is no port for it", geneve("AWS", 4789, Value::Null)),
        (
            "no overlay on vSphere where Linux nodes have the port of examples",
            geneve("VSphere", 9898, Value::Null),
        ),
        (
            "the usual port where Linux nodes have it",
            geneve("None", 4789, overlay("10.132.0.0/14", None)),
        ),
        (
            "no other port on vSphere where Linux nodes have that of examples",
            geneve("VSphere", 9898, overlay("10.132.0.0/14", None)),
        ),
        (
            "the right port on vSphere and Windows Server 2019",
            told(|seen| {
                set(&mut seen.infrastructure, "/status/platformStatus/type", json!("VSphere"));
                set(&mut seen.operator_network, OVERLAY, overlay("10.132.0.0/14", Some(9898)));
                seen.nodes.push(node("win-old", "v1.36.2", "10.0.17763.5830"));
            }),
        ),
    ];
    insta::assert_snapshot!(under_names(&situations));
}

#[test]
fn situations_of_objects_that_the_installation_writes() {
    let situations = [
        (
            "objects that are gone",
            told(|seen| {
                seen.infrastructure = Seen::ObjectMissing;
                seen.network = Seen::ObjectMissing;
            }),
        ),
        (
            "objects of the cluster that hosts are made from are gone",
            told(|seen| {
                seen.cluster_version = Seen::ObjectMissing;
                seen.worker_pool = Seen::ObjectMissing;
                seen.controller_config = Seen::ObjectMissing;
            }),
        ),
        (
            "a cluster without an ID",
            told(|seen| set(&mut seen.cluster_version, "/spec/clusterID", json!(""))),
        ),
        (
            "a cluster that fails without a word",
            told(|seen| {
                let conditions = json!([{"type": "Failing", "status": "True"}]);
                set(&mut seen.cluster_version, "/status/conditions", conditions);
            }),
        ),
    ];
    insta::assert_snapshot!(under_names(&situations));
}

#[test]
fn situations_of_the_cluster() {
    let status = "/status/platformStatus/type";
    let url = |url: &str| {
        told(|seen| set(&mut seen.infrastructure, "/status/apiServerInternalURI", json!(url)))
    };
    let failing = json!([
        {"type": "Progressing", "status": "True"},
        {"type": "Failing", "status": "True", "message": "operator dns is\ndegraded"},
    ]);
    let profile =
        json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Custom"}});
    let situations = [
        (
            "no OpenShift",
            told(|seen| {
                seen.infrastructure = Seen::KindMissing;
                seen.network = Seen::KindMissing;
                seen.operator_network = Seen::KindMissing;
                seen.worker_pool = Seen::KindMissing;
            }),
        ),
        ("an old API server", told(|seen| seen.server_version = Some("v1.33.9+k3s1".into()))),
        ("a new API server", told(|seen| seen.server_version = Some("v1.40.0".into()))),
        ("a version with a letter in it", told(|it| it.server_version = Some("v1x.36.2".into()))),
        ("a version that is none", told(|seen| seen.server_version = Some("latest".into()))),
        (
            "an update that fails",
            told(|seen| set(&mut seen.cluster_version, "/status/conditions", failing)),
        ),
        (
            "an update whose words have a password",
            told(|seen| {
                let message = "cannot get \"https://bob:hush@mirror.test/graph\": 407";
                let conditions = json!([{"type": "Failing", "status": "True", "message": message}]);
                set(&mut seen.cluster_version, "/status/conditions", conditions);
            }),
        ),
        (
            "an update that fails with an empty message",
            told(|seen| {
                let conditions = json!([
                    {"type": "Failing", "status": "True", "message": "", "reason": "NoEtcd"},
                ]);
                set(&mut seen.cluster_version, "/status/conditions", conditions);
            }),
        ),
        (
            "a cluster that does not work",
            told(|seen| {
                let conditions =
                    json!([{"type": "Available", "status": "False", "reason": "NoEtcd"}]);
                set(&mut seen.cluster_version, "/status/conditions", conditions);
            }),
        ),
        (
            "another platform",
            told(|seen| set(&mut seen.infrastructure, status, json!("OpenStack"))),
        ),
        (
            "no URL for nodes",
            told(|seen| set(&mut seen.infrastructure, "/status/apiServerInternalURI", json!(""))),
        ),
        ("a URL with a password", url("https://bob:hush@api-int.prod.test:6443")),
        ("a URL with a port that is none", url("https://api-int.prod.test:99999")),
        ("a URL without a host", url("https://:6443")),
        ("a URL with brackets around no address", url("https://[::zz]:6443")),
        ("a URL of dots", url("https://...:6443")),
        ("a URL with a query", url("https://api-int.prod.test:6443/?token=hush")),
        (
            "a control plane elsewhere",
            told(|seen| {
                set(&mut seen.infrastructure, "/status/controlPlaneTopology", json!("External"));
            }),
        ),
        (
            "a proxy that is none",
            told(|it| {
                it.proxy = Some(ProxyError::NoUrl { field: "httpProxy", problem: UrlError::Form });
            }),
        ),
        ("a TLS profile without content", told(|it| set(&mut it.api_server, "/spec", profile))),
        (
            "kubelets that are too old or too new",
            told(|seen| {
                seen.nodes = vec![
                    node("win-new", "v1.37.0", "10.0.20348"),
                    node("win-old", "v1.32.1", "10.0.20348"),
                    node("win-3", "v1.33.0", "10.0.20348"),
                ];
            }),
        ),
        (
            "many nodes with an old Windows",
            told(|seen| {
                let old = |number| node(&format!("old-{number}"), "v1.36.2", "10.0.14393.1");
                seen.nodes = (1..=7).map(old).collect();
            }),
        ),
    ];
    insta::assert_snapshot!(under_names(&situations));
}

#[test]
fn a_node_that_has_not_reported_yet_runs_no_wrong_windows() {
    let mut seen = fine();
    seen.nodes = vec![node("fresh", "v1.36.2", "")];
    assert!(cluster(&seen).is_empty());
}

#[test]
fn situations_of_a_host() {
    let foreign = |name: &str, command: &str| {
        Some(ForeignService { name: name.into(), command: command.into() })
    };
    let mut probe = bare_host();
    probe.os_build = "10.0.17763".into();
    let old = HostSeen { vxlan_port: Some(9898), ..HostSeen::of(&probe) };
    let fine = bare_host();
    let names = ["mail.corp.test".to_owned()];
    let other =
        HostSeen { reverse_names: Some(&names), vxlan_port: Some(4789), ..HostSeen::of(&fine) };
    let no_name = HostSeen { reverse_names: Some(&[]), ..HostSeen::of(&fine) };
    let situations = [
        ("another Windows", told_of_host(|it| it.os_build = "10.0.14393".into())),
        ("Windows 11", told_of_host(|it| it.os_build = "10.0.22631".into())),
        (
            "Windows 11 with a server's build",
            told_of_host(|it| {
                it.os_build = "10.0.26100".into();
                it.fitness.installation = Some("Client".into());
            }),
        ),
        ("Windows Server 2019 and another port", lines(&host(&old))),
        ("no rights", told_of_host(|it| it.fitness.is_administrator = Some(false))),
        ("a name that is none", told_of_host(|it| it.host_name = "win_1".into())),
        ("a name with a dot at its end", told_of_host(|it| it.host_name = "win-1.".into())),
        ("a name of digits", told_of_host(|it| it.host_name = "123".into())),
        ("no address", told_of_host(|it| it.addresses.clear())),
        (
            "a containerd of others",
            told_of_host(|it| it.foreign_containerd = foreign("containerd", r"D:\containerd.exe")),
        ),
        (
            "a kubelet of others",
            told_of_host(|it| it.fitness.foreign_kubelet = foreign("rke2", r"D:\kubelet.exe")),
        ),
        (
            "services of others with passwords",
            told_of_host(|it| {
                let command = r#""D:\Program Files\containerd.exe" --token=hush"#;
                it.foreign_containerd = foreign("containerd", command);
                let command = r"D:\Program Files\kubelet.exe --token=hush";
                it.fitness.foreign_kubelet = foreign("rke2", command);
            }),
        ),
        (
            "no address but its own",
            told_of_host(|it| it.addresses = vec![[169, 254, 3, 4].into(), [127, 0, 0, 1].into()]),
        ),
        ("ports that are taken", told_of_host(|it| it.fitness.taken_ports = [9182, 10250].into())),
        ("little disk", told_of_host(|it| it.fitness.free_bytes = Some(7_350_000_000))),
        ("no disk", told_of_host(|it| it.fitness.free_bytes = Some(950_000_000))),
        ("two ways out", told_of_host(|it| it.fitness.default_routes = Some(2))),
        ("no way out", told_of_host(|it| it.fitness.default_routes = Some(0))),
        ("another name in the DNS", lines(&host(&other))),
        ("no name in the DNS", lines(&host(&no_name))),
    ];
    insta::assert_snapshot!(under_names(&situations));
}

/// A host that answers as an older agent does is judged by what it tells.
#[test]
fn an_older_agent_is_no_finding() {
    let mut probe = serde_json::to_value(bare_host()).unwrap();
    probe.as_object_mut().unwrap().remove("fitness").unwrap();
    let probe: Probe = serde_json::from_value(probe).unwrap();
    assert_eq!(host(&HostSeen::of(&probe)), []);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["240.0.0.0/4", "10.0.0.0/8", "::/0", "OVNKubernetes", "1/1"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop::sample::select(vec!["cidr", "type", "hybridClusterNetwork", "x"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    /// Whatever stands in a field, each finding is one line of harmless characters with a next step.
    #[test]
    fn nonsense_is_told_in_one_line(value in any_json(), place in 0..8_usize) {
        let mut seen = fine();
        let pointers = [NETWORK, SERVICES, "/spec/clusterNetwork", "/spec"];
        match place {
            0..4 => set(&mut seen.network, pointers[place], value),
            4 => set(&mut seen.operator_network, OVERLAY, value),
            5 => set(&mut seen.infrastructure, "/status", value),
            6 => set(&mut seen.cluster_version, "/status", value),
            _ => set(&mut seen.api_server, "/spec", value),
        }
        for finding in cluster(&seen) {
            let text = finding.to_string();
            prop_assert!(!text.chars().any(char::is_control), "{:?}", text);
            prop_assert!(!finding.next_step.is_empty() && text.len() < 1_200, "{}", text);
        }
    }

    /// An API server is fit exactly when the matrix lists its version.
    #[test]
    fn versions_are_those_of_the_matrix(minor in 0..60_u32, patch in 0..20_u32) {
        let seen = ClusterSeen {
            server_version: Some(format!("v1.{minor}.{patch}")),
            ..ClusterSeen::default()
        };
        prop_assert_eq!(cluster(&seen).is_empty(), (36..=37).contains(&minor));
    }
}
