//! Checks that no other MachineSet selects the same Machines.

use super::{Inspection, Set, labels};
use crate::names::machine_api::MACHINE_SET_LABEL;

/// `all` may hold the MachineSet itself.
pub(super) fn check<'a>(set: Set<'_>, all: impl Iterator<Item = Set<'a>>, found: &mut Inspection) {
    let own = set.text("/metadata/name");
    for other in all.filter(|other| other.text("/metadata/name") != own) {
        let name = other.text("/metadata/name").escape_debug();
        if labels::selects(set, other) {
            let text = format!(
                "also finds the Machines of MachineSet {name}, and would delete what is too many; add \
                 {MACHINE_SET_LABEL} with the name of this one, as in the template"
            );
            found.problem("spec.selector", text);
        }
        if labels::selects(other, set) {
            let text = format!(
                "are those that MachineSet {name} selects, which would delete what is too many; correct the \
                 selector there"
            );
            found.problem("spec.template.metadata.labels", text);
        }
    }
}
