//! The daemon is killed after each change in turn that it makes to its host, and started anew.

use futures::future::join_all;
use wmco_core::names::host;
use wmco_services::manifest::Manifest;

use crate::bench::{Bench as _, ensure_daemon, manifest, seen, wanted, with_other_command};
use crate::cluster::{Cluster, until};
use crate::memory::Memory;

const VERSION: &str = "1.2.3-a1b2c3d";

/// A joined host whose daemon is registered and does not run.
async fn registered(manifest: &Manifest) -> (Cluster, Memory) {
    let cluster = Cluster::start().await;
    let bench = Memory::new(&cluster).await;
    cluster.publish(VERSION, manifest);
    cluster.join(bench.address(), VERSION);
    bench.apply(vec![ensure_daemon()]).await;
    (cluster, bench)
}

/// The daemon of a fresh host dies in the change after so many.
async fn brought_up(cut: usize) {
    let manifest = manifest();
    let (cluster, mut bench) = registered(&manifest).await;
    bench.host.cut_after(cut);
    bench.spawn();
    until("it dies", async || bench.host.is_cut()).await;
    bench.kill_daemon().await;
    bench.start_daemon().await;
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&bench, &manifest), "{cut}");
}

/// The daemon of a configured host dies in the change after so many that a new ConfigMap asks for.
async fn reconfigured(cut: usize) {
    let (cluster, mut bench) = registered(&manifest()).await;
    bench.spawn();
    cluster.configured(VERSION).await;
    cluster.whole_pass().await;
    bench.host.cut_after(cut);
    let changed = with_other_command(host::CONTAINERD_SERVICE);
    cluster.publish(VERSION, &changed);
    until("it dies", async || bench.host.is_cut()).await;
    bench.kill_daemon().await;
    bench.start_daemon().await;
    until("all is as asked for", async || seen(&bench).await == wanted(&bench, &changed)).await;
}

/// How many changes the two make when nothing dies.
async fn changes() -> (usize, usize) {
    let (cluster, mut bench) = registered(&manifest()).await;
    bench.host.clear_changes();
    bench.spawn();
    cluster.configured(VERSION).await;
    cluster.whole_pass().await;
    let up = bench.host.changes().len();
    let changed = with_other_command(host::CONTAINERD_SERVICE);
    cluster.publish(VERSION, &changed);
    until("all is as asked for", async || seen(&bench).await == wanted(&bench, &changed)).await;
    cluster.whole_pass().await;
    (up, bench.host.changes().len() - up)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_any_change_it_converges() {
    let (up, change) = changes().await;
    // At least one for each service; for the change four stops, one command, four starts.
    assert!(up > 12 && change >= 9, "{up} {change}");
    for cuts in (0..up).collect::<Vec<_>>().chunks(4) {
        join_all(cuts.iter().map(|cut| brought_up(*cut))).await;
    }
    for cuts in (0..change).collect::<Vec<_>>().chunks(4) {
        join_all(cuts.iter().map(|cut| reconfigured(*cut))).await;
    }
}
