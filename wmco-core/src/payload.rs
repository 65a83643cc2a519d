//! The programs and scripts of the operator that every host gets.
//!
//! Both ends know the list: the operator uploads these files, and the agent distinguishes them from foreign files.
//! Their digests are in [`content`](crate::content) (feature `render`).
//!
//! Source: `docs/contract/node-files.md`, FILE5 to FILE8, and `docs/contract/host.md`, HOST35.

use crate::names::{host, platforms};
use crate::protocol::Access;
use crate::winpath::WindowsPath;

/// A program or script. Only this module makes them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PayloadFile {
    /// Name in the image and on the host.
    pub name: &'static str,
    /// Folder in the image below the payload folder; empty for that folder itself.
    pub source: &'static str,
    /// Folder on the host.
    pub folder: &'static str,
    /// Who may read and change it on the host.
    pub access: Access,
    /// The platform that needs it; `None` for all platforms.
    pub platform: Option<&'static str>,
    /// Whether the operator generates it; otherwise it is in the image.
    pub generated: bool,
}

/// The agent. It is not in [`files`]: it is uploaded first and installs itself.
pub const AGENT: PayloadFile =
    file("", "windows-instance-config-daemon.exe", host::ROOT, Access::Inherited);

const FILES: [PayloadFile; 18] = [
    file("", "hybrid-overlay-node.exe", host::ROOT, Access::Inherited),
    file("windows-exporter", "windows_exporter.exe", host::ROOT, Access::Inherited),
    PayloadFile {
        generated: true,
        ..file("generated", host::WEB_CONFIG, host::TLS, Access::Inherited)
    },
    file("kube-node", "kube-proxy.exe", host::ROOT, Access::Inherited),
    file("kube-node", "kubelet.exe", host::ROOT, Access::Inherited),
    file("kube-node", "kube-log-runner.exe", host::ROOT, Access::Inherited),
    file("csi-proxy", "csi-proxy.exe", host::ROOT, Access::Inherited),
    file("cni", "win-bridge.exe", host::CNI, Access::Inherited),
    file("cni", "host-local.exe", host::CNI, Access::Inherited),
    file("cni", "win-overlay.exe", host::CNI, Access::Inherited),
    file("containerd", "containerd.exe", host::CONTAINERD, Access::Inherited),
    file("containerd", "containerd-shim-runhcs-v1.exe", host::CONTAINERD, Access::Inherited),
    script("powershell", "gcp-get-hostname.ps1"),
    script("powershell", "windows-defender-exclusion.ps1"),
    script("powershell", "hns.psm1"),
    PayloadFile { generated: true, ..script("generated", host::NETWORK_SCRIPT) },
    only(platforms::AWS, "ecr-credential-provider.exe"),
    only(platforms::AZURE, "azure-cloud-node-manager.exe"),
];

const fn file(
    source: &'static str,
    name: &'static str,
    folder: &'static str,
    access: Access,
) -> PayloadFile {
    PayloadFile { name, source, folder, access, platform: None, generated: false }
}

/// A script; the system runs it, so only administrators may change it.
const fn script(source: &'static str, name: &'static str) -> PayloadFile {
    file(source, name, host::SCRIPTS, Access::Administrators)
}

const fn only(platform: &'static str, name: &'static str) -> PayloadFile {
    PayloadFile { platform: Some(platform), ..file("", name, host::ROOT, Access::Inherited) }
}

/// The files that hosts on `platform` get besides the [`AGENT`].
pub fn files(platform: &str) -> impl Iterator<Item = &'static PayloadFile> {
    FILES.iter().filter(move |file| file.platform.is_none_or(|only| only == platform))
}

/// Every file of every platform, including the [`AGENT`].
pub fn all() -> impl Iterator<Item = &'static PayloadFile> {
    std::iter::once(&AGENT).chain(&FILES)
}

/// The path of each script in the services ConfigMap, and its path on a host.
///
/// ```
/// let (manifest, host) = wmco_core::payload::scripts()
///     .find(|(_, host)| host.file_name() == "network-conf.ps1")
///     .expect("it is part of the payload");
/// assert_eq!(manifest.as_str(), r"C:\Temp\network-conf.ps1");
/// assert_eq!(host.as_str(), r"C:\k\scripts\network-conf.ps1");
/// ```
pub fn scripts() -> impl Iterator<Item = (WindowsPath, WindowsPath)> {
    let scripts = FILES.iter().filter(|file| file.folder == host::SCRIPTS);
    scripts.map(|file| (path(host::MANIFEST_SCRIPTS, file.name), file.destination()))
}

impl PayloadFile {
    /// Its path on the host.
    pub fn destination(&self) -> WindowsPath {
        path(self.folder, self.name)
    }

    /// Its path in the image, relative to the payload folder, with slashes.
    pub fn image_path(&self) -> String {
        if self.source.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}/{}", self.source, self.name)
        }
    }
}

#[expect(clippy::expect_used, reason = "a test parses the path of every file")]
fn path(folder: &str, name: &str) -> WindowsPath {
    format!(r"{folder}\{name}").parse().expect("a payload path is a windows path")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_platform_gets_its_files() {
        let count = |platform| files(platform).count();
        assert_eq!((count("None"), count("AWS"), count("Azure")), (16, 17, 17));
        let has = |platform, name| files(platform).any(|file| file.name == name);
        assert!(has("AWS", "ecr-credential-provider.exe"));
        assert!(has("Azure", "azure-cloud-node-manager.exe"));
        assert!(!has("Azure", "ecr-credential-provider.exe"));
    }

    #[test]
    fn every_file_has_a_name_and_a_known_folder_of_its_own() {
        let folders = host::DIRECTORIES.map(|folder| folder.parse::<WindowsPath>().unwrap());
        for file in FILES.iter().chain([&AGENT]) {
            assert!(folders.contains(&file.destination().parent().unwrap()), "{}", file.name);
        }
        let names: BTreeSet<_> = FILES.iter().map(|file| file.name).collect();
        assert_eq!(names.len(), FILES.len());
        assert_eq!(AGENT.destination().as_str(), host::AGENT);
    }
}
