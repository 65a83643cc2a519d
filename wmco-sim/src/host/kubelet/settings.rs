//! A simulated kubelet's settings, from its command line and its configuration file.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeWindows;
use wmco_services::windows::Machine as _;

use super::super::command_line::{self, CommandLineError};
use super::super::identity::{self, IdentityError};

/// Default of the configuration's maximum number of pods. Source: Kubernetes, KubeletConfiguration.
const DEFAULT_MAX_PODS: u32 = 110;

/// Why a kubelet ends right after its start.
#[derive(Debug, thiserror::Error)]
pub(in crate::host) enum SettingsError {
    /// An argument is invalid, or a default is missing on the machine.
    #[error("correct the arguments of the kubelet: {problem}")]
    Argument { problem: String },
    /// The command line starts no kubelet.
    #[error("the kubelet cannot start")]
    CommandLine(#[from] CommandLineError),
    /// The configuration file is invalid.
    #[error("correct {path}")]
    Configuration { path: String, source: serde_json::Error },
    /// A file does not exist.
    #[error("the kubelet cannot start")]
    File(#[from] IdentityError),
}

/// A kubelet's settings.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::host) struct Settings {
    /// The node's name, in lower case.
    pub(in crate::host) node: String,
    pub(in crate::host) address: std::net::Ipv4Addr,
    pub(in crate::host) labels: BTreeMap<String, String>,
    pub(in crate::host) taints: Vec<Taint>,
    pub(in crate::host) max_pods: u32,
    pub(in crate::host) bootstrap_kubeconfig: WindowsPath,
    pub(in crate::host) kubeconfig: WindowsPath,
    pub(in crate::host) certificates: WindowsPath,
}

/// The part of KubeletConfiguration that is used here; the file is JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    #[serde(default)]
    max_pods: Option<u32>,
    #[serde(default)]
    register_with_taints: Vec<Taint>,
}

impl Settings {
    /// Parses the service's command line and the files that it names.
    pub(in crate::host) fn read(
        machine: &FakeWindows,
        command: &str,
    ) -> Result<Self, SettingsError> {
        let problem = |problem: String| SettingsError::Argument { problem };
        let flags = command_line::flags(machine, command, "kubelet.exe")?;
        let path = |flag: &str, default: &str| {
            let text = flags.get(flag).map_or(default, String::as_str);
            let text = text.replace('/', "\\");
            text.parse::<WindowsPath>().map_err(|bad| problem(format!("--{flag}: {bad}")))
        };
        let facts = |error| problem(format!("{error}"));
        let host_name = machine.host_name().map_err(facts)?;
        let own_name = host_name.split('.').next().unwrap_or_default();
        let node = flags.get("hostname-override").map_or(own_name, String::as_str);
        let address = if let Some(text) = flags.get("node-ip") {
            text.parse().map_err(|_| problem(format!("--node-ip is `{text}`")))?
        } else {
            let addresses = machine.addresses().map_err(facts)?;
            addresses.first().copied().ok_or_else(|| problem("no address".to_owned()))?
        };
        let configuration = match flags.get("config") {
            Some(path) => serde_json::from_str(&identity::read(machine, path)?)
                .map_err(|source| SettingsError::Configuration { path: path.clone(), source })?,
            None => Configuration::default(),
        };
        Ok(Self {
            node: node.trim().to_lowercase(),
            address,
            labels: labels(flags.get("node-labels").map_or("", String::as_str)),
            taints: configuration.register_with_taints,
            max_pods: configuration.max_pods.unwrap_or(DEFAULT_MAX_PODS),
            bootstrap_kubeconfig: path("bootstrap-kubeconfig", host::BOOTSTRAP_KUBECONFIG)?,
            kubeconfig: path("kubeconfig", host::KUBELET_KUBECONFIG)?,
            certificates: path("cert-dir", r"C:\var\lib\kubelet\pki")?,
        })
    }
}

fn labels(text: &str) -> BTreeMap<String, String> {
    text.split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = r"C:\k\kube-log-runner.exe -log-file=C:\var\log\kubelet\kubelet.log C:\k\kubelet.exe --config=C:\k\kubelet.conf --kubeconfig=C:\k\kubeconfig --cert-dir=c:\var\lib\kubelet\pki\ --windows-service --node-labels=node.openshift.io/os_id=Windows,a=b --v=2 --node-ip 10.1.2.3";

    fn machine() -> FakeWindows {
        let machine = FakeWindows::new("WinHost.example.com");
        for program in [r"C:\k\kube-log-runner.exe", r"C:\k\kubelet.exe"] {
            machine.put_file(&program.parse().unwrap(), "MZ");
        }
        let configuration = r#"{"maxPods": 250,
            "registerWithTaints": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}]}"#;
        machine.put_file(&r"C:\k\kubelet.conf".parse().unwrap(), configuration);
        machine
    }

    #[test]
    fn the_command_line_of_the_manifest_is_understood() {
        let settings = Settings::read(&machine(), COMMAND).unwrap();
        assert_eq!(settings.node, "winhost");
        assert_eq!(settings.address.to_string(), "10.1.2.3");
        assert_eq!(settings.labels.get("node.openshift.io/os_id").unwrap(), "Windows");
        assert_eq!(settings.labels.get("a").unwrap(), "b");
        assert_eq!(settings.max_pods, 250);
        assert_eq!(settings.taints[0].key, "os");
        assert_eq!(settings.certificates.as_str(), r"c:\var\lib\kubelet\pki");
        assert_eq!(settings.bootstrap_kubeconfig.as_str(), host::BOOTSTRAP_KUBECONFIG);
    }

    #[test]
    fn an_override_is_the_nodes_name() {
        let command = format!("{COMMAND} --hostname-override=IP-10-0-0-1.Example");
        assert_eq!(Settings::read(&machine(), &command).unwrap().node, "ip-10-0-0-1.example");
    }

    #[test]
    fn a_placeholder_that_nobody_filled_ends_it() {
        let command = format!("{COMMAND} --node-ip=NODE_IP");
        let problem = Settings::read(&machine(), &command).unwrap_err();
        assert!(problem.to_string().contains("NODE_IP"), "{problem}");
    }
}
