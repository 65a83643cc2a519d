//! What must happen on every kind of host.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use wicd_wine::hands::{Config, Order, Start};
use wicd_wine::told::Behaviour;
use wmco_core::names::{self, host};
use wmco_core::protocol::{HostStep, ServiceRunState};
use wmco_services::generate::Proxy;
use wmco_services::limits::{self, DAEMON_GLANCE};
use wmco_services::manifest::Manifest;
use wmco_sim::cluster::{Fault, SimCluster};

use crate::bench::{Bench, Move, edited, manifest, manifest_with, seen, wanted};
use crate::cluster::{Cluster, NODE, until};

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
    the_rest_is_created_when_the_node_is_there
    a_changed_config_map_reconfigures_only_what_changed
    content_that_is_not_released_changes_nothing
    dependents_stop_first_and_start_last
    a_stopped_and_a_deleted_service_come_back
    a_service_that_crashed_comes_back
    a_command_that_somebody_changed_is_put_right
    a_foreign_service_with_our_tag_goes
    a_service_that_ignores_stop_is_ended
    a_service_that_ends_at_once_holds_up_only_itself
    a_service_that_hangs_holds_the_mark_back_until_it_runs
    a_service_that_answers_500_holds_the_mark_back
    variables_and_roots_ask_for_one_restart
    variables_that_are_not_wanted_any_more_go
    short_certificates_are_renewed_without_a_restart
    nothing_to_do_changes_nothing
    cleanup_leaves_the_host_as_it_was
    the_daemon_stops_in_time
    killed_again_and_again_it_converges
}

const VERSION: &str = "1.2.3-a1b2c3d";

/// A host that joins with the daemon, and its cluster.
async fn joining<B: Bench>(cluster: &Cluster, manifest: &Manifest) -> B {
    let mut bench = B::new(cluster).await;
    cluster.publish(VERSION, manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
    bench
}

/// A host that is all that the cluster wants.
async fn configured<B: Bench>(cluster: &Cluster, manifest: &Manifest) -> B {
    let bench = joining(cluster, manifest).await;
    cluster.configured(VERSION).await;
    bench
}

/// Waits until the services are those of the manifest, all running.
async fn settled<B: Bench>(bench: &B, manifest: &Manifest) {
    let wanted = wanted(manifest);
    until("all services are as the manifest says", async || seen(bench).await == wanted).await;
}

/// Fails with what is only in one of the two.
#[track_caller]
fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let only = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| -> Vec<String> {
        let missing = a.iter().filter(|(name, value)| b.get(*name) != Some(value));
        missing.map(|(name, value)| format!("{name}: {value}")).collect()
    };
    let (gone, new) = (only(before, after), only(after, before));
    assert!(gone.is_empty() && new.is_empty(), "gone: {gone:#?}, new: {new:#?}");
}

fn starts(names: &[&str]) -> Vec<Move> {
    names.iter().map(|name| Move::Start((*name).to_owned())).collect()
}

fn stops(names: &[&str]) -> Vec<Move> {
    names.iter().map(|name| Move::Stop((*name).to_owned())).collect()
}

async fn bootstrap_starts_containerd_then_kubelet<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench = B::new(&cluster).await;
    let manifest = manifest();
    cluster.publish(VERSION, &manifest);
    assert!(bench.bootstrap(VERSION).await);
    let started = ["containerd", "kubelet"];
    assert_eq!(bench.moves(), starts(&started));
    let mut wanted = wanted(&manifest);
    wanted.retain(|name, _| started.contains(&name.as_str()));
    assert_eq!(seen(&bench).await, wanted);
    // Once more changes nothing.
    assert!(bench.bootstrap(VERSION).await);
    assert_eq!(bench.moves().len(), 2);
    let running = bench.services().await.into_iter().all(|s| s.state == ServiceRunState::Running);
    assert!(running);
}

async fn the_rest_is_created_when_the_node_is_there<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    let manifest = manifest();
    cluster.publish(VERSION, &manifest);
    assert!(bench.bootstrap(VERSION).await);
    bench.start_daemon().await;
    let asked = || cluster.sim.count("list", "nodes");
    until("the daemon looks for its node", async || asked() > 1).await;
    assert_eq!(seen(&bench).await.len(), 2);
    cluster.join(bench.address(), VERSION);
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&manifest));
    // Who needs another one starts after it.
    let moves = bench.moves();
    let place = |name: &str| moves.iter().position(|m| *m == Move::Start(name.to_owned())).unwrap();
    assert_eq!(moves.len(), manifest.services().len());
    for service in manifest.services() {
        for need in &service.dependencies {
            assert!(place(need.as_str()) < place(service.name.as_str()), "{moves:?}");
        }
    }
    for service in bench.services().await {
        let wanted = manifest.service(&service.name).map(|wanted| wanted.dependencies.clone());
        assert_eq!(service.config.dependencies, wanted.unwrap_or_default(), "{}", service.name);
        assert_eq!(service.config.description, format!("{} {}", host::SERVICE_TAG, service.name));
    }
}

