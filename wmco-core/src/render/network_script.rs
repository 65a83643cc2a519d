//! The script that configures a host's CNI plugin and kube-proxy, [`host::NETWORK_SCRIPT`].

use serde_json::{Value, json};

use crate::ip_network::IpNetwork;
use crate::names::host;

/// The script with placeholders `{{NAME}}`.
const TEMPLATE: &str = include_str!("network_script.ps1");

/// Text of [`host::NETWORK_SCRIPT`] for a cluster with the service network `services`.
///
/// The script has the parameters `-hostnameOverride`, `-clusterCIDR`, `-kubeConfigPath`, `-kubeProxyConfigPath` and
/// `-verbosity`. It waits for [`host::OVERLAY_NETWORK`], creates [`host::VIP_ENDPOINT`] on it, and writes
/// [`host::CNI_CONFIG_FILE`] and the configuration of kube-proxy if they differ. It stops at the first error with
/// an exit code other than 0.
///
/// It uses only the network with the subnet `-clusterCIDR`, the node's own subnet. An endpoint counts if it is on
/// that network; an endpoint of an earlier network is removed. The script's own errors begin with `not yet` if
/// waiting may help, and otherwise with `broken`.
///
/// kube-proxy's configuration is JSON, which its YAML reader accepts, too; values equal to kube-proxy's defaults
/// are left out. Source: `docs/contract/services.md`, SVC50 to SVC52.
///
/// ```
/// use wmco_core::render::network_script;
///
/// let script = network_script(&"172.30.0.0/16".parse()?);
/// assert!(script.contains(r#""destinationPrefix": "172.30.0.0/16""#));
/// Ok::<(), wmco_core::ip_network::NetworkError>(())
/// ```
pub fn network_script(services: &IpNetwork) -> String {
    [
        ("CNI_CONFIG", pretty(&cni_config(services))),
        ("CNI_CONFIG_FILE", host::CNI_CONFIG_FILE.to_owned()),
        ("HNS_MODULE", host::HNS_MODULE.to_owned()),
        ("KUBE_PROXY_CONFIG", pretty(&kube_proxy_config())),
        ("OVERLAY_NETWORK", host::OVERLAY_NETWORK.to_owned()),
        ("VIP_ENDPOINT", host::VIP_ENDPOINT.to_owned()),
    ]
    .iter()
    .fold(TEMPLATE.to_owned(), |script, (name, text)| {
        script.replace(&format!("{{{{{name}}}}}"), text)
    })
}

/// JSON on several lines, readable in the script's here-string.
fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// Configuration of the plugin `win-overlay`. The script fills in the placeholders between `@`.
fn cni_config(services: &IpNetwork) -> Value {
    let services = services.to_string();
    let policy = |kind: &str, settings: Value| json!({ "name": "EndpointPolicy", "value": { "type": kind, "settings": settings } });
    json!({
        "cniVersion": "0.2.0",
        "name": host::OVERLAY_NETWORK,
        "type": "win-overlay",
        "apiVersion": 2,
        "capabilities": { "portMappings": true, "dns": true },
        "ipam": { "type": "host-local", "subnet": "@subnet@" },
        "policies": [
            // Services must see the pod's own address, so traffic to them is not translated.
            policy("OutBoundNAT", json!({
                "exceptionList": [services],
                "destinationPrefix": "",
                "needEncap": false,
            })),
            policy("SDNRoute", json!({
                "exceptionList": [],
                "destinationPrefix": services,
                "needEncap": true,
            })),
            policy("ProviderAddress", json!({ "providerAddress": "@managementAddress@" })),
        ],
    })
}

