//! Certificates while no operator of ours runs: the Go operator and the cluster's machine approver give them.

use std::time::Duration;

use bin_operator::demo::Stage;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Approves every request until it is aborted.
pub(super) fn start(client: kube::Client) -> JoinHandle<()> {
    tokio::spawn(async move {
        let api: Api<CertificateSigningRequest> = Api::all(client);
        loop {
            for request in api.list(&ListParams::default()).await.into_iter().flatten() {
                let request = json!(request);
                let name = request["metadata"]["name"].as_str().unwrap_or_default();
                if request["status"]["conditions"].is_null() {
                    let approved = json!({"status": {"conditions": [{
                        "type": "Approved", "status": "True", "reason": "WMCOApprove",
                        "message": "approved",
                    }]}});
                    let patch = Patch::Merge(approved);
                    // It may be gone; then nobody needs it.
                    let _ = api.patch_approval(name, &PatchParams::default(), &patch).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
}

/// Whether so many certificates were given.
pub(super) fn has_approved(stage: &Stage, count: usize) -> bool {
    let all = stage.cluster.objects("certificates.k8s.io", "certificatesigningrequests", "");
    let issued = |request: &&std::sync::Arc<Value>| request["status"]["certificate"].is_string();
    all.iter().filter(issued).count() >= count
}
