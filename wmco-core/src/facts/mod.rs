//! What is known of Nodes, pods and the network, cut down to what decisions need.

mod drain;
mod network;
mod node;
mod pod;

pub use drain::{DrainNotice, DrainStage, GivenUp};
pub use network::{Dns, Facts};
pub use node::NodeFacts;
pub use pod::PodFacts;
