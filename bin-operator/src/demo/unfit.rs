//! Shows what the operator reports of a cluster that is not fit for Windows nodes.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wmco_core::names::events;

use super::{Stage, println_line};

/// How long an operator may take to tell.
const PATIENCE: Duration = Duration::from_secs(60);

/// For so long nothing may happen to hosts after that.
const CALM: Duration = Duration::from_secs(2);

/// Prints what the operator tells of the cluster, once that is something, and that no host became a node.
///
/// # Errors
/// When it reports nothing in time, or continues all the same.
pub(super) async fn show(stage: &Stage, stop: &CancellationToken) -> anyhow::Result<()> {
    let told = async {
        while findings(stage).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(CALM).await;
    };
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        told = tokio::time::timeout(PATIENCE, told) => told?,
    }
    println_line("\nthe cluster is not fit for Windows nodes:");
    for finding in findings(stage) {
        println_line(&format!("  {finding}"));
    }
    let nodes = stage.cluster.objects("", "nodes", "").len();
    anyhow::ensure!(nodes == 0, "{nodes} hosts became nodes all the same");
    println_line("no host was configured; its network is put right now\n");
    Ok(())
}

/// What Events tell of the cluster.
fn findings(stage: &Stage) -> Vec<String> {
    let found = stage.cluster.objects("", "events", stage.namespace());
    let told = found.iter().filter(|event| event["reason"] == events::PREFLIGHT_FAILED);
    told.filter_map(|event| event["message"].as_str()).map(str::to_owned).collect()
}
