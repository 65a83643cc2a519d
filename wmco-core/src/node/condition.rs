//! Conditions of ours on a Node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A reason in one word, and a message for people.
pub(super) type Words<'a> = (&'a str, &'a str);

/// The condition as it has to become, or nothing if it says already what is so. A Node that never had
/// the problem gets no condition.
///
/// `told` is the message while the condition is `True`, `problem` what is wrong, and `fine` stands
/// there when nothing is.
pub(super) fn condition(
    type_: &str,
    told: Option<&str>,
    problem: Option<Words<'_>>,
    fine: Words<'_>,
    now: Timestamp,
) -> Option<NodeCondition> {
    if told == problem.map(|(_, message)| message) {
        return None;
    }
    let (reason, message) = problem.unwrap_or(fine);
    Some(NodeCondition {
        type_: type_.to_owned(),
        status: if problem.is_some() { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(now)),
        // Another text for the same state is no transition.
        last_transition_time: (told.is_some() != problem.is_some()).then_some(Time(now)),
    })
}
