//! The versions of Kubernetes and Windows, platforms and networks that this release supports.
//!
//! The data file is `support-matrix.json`. [`preflight`](crate::preflight) checks against it, its messages name it,
//! and the tables of the user documentation are [rendered](SupportMatrix::tables) from it.
//!
//! Source: `docs/contract/cluster.md`, CLU3 and CLU4.

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, de};

/// The support matrix of this release.
///
/// ```
/// use wmco_core::support_matrix::SUPPORTED;
///
/// let windows = SUPPORTED.windows("10.0.20348.2322").expect("it is supported");
/// assert_eq!(windows.name, "Windows Server 2022");
/// assert!(SUPPORTED.windows("10.0.14393").is_none());
/// assert!(SUPPORTED.kubernetes.contains(&"1.36".parse()?));
/// Ok::<(), wmco_core::support_matrix::NoMinor>(())
/// ```
pub static SUPPORTED: LazyLock<SupportMatrix> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
    serde_json::from_str(include_str!("../support-matrix.json")).expect("the matrix is valid")
});

/// The supported versions, platforms and networks of a release.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupportMatrix {
    /// Versions of the API server, in order.
    pub kubernetes: Vec<Minor>,
    /// Releases of OpenShift with these versions, as a bundle's annotation names them.
    pub openshift: String,
    /// Number of minor versions that a kubelet may be older than the API server.
    ///
    /// Source: <https://kubernetes.io/releases/version-skew-policy/>.
    pub kubelet_may_be_older_by: u32,
    /// Types of cluster networks.
    pub network_types: Vec<String>,
    /// Platforms.
    pub platforms: Vec<SupportedPlatform>,
    /// Releases of Windows, in order.
    pub windows: Vec<WindowsRelease>,
    /// Default UDP port of the overlay network.
    pub vxlan_port: u16,
}

/// A platform.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupportedPlatform {
    /// Name, as the Infrastructure object spells it.
    pub name: String,
    /// Whether the Machine API creates Windows machines there.
    pub machines: bool,
    /// Whether the overlay network has another port than [`SupportMatrix::vxlan_port`].
    pub other_vxlan_port: OtherVxlanPort,
}

/// Whether the overlay network of a platform has another port than [`SupportMatrix::vxlan_port`].
///
/// Source: <https://docs.okd.io/latest/networking/ovn_kubernetes_network_provider/configuring-hybrid-networking.html>.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum OtherVxlanPort {
    /// It needs one, because the platform itself uses that port.
    Required,
    /// It may have one.
    Possible,
    /// It cannot have one.
    No,
}

/// A release of Windows.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowsRelease {
    /// Its name.
    pub name: String,
    /// The build: the third number of its version.
    pub build: u32,
    /// Tag of container images made for it.
    pub images: String,
    /// Whether its overlay network may use another port than [`SupportMatrix::vxlan_port`].
    pub custom_vxlan_port: bool,
}

/// Major and minor version of Kubernetes, such as `1.36`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Minor {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// Error of a text that does not begin with the numbers of a version.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("it does not begin with a version such as v1.36")]
pub struct NoMinor;

impl SupportMatrix {
    /// The release of Windows with this version, such as `10.0.20348`; `None` for others.
    pub fn windows(&self, version: &str) -> Option<&WindowsRelease> {
        let build: u32 = version.split('.').nth(2)?.parse().ok()?;
        self.windows.iter().find(|release| release.build == build)
    }

    /// Names of the supported releases of Windows with their builds, for messages.
    pub fn windows_names(&self) -> String {
        let name = |it: &WindowsRelease| format!("{} (10.0.{})", it.name, it.build);
        listed(self.windows.iter().map(name))
    }

    /// The platform of this name; `None` for others.
    pub fn platform(&self, name: &str) -> Option<&SupportedPlatform> {
        self.platforms.iter().find(|platform| platform.name == name)
    }

