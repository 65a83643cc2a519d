//! What must happen on every kind of host.

use wmco_core::protocol::ServiceRunState;

use crate::bench::{Bench, Move, manifest, seen, wanted};
use crate::cluster::Cluster;

/// Runs each scenario on a host in memory and on one under Wine.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name::<crate::memory::Memory>().await })*
        }

        mod wine {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name::<crate::wine::Wine>().await })*
        }
    };
}

on_both! {
    bootstrap_starts_containerd_then_kubelet
}

const VERSION: &str = "1.2.3-a1b2c3d";

async fn bootstrap_starts_containerd_then_kubelet<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench = B::new(&cluster).await;
    let manifest = manifest();
    cluster.publish(VERSION, &manifest);
    assert!(bench.bootstrap(VERSION).await);
    let started = ["containerd", "kubelet"];
    assert_eq!(bench.moves(), started.map(|name| Move::Start(name.to_owned())));
    let mut wanted = wanted(&manifest);
    wanted.retain(|name, _| started.contains(&name.as_str()));
    assert_eq!(seen(&bench).await, wanted);
    // Once more changes nothing.
    assert!(bench.bootstrap(VERSION).await);
    assert_eq!(bench.moves().len(), 2);
    let running = bench.services().await.into_iter().all(|s| s.state == ServiceRunState::Running);
    assert!(running);
}
