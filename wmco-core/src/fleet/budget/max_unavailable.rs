//! The setting for the number of nodes that may be disrupted at the same time.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::facts::NodeFacts;
use crate::limits;
use crate::names;

/// Most nodes that may be disrupted at the same time: a number, or a percentage.
///
/// ```
/// use wmco_core::facts::NodeFacts;
/// use wmco_core::fleet::MaxUnavailable;
/// use wmco_core::names::{BYOH_LABEL, DESIRED_VERSION_ANNOTATION, OS_LABEL};
///
/// let mut node = NodeFacts::default();
/// node.labels.insert(BYOH_LABEL.into(), "true".into());
/// node.labels.insert(OS_LABEL.into(), "windows".into());
/// node.annotations.insert(DESIRED_VERSION_ANNOTATION.into(), "1.0.0".into());
/// let nodes = vec![node; 10];
/// assert_eq!("3".parse::<MaxUnavailable>()?.of(&nodes), 3);
/// assert_eq!("25%".parse::<MaxUnavailable>()?.of(&nodes), 2);
/// assert_eq!("25%".parse::<MaxUnavailable>()?.of(&nodes[..3]), 1, "else nothing could be upgraded");
/// Ok::<(), wmco_core::fleet::NoMaxUnavailable>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MaxUnavailable(Written);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Written {
    Nodes(NonZeroUsize),
    Percent(usize),
}

/// Error of a text that is neither a number of nodes nor a percentage.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("write a number of nodes from 1 on, or a percentage from 1% to 100%")]
pub struct NoMaxUnavailable;

impl MaxUnavailable {
    /// Returns the number for a cluster with these Nodes. A percentage is of the Nodes that the operator has
    /// configured, whatever version they have, rounded down, but at least one.
    ///
    /// Source: `maxUnavailable` of MachineConfigPools, "Machine Config Pool" in the documentation of OpenShift.
    pub fn of(self, nodes: &[NodeFacts]) -> usize {
        match self.0 {
            Written::Nodes(number) => number.get(),
            Written::Percent(percent) => {
                // This annotation stays during an upgrade, unlike the one with the configured version.
                let mark = names::DESIRED_VERSION_ANNOTATION;
                let ours = nodes.iter().filter(|node| {
                    let is_ours = node.is_byoh() || node.belongs_to_machine();
                    is_ours
                        && node.is_windows()
                        && !node.is_deleted
                        && node.annotations.contains_key(mark)
                });
                (ours.count().saturating_mul(percent) / 100).max(1)
            }
        }
    }
}

impl Default for MaxUnavailable {
    /// [`limits::DISRUPTION_BUDGET`].
    fn default() -> Self {
        Self(Written::Nodes(limits::DISRUPTION_BUDGET))
    }
}

impl FromStr for MaxUnavailable {
    type Err = NoMaxUnavailable;

    fn from_str(text: &str) -> Result<Self, NoMaxUnavailable> {
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<NonZeroUsize>().ok().filter(|_| digits).ok_or(NoMaxUnavailable)
        };
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = number(percent)?.get();
                if percent > 100 {
                    Err(NoMaxUnavailable)
                } else {
                    Ok(Self(Written::Percent(percent)))
                }
            }
            None => Ok(Self(Written::Nodes(number(text)?))),
        }
    }
}

impl fmt::Display for MaxUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Written::Nodes(number) => fmt::Display::fmt(&number, f),
            Written::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        for text in ["1", "2", "500", "1%", "33%", "100%"] {
            assert_eq!(text.parse::<MaxUnavailable>().unwrap().to_string(), text);
        }
        for text in ["", "0", "0%", "101%", "-1", "+1", "1.5", "%", "10 %", " 1", "one"] {
            assert_eq!(text.parse::<MaxUnavailable>(), Err(NoMaxUnavailable), "{text}");
        }
        assert_eq!(MaxUnavailable::default().to_string(), "1");
    }

    #[test]
    fn a_percentage_is_of_nodes_that_count_and_never_none() {
        let of = |text: &str, all: usize, of_others: usize| {
            let mut node = NodeFacts::default();
            node.labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
            node.labels.insert(names::OS_LABEL.into(), names::OS_WINDOWS.into());
            node.annotations.insert(names::DESIRED_VERSION_ANNOTATION.into(), "1".into());
            let mut nodes = vec![node; all];
            let others: [fn(&mut NodeFacts); 4] = [
                |node| node.is_deleted = true,
                |node| node.labels.clear(),
                |node| drop(node.labels.insert(names::OS_LABEL.into(), "linux".into())),
                |node| node.annotations.clear(),
            ];
            for (node, change) in nodes.iter_mut().take(of_others).zip(others.iter().cycle()) {
                change(node);
            }
            text.parse::<MaxUnavailable>().unwrap().of(&nodes)
        };
        assert_eq!(
            [of("50%", 7, 0), of("50%", 7, 3), of("50%", 7, 7), of("50%", 0, 0)],
            [3, 2, 1, 1]
        );
        assert_eq!([of("100%", 7, 0), of("1%", 99, 0), of("1%", 200, 0)], [7, 1, 2]);
        assert_eq!(
            [1, 2, 3, 4].map(|others| of("100%", 7, others)),
            [6, 5, 4, 3],
            "each kind of others"
        );
        assert_eq!([of("9", 3, 0), of("1", 0, 0)], [9, 1], "a number is a number");
    }
}
