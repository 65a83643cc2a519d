//! Facts about Nodes, pods, Machines and the network, reduced to the fields that decisions need.

mod drain;
mod machine;
mod network;
mod node;
mod pod;
mod user_data;

pub use drain::{DrainNotice, DrainStage, GivenUp};
#[cfg(feature = "render")]
pub(crate) use machine::{IGNORED_MISTAKE, MACHINE_LABELS, os_mistake};
pub use machine::{MachineAddress, MachineFacts, MachineSetFacts, Reference};
pub use network::{Dns, Facts};
pub use node::NodeFacts;
pub use pod::PodFacts;
pub use user_data::UserDataRef;
