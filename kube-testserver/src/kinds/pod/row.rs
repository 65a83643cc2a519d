//! The row of a Pod.

use jiff::Timestamp;
use serde_json::Value;

use super::super::NONE;
use super::super::ages::{age, human};
use super::super::values::{list, number, or, size, text};
use crate::meta;

/// The cells of a Pod.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let total = size(object, "/spec/containers");
    let mut ready = 0;
    let mut restarts = 0;
    let mut last_restart = None;
    let phase = text(object, "/status/phase");
    let mut reason = or(text(object, "/status/reason"), phase).to_owned();
    let mut running = false;
    for container in list(object, "/status/containerStatuses").iter().rev() {
        restarts += number(container, "/restartCount");
        let ended: Option<Timestamp> =
            text(container, "/lastState/terminated/finishedAt").parse().ok();
        last_restart = last_restart.max(ended);
        let waiting = text(container, "/state/waiting/reason");
        let terminated = text(container, "/state/terminated/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if !terminated.is_empty() {
            terminated.clone_into(&mut reason);
        } else if container.pointer("/state/terminated").is_some() {
            let code = number(container, "/state/terminated/exitCode");
            let signal = number(container, "/state/terminated/signal");
            reason =
                if signal == 0 { format!("ExitCode:{code}") } else { format!("Signal:{signal}") };
        } else if container.get("ready") == Some(&Value::Bool(true))
            && container.pointer("/state/running").is_some()
        {
            running = true;
            ready += 1;
        }
    }
    if reason == "Completed" && running {
        "Running".clone_into(&mut reason);
    }
    if meta::is_deleting(object) {
        let lost = text(object, "/status/reason") == "NodeLost";
        let ended = matches!(phase, "Failed" | "Succeeded");
        if lost {
            "Unknown".clone_into(&mut reason);
        } else if !ended {
            "Terminating".clone_into(&mut reason);
        }
    }
    let gates = size(object, "/spec/readinessGates");
    let passed = list(object, "/spec/readinessGates").iter().filter(|gate| {
        list(object, "/status/conditions").iter().any(|condition| {
            text(condition, "/type") == text(gate, "/conditionType")
                && text(condition, "/status") == "True"
        })
    });
    let gates = if gates == 0 { NONE.to_owned() } else { format!("{}/{gates}", passed.count()) };
    vec![
        meta::name(object).into(),
        format!("{ready}/{total}").into(),
        reason.into(),
        restarted(restarts, last_restart, now).into(),
        age(object, now),
        or(text(object, "/status/podIP"), NONE).into(),
        or(text(object, "/spec/nodeName"), NONE).into(),
        or(text(object, "/status/nominatedNodeName"), NONE).into(),
        gates.into(),
    ]
}

/// `2`, or `2 (5m ago)` if the time of the last restart is known.
fn restarted(count: i64, last: Option<Timestamp>, now: Timestamp) -> String {
    match last {
        Some(last) if count > 0 => {
            format!("{count} ({} ago)", human(now.as_second() - last.as_second()))
        }
        _ => count.to_string(),
    }
}
