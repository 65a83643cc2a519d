//! The programs and scripts that come with the operator and go to every host.
//!
//! Source: `spec/node-config.md`, section 3.2, and `spec/ssh.md`, sections 9.2 and 10.

use std::collections::BTreeMap;

use crate::digest::{NotADigest, Sha256};
use crate::names::{host, platforms};
use crate::protocol::Access;
use crate::winpath::WindowsPath;

/// One program or script. Only this module makes them.
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
    /// The one platform that needs it; `None` means all.
    pub platform: Option<&'static str>,
    /// Whether the operator writes it at its start instead of finding it in the image.
    pub generated: bool,
}

/// Name of the list of digests in the payload folder, in the format of the program `sha256sum`.
pub const DIGESTS: &str = "sha256sum";

/// The agent. It is not in [`files`]: it is uploaded first, and installs itself.
pub const AGENT: PayloadFile =
    file("", "windows-instance-config-daemon.exe", host::ROOT, Access::Inherited);

const FILES: [PayloadFile; 19] = [
    file("", "hybrid-overlay-node.exe", host::ROOT, Access::Inherited),
    file("windows-exporter", "windows_exporter.exe", host::ROOT, Access::Inherited),
    file("windows-exporter", "windows-exporter-webconfig.yaml", host::TLS, Access::Inherited),
    file("kube-node", "kube-proxy.exe", host::ROOT, Access::Inherited),
    file("kube-node", "kubelet.exe", host::ROOT, Access::Inherited),
    file("kube-node", "kube-log-runner.exe", host::ROOT, Access::Inherited),
    file("csi-proxy", "csi-proxy.exe", host::ROOT, Access::Inherited),
    file("cni", "win-bridge.exe", host::CNI, Access::Inherited),
    file("cni", "host-local.exe", host::CNI, Access::Inherited),
    file("cni", "win-overlay.exe", host::CNI, Access::Inherited),
    file("containerd", "containerd.exe", host::CONTAINERD, Access::Inherited),
    file("containerd", "containerd-shim-runhcs-v1.exe", host::CONTAINERD, Access::Inherited),
    file("containerd", "containerd_conf.toml", host::CONTAINERD, Access::Inherited),
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

/// The system runs the scripts, so nobody else may change them.
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

/// Every file of every platform, the [`AGENT`] included.
pub fn all() -> impl Iterator<Item = &'static PayloadFile> {
    std::iter::once(&AGENT).chain(&FILES)
}

/// What stands for each script in the services ConfigMap, and where the script is on a host.
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
    /// Where it goes on the host.
    pub fn destination(&self) -> WindowsPath {
        path(self.folder, self.name)
    }

    /// Where it lies in the image, relative to the payload folder, with slashes.
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

/// What is wrong with the payload. All of it means that the image was built wrongly.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The first word of a line is no digest.
    #[error("line {line} of {DIGESTS} is wrong, build the image again")]
    Digest {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        source: NotADigest,
    },
    /// Two lines for one name. Folders do not count, since a host has one place per name.
    #[error("line {line} of {DIGESTS} names `{name}` again, build the image again")]
    Duplicate {
        /// Number of the second line, from 1.
        line: usize,
        /// The file's name.
        name: String,
    },
    /// Not a digest and a path.
    #[error("line {line} of {DIGESTS} is no digest and path, build the image again")]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// Files that no line names.
    #[error("{DIGESTS} has no line for {}, build the image again", .names.join(", "))]
    Missing {
        /// The files' names.
        names: Vec<&'static str>,
    },
}

/// Digests of the unpacked payload, by file name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Digests(BTreeMap<String, Sha256>);

impl Digests {
    /// Reads the output of the program `sha256sum`, in text or binary mode. Blank lines are passed
    /// over; only the last part of a path counts.
    ///
    /// # Errors
    /// A line is malformed, or repeats a name.
    pub fn parse(text: &str) -> Result<Self, PayloadError> {
        let mut digests = BTreeMap::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() {
                continue;
            }
            let malformed = PayloadError::Line { line: number };
            let Some((digest, path)) = line.split_once(char::is_whitespace) else {
                return Err(malformed);
            };
            let path = path.trim_start();
            let path = path.strip_prefix('*').unwrap_or(path);
            let name = path.rsplit('/').next().unwrap_or_default();
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err(malformed);
            }
            let digest =
                digest.parse().map_err(|source| PayloadError::Digest { line: number, source })?;
            if digests.insert(name.to_owned(), digest).is_some() {
                return Err(PayloadError::Duplicate { line: number, name: name.to_owned() });
            }
        }
        Ok(Self(digests))
    }

    /// Digest of the file `name`.
    pub fn get(&self, name: &str) -> Option<Sha256> {
        self.0.get(name).copied()
    }

    /// Checks at the operator's start that no file of any platform lacks a digest. Generated files
    /// have none.
    ///
    /// # Errors
    /// [`PayloadError::Missing`] with all names.
    pub fn check(&self) -> Result<(), PayloadError> {
        let names: Vec<_> = all()
            .filter(|file| !file.generated)
            .map(|file| file.name)
            .filter(|name| !self.0.contains_key(*name))
            .collect();
        if names.is_empty() { Ok(()) } else { Err(PayloadError::Missing { names }) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn line(content: &str, path: &str) -> String {
        format!("{}  {path}\n", Sha256::of(content.as_bytes()))
    }

    fn all() -> Digests {
        let lines: Vec<_> = std::iter::once(&AGENT)
            .chain(&FILES)
            .filter(|file| !file.generated)
            .map(|file| line(file.name, &format!("/payload/{}", file.image_path())))
            .collect();
        Digests::parse(&lines.concat()).unwrap()
    }

    #[test]
    fn each_platform_gets_its_files() {
        let count = |platform| files(platform).count();
        assert_eq!((count("None"), count("AWS"), count("Azure")), (17, 18, 18));
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

    #[test]
    fn digests_are_kept_by_file_name() {
        let text =
            [line("a", "/very/long/path/a.exe"), "\n".into(), line("b", "./x/b.exe")].concat();
        let digests = Digests::parse(&text).unwrap();
        assert_eq!(digests.get("a.exe"), Some(Sha256::of(b"a")));
        assert_eq!(digests.get("b.exe"), Some(Sha256::of(b"b")));
        assert_eq!(digests.get("c.exe"), None);
    }

    #[test]
    fn binary_mode_and_crlf_are_read() {
        let text = format!("{} *a.exe\r\n", Sha256::of(b"a"));
        assert_eq!(Digests::parse(&text).unwrap().get("a.exe"), Some(Sha256::of(b"a")));
    }

    #[test]
    fn wrong_lines_are_told_by_number() {
        let digest = Sha256::of(b"");
        for text in [format!("{digest}"), format!("{digest}  a/"), format!("{digest}  a b")] {
            assert_eq!(Digests::parse(&format!("\n{text}")), Err(PayloadError::Line { line: 2 }));
        }
        assert!(matches!(Digests::parse("zz  a"), Err(PayloadError::Digest { line: 1, .. })));
    }

    #[test]
    fn a_name_in_two_folders_is_an_error() {
        let text = [line("a", "x/a.exe"), line("a", "y/a.exe")].concat();
        let error = PayloadError::Duplicate { line: 2, name: "a.exe".to_owned() };
        assert_eq!(Digests::parse(&text), Err(error));
    }

    #[test]
    fn the_check_wants_every_file() {
        assert_eq!(all().check(), Ok(()));
        assert!(Digests::default().check().unwrap_err().to_string().contains("kubelet.exe"));
    }
}
