//! The provider specification of a machine, for each cloud.
//!
//! One file per platform, each with two functions: `usual` is the specification of the samples in OpenShift's
//! documentation, for an infrastructure name, and `for_windows` adapts a specification, usual or copied from Linux
//! workers, to Windows.

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

/// The usual specification, without the values that only users know.
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

/// Applies the options and the settings that Windows needs.
///
/// # Errors
/// The image is not an image of this platform.
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

/// The error for `image`.
fn no_image(platform: Platform, image: String, expected: &'static str) -> MachineSetError {
    MachineSetError::Image { image, platform, expected }
}
