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

/// All supported platforms.
pub const ALL: [&str; 6] = [AWS, AZURE, GCP, VSPHERE, NUTANIX, NONE];
