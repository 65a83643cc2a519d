//! Platforms as Infrastructure `status.platformStatus.type` spells them.
//!
//! Source: `docs/contract/machines.md`, MACH6.

/// Amazon Web Services.
pub const AWS: &str = "AWS";

/// Microsoft Azure.
pub const AZURE: &str = "Azure";

/// Google Cloud.
pub const GCP: &str = "GCP";

/// VMware vSphere.
pub const VSPHERE: &str = "VSphere";

/// Nutanix.
pub const NUTANIX: &str = "Nutanix";

/// Hosts outside a cloud.
pub const NONE: &str = "None";

/// The other platforms of OpenShift: hosts that are listed may be nodes there. Source: OpenShift's API,
/// `config.openshift.io/v1` Infrastructure.
pub const OTHERS: [&str; 10] = [
    "AlibabaCloud",
    "BareMetal",
    "EquinixMetal",
    "External",
    "IBMCloud",
    "KubeVirt",
    "Libvirt",
    "OpenStack",
    "PowerVS",
    "oVirt",
];

/// All supported platforms.
pub const ALL: [&str; 6] = [AWS, AZURE, GCP, VSPHERE, NUTANIX, NONE];
