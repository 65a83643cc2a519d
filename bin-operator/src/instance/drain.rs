//! Asking pods to leave, and telling people which of them stay.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams, Preconditions};
use kube::core::Status;
use serde_json::json;
use wmco_core::facts::{DrainNotice, PodFacts};
use wmco_core::node::{Outcome, Refusal, drain_condition};

use super::error::{StepError, api};
use super::executor::{Executor, Turn};
use crate::announce::News;

/// Reason of the cause that names the disruption budget. Source: Kubernetes documentation,
/// "API-initiated Eviction".
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// What an authorizer says, and no webhook. Source: Kubernetes documentation, "Using RBAC Authorization".
const NO_RIGHT: &str = "cannot create resource";

impl Executor {
    /// A pod that is not evicted now is asked again in a later pass, and holds up no other.
    pub(super) async fn evict(&self, pods: &[PodFacts]) -> Result<Outcome, StepError> {
        let mut refused = Vec::new();
        for pod in pods {
            self.leadership.check()?;
            let pods: Api<Pod> = Api::namespaced(self.once.clone(), &pod.namespace);
            // Another pod of the same name is none of those that are meant.
            let this = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
            let delete_options =
                Some(DeleteParams { preconditions: Some(this), ..DeleteParams::default() });
            let parameters = EvictParams { delete_options, ..EvictParams::default() };
            match pods.evict(&pod.name, &parameters).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                // Whatever else it says, this pod is not evicted now: a budget, a webhook, a namespace that ends.
                Err(error) => refused.push(refusal(pod, &error)),
            }
        }
        Ok(Outcome::Evicted(refused))
    }

    /// Sets or takes back the condition of the Node, and records an Event.
    pub(super) async fn tell_drain(
        &self,
        turn: &mut Turn<'_>,
        notice: Option<&DrainNotice>,
        event: bool,
    ) -> Result<Outcome, StepError> {
        let Some(node) = turn.node() else {
            return Ok(Outcome::NodeChanged { resource_version: 0, is_ours: true });
        };
        let condition = drain_condition(node, notice, Timestamp::now());
        let mut resource_version = node.resource_version;
        if let Some(condition) = condition {
            // Conditions are merged by their type, so the kubelet's stay.
            let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
            let nodes: Api<Node> = Api::all(self.client.clone());
            let patched = nodes
                .patch_status(&node.name, &PatchParams::default(), &patch)
                .await
                .map_err(api("set a condition of the node"))?;
            let version = patched.metadata.resource_version.as_deref().unwrap_or_default();
            resource_version = version.parse().unwrap_or_default();
        }
        if let Some(notice) = notice.filter(|_| event) {
            turn.news.push(News::DrainBlocked(notice.clone()));
        }
        Ok(Outcome::NodeChanged { resource_version, is_ours: true })
    }
}

/// Why the API server did not evict a pod: what it says of the budget, else of the request, with its code.
fn refusal(pod: &PodFacts, error: &kube::Error) -> Refusal {
    let why = match error {
        kube::Error::Api(status) => said(status),
        other => crate::chain(other),
    };
    Refusal::of(pod, &why)
}

fn said(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let of_budget = causes.into_iter().find(|cause| cause.reason == DISRUPTION_BUDGET);
    let said = status.message.trim_end_matches('.');
    match of_budget {
        Some(cause) => cause.message.clone(),
        // First what to do, because much may follow.
        None if status.code == 403 && said.contains(NO_RIGHT) => format!(
            "the operator may not evict it, apply the rights in its deployment again: {said}, code 403"
        ),
        None => format!("{said}, code {}", status.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_api_server_says_of_the_budget() {
        let pod = PodFacts {
            namespace: "default".into(),
            name: "db".into(),
            uid: "1".into(),
            created: None,
            leaves_by: None,
        };
        let why = |status: serde_json::Value| {
            let status: Status = serde_json::from_value(status).unwrap();
            refusal(&pod, &kube::Error::Api(status.boxed())).why
        };
        let budget = json!({
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "code": 429,
            "details": { "causes": [
                { "reason": "Other", "message": "other", "field": "" },
                { "reason": "DisruptionBudget", "message": "The disruption budget b needs 1", "field": "" },
            ] },
        });
        assert_eq!(why(budget), "The disruption budget b needs 1");
        let several = json!({ "message": "more than one PodDisruptionBudget", "code": 500 });
        assert_eq!(why(several), "more than one PodDisruptionBudget, code 500");
        let webhook =
            json!({ "message": "admission webhook \"x\" denied the request: no.", "code": 403 });
        assert_eq!(why(webhook), "admission webhook \"x\" denied the request: no, code 403");
        let message =
            "pods \"db\" is forbidden: User \"o\" cannot create resource \"pods/eviction\"";
        let rights = why(json!({ "message": message, "code": 403 }));
        assert!(rights.starts_with("the operator may not evict it, apply the rights"), "{rights}");
        assert!(rights.ends_with("\"pods/eviction\", code 403"), "{rights}");
    }
}
