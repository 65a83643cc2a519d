//! The operator's conditions on a Node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A reason in one word, and a message.
pub(super) type Words<'a> = (&'a str, &'a str);

/// Returns the condition to write; `None` if the existing condition is right. A Node that never had the problem
/// gets no condition.
///
/// `told` is the existing message if the condition is `True`, `problem` the present problem, and `fine` the message
/// without a problem.
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
        // Another message for the same status is no transition.
        last_transition_time: (told.is_some() != problem.is_some()).then_some(Time(now)),
    })
}