    /// Names of the supported platforms, for messages.
    pub fn platform_names(&self) -> String {
        listed(self.platforms.iter().map(|platform| platform.name.clone()))
    }

    /// The supported versions of Kubernetes, for messages.
    pub fn kubernetes_names(&self) -> String {
        listed(self.kubernetes.iter().map(Minor::to_string))
    }

    /// The whole matrix as tables in Markdown, for documentation.
    pub fn tables(&self) -> String {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let mut text = String::from("| Windows | version | images | other VXLAN port |\n");
        text.push_str("| --- | --- | --- | --- |\n");
        for it in &self.windows {
            let other = yes(it.custom_vxlan_port);
            // Writing to a string does not fail.
            let _ =
                writeln!(text, "| {} | 10.0.{} | `{}` | {other} |", it.name, it.build, it.images);
        }
        text.push_str("\n| platform | own hosts | Machines | other VXLAN port |\n");
        text.push_str("| --- | --- | --- | --- |\n");
        for it in &self.platforms {
            let other = it.other_vxlan_port;
            let _ = writeln!(text, "| {} | yes | {} | {other} |", it.name, yes(it.machines));
        }
        let versions = self.kubernetes_names();
        let _ =
            writeln!(text, "\nKubernetes {versions}, network {}.", self.network_types.join(", "));
        text
    }
}

/// Joins names as in `a, b or c`.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl fmt::Display for OtherVxlanPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "required",
            Self::Possible => "possible",
            Self::No => "no",
        })
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl std::str::FromStr for Minor {
    type Err = NoMinor;

    /// Reads the start of a version such as `v1.36.2-rc.1`; text after the minor version is ignored.
    fn from_str(text: &str) -> Result<Self, NoMinor> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = text.split_once('.').ok_or(NoMinor)?;
        // Some clusters write `36+`.
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number).ok_or(NoMinor)
        };
        Ok(Self { major: number(major)?, minor: number(rest.get(..end).unwrap_or_default())? })
    }
}

impl<'de> Deserialize<'de> for Minor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::platforms;

    #[test]
    fn the_matrix_is_in_order_and_knows_each_platform_of_ours() {
        assert!(SUPPORTED.kubernetes.is_sorted() && !SUPPORTED.kubernetes.is_empty());
        assert!(SUPPORTED.windows.is_sorted_by_key(|it| it.build));
        let known = [
            platforms::AWS,
            platforms::AZURE,
            platforms::GCP,
            platforms::NUTANIX,
            platforms::VSPHERE,
        ];
        let hosts_only = [platforms::NONE, "BareMetal", "External"];
        for name in known.iter().chain(&hosts_only) {
            let machines = SUPPORTED.platform(name).unwrap().machines;
            assert_eq!(machines, !hosts_only.contains(name), "{name}");
        }
        assert_eq!(SUPPORTED.platforms.len(), known.len() + hosts_only.len());
    }

    #[test]
    fn versions_are_read_as_servers_and_clouds_write_them() {
        let minor = |text: &str| text.parse::<Minor>().map(|it| (it.major, it.minor));
        for text in ["v1.36.2", "1.36", "v1.36.0-rc.1", "v1.36+", " v1.36.2+abc ", "1.36+k3s"] {
            assert_eq!(minor(text), Ok((1, 36)), "{text}");
        }
        for text in ["", "v", "v1", "one.36", "v1.", "v1.x", "v-1.36", "v1.99999999999"] {
            assert_eq!(minor(text), Err(NoMinor), "{text}");
        }
    }

    #[test]
    fn windows_is_known_by_its_build_alone() {
        let name = |version| SUPPORTED.windows(version).map(|it| it.name.as_str());
        assert_eq!(name("10.0.17763.5830"), Some("Windows Server 2019"));
        assert_eq!(name("10.0.26100"), Some("Windows Server 2025"));
        for other in ["10.0.20349", "10.0.14393", "20348", "10.0", "", "10.0.x"] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
