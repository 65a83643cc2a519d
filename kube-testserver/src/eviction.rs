//! The `eviction` sub-resource of Pods: a deletion that PodDisruptionBudgets may refuse.
//!
//! No controller computes the status of budgets: it is as clients write it. Source: Kubernetes documentation,
//! "API-initiated Eviction".

use std::sync::Arc;

use serde_json::{Value, json};

use super::admission;
use super::call::{Call, Operation};
use super::error::{ApiError, Result, Subject};
use super::label_selector::selects;
use super::meta;
use super::resources::StorageKey;
use super::state::State;
use super::store::{Store, rfc3339};
use super::write::{self, DeleteOptions};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// Retry delay in seconds while the budget's controller has not observed its latest generation.
const NOT_OBSERVED_S: i64 = 10;
/// Limit of evictions that no controller has confirmed yet.
const MOST_UNCONFIRMED: usize = 2000;

/// Evicts the Pod that `call` names and answers with a Status.
///
/// # Errors
/// 400 for another name in the body, 404 without the Pod, 409 for another uid, 429 if the budget is used up, 500 if
/// more than one budget matches; that of a policy, usually 422, which sees the creation of an Eviction and no deletion
/// of a Pod.
pub(crate) fn evict(
    state: &mut State,
    call: &Call,
    body: &Value,
    options: &DeleteOptions,
) -> Result<Value> {
    let stated = meta::name(body);
    if stated != call.name {
        let why = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(why));
    }
    let place = StorageKey::new("", "pods");
    let pod = state.store.get(&place, &call.namespace, &call.name);
    let pod = Arc::clone(pod.ok_or_else(|| call.not_found())?);
    admission::validate(state, call, Operation::Create, None, Some(body))?;
    write::check_preconditions(call, &pod, options)?;
    let dry_run = options.dry_run || call.options.dry_run;
    let budget = protecting(&state.store, &call.namespace, &pod)?;
    let used = match budget {
        Some(budget) if !may_ignore(&budget, &pod) => {
            Some(spend(&budget, &call.name, &rfc3339(call.now))?)
        }
        _ => None,
    };
    let pod = if dry_run {
        pod
    } else {
        if let Some(budget) = used {
            state.store.put(&StorageKey::new("policy", "poddisruptionbudgets"), budget);
        }
        state.store.put(&place, marked(&pod, &rfc3339(call.now)))
    };
    let pod_call = Call { subresource: String::new(), ..call.clone() };
    let options = DeleteOptions { dry_run, ..options.clone() };
    write::delete_admitted(state, &pod_call, pod, &options);
    Ok(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    }))
}

/// The budget that protects the Pod, if there is one. Pods that are finished, not running yet or being deleted are
/// not protected.
fn protecting(store: &Store, namespace: &str, pod: &Value) -> Result<Option<Arc<Value>>> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    if ["Pending", "Succeeded", "Failed"].contains(&phase) || meta::is_deleting(pod) {
        return Ok(None);
    }
    let matching: Vec<_> = store
        .list(&StorageKey::new("policy", "poddisruptionbudgets"), namespace)
        .filter(|budget| selects(budget.pointer("/spec/selector"), pod))
        .collect();
    match matching.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(Arc::clone(one))),
        _ => Err(ApiError::plain(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
             not support.",
        )),
    }
}

fn count(budget: &Value, member: &str) -> i64 {
    budget.pointer(&format!("/status/{member}")).and_then(Value::as_i64).unwrap_or(0)
}

/// Whether an unready Pod needs no budget: by the budget's policy, or while enough other Pods are healthy.
fn may_ignore(budget: &Value, pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|condition| {
        condition.get("type") == Some(&"Ready".into())
            && condition.get("status") == Some(&"True".into())
    });
    let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str);
    let desired = count(budget, "desiredHealthy");
    let enough = desired > 0 && count(budget, "currentHealthy") >= desired;
    !ready && (policy == Some("AlwaysAllow") || enough)
}

/// The budget with one disruption less.
fn spend(budget: &Value, pod: &str, now: &str) -> Result<Value> {
    let name = meta::name(budget);
    let refuse = |message: String| {
        let cause = json!({"reason": "DisruptionBudget", "message": message});
        ApiError::too_many_requests(REFUSED).with_causes(vec![cause])
    };
    if count(budget, "observedGeneration") < meta::generation(budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        let mut error = refuse(why);
        if let Some(details) = error.details.as_mut().and_then(Value::as_object_mut) {
            details.insert("retryAfterSeconds".to_owned(), NOT_OBSERVED_S.into());
        }
        return Err(error);
    }
    let left = count(budget, "disruptionsAllowed");
    let disrupted = budget.pointer("/status/disruptedPods").cloned().unwrap_or_else(|| json!({}));
    let of = Subject { group: "policy", kind: "poddisruptionbudgets", name };
    if left < 0 {
        return Err(ApiError::forbidden(of, "pdb disruptions allowed is negative"));
    }
    if disrupted.as_object().is_some_and(|pods| pods.len() > MOST_UNCONFIRMED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(of, why));
    }
    if left == 0 {
        let (has, needs) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
        return Err(refuse(if has <= needs {
            format!(
                "The disruption budget {name} needs {needs} healthy pods and has {has} currently"
            )
        } else {
            format!("The disruption budget {name} does not allow evicting pods currently")
        }));
    }
    let mut spent = budget.clone();
    if let Some(status) = spent.get_mut("status").and_then(Value::as_object_mut) {
        let mut disrupted = disrupted;
        if let Some(pods) = disrupted.as_object_mut() {
            pods.insert(pod.to_owned(), now.into());
        }
        status.insert("disruptedPods".to_owned(), disrupted);
        status.insert("disruptionsAllowed".to_owned(), (left - 1).into());
    }
    Ok(spent)
}

/// The Pod with the condition about its disruption.
fn marked(pod: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    if let Some(status) = meta::map_mut(&mut pod, "status") {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            let there = conditions.iter().any(|own| own.get("type") == condition.get("type"));
            if !there {
                conditions.push(condition);
            }
        }
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(allowed: i64) -> Value {
        json!({"metadata": {"name": "b", "generation": 1}, "spec": {}, "status":
            {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1,
                "desiredHealthy": 1}})
    }

    fn running(ready: &str) -> Value {
        json!({"metadata": {"labels": {"app": "x"}}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}]}})
    }

    #[test]
    fn a_disruption_is_taken_off() {
        let spent = spend(&budget(1), "p", "now").unwrap();
        assert_eq!(spent["status"]["disruptionsAllowed"], 0);
        assert_eq!(spent["status"]["disruptedPods"], json!({"p": "now"}));
        let error = spend(&spent, "q", "now").unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (429, REFUSED));
    }

    #[test]
    fn a_budget_that_was_just_changed_asks_to_come_again() {
        let mut budget = budget(1);
        budget["metadata"]["generation"] = 2.into();
        let error = spend(&budget, "p", "now").unwrap_err();
        assert_eq!(error.details.unwrap()["retryAfterSeconds"], 10);
    }

    #[test]
    fn pods_that_are_not_ready_need_no_budget_while_enough_others_are() {
        assert!(may_ignore(&budget(0), &running("False")));
        assert!(!may_ignore(&budget(0), &running("True")));
        let mut always = budget(0);
        always["status"]["currentHealthy"] = 0.into();
        assert!(!may_ignore(&always, &running("False")));
        always["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
        assert!(may_ignore(&always, &running("False")));
    }

    #[test]
    fn the_mark_is_set_once() {
        let once = marked(&running("True"), "now");
        assert_eq!(marked(&once, "later"), once);
    }
}
