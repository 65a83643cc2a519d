//! `docs/contract/services.md`, SVC40 to SVC48: the manifest generated for a cluster.

use wmco_services::generate::{ManifestInputs, manifest};
use wmco_services::manifest::Manifest;
use wmco_services::scripts::FULL_HOST_NAME;

use super::variable;

// Commands and scripts.

fn generated(platform: &str, debug: bool, vxlan_port: Option<u16>) -> Manifest {
    manifest(&ManifestInputs {
        platform: platform.to_owned(),
        debug,
        vxlan_port,
        api_server: "https://api-int.example.test:6443".to_owned(),
        ..ManifestInputs::default()
    })
    .unwrap()
}

fn line(manifest: &Manifest, service: &str) -> String {
    manifest.service(&super::name(service)).unwrap().command.clone()
}

fn kubelet_scripts(platform: &str) -> Vec<String> {
    let manifest = generated(platform, false, None);
    let kubelet = manifest.service(&super::name("kubelet")).unwrap();
    kubelet.powershell_pre_scripts.iter().map(|script| script.path.clone()).collect()
}

#[test]
fn host_name_of_no_platform_is_left_to_the_kubelet() {
    assert!(!line(&generated("None", false, None), "kubelet").contains("--hostname-override"));
}

#[test]
fn host_name_on_aws_comes_from_the_metadata_service() {
    assert!(kubelet_scripts("AWS").iter().any(|script| script.contains("169.254.169.254")));
}

#[test]
fn host_name_on_gcp_comes_from_its_script() {
    let scripts = kubelet_scripts("GCP");
    assert!(scripts.iter().any(|script| script.contains("gcp-get-hostname.ps1")), "{scripts:?}");
}

#[test]
fn host_name_on_vsphere_is_the_full_name() {
    assert!(kubelet_scripts("VSphere").iter().any(|script| script == FULL_HOST_NAME));
}

#[test]
fn exporter_logs_at_info() {
    let line = line(&generated("AWS", false, None), "windows_exporter");
    for part in ["windows_exporter.exe", "--web.config.file", "--log.level info", "--log.file"] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn exporter_logs_at_debug() {
    assert!(line(&generated("AWS", true, None), "windows_exporter").contains("--log.level debug"));
}

#[test]
fn overlay_without_port_and_debug() {
    let manifest = generated("None", false, None);
    let overlay = manifest.service(&super::name("hybrid-overlay-node")).unwrap();
    assert!(!overlay.bootstrap && overlay.powershell_pre_scripts.is_empty());
    assert_eq!((overlay.priority, &overlay.dependencies), (2, &vec![super::name("kubelet")]));
    assert_eq!(overlay.node_variables_in_command, [variable("NODE_NAME", "{.metadata.name}")]);
    assert!(!overlay.command.contains("--hybrid-overlay-vxlan-port"));
    assert!(!overlay.command.contains("--loglevel 5"));
}

#[test]
fn overlay_with_debug() {
    let line = line(&generated("None", true, None), "hybrid-overlay-node");
    assert!(line.contains("--loglevel 5") && !line.contains("--hybrid-overlay-vxlan-port"));
}

#[test]
fn overlay_with_port_and_debug() {
    let line = line(&generated("None", true, Some(4789)), "hybrid-overlay-node");
    assert!(line.contains("--loglevel 5") && line.contains("--hybrid-overlay-vxlan-port 4789"));
}

// 14.9, the part that a manifest shows. Restoring a deleted or replaced ConfigMap is tested with the operator, and the
// states of services with the daemon.

/// Platforms of the vectors, and an unknown one.
const PLATFORMS: [&str; 8] =
    ["AWS", "Azure", "BareMetal", "GCP", "None", "Nutanix", "VSphere", "Other"];

#[test]
fn the_daemon_is_not_in_the_manifest_but_all_others_are() {
    let always = [
        "containerd",
        "csi-proxy",
        "hybrid-overlay-node",
        "kube-proxy",
        "kubelet",
        "windows_exporter",
    ];
    for platform in PLATFORMS {
        let manifest = generated(platform, false, None);
        let mut names: Vec<&str> = manifest.services().iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        names.retain(|name| *name != "cloud-node-manager");
        assert_eq!(names, always, "{platform}");
    }
}

#[test]
fn cloud_node_manager_is_on_azure_only() {
    for platform in PLATFORMS {
        let manifest = generated(platform, false, None);
        let there = manifest.service(&"cloud-node-manager".parse().unwrap()).is_some();
        assert_eq!(there, platform == "Azure", "{platform}");
    }
}

#[test]
fn the_kubelet_runs_in_the_above_normal_priority_class() {
    let line = line(&generated("None", false, None), "kubelet");
    assert!(line.contains(" --windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS "), "{line}");
}
