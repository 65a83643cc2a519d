//! What each cloud is told about a machine.
//!
//! One file per platform, each with two functions: `usual` is the specification of the samples in
//! OpenShift's documentation, for an infrastructure name, and `for_windows` makes one, usual or taken
//! from Linux workers, fit for Windows.

mod aws;
mod azure;
mod gcp;
mod nutanix;
mod vsphere;

use serde_json::Value;

use super::draft::Draft;
use super::error::MachineSetError;
use super::options::MachineSetOptions;
use super::platform::Platform;

/// The usual specification; it lacks what only people know.
pub(super) fn usual(
    platform: Platform,
    infrastructure: &str,
    options: &MachineSetOptions,
) -> Value {
    match platform {
        Platform::Aws => aws::usual(infrastructure, options),
        Platform::Azure => azure::usual(infrastructure),
        Platform::Gcp => gcp::usual(infrastructure, options),
        Platform::Nutanix => nutanix::usual(),
        Platform::VSphere => vsphere::usual(),
    }
}

/// Brings in what was asked for and what Windows needs.
///
/// # Errors
/// The image is none of this platform.
pub(super) fn for_windows(
    platform: Platform,
    draft: &mut Draft<'_>,
) -> Result<(), MachineSetError> {
    draft.user_data(platform);
    match platform {
        Platform::Aws => aws::for_windows(draft)?,
        Platform::Azure => azure::for_windows(draft)?,
        Platform::Gcp => gcp::for_windows(draft),
        Platform::Nutanix => nutanix::for_windows(draft),
        Platform::VSphere => vsphere::for_windows(draft),
    }
    Ok(())
}

/// The refusal of `image`.
fn no_image(platform: Platform, image: String, expected: &'static str) -> MachineSetError {
    MachineSetError::Image { image, platform, expected }
}