async fn a_changed_config_map_reconfigures_only_what_changed<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    let (before, begun) = (bench.services().await, bench.moves().len());
    let changed = edited(|service| {
        if service.name.as_str() == "csi-proxy" {
            service.command.push_str(" -changed");
        }
    });
    cluster.publish(VERSION, &changed);
    settled(&bench, &changed).await;
    let expected = [stops(&["csi-proxy"]), starts(&["csi-proxy"])].concat();
    assert_eq!(bench.moves()[begun..], expected);
    let after = bench.services().await;
    for service in before.iter().filter(|service| service.name.as_str() != "csi-proxy") {
        assert!(after.contains(service), "{service:?} is not among {after:?}");
    }
}

async fn content_that_is_not_released_changes_nothing<B: Bench>() {
    let digest = |manifest: &Manifest| manifest.render().digest().to_string();
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    let (old, new) = (manifest(), changed_proxy_daemon());
    cluster.publish(VERSION, &old);
    cluster.join(bench.address(), VERSION);
    cluster.annotate(names::SERVICES_ANNOTATION, Some(&digest(&old)));
    bench.start_daemon().await;
    cluster.configured(VERSION).await;
    let (before, patches) = (bench.services().await, cluster.patches());
    cluster.publish(VERSION, &new);
    cluster.whole_pass().await;
    assert_eq!((bench.services().await, cluster.patches()), (before, patches));
    // What runs is looked after all the same.
    bench.person(Order::Stop { name: "csi-proxy".to_owned() }).await;
    settled(&bench, &old).await;
    // A daemon that never saw the old content leaves the host alone, and does not mark its node.
    bench.kill_daemon().await;
    cluster.annotate(names::VERSION_ANNOTATION, None);
    bench.start_daemon().await;
    cluster.whole_pass().await;
    assert_eq!((seen(&bench).await, cluster.patches()), (wanted(&old), patches));
    cluster.annotate(names::SERVICES_ANNOTATION, Some(&digest(&new)));
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&new));
}

/// The usual services, one of them with another command.
fn changed_proxy_daemon() -> Manifest {
    edited(|service| {
        if service.name.as_str() == "csi-proxy" {
            service.command.push_str(" -changed");
        }
    })
}

async fn dependents_stop_first_and_start_last<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    let begun = bench.moves().len();
    let changed = edited(|service| {
        if service.name.as_str() == host::CONTAINERD_SERVICE {
            service.command.push_str(" --changed");
        }
    });
    cluster.publish(VERSION, &changed);
    settled(&bench, &changed).await;
    let up = ["containerd", "kubelet", "hybrid-overlay-node", "kube-proxy"];
    let mut down = up;
    down.reverse();
    assert_eq!(bench.moves()[begun..], [stops(&down), starts(&up)].concat());
}

async fn a_stopped_and_a_deleted_service_come_back<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let bench: B = configured(&cluster, &manifest).await;
    let name = || "csi-proxy".to_owned();
    bench.person(Order::Stop { name: name() }).await;
    until("it runs again", async || bench.moves().ends_with(&starts(&["csi-proxy"]))).await;
    settled(&bench, &manifest).await;
    bench.person(Order::Stop { name: name() }).await;
    bench.person(Order::Delete { name: name() }).await;
    settled(&bench, &manifest).await;
}

async fn a_service_that_crashed_comes_back<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let bench: B = configured(&cluster, &manifest).await;
    let begun = bench.moves().len();
    bench.crash("kube-proxy").await;
    cluster.whole_pass().await;
    let restarted = || bench.moves()[begun..].ends_with(&starts(&["kube-proxy"]));
    until("it runs again", async || restarted()).await;
    settled(&bench, &manifest).await;
}

async fn a_command_that_somebody_changed_is_put_right<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let bench: B = configured(&cluster, &manifest).await;
    let begun = bench.moves().len();
    let order =
        Order::Command { name: "hybrid-overlay-node".to_owned(), command: "wrong".to_owned() };
    bench.person(order).await;
    cluster.whole_pass().await;
    settled(&bench, &manifest).await;
    // With what needs it.
    let up = ["hybrid-overlay-node", "kube-proxy"];
    let mut down = up;
    down.reverse();
    assert_eq!(bench.moves()[begun..], [stops(&down), starts(&up)].concat());
}

