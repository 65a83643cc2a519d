//! Checks the labels of the Machines, and the selector for them.

use serde_json::Value;

use super::super::name::check_name;
use super::{Inspection, Set, placeholders};
/// Path of its Machines' labels.
pub(super) use crate::facts::MACHINE_LABELS as MACHINES;
use crate::facts::{IGNORED_MISTAKE, os_mistake};
use crate::names::machine_api::{
    CLUSTER_LABEL, MACHINE_ROLE_LABEL, MACHINE_ROLE_WORKER, MACHINE_TYPE_LABEL,
};
use crate::names::{IGNORE_LABEL, MACHINE_OS_LABEL, OS_ID_WINDOWS, TRUE, WORKER_LABEL};

/// Path of the MachineSet's own labels.
pub(super) const OWN: &str = "/metadata/labels";

/// Path of its nodes' labels.
pub(super) const NODES: &str = "/spec/template/spec/metadata/labels";

/// Path of the labels by which it selects its Machines.
pub(super) const SELECTED: &str = "/spec/selector/matchLabels";

pub(super) fn check(set: Set<'_>, found: &mut Inspection) {
    system(set, found);
    if set.label(MACHINES, IGNORE_LABEL).and_then(Value::as_str) == Some(TRUE) {
        found.problem(field(MACHINES, IGNORE_LABEL), IGNORED_MISTAKE);
    }
    match set.label(MACHINES, CLUSTER_LABEL).and_then(Value::as_str) {
        None | Some("") => {
            let text = "is missing, write the cluster's infrastructure name";
            found.warning(field(MACHINES, CLUSTER_LABEL), text);
        }
        Some(name) if placeholders::blank(name).is_none() => {
            if let Err(error) = check_name(None, name) {
                let text = format!("is no infrastructure name of a cluster: {error}");
                found.problem(field(MACHINES, CLUSTER_LABEL), text);
            }
        }
        Some(_) => {}
    }
    for label in [MACHINE_ROLE_LABEL, MACHINE_TYPE_LABEL] {
        role(set, label, found);
    }
    if set.label(NODES, WORKER_LABEL).is_none() {
        let text = "is missing, so the nodes have no role; write an empty value";
        found.warning(field(NODES, WORKER_LABEL), text);
    }
    selector(set, found);
}

/// Checks the label by which the operator finds its Machines.
fn system(set: Set<'_>, found: &mut Inspection) {
    let value = set.label(MACHINES, MACHINE_OS_LABEL);
    let text = match value {
        Some(Value::String(os)) => os_mistake(Some(os), ""),
        Some(_) => Some(format!("is no text, write {OS_ID_WINDOWS:?}")),
        None => {
            let elsewhere =
                [OWN, NODES].into_iter().find(|at| set.label(at, MACHINE_OS_LABEL).is_some());
            let moved = elsewhere.map(|at| format!(", it stands in {}", dotted(at)));
            os_mistake(None, &moved.unwrap_or_default())
        }
    };
    let Some(text) = text else { return };
    found.problem(field(MACHINES, MACHINE_OS_LABEL), text);
}

/// Checks a label by which others choose among Machines: health checks take workers, and the operator of the control
/// plane takes masters.
fn role(set: Set<'_>, label: &str, found: &mut Inspection) {
    /// Role of the control plane's Machines.
    const MASTER: &str = "master";
    match set.label(MACHINES, label).and_then(Value::as_str) {
        Some(MASTER) => {
            let text = format!(
                "is {MASTER:?}, so the Machines count as those of the control plane; write {MACHINE_ROLE_WORKER:?}"
            );
            found.problem(field(MACHINES, label), text);
        }
        None | Some("") => {
            let text = format!(
                "is missing, so health checks and lists of workers pass the Machines over; write \
                 {MACHINE_ROLE_WORKER:?}"
            );
            found.warning(field(MACHINES, label), text);
        }
        Some(_) => {}
    }
}

fn selector(set: Set<'_>, found: &mut Inspection) {
    let selected = set.0.pointer(SELECTED).and_then(Value::as_object);
    let expressions = set.0.pointer("/spec/selector/matchExpressions").and_then(Value::as_array);
    if selected.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty) {
        let text = "selects nothing, write labels of the template";
        found.problem(dotted(SELECTED), text);
    }
    for (label, value) in selected.into_iter().flatten() {
        let of_machines = set.label(MACHINES, label);
        if of_machines != Some(value) {
            let there = of_machines.map_or_else(|| "nothing".to_owned(), shown);
            let value = shown(value);
            let text = format!("is {value}, and the template has {there}; write the same in both");
            found.problem(field(SELECTED, label), text);
        }
    }
    for (expression, index) in expressions.into_iter().flatten().zip(0..) {
        if !matches(set, expression) {
            let at = format!("spec.selector.matchExpressions[{index}]");
            found.problem(at, "does not select the labels of the template, change one of both");
        }
    }
}

/// Whether `set` selects the Machines of `other`. One that selects nothing is told on its own.
pub(super) fn selects(set: Set<'_>, other: Set<'_>) -> bool {
    let selected = set.0.pointer(SELECTED).and_then(Value::as_object);
    let expressions = set.0.pointer("/spec/selector/matchExpressions").and_then(Value::as_array);
    let is_any = selected.is_some_and(|labels| !labels.is_empty())
        || expressions.is_some_and(|all| !all.is_empty());
    let has = |(label, value): (&String, &Value)| other.label(MACHINES, label) == Some(value);
    is_any
        && selected.into_iter().flatten().all(has)
        && expressions.into_iter().flatten().all(|expression| matches(other, expression))
}

/// Whether the labels of the Machines match one requirement. Source: Kubernetes, "Labels and selectors".
fn matches(set: Set<'_>, expression: &Value) -> bool {
    let text = |member| expression.get(member).and_then(Value::as_str).unwrap_or_default();
    let label = set.label(MACHINES, text("key"));
    let values = expression.get("values").and_then(Value::as_array);
    let listed = || label.is_some_and(|label| values.is_some_and(|values| values.contains(label)));
    match text("operator") {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

/// The field of `label` in the labels at `at`.
fn field(at: &str, label: &str) -> String {
    format!("{}[{}]", dotted(at), label.escape_debug())
}

/// The value of a label for messages.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| "no text".to_owned(), |text| format!("{text:?}"))
}

/// Formats a JSON pointer as a field path.
fn dotted(at: &str) -> String {
    at.trim_start_matches('/').replace('/', ".")
}
