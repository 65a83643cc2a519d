//! Why there is no MachineSet.

use super::inspect::Finding;
use super::name::NameError;
use super::options::Setting;
use super::platform::Platform;

/// Why [`generate`](super::generate) gives no MachineSet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineSetError {
    /// The platform has no such images.
    #[error("{image:?} is no image of {platform}, give {expected} with --image")]
    Image {
        /// The image.
        image: String,
        /// The platform.
        platform: Platform,
        /// What an image is called there.
        expected: &'static str,
    },
    /// Something can be had nowhere.
    #[error("give {} too, for {platform}", joined(.settings))]
    Missing {
        /// What is missing.
        settings: Vec<Setting>,
        /// The platform.
        platform: Platform,
    },
    /// The MachineSet cannot have the name.
    #[error("choose another {setting}")]
    Name {
        /// [`Setting::Name`] or [`Setting::Infrastructure`].
        setting: Setting,
        /// What is wrong with it.
        source: NameError,
    },
    /// Nothing says where the machines are to be.
    #[error("give --platform, or a MachineSet of the cluster with -f")]
    NoPlatform,
    /// The existing MachineSet is for another platform than was asked for.
    #[error("MachineSet {worker:?} is for {platform}, not for {asked}; leave --platform out")]
    OtherPlatform {
        /// The name of the MachineSet.
        worker: String,
        /// Its platform.
        platform: Platform,
        /// The platform that was asked for.
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
        /// What is of no use.
        settings: Vec<Setting>,
        /// The platform.
        platform: Platform,
    },
}

fn joined(settings: &[Setting]) -> String {
    settings.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
