//! MachineSets whose Machines become Windows nodes.
//!
//! [`generate`] makes one from [`MachineSetOptions`] and, optionally, a [`Worker`]: an existing MachineSet of the
//! same cluster, whose zone, networks and credentials it copies. [`inspect`] reports problems that keep the
//! Machines of a MachineSet from becoming Windows nodes.
//!
//! ```
//! use wmco_core::machine_set::{MachineSetOptions, Platform, generate, inspect};
//!
//! let options = MachineSetOptions {
//!     infrastructure: Some("prod-x7k2p".into()),
//!     region: Some("eu-central-1".into()),
//!     zone: Some("eu-central-1a".into()),
//!     image: Some("ami-0123456789abcdef0".into()),
//!     ..MachineSetOptions::default()
//! };
//! let generated = generate(Some(Platform::Aws), &options, None)?;
//! let name = &generated.machine_set["metadata"]["name"];
//! assert_eq!(name, "prod-x7k2p-windows-worker-eu-central-1a");
//! assert!(inspect(&generated.machine_set).is_some_and(|found| found.problems.is_empty()));
//!
//! let error = generate(Some(Platform::Azure), &options, None).unwrap_err();
//! assert!(error.to_string().contains("ami-0123456789abcdef0"), "not an image of Azure");
//! Ok::<(), wmco_core::machine_set::MachineSetError>(())
//! ```
//!
//! # Source
//! Forms follow the samples in OpenShift's documentation ("Creating Windows machine sets"), names and labels follow
//! `docs/contract/machines.md`, MACH1, MACH6 and MACH17 to MACH19. They were not tested with a real cloud.
//!
//! # Guarantees
//! - Pure: equal input, equal output.
//! - A result of [`generate`] has no problem that [`inspect`] knows.
//! - Any JSON is accepted: a value of an unexpected type is reported or ignored, and never causes a panic.

mod architecture;
mod draft;
mod error;
mod generate;
mod hints;
mod infrastructure;
mod inspect;
mod name;
mod options;
mod platform;
mod provider;
mod spelling;
mod static_addresses;
mod worker;

pub use error::MachineSetError;
pub use generate::{Generated, generate};
pub use infrastructure::Infrastructure;
pub use inspect::{Finding, Inspection, inspect, inspect_among};
pub use name::{NameError, check_name};
pub use options::{MachineSetOptions, Setting};
pub use platform::{Platform, UnknownPlatform};
pub use worker::{Worker, WorkerError};
