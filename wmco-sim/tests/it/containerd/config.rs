//! Parses the rendered configuration with a real containerd.

use std::process::Command;

use wmco_core::render::{ContainerdSettings, containerd_config};

/// All values of `docs/contract/node-files.md`, FILE16 and FILE17, including defaults.
const SPECIFIED: &str = include_str!("specified.toml");

/// Returns the effective configuration, a line for each value; tables are indented.
fn effective(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("containerd");
    let output = command.arg("--config").arg(file).args(["config", "dump"]).output();
    let output = output.expect("install containerd, these tests are about it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Omits the line that names the file.
    let lines = text.lines().filter(|line| !line.starts_with("imports = "));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn containerd_reads_what_is_specified() {
    let usual = effective(&containerd_config(&ContainerdSettings::default()));
    assert_eq!(usual, effective(SPECIFIED));
    assert_ne!(usual, effective("version = 2\n"));
}

#[test]
fn containerd_reads_what_people_set() {
    let handlers = r#"{"runhcs-wcow-hypervisor": {"options": {"SandboxIsolation": 1}}}"#;
    let settings = ContainerdSettings::from_environment(|name| {
        let text = match name {
            "CONTAINERD_PAUSE_IMAGE" => "registry.lab.test:5000/pause:3.10",
            "CONTAINERD_SNAPSHOTTER" => "cimfs",
            "CONTAINERD_RUNTIMES" => handlers,
            "CONTAINERD_DEFAULT_RUNTIME" => "runhcs-wcow-hypervisor",
            "CONTAINERD_LOG_LEVEL" => "warn",
            _ => return None,
        };
        Some(text.to_owned())
    });
    let lines = effective(&containerd_config(&settings.unwrap()));
    let runtimes = r#"[plugins."io.containerd.grpc.v1.cri".containerd.runtimes"#;
    for line in [
        r#"address = "\\\\.\\pipe\\containerd-containerd""#,
        r#"bin_dir = "C:\\k\\cni""#,
        r#"conf_dir = "C:\\k\\cni\\config""#,
        r#"config_path = "C:\\k\\containerd\\registries""#,
        r#"sandbox_image = "registry.lab.test:5000/pause:3.10""#,
        r#"snapshotter = "cimfs""#,
        r#"default_runtime_name = "runhcs-wcow-hypervisor""#,
        &format!("{runtimes}.runhcs-wcow-hypervisor]"),
        &format!("{runtimes}.runhcs-wcow-process]"),
        r#"runtime_type = "io.containerd.runhcs.v1""#,
        "SandboxIsolation = 1",
        r#"level = "warn""#,
    ] {
        assert!(lines.iter().any(|found| found == line), "{line} is not in {lines:#?}");
    }
}
