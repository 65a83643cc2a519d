//! Which instances work, and which Machines of a MachineSet.

use std::collections::BTreeMap;

use crate::facts::NodeFacts;
use crate::fleet::{Assignment, Because, Desired, Memory, Observed};
use crate::host_record::MachinesThen;
use crate::machines::{Machine, Machines, Unfit};

/// All that is known when disruptions are decided, with the health of the Machines.
pub(in crate::fleet) struct Health<'a> {
    pub(super) desired: Desired<'a>,
    pub(super) observed: Observed<'a>,
    pub(in crate::fleet) memory: &'a Memory,
    pub(in crate::fleet) machines: &'a Machines,
    /// Numbers of assignments by the Machine's name.
    numbers: BTreeMap<&'a str, usize>,
}

impl<'a> Health<'a> {
    pub(in crate::fleet) fn of(
        desired: &Desired<'a>,
        observed: &Observed<'a>,
        memory: &'a Memory,
        instances: &[Assignment<'a>],
    ) -> Self {
        let numbers = instances.iter().enumerate().filter_map(|(number, assignment)| {
            let machine = desired.machines.with_key(&assignment.address)?;
            Some((machine.facts.name.as_str(), number))
        });
        Self {
            desired: *desired,
            observed: *observed,
            memory,
            machines: desired.machines,
            numbers: numbers.collect(),
        }
    }

    pub(super) fn assignment<'b>(
        &self,
        machine: &Machine,
        instances: &'b [Assignment<'a>],
    ) -> Option<&'b Assignment<'a>> {
        instances.get(*self.numbers.get(machine.facts.name.as_str())?)
    }

    /// Whether an instance is configured with the operator's version.
    pub(super) fn is_healthy(&self, assignment: &Assignment<'_>) -> bool {
        let version = assignment.node.and_then(NodeFacts::version);
        is_configured(assignment) && version == Some(self.desired.version)
    }

    /// The MachineSet of an instance's Machine.
    pub(in crate::fleet) fn set_of(&self, assignment: &Assignment<'_>) -> Option<&'a str> {
        let owner = self.machines.with_key(&assignment.address)?.facts.machine_set.as_ref()?;
        Some(owner.name.as_str())
    }

    /// The Machines of a MachineSet that are not being deleted.
    pub(super) fn of_set(&self, set: &str) -> impl Iterator<Item = &'a Machine> {
        let is_of = move |machine: &&Machine| {
            let owner = machine.facts.machine_set.as_ref();
            owner.is_some_and(|owner| owner.name == set) && !machine.facts.is_deleted
        };
        self.machines.iter().filter(is_of)
    }

    /// The Machines of a MachineSet now; `None` if it is not known of all when they were created.
    pub(super) fn machines_of(&self, set: &str) -> Option<MachinesThen> {
        let created: Option<Vec<_>> = self.of_set(set).map(|it| it.facts.created).collect();
        let created = created?;
        Some(MachinesThen { count: created.len(), newest: *created.iter().max()? })
    }

    /// Whether a Machine works. One with the ignore label counts as working: people answer for it.
    pub(super) fn is_working(&self, machine: &Machine, instances: &[Assignment<'a>]) -> bool {
        machine.instance == Err(Unfit::Ignored)
            || self.assignment(machine, instances).is_some_and(works)
    }

    /// Whether as many Machines of a MachineSet work as when it had `of`, and no more than it is to have now: one that
    /// cannot grow owes nobody a slot. A deleted MachineSet counts as complete.
    ///
    /// Versions do not count: upgrades take slots of their own.
    pub(super) fn is_whole(
        &self,
        set: &str,
        of: Option<MachinesThen>,
        instances: &[Assignment<'a>],
    ) -> bool {
        let Some(facts) = self.machines.set(set).filter(|facts| !facts.is_deleted) else {
            return true;
        };
        let work = self.of_set(set).filter(|machine| self.is_working(machine, instances));
        work.count() >= of.map_or(facts.replicas, |of| of.count.min(facts.replicas))
    }
}

/// Whether an instance is a ready node with any configured version. Nobody knows whose a Node is that others claim as
/// well.
fn is_configured(assignment: &Assignment<'_>) -> bool {
    let is_node = |node: &NodeFacts| node.ready && node.version().is_some();
    let is_own = !matches!(assignment.because, Because::Unfit(_) | Because::NodeShared { .. });
    is_own && assignment.node.is_some_and(is_node)
}

/// Whether an instance works: it is configured, and the operator has not cordoned it, as it has one that gets its version
/// until it was looked at once more.
pub(super) fn works(assignment: &Assignment<'_>) -> bool {
    is_configured(assignment) && !assignment.node.is_some_and(NodeFacts::is_cordoned_by_us)
}