async fn a_foreign_service_with_our_tag_goes<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let bench: B = configured(&cluster, &manifest).await;
    let create = |name: &str, description: String| Order::Create {
        name: name.to_owned(),
        config: Config {
            command: r"C:\k\csi-proxy.exe --foreign".to_owned(),
            description,
            dependencies: Vec::new(),
            start: Start::Manual,
        },
    };
    let foreign = ["foreign", "bystander"];
    bench.person(create(foreign[0], format!("{} {}", host::SERVICE_TAG, foreign[0]))).await;
    bench.person(create(foreign[1], "none of yours".to_owned())).await;
    for name in foreign {
        bench.person(Order::Start { name: name.to_owned() }).await;
    }
    until("the foreign service goes", async || !seen(&bench).await.contains_key("foreign")).await;
    let left = seen(&bench).await;
    assert_eq!(left["bystander"].1, ServiceRunState::Running);
    assert_eq!(left.len(), manifest.services().len() + 1);
}

async fn a_service_that_ignores_stop_is_ended<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    bench.tell("csi-proxy", &Behaviour { ignores_stop: true, ..Behaviour::default() });
    let changed = edited(|service| {
        if service.name.as_str() == "csi-proxy" {
            service.command.push_str(" -changed");
        }
    });
    cluster.publish(VERSION, &changed);
    settled(&bench, &changed).await;
    assert!(bench.moves().ends_with(&starts(&["csi-proxy"])));
}

async fn a_service_that_ends_at_once_holds_up_only_itself<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    let flaps = Behaviour { ends_after_ms: Some(0), code: 7, ..Behaviour::default() };
    bench.tell("windows_exporter", &flaps);
    cluster.publish(VERSION, &manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
    let others = manifest.services().len() - 1;
    until("all others run", async || {
        let states = seen(&bench).await.into_values().map(|(_, state)| state);
        states.filter(|state| *state == ServiceRunState::Running).count() >= others
    })
    .await;
    cluster.whole_pass().await;
    assert_eq!(cluster.annotation(names::VERSION_ANNOTATION), None);
    bench.tell("windows_exporter", &Behaviour::default());
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&manifest));
}

async fn a_service_that_hangs_holds_the_mark_back_until_it_runs<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    bench.tell("kube-proxy", &Behaviour { hangs: true, ..Behaviour::default() });
    cluster.publish(VERSION, &manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
    until("it is started", async || bench.moves().ends_with(&starts(&["kube-proxy"]))).await;
    bench.tell("kube-proxy", &Behaviour::default());
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&manifest));
}

async fn a_service_that_answers_500_holds_the_mark_back<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    bench.put(host::KUBELET_CONFIG, format!(r#"{{"healthzPort": {port}}}"#).as_bytes());
    let health = |health| Behaviour { port: Some(port), health, ..Behaviour::default() };
    bench.tell(host::KUBELET_SERVICE, &health(500));
    cluster.publish(VERSION, &manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
    settled(&bench, &manifest).await;
    cluster.whole_pass().await;
    assert_eq!(cluster.annotation(names::VERSION_ANNOTATION), None);
    bench.tell(host::KUBELET_SERVICE, &health(200));
    cluster.configured(VERSION).await;
}

/// A manifest whose cluster has a proxy that nobody must use to reach this cluster.
fn proxied() -> Manifest {
    manifest_with(|inputs| {
        inputs.proxy = Proxy::from_environment(|name| match name {
            "HTTPS_PROXY" => Some("http://proxy.example.test:3128".to_owned()),
            "NO_PROXY" => Some("127.0.0.1,.example.test".to_owned()),
            _ => None,
        });
    })
}

/// Waits until a restart is asked for, restarts the host, and takes the question back.
async fn restarted<B: Bench>(cluster: &Cluster, bench: &mut B) {
    until("a restart is asked for", async || {
        cluster.annotation(names::REBOOT_ANNOTATION).is_some()
    })
    .await;
    bench.reboot().await;
    cluster.annotate(names::REBOOT_ANNOTATION, None);
}

async fn variables_and_roots_ask_for_one_restart<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    bench.put(host::CA_BUNDLE, cluster.sim.ca_pem().as_bytes());
    let (manifest, before) = (proxied(), bench.traces().await);
    cluster.publish(VERSION, &manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
    until("a restart is asked for", async || {
        cluster.annotation(names::REBOOT_ANNOTATION).is_some()
    })
    .await;
    let variables = bench.variables().await;
    assert_eq!(variables["HTTPS_PROXY"], "http://proxy.example.test:3128");
    assert_eq!(variables.len(), 2);
    // Until then nothing else is touched, and nothing is asked for again.
    cluster.whole_pass().await;
    assert_eq!((bench.moves(), cluster.patches()), (Vec::new(), 1));
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    assert_eq!(cluster.patches(), 2);
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION), None);
    let seen = bench.sees(host::KUBELET_SERVICE, "HTTPS_PROXY");
    assert_eq!(seen.as_deref(), Some("http://proxy.example.test:3128"));
    let after = bench.traces().await;
    let roots = |traces: &BTreeMap<String, String>| {
        traces.iter().filter(|(k, v)| k.contains(r"\Root\") || *v == "root").count()
    };
    assert!(roots(&after) > roots(&before), "the bundle is in the store");
}

async fn variables_that_are_not_wanted_any_more_go<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench: B = joining(&cluster, &proxied()).await;
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    let direct = manifest();
    cluster.publish(VERSION, &direct);
    restarted(&cluster, &mut bench).await;
    until("no variable is left", async || bench.variables().await.is_empty()).await;
    settled(&bench, &direct).await;
    assert_eq!(bench.sees(host::KUBELET_SERVICE, "HTTPS_PROXY"), None);
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION), None);
}