/// A `KubeProxyConfiguration`. The script fills in the placeholders between `@`.
fn kube_proxy_config() -> Value {
    json!({
        "kind": "KubeProxyConfiguration",
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "featureGates": { "WinDSR": true, "WinOverlay": true },
        "clientConnection": { "kubeconfig": "@kubeConfigPath@" },
        "logging": { "verbosity": "@verbosity@" },
        "hostnameOverride": "@hostnameOverride@",
        "mode": "kernelspace",
        "clusterCIDR": "@clusterCIDR@",
        "winkernel": {
            "networkName": host::OVERLAY_NETWORK,
            "sourceVip": "@sourceVip@",
            "enableDSR": true,
            "rootHnsEndpointName": "",
            "forwardHealthCheckVip": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::render::powershell::{all, has_error, unset_variables};

    fn script() -> String {
        network_script(&"172.30.0.0/16".parse().unwrap())
    }

    /// The here-string that is assigned to `variable`, filled with `values` as the script does.
    fn filled(variable: &str, values: &[(&str, Value)]) -> Value {
        let script = script();
        let (_, rest) = script.split_once(&format!("${variable} = @'\n")).unwrap();
        let (text, _) = rest.split_once("\n'@\n").unwrap();
        let text = values.iter().fold(text.to_owned(), |text, (name, value)| {
            let place = format!("\"@{name}@\"");
            assert!(text.contains(&place), "{variable} has no {place}");
            text.replace(&place, &value.to_string())
        });
        assert!(!text.contains('@'), "left open: {text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn nothing_stays_to_be_filled_in() {
        assert!(TEMPLATE.contains("{{"));
        assert!(!script().contains("{{"), "{}", script());
    }

    #[test]
    fn the_script_is_powershell() {
        assert!(!has_error(&script()));
        assert!(has_error(&script().replacen('}', "", 1)), "the parser finds a missing brace");
    }

    /// Finds unset variables, which strict mode would report on the host only.
    #[test]
    fn every_variable_is_set() {
        let (unset, used) = unset_variables(&script());
        assert_eq!(unset, BTreeSet::new());
        assert!(used > 30, "{used}");
    }

    #[test]
    fn cni_gets_the_overlay_and_its_policies() {
        let config = filled(
            "cni",
            &[("subnet", json!("10.132.0.0/24")), ("managementAddress", json!("10.0.128.7"))],
        );
        let policy = |kind: &str, settings: Value| json!({"name": "EndpointPolicy", "value": {"type": kind, "settings": settings}});
        assert_eq!(
            config,
            json!({
                "cniVersion": "0.2.0",
                "name": "OVNKubernetesHybridOverlayNetwork",
                "type": "win-overlay",
                "apiVersion": 2,
                "capabilities": {"portMappings": true, "dns": true},
                "ipam": {"type": "host-local", "subnet": "10.132.0.0/24"},
                "policies": [
                    policy("OutBoundNAT", json!({
                        "exceptionList": ["172.30.0.0/16"],
                        "destinationPrefix": "",
                        "needEncap": false,
                    })),
                    policy("SDNRoute", json!({
                        "exceptionList": [],
                        "destinationPrefix": "172.30.0.0/16",
                        "needEncap": true,
                    })),
                    policy("ProviderAddress", json!({"providerAddress": "10.0.128.7"})),
                ],
            })
        );
    }

    #[test]
    fn kube_proxy_gets_the_kernel_mode_on_the_overlay() {
        let config = filled(
            "kubeProxy",
            &[
                ("kubeConfigPath", json!(host::KUBELET_KUBECONFIG)),
                ("verbosity", json!(4)),
                ("hostnameOverride", json!("win-a")),
                ("clusterCIDR", json!("10.132.0.0/24")),
                ("sourceVip", json!("10.132.0.14")),
            ],
        );
        assert_eq!(
            config,
            json!({
                "kind": "KubeProxyConfiguration",
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "featureGates": {"WinDSR": true, "WinOverlay": true},
                "clientConnection": {"kubeconfig": r"C:\k\kubeconfig"},
                "logging": {"verbosity": 4},
                "hostnameOverride": "win-a",
                "mode": "kernelspace",
                "clusterCIDR": "10.132.0.0/24",
                "winkernel": {
                    "networkName": "OVNKubernetesHybridOverlayNetwork",
                    "sourceVip": "10.132.0.14",
                    "enableDSR": true,
                    "rootHnsEndpointName": "",
                    "forwardHealthCheckVip": false,
                },
            })
        );
    }

    /// Each placeholder between `@` has a line in the table of values, and the reverse.
    #[test]
    fn every_place_has_a_value() {
        let script = script();
        let places: BTreeSet<_> = script
            .split("\"@")
            .skip(1)
            .filter_map(|rest| rest.split_once("@\""))
            .map(|(name, _)| name)
            .filter(|name| !name.contains('('))
            .collect();
        let values: BTreeSet<_> = script
            .split("@{\n")
            .skip(1)
            .filter_map(|rest| rest.split_once("\n})"))
            .flat_map(|(table, _)| table.lines())
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name.trim())
            .collect();
        assert_eq!(places, values);
        assert_eq!(places.len(), 7);
    }

    /// With two subnets, or those of another node, the existing configurations stay unchanged.
    #[test]
    fn another_subnet_is_told_before_anything_is_written() {
        let script = script();
        let at = |part: &str| script.find(part).unwrap_or_else(|| panic!("no {part}"));
        let select = at("-contains $clusterCIDR");
        let told = at("has the subnets '$($subnets -join ', ')'");
        assert!(select < told && told < at("but the node has '$clusterCIDR'"));
        assert!(told < at("\nSet-TextIfDifferent") && told < at("New-HNSEndpoint"));
        assert!(!script.contains("Subnets)["), "none is taken by its place");
        assert_eq!(script.matches("    subnet = $clusterCIDR\n").count(), 1);
    }

    /// An endpoint of the same name on another network is neither used nor, if that network exists under its own
    /// name, removed.
    #[test]
    fn an_endpoint_counts_on_this_network_only() {
        let script = script();
        let by_name = format!("$_.Name -eq '{}'", host::VIP_ENDPOINT);
        let filters = all("script_block_expression", &script).into_iter();
        let filters: Vec<_> = filters
            .filter(|block| block.trim_start_matches(['{', ' ', '\n']).starts_with(&by_name))
            .collect();
        let [left, ours] = filters.as_slice() else { panic!("{filters:#?}") };
        assert!(left.contains("$_.VirtualNetwork -ne $network.ID"), "{left}");
        assert!(left.contains("$others -notcontains $_.VirtualNetwork"), "{left}");
        assert!(ours.contains("$_.VirtualNetwork -eq $network.ID"), "{ours}");
        assert_eq!(script.matches(&by_name).count(), 2);
        let removal = script.find("foreach ($old in $left)").unwrap();
        assert!(removal < script.find("New-HNSEndpoint").unwrap());
        assert_eq!(script.matches("-Method DELETE").count(), 1);
    }

    /// Modules that Windows loads by itself have commands of the same names.
    #[test]
    fn commands_that_change_endpoints_are_those_of_our_module() {
        let script = script();
        let commands = all("command_name", &script);
        let changing = commands.iter().filter(|name| {
            let name = name.to_lowercase();
            name.contains("-hns") && !name.starts_with("get-")
        });
        let changing: Vec<_> = changing.copied().collect();
        let ours =
            [r"hns\Invoke-HNSRequest", r"hns\New-HNSEndpoint", r"hns\Attach-HNSHostEndpoint"];
        assert_eq!(changing, ours);
    }

    #[test]
    fn errors_tell_whether_waiting_helps() {
        let script = script();
        let thrown: Vec<_> = script.split("throw \"").skip(1).collect();
        let kinds: Vec<_> = thrown.iter().filter_map(|text| text.split(':').next()).collect();
        assert_eq!(kinds, ["broken", "not yet", "broken", "broken"]);
    }

    #[test]
    fn names_come_from_one_place() {
        for name in [host::OVERLAY_NETWORK, host::VIP_ENDPOINT, host::SCRIPTS, host::ROOT] {
            assert!(!TEMPLATE.contains(name), "{name}");
        }
    }

    #[test]
    fn the_paths_are_those_of_the_payload() {
        let module = crate::payload::all()
            .find(|file| file.destination().as_str() == host::HNS_MODULE)
            .map(|file| file.name);
        assert_eq!(module, Some("hns.psm1"));
        let file: crate::winpath::WindowsPath = host::CNI_CONFIG_FILE.parse().unwrap();
        assert_eq!(file.parent().unwrap().as_str(), host::CNI_CONFIG);
        for path in [host::HNS_MODULE, host::CNI_CONFIG_FILE] {
            assert!(script().contains(&format!("'{path}'")), "{path}");
        }
    }
}
