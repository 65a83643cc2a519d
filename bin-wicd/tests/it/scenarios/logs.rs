//! Logs of services end somewhere.

use std::time::Duration;

use wicd_wine::told::{Behaviour, Storm};
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;
use wmco_services::limits;

use super::{VERSION, starts, stops};
use crate::bench::{Bench, daemon_with_logs_of, manifest};
use crate::cluster::{Cluster, until};

/// Where people look for containerd's log.
const LINK: &str = r"C:\k\logs\containerd.log";

pub(super) async fn a_storm_in_a_log_stays_within_the_bound_without_a_restart<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    let storm = |held_back| {
        let storm = Storm { log: host::CONTAINERD_LOG.to_owned(), held_back, bytes: B::STORM };
        Behaviour { storm: Some(storm), ..Behaviour::default() }
    };
    bench.tell(host::CONTAINERD_SERVICE, &storm(true));
    cluster.publish(VERSION, &manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon_as(daemon_with_logs_of(B::LOG_SIZE)).await;
    cluster.configured(VERSION).await;
    bench.tell(host::CONTAINERD_SERVICE, &storm(false));
    let size: u64 = B::LOG_SIZE.map_or(limits::LOG_BYTES, |size| {
        size.strip_suffix('M').unwrap().parse::<u64>().unwrap() * 1_000_000
    });
    let folder = host::CONTAINERD_LOG.parse::<WindowsPath>().unwrap().parent().unwrap();
    let (mut most, mut cut) = (0, false);
    let bound = size * limits::LOG_FILES as u64;
    until("the last line is written", async || {
        let files = bench.folder(folder.as_str());
        let all: u64 = files.values().sum();
        assert!(all <= bound, "{files:?}");
        (most, cut) = (all.max(most), cut || files.len() > 1);
        tokio::time::sleep(Duration::from_millis(5)).await;
        bench.ends_with(host::CONTAINERD_LOG, Storm::LAST)
    })
    .await;
    eprintln!("at most {most} of {bound} bytes: {:?}", bench.folder(folder.as_str()));
    assert!(cut && most > size);
    // The link leads to the file of today in the end.
    until("it is linked", async || bench.ends_with(LINK, Storm::LAST)).await;
    let (start, stop) = (starts(&[host::CONTAINERD_SERVICE]), stops(&[host::CONTAINERD_SERVICE]));
    let mut moves = bench.moves();
    moves.retain(|moved| start.contains(moved) || stop.contains(moved));
    assert_eq!(moves, start);
    // And goes with the node.
    bench.stop_daemon().await;
    assert!(bench.cleanup().await.is_some());
    assert!(bench.folder(host::LOG_LINKS).is_empty());
}
