//! Platforms of the Machine API.

use std::fmt;
use std::str::FromStr;

use crate::names::{machine_api, platforms};

/// A platform with a Machine API for Windows. Reads its name in any case, `aws` as well as `AWS`.
///
/// ```
/// use wmco_core::machine_set::Platform;
/// assert_eq!("vsphere".parse(), Ok(Platform::VSphere));
/// assert_eq!(Platform::VSphere.to_string(), "VSphere");
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Platform {
    /// Amazon Web Services.
    Aws,
    /// Microsoft Azure.
    Azure,
    /// Google Cloud.
    Gcp,
    /// Nutanix.
    Nutanix,
    /// VMware vSphere.
    VSphere,
}

/// Error of a text that is no platform with Windows MachineSets.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "use one of AWS, Azure, GCP, Nutanix, VSphere; hosts of other platforms are listed by address"
)]
pub struct UnknownPlatform;

impl Platform {
    /// All platforms.
    pub const ALL: [Self; 5] = [Self::Aws, Self::Azure, Self::Gcp, Self::Nutanix, Self::VSphere];

    /// Its name in [`platforms`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aws => platforms::AWS,
            Self::Azure => platforms::AZURE,
            Self::Gcp => platforms::GCP,
            Self::Nutanix => platforms::NUTANIX,
            Self::VSphere => platforms::VSPHERE,
        }
    }

    /// Kind of its provider specification.
    pub const fn provider_kind(self) -> &'static str {
        match self {
            Self::Aws => machine_api::AWS_PROVIDER,
            Self::Azure => machine_api::AZURE_PROVIDER,
            Self::Gcp => machine_api::GCP_PROVIDER,
            Self::Nutanix => machine_api::NUTANIX_PROVIDER,
            Self::VSphere => machine_api::VSPHERE_PROVIDER,
        }
    }

    /// The platform with this kind of provider specification.
    pub(super) fn of_provider(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|platform| platform.provider_kind() == kind)
    }

    /// Whether the computer gets the name of its Machine: from Azure itself, on the others from the operator.
    ///
    /// Source: `docs/contract/machines.md`, MACH6 and MACH18.
    pub const fn names_computers(self) -> bool {
        matches!(self, Self::Azure | Self::Nutanix | Self::VSphere)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(text: &str) -> Result<Self, UnknownPlatform> {
        let known = |platform: &Self| platform.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(known).ok_or(UnknownPlatform)
    }
}
