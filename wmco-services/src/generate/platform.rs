//! Selects the script that prints a host's name.

use wmco_core::names::platforms;

use crate::scripts::{AWS_HOST_NAME, FULL_HOST_NAME};

/// Prints the host name under which GCP knows the machine, truncated to the length that Windows allows.
const GCP_HOST_NAME: &str = r"C:\Temp\gcp-get-hostname.ps1";

/// Returns the script that prints a host's name on its platform; `None` where it equals the name in Windows.
///
/// Source: `docs/contract/services.md`, SVC44.
pub(super) fn host_name(platform: &str) -> Option<&'static str> {
    match platform {
        platforms::AWS => Some(AWS_HOST_NAME),
        platforms::GCP => Some(GCP_HOST_NAME),
        platforms::VSPHERE => Some(FULL_HOST_NAME),
        _ => None,
    }
}
