//! Platforms as Infrastructure `status.platformStatus.type` spells them.
//!
//! Source: `spec/operator.md`, section 3.

/// Amazon Web Services.
pub const AWS: &str = "AWS";

/// Microsoft Azure.
pub const AZURE: &str = "Azure";

/// Google Cloud.
pub const GCP: &str = "GCP";

/// VMware vSphere.
pub const VSPHERE: &str = "VSphere";
