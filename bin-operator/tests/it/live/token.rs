//! The Secret with the token that the daemon starts with is that of its ServiceAccount, whatever lay there.
//!
//! Source: `docs/contract/cluster.md`, CLU15.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::json;
use wmco_core::names::objects;

use super::scenery::{listed, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_no_token_of_the_daemon_is_replaced() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let secret = || stage.cluster.object("", "secrets", stage.namespace(), objects::WICD);
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": objects::WICD, "namespace": stage.namespace()},
        "data": {objects::TOKEN_KEY: "bWluZQ=="},
    });
    stage.cluster.put(&foreign).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let is_token = |found: &serde_json::Value| {
        let account = &found["metadata"]["annotations"][objects::SERVICE_ACCOUNT_ANNOTATION];
        found["type"] == objects::SERVICE_ACCOUNT_TOKEN_TYPE && *account == objects::WICD
    };
    until(|| secret().filter(|found| is_token(found))).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