async fn short_certificates_are_renewed_without_a_restart<B: Bench>() {
    /// A request is approved and signed at once; times in certificates are whole seconds.
    const ISSUED_WITHIN: Duration = Duration::from_secs(2);
    let cluster =
        Cluster::start_as(SimCluster::builder().longest_certificates(B::CERTIFICATES)).await;
    let bench: B = joining(&cluster, &manifest()).await;
    until("a certificate is asked for", async || !cluster.requesters().is_empty()).await;
    let expires = Instant::now() + B::CERTIFICATES.unsigned_abs() + ISSUED_WITHIN;
    cluster.configured(VERSION).await;
    let before = bench.services().await;
    until("the first certificate has expired", async || {
        Instant::now() > expires && cluster.requesters().len() >= 2
    })
    .await;
    // It works with another one, which its owner asked for.
    let changed = edited(|service| {
        if service.name.as_str() == "csi-proxy" {
            service.command.push_str(" -changed");
        }
    });
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

async fn nothing_to_do_changes_nothing<B: Bench>() {
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
    tokio::time::sleep(DAEMON_GLANCE.unsigned_abs() + Duration::from_secs(2)).await;
    assert_eq!((cluster.requests_about_nodes(), count()), (asked, counted));
}

async fn cleanup_leaves_the_host_as_it_was<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    if B::ROOTS_GO {
        bench.put(host::CA_BUNDLE, cluster.sim.ca_pem().as_bytes());
    }
    let before = bench.traces().await;
    cluster.publish(VERSION, &proxied());
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    bench.stop_daemon().await;
    bench.apply(vec![HostStep::RemoveDaemon]).await;
    assert!(bench.cleanup().await);
    assert_same(&before, &bench.traces().await);
    assert_eq!(cluster.annotation(names::VERSION_ANNOTATION), None);
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION).as_deref(), Some(""));
}

async fn the_daemon_stops_in_time<B: Bench>() {
    /// Beside the daemon's own limit: what Wine and a busy machine take.
    const SLACK: Duration = Duration::from_secs(5);
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench: B = configured(&cluster, &manifest).await;
    let stopped = async |bench: &mut B| {
        let begun = Instant::now();
        bench.stop_daemon().await;
        assert!(begun.elapsed() < limits::DAEMON_STOP.unsigned_abs() + SLACK);
    };
    stopped(&mut bench).await;
    // Nor does it wait for a service that does not stop, which has longer than the daemon itself.
    bench.tell("csi-proxy", &Behaviour { ignores_stop: true, ..Behaviour::default() });
    bench.start_daemon().await;
    let changed = edited(|service| {
        if service.name.as_str() == "csi-proxy" {
            service.command.push_str(" -changed");
        }
    });
    cluster.publish(VERSION, &changed);
    let begun = bench.moves().len();
    until("it is told to stop", async || {
        bench.moves()[begun..].contains(&Move::Stop("csi-proxy".to_owned()))
    })
    .await;
    stopped(&mut bench).await;
    let state = bench.services().await.into_iter().find(|s| s.name.as_str() == "csi-proxy");
    assert_ne!(state.unwrap().state, ServiceRunState::Stopped);
}

async fn killed_again_and_again_it_converges<B: Bench>() {
    /// Long enough for whoever waits for the request to end its sender.
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
    assert_eq!(seen(&bench).await, wanted(&manifest));
    // In the middle of a change, and after it.
    let changed = edited(|service| {
        if service.name.as_str() == host::CONTAINERD_SERVICE {
            service.command.push_str(" --changed");
        }
    });
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
