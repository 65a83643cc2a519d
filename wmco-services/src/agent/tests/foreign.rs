//! Foreign services on the host that conflict with a node.

use super::*;
use crate::windows::{ServiceConfig, StartType};

/// Returns the name of the containerd that the probe reports after this service was created.
fn told(name: &str, command: &str, description: &str) -> Option<String> {
    let found = probed(name, command, description).foreign_containerd?;
    assert_eq!(found.command, command);
    Some(found.name)
}

fn probed(name: &str, command: &str, description: &str) -> Probe {
    let host = fresh();
    let config = ServiceConfig {
        command: command.to_owned(),
        description: description.to_owned(),
        dependencies: Vec::new(),
        start: StartType::Automatic,
        recovery: None,
    };
    host.add_service(&name.parse().unwrap(), &config, ServiceRunState::Running);
    Agent::new(&host, "1.0.0", NOW).probe().unwrap()
}

#[test]
fn a_containerd_of_others_is_told_by_its_name_or_its_program() {
    for (name, command) in [
        ("containerd", r#""C:\Program Files\containerd\containerd.exe" --run-service"#),
        ("Containerd", r"D:\other.exe"),
        ("mine", r"C:\Program Files\containerd\Containerd.exe --run-service"),
        ("mine", r#""D:\containerd.exe" --address \\.\pipe\containerd-containerd"#),
        ("mine", r"D:/bin/containerd.exe"),
        ("mine", r"C:\kube\containerd.exe"),
    ] {
        assert_eq!(told(name, command, "A container runtime").as_deref(), Some(name), "{command}");
        assert_eq!(told(name, command, "").as_deref(), Some(name), "{command}");
    }
}

#[test]
fn what_is_ours_or_in_nobodys_way_is_not_told() {
    let ours = format!("{} containerd", host::SERVICE_TAG);
    for (name, command, description) in [
        ("containerd", r"D:\containerd.exe", ours.as_str()),
        ("containerd", r"C:\k\containerd\containerd.exe --run-service", ""),
        ("containerd", "", ""),
        ("mine", r"D:\containerd.exe -a \\.\pipe\mine", ""),
        ("mine", r"D:\containerd.exe --address=\\.\pipe\mine --run-service", ""),
        ("mine", r"D:\containerd-shim.exe", ""),
        ("mine", r"D:\other.exe --with D:\containerd.exe", ""),
    ] {
        assert_eq!(told(name, command, description), None, "{command}");
    }
}

#[test]
fn a_kubelet_of_others_is_told_by_its_name_or_its_program() {
    let told = |name, command, description| {
        let found = probed(name, command, description).fitness.foreign_kubelet?;
        Some(found.name)
    };
    for (name, command) in [
        ("kubelet", r"D:\other.exe"),
        ("Kubelet", r#""C:\Program Files\k8s\kubelet.exe" --v=2"#),
        ("rke2", r"C:\var\lib\Kubelet.exe --windows-service"),
    ] {
        assert_eq!(told(name, command, "").as_deref(), Some(name), "{command}");
    }
    let ours = format!("{} kubelet", host::SERVICE_TAG);
    for (name, command, description) in [
        ("kubelet", r"D:\kubelet.exe", ours.as_str()),
        ("kubelet", r"C:\k\kubelet.exe --windows-service", ""),
        ("mine", r"D:\other.exe --with D:\kubelet.exe", ""),
    ] {
        assert_eq!(told(name, command, description), None, "{command}");
    }
}

#[test]
fn ports_disk_routes_and_rights_are_told() {
    let host = fresh();
    host.listen(host::EXPORTER_PORT);
    host.listen(80);
    host.set_free_bytes(7);
    host.set_administrator(false);
    let fitness = Agent::new(&host, "1.0.0", NOW).probe().unwrap().fitness;
    assert_eq!(fitness.taken_ports, [host::EXPORTER_PORT].into());
    assert_eq!((fitness.free_bytes, fitness.default_routes), (Some(7), Some(1)));
    assert_eq!(fitness.is_administrator, Some(false));
    assert_eq!(fitness.installation.as_deref(), Some("Server Core"));
}
