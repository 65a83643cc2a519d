//! ServiceMonitors, which not every cluster has.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;
use wmco_core::cluster::Revision;
use wmco_core::cluster::monitoring::ServiceMonitor;
use wmco_core::names::monitoring::{SERVICE_MONITOR, SERVICE_MONITORS};

/// Picks out of a ServiceMonitor what matters.
pub fn read(object: &Value) -> ServiceMonitor {
    let metadata = |field: &str| object.get("metadata")?.get(field);
    let text = |field: &str| metadata(field)?.as_str().map(str::to_owned);
    let labels = metadata("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    ServiceMonitor {
        labels: labels.into_iter().collect(),
        spec: object.get("spec").cloned().unwrap_or_default(),
        revision: Revision { uid: text("uid"), resource_version: text("resourceVersion") },
    }
}

/// ServiceMonitors of a namespace.
pub fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let (group, version, kind) = SERVICE_MONITOR;
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, SERVICE_MONITORS);
    Api::namespaced_with(client.clone(), namespace, &resource)
}
