//! Why no MachineSet can be made.

use super::inspect::Finding;
use super::name::NameError;
use super::options::Setting;
use super::platform::Platform;

/// Why [`generate`](super::generate) returns no MachineSet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineSetError {
    /// Not an image of the platform.
    #[error("{image:?} is no image of {platform}, give {expected} with --image")]
    Image {
        /// The image.
        image: String,
        /// The platform.
        platform: Platform,
        /// The form of the platform's images.
        expected: &'static str,
    },
    /// Settings are missing and have no default.
    #[error("give {} too, for {platform}", joined(.settings))]
    Missing {
        /// The missing settings.
        settings: Vec<Setting>,
        /// The platform.
        platform: Platform,
    },
    /// The name is invalid for a MachineSet.
    #[error("choose another {setting}")]
    Name {
        /// [`Setting::Name`] or [`Setting::Infrastructure`].
        setting: Setting,
        /// Why the name is invalid.
        source: NameError,
    },
    /// The platform is unknown.
    #[error("give --platform, or a MachineSet of the cluster with -f")]
    NoPlatform,
    /// The existing MachineSet is for another platform than was asked for.
    #[error("MachineSet {worker:?} is for {platform}, not for {asked}; leave --platform out")]
    OtherPlatform {
        /// The name of the MachineSet.
        worker: String,
        /// Its platform.
        platform: Platform,
        /// The requested platform.
        asked: Platform,
    },
    /// Its Machines would not become Windows nodes.
    #[error("no node would come of it: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused {
        /// All reasons.
        problems: Vec<Finding>,
    },
    /// The platform has no such setting.
    #[error("leave {} out, {platform} has no use for it", joined(.settings))]
    Unused {
        /// The unused settings.
        settings: Vec<Setting>,
        /// The platform.
        platform: Platform,
    },
}

fn joined(settings: &[Setting]) -> String {
    settings.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
