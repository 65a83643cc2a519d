//! Replays transcripts of a real API server: see `tests/vectors/apiserver/README.md`.

use std::path::Path;

use kube_testserver::TestServer;
use serde_json::Value;

use crate::replay_steps::Player;

/// Scenarios that the simulated cluster answers otherwise on purpose, and why. One that passes
/// must leave this list.
const LEFT_OUT: &[(&str, &str)] = &[];

/// Replays all scenarios of a file, each on the same cluster.
async fn replay(file: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/apiserver");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let scenarios: Vec<Value> = serde_json::from_str(&text).unwrap();
    let cluster = TestServer::start().await.unwrap();
    let mut wrong = Vec::new();
    let mut passed = 0;
    for scenario in &scenarios {
        let name = scenario["name"].as_str().unwrap();
        let left_out = LEFT_OUT.iter().find(|(listed, _)| *listed == name);
        match (play(&cluster, scenario).await, left_out) {
            (Ok(()), None) => passed += 1,
            (Ok(()), Some(_)) => wrong.push(format!("{name} passes: take it off the list")),
            (Err(_), Some(_)) => {}
            (Err(why), None) => wrong.push(format!("{name} {why}")),
        }
    }
    cluster.stop().await;
    println!("{file}: {passed} of {} pass", scenarios.len());
    assert!(wrong.is_empty(), "{file}: {} scenarios fail\n{}", wrong.len(), wrong.join("\n"));
}

async fn play(cluster: &TestServer, scenario: &Value) -> Result<(), String> {
    let mut player = Player::new(cluster, scenario);
    for part in ["setup", "steps"] {
        let steps = scenario[part].as_array().into_iter().flatten();
        for (index, step) in steps.enumerate() {
            let what = |field: &str| step["do"][field].as_str().unwrap_or("").to_owned();
            let done = player.step(step).await;
            done.map_err(|why| {
                format!("{part} {index} {} {}: {why}", what("method"), what("path"))
            })?;
        }
    }
    Ok(())
}

macro_rules! files {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            replay(concat!(stringify!($name), ".json")).await;
        }
    )*};
}

files!(apply authz crd crud csr discovery eviction_lease list patch protobuf table watch);
