//! The Node's condition about a host that shows another key than the pinned one.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;

use super::condition::condition;
use crate::facts::NodeFacts;
use crate::names::{self, events};

/// Returns the condition to write; `None` if the existing condition is right.
///
/// `mismatch` is the message with both fingerprints and how to accept the new key; `None` if the host showed the
/// pinned key. A Node that never had a mismatch gets no condition.
pub fn host_key_condition(
    node: &NodeFacts,
    mismatch: Option<&str>,
    now: Timestamp,
) -> Option<NodeCondition> {
    let problem = mismatch.map(|message| (events::HOST_KEY_MISMATCH, message));
    let fine = (names::HOST_KEY_AS_PINNED, "the host shows the pinned host key");
    condition(names::HOST_KEY_CONDITION, node.host_key_mismatch.as_deref(), problem, fine, now)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn told(message: Option<&str>) -> NodeFacts {
        NodeFacts { host_key_mismatch: message.map(Into::into), ..NodeFacts::default() }
    }

    #[test]
    fn what_is_told_is_not_told_again() {
        assert_eq!(host_key_condition(&told(None), None, NOW), None);
        assert_eq!(host_key_condition(&told(Some("a, not b")), Some("a, not b"), NOW), None);
    }

    #[test]
    fn a_mismatch_is_a_transition_and_another_one_is_not() {
        let first = host_key_condition(&told(None), Some("a, not b"), NOW).unwrap();
        assert_eq!((first.status.as_str(), first.message.as_deref()), ("True", Some("a, not b")));
        assert_eq!(first.last_transition_time, Some(Time(NOW)));
        let next = host_key_condition(&told(Some("a, not b")), Some("a, not c"), NOW).unwrap();
        assert_eq!((next.status.as_str(), next.last_transition_time), ("True", None));
    }

    #[test]
    fn the_pinned_key_takes_it_back() {
        let back = host_key_condition(&told(Some("a, not b")), None, NOW).unwrap();
        assert_eq!((back.status.as_str(), back.reason.as_deref()), ("False", Some("AsPinned")));
        assert!(back.last_transition_time.is_some());
    }
}
