//! Who holds the slots of the disruption budget.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::names;

/// Most names that are shown.
const SHOWN: usize = 5;

/// How a Node holds a slot of the disruption budget.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    /// It may be taken out of service, and has no label yet.
    Granted,
    /// It has the label, and a worker of the operator sees to its host.
    Worked,
    /// It has the label, and is left alone.
    Left,
}

impl Hold {
    /// How these nodes hold slots, and what frees them.
    fn told(self, nodes: &[&str]) -> String {
        let (noun, holds, its) = match nodes {
            [_] => ("node", "holds one", "its"),
            _ => ("nodes", "hold slots", "their"),
        };
        let shown = nodes.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more = match nodes.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let meanwhile = match self {
            Self::Granted => {
                return format!(
                    "{noun} {shown}{more} {holds} and is about to go out of service: see what is told of it"
                );
            }
            Self::Worked => format!(" until {its} host is done"),
            Self::Left => ", and nothing is done there now".to_owned(),
        };
        format!(
            "{noun} {shown}{more} {holds} by {its} label {}{meanwhile}: see what is told of it, and if the host is gone \
             delete the node, or take the label off",
            names::UPGRADING_LABEL
        )
    }
}

/// Displays who holds the slots, how, and what frees them.
pub(in crate::fleet) struct Holders<'a>(pub(in crate::fleet) &'a BTreeMap<String, Hold>);

impl fmt::Display for Holders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = [Hold::Left, Hold::Worked, Hold::Granted].map(|hold| {
            let nodes = self.0.iter().filter(|(_, it)| **it == hold).map(|(node, _)| node.as_str());
            let nodes: Vec<&str> = nodes.collect();
            (!nodes.is_empty()).then(|| hold.told(&nodes))
        });
        let told: Vec<String> = told.into_iter().flatten().collect();
        // Machines that are replaced have notices of their own.
        if told.is_empty() {
            return f.write_str("see which machines are replaced");
        }
        f.write_str(&told.join("; "))
    }
}
