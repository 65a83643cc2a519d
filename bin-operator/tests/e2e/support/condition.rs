//! The OperatorCondition, as the Operator Lifecycle Manager reads it.

use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use tokio::time::{Instant, sleep};
use wmco_core::names::monitoring::{OPERATOR_CONDITION, OPERATOR_CONDITIONS, UPGRADEABLE};
use wmco_core::names::objects::DEFAULT_NAMESPACE;

/// Waits until it says that the operator may be replaced.
///
/// # Errors
/// After `patience`, with what it says.
pub(crate) async fn upgradeable(client: &Client, patience: Duration) -> anyhow::Result<()> {
    let (group, version, kind) = OPERATOR_CONDITION;
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, OPERATOR_CONDITIONS);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), DEFAULT_NAMESPACE, &resource);
    let end = Instant::now() + patience;
    loop {
        let found = api.list(&ListParams::default()).await?;
        let conditions =
            found.iter().filter_map(|object| object.data["spec"]["conditions"].as_array());
        let condition = conditions.flatten().find(|it| it["type"] == UPGRADEABLE);
        if condition.is_some_and(|condition| condition["status"] == "True") {
            return Ok(());
        }
        let said = condition.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        anyhow::ensure!(Instant::now() < end, "the OperatorCondition still says {said}");
        sleep(Duration::from_millis(200)).await;
    }
}
