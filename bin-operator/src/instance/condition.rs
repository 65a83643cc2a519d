//! What Nodes say about the keys of their hosts.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use wmco_core::node::host_key_condition;

use super::executor::Executor;
use super::inputs::InstanceInputs;

impl Executor {
    /// Sets or takes back the condition of the Node; `mismatch` says what is wrong with the key. A
    /// condition that does not get through changes nothing: the Event and the log have it too.
    pub(super) async fn tell_host_key(&self, inputs: &InstanceInputs, mismatch: Option<&str>) {
        let Some(node) = &inputs.node else { return };
        let Some(condition) = host_key_condition(&node.facts, mismatch, Timestamp::now()) else {
            return;
        };
        if self.leadership.check().is_err() {
            return;
        }
        // Conditions are merged by their type, so the kubelet's stay.
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = &node.facts.name;
        if let Err(error) = nodes.patch_status(name, &PatchParams::default(), &patch).await {
            tracing::debug!(%error, node = %name, "condition not set");
        }
    }
}
