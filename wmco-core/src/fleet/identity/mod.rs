//! Who is who, before anything is decided.
//!
//! | stage | says | by |
//! | --- | --- | --- |
//! | [`Hosts`] | which entries and records are one host | [what they have in common](same_host) |
//! | [`MachineIndex`] | which Machine has an address or a Node | the Machine API |
//! | [`Evidence`] | what each Node claims | its addresses and annotations |
//! | [`Matching`] | which Node is whose | the list and the records first, claims last |

mod by_address;
mod by_name;
mod claimed;
mod evidence;
mod host;
mod host_names;
mod hosts;
mod machine_index;
mod matching;
mod node;
mod same_host;
mod unlisted;

pub(super) use claimed::ClaimedEntries;
use evidence::Evidence;
pub(super) use host::Host;
pub use host_names::host_names;
pub(super) use hosts::Hosts;
pub(super) use machine_index::MachineIndex;
use matching::Matching;
pub(super) use matching::NodeOfHost;
pub(super) use node::{Kind, Node, shows};
pub(super) use unlisted::Unlisted;

use crate::facts::NodeFacts;

/// What all stages say of a pass with a list of entries.
pub(super) struct Identities<'a, 'b> {
    pub(super) hosts: &'b Hosts<'a>,
    pub(super) machines: &'b MachineIndex<'a>,
    pub(super) evidence: Evidence<'a>,
    pub(super) matching: Matching<'a>,
}

impl<'a, 'b> Identities<'a, 'b> {
    pub(super) fn of(
        hosts: &'b Hosts<'a>,
        machines: &'b MachineIndex<'a>,
        nodes: &'a [NodeFacts],
    ) -> Self {
        let evidence = Evidence::of(nodes, hosts, machines);
        let matching = Matching::of(hosts, &evidence);
        Self { hosts, machines, evidence, matching }
    }
}
