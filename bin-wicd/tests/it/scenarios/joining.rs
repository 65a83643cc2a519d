//! How a host gets to the mark of its version, and what holds that back.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};

use wicd_wine::told::Behaviour;
use wmco_core::names::{self, host};
use wmco_core::protocol::ServiceRunState;

use super::{VERSION, join, joining, proxied, restarted, settled, starts};
use crate::bench::{Bench, Move, manifest, seen, wanted};
use crate::cluster::{Cluster, until};

pub(super) async fn bootstrap_starts_containerd_then_kubelet<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench = B::new(&cluster).await;
    let manifest = manifest();
    cluster.publish(VERSION, &manifest);
    assert!(bench.bootstrap(VERSION).await);
    let started = ["containerd", "kubelet"];
    assert_eq!(bench.moves(), starts(&started));
    let mut wanted = wanted(&bench, &manifest);
    wanted.retain(|name, _| started.contains(&name.as_str()));
    assert_eq!(seen(&bench).await, wanted);
    // Once more changes nothing.
    assert!(bench.bootstrap(VERSION).await);
    assert_eq!(bench.moves().len(), 2);
    let running = bench.services().await.into_iter().all(|s| s.state == ServiceRunState::Running);
    assert!(running);
}

pub(super) async fn the_rest_is_created_when_the_node_is_there<B: Bench>() {
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
    assert_eq!(seen(&bench).await, wanted(&bench, &manifest));
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

pub(super) async fn variables_and_roots_ask_for_one_restart<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    bench.put(host::CA_BUNDLE, cluster.sim.ca_pem().as_bytes());
    let (manifest, before) = (proxied(), bench.traces().await);
    join(&cluster, &mut bench, &manifest).await;
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

pub(super) async fn variables_that_are_not_wanted_any_more_go<B: Bench>() {
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

pub(super) async fn a_service_that_ends_at_once_holds_up_only_itself<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    let flaps = Behaviour { ends_after_ms: Some(0), code: 7, ..Behaviour::default() };
    bench.tell("windows_exporter", &flaps);
    join(&cluster, &mut bench, &manifest).await;
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
    assert_eq!(seen(&bench).await, wanted(&bench, &manifest));
}

pub(super) async fn a_service_that_hangs_holds_the_mark_back_until_it_runs<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    bench.tell("kube-proxy", &Behaviour { hangs: true, ..Behaviour::default() });
    join(&cluster, &mut bench, &manifest).await;
    until("it is started", async || bench.moves().ends_with(&starts(&["kube-proxy"]))).await;
    bench.tell("kube-proxy", &Behaviour::default());
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&bench, &manifest));
}

pub(super) async fn a_service_that_answers_500_holds_the_mark_back<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    bench.put(host::KUBELET_CONFIG, format!(r#"{{"healthzPort": {port}}}"#).as_bytes());
    let health = |health| Behaviour { port: Some(port), health, ..Behaviour::default() };
    bench.tell(host::KUBELET_SERVICE, &health(500));
    join(&cluster, &mut bench, &manifest).await;
    settled(&bench, &manifest).await;
    cluster.whole_pass().await;
    assert_eq!(cluster.annotation(names::VERSION_ANNOTATION), None);
    bench.tell(host::KUBELET_SERVICE, &health(200));
    cluster.configured(VERSION).await;
}
