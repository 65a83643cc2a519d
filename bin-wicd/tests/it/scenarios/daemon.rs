//! The daemon itself: its certificate, its idleness, and its end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube_testserver::Fault;
use wicd_wine::told::Behaviour;
use wmco_core::names::{self, host};
use wmco_core::protocol::{HostStep, ServiceRunState};
use wmco_services::limits::DAEMON_POLL;

use super::{VERSION, assert_same, configured, join, joining, proxied, restarted, settled};
use crate::bench::{Bench, Move, manifest, seen, wanted, with_other_command};
use crate::cluster::{Cluster, NODE, until};

pub(super) async fn certificates_are_renewed_without_a_restart<B: Bench>() {
    /// Of the hour for which the daemon asks in seconds, so that the next certificate is due at once.
    const NEARLY_AN_HOUR: i64 = 55 * 60;
    let cluster = Cluster::start().await;
    cluster.sim.move_certificate_clock(-NEARLY_AN_HOUR);
    let bench: B = joining(&cluster, &manifest()).await;
    cluster.configured(VERSION).await;
    cluster.sim.move_certificate_clock(0);
    let before = bench.services().await;
    // Whoever works with another certificate watches anew. On a slow machine two may follow each other before the first
    // is used, so it is the last one that counts.
    until("a certificate that was signed now is used", async || {
        let lasts = cluster.last_until() > Timestamp::now() + SignedDuration::from_mins(30);
        let requests = cluster.sim.requests();
        let signed =
            requests.iter().rposition(|it| it.resource == "certificatesigningrequests/approval");
        let mut later = requests.iter().skip(signed.unwrap_or(requests.len()));
        lasts && later.any(|it| (it.verb.as_str(), it.resource.as_str()) == ("watch", "nodes"))
    })
    .await;
    // All before have expired for the cluster. The daemon works with another one, which its owner asked for.
    cluster.sim.move_certificate_clock(10 * 60);
    let changed = with_other_command("csi-proxy");
    cluster.publish(VERSION, &changed);
    settled(&bench, &changed).await;
    let requesters = cluster.requesters();
    let own = format!("{}{NODE}", names::WICD_USER_PREFIX);
    assert!(requesters[1..].iter().all(|user| *user == own), "{requesters:?}");
    assert_ne!(requesters[0], own);
    let same = |name: &str| {
        let of = before.iter().find(|service| service.name.as_str() == name);
        of.and_then(|service| service.process)
    };
    for service in bench.services().await {
        if service.name.as_str() != "csi-proxy" {
            assert_eq!(service.process, same(service.name.as_str()), "{}", service.name);
        }
    }
}

pub(super) async fn nothing_to_do_changes_nothing<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    cluster.whole_pass().await;
    let count = || (bench.moves().len(), bench.scripts(), cluster.patches());
    let (before, counted) = (bench.traces().await, count());
    cluster.whole_pass().await;
    assert_same(&before, &bench.traces().await);
    assert_eq!(count(), counted);
    // Nor does it ask the cluster anything as long as nothing happens; it looks at its services meanwhile.
    let asked = cluster.silent().await;
    tokio::time::sleep(DAEMON_POLL.unsigned_abs() + Duration::from_secs(2)).await;
    assert_eq!((cluster.requests_about_nodes(), count()), (asked, counted));
}

pub(super) async fn cleanup_leaves_the_host_as_it_was<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    if B::ROOTS_GO {
        bench.put(host::CA_BUNDLE, cluster.sim.ca_pem().as_bytes());
    }
    let before = bench.traces().await;
    join(&cluster, &mut bench, &proxied()).await;
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    bench.stop_daemon().await;
    bench.apply(vec![HostStep::RemoveDaemon]).await;
    assert_eq!(bench.cleanup().await, Some(false));
    assert_same(&before, &bench.traces().await);
    assert_eq!(cluster.annotation(names::VERSION_ANNOTATION), None);
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION).as_deref(), Some(""));
    // With nobody else to say so, its caller has to.
    cluster.leave().await;
    assert_eq!(bench.cleanup().await, Some(true));
}

pub(super) async fn the_daemon_stops_before_a_service_that_does_not<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench: B = configured(&cluster, &manifest).await;
    bench.stop_daemon().await;
    // Nor does it wait for a service that does not stop, which has longer than the daemon itself.
    bench.tell("csi-proxy", &Behaviour { ignores_stop: true, ..Behaviour::default() });
    bench.start_daemon().await;
    let changed = with_other_command("csi-proxy");
    cluster.publish(VERSION, &changed);
    let begun = bench.moves().len();
    until("it is told to stop", async || {
        bench.moves()[begun..].contains(&Move::Stop("csi-proxy".to_owned()))
    })
    .await;
    bench.stop_daemon().await;
    let state = bench.services().await.into_iter().find(|s| s.name.as_str() == "csi-proxy");
    assert_ne!(state.unwrap().state, ServiceRunState::Stopped);
}

pub(super) async fn killed_again_and_again_it_converges<B: Bench>() {
    /// Long enough for the test, which waits for the request, to end its sender.
    const HELD: Duration = Duration::from_secs(4);
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    cluster.publish(VERSION, &manifest);
    cluster.join(bench.address(), VERSION);
    // In the middle of a request: for a certificate, for its Node as a pass begins.
    for (verb, resource) in [("create", "certificatesigningrequests"), ("get", "nodes")] {
        let (hit, mut held) = tokio::sync::mpsc::unbounded_channel();
        cluster.sim.inject_faults(move |request| {
            let is_it = request.verb == verb && request.resource == resource;
            is_it.then(|| {
                let _ = hit.send(());
                Fault::Delay(HELD)
            })
        });
        bench.start_daemon().await;
        held.recv().await;
        bench.kill_daemon().await;
        cluster.sim.clear_faults();
    }
    // Whenever some more services have been started.
    for count in [1, 2, 4, manifest.services().len()] {
        bench.start_daemon().await;
        until("some services are started", async || bench.moves().len() >= count).await;
        bench.kill_daemon().await;
    }
    bench.start_daemon().await;
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&bench, &manifest));
    // In the middle of a change, and after it.
    let changed = with_other_command(host::CONTAINERD_SERVICE);
    let begun = bench.moves().len();
    cluster.publish(VERSION, &changed);
    for count in [1, 3, 5, 7] {
        until("the change goes on", async || bench.moves().len() >= begun + count).await;
        bench.kill_daemon().await;
        bench.start_daemon().await;
    }
    settled(&bench, &changed).await;
    // Nothing runs twice.
    assert_eq!(bench.services().await.len(), manifest.services().len() + 1);
}
