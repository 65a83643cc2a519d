//! The Node's condition that tells of a host which shows another key than the pinned one.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::NodeFacts;
use crate::names::{self, events};

/// The condition as it has to become, or nothing if it says already what is so.
///
/// `mismatch` is what people have to know: both fingerprints, and how to accept the new key; none
/// when the host showed the pinned key. A Node that never had a mismatch gets no condition.
pub fn host_key_condition(
    node: &NodeFacts,
    mismatch: Option<&str>,
    now: Timestamp,
) -> Option<NodeCondition> {
    let told = node.host_key_mismatch.as_deref();
    if told == mismatch {
        return None;
    }
    let (status, reason) = match mismatch {
        Some(_) => ("True", events::HOST_KEY_MISMATCH),
        None => ("False", names::HOST_KEY_AS_PINNED),
    };
    Some(NodeCondition {
        type_: names::HOST_KEY_CONDITION.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(mismatch.unwrap_or("the host shows the pinned host key").to_owned()),
        last_heartbeat_time: Some(Time(now)),
        // Another text for the same state is no transition.
        last_transition_time: (told.is_some() != mismatch.is_some()).then_some(Time(now)),
    })
}

#[cfg(test)]
mod tests {
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
