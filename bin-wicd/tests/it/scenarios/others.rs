//! What the daemon puts right when somebody else changes services.

use wicd_wine::hands::{Config, Order, Start};
use wicd_wine::told::Behaviour;
use wmco_core::names::{self, host};
use wmco_core::protocol::ServiceRunState;

use super::{
    VERSION, configured, join, joining, proxied, restarted, settled, settled_by, starts, stops,
};
use crate::bench::{Bench, manifest, manifest_that_sets, seen};
use crate::cluster::{Cluster, until};

pub(super) async fn a_stopped_and_a_deleted_service_come_back<B: Bench>() {
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

pub(super) async fn a_service_that_crashed_comes_back<B: Bench>() {
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

pub(super) async fn what_a_crashed_wrapper_left_ends_before_the_next_start_and_with_cleanup<
    B: Bench,
>() {
    const PROGRAM: &str = r"C:\k\kube-proxy.exe";
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench = B::new(&cluster).await;
    bench.tell("kube-proxy", &Behaviour { wraps: true, ..Behaviour::default() });
    join(&cluster, &mut bench, &manifest).await;
    cluster.configured(VERSION).await;
    let begun = bench.moves().len();
    let left = bench.crash_leaving("kube-proxy", PROGRAM).await;
    cluster.whole_pass().await;
    let restarted = || bench.moves()[begun..].ends_with(&starts(&["kube-proxy"]));
    until("it runs again", async || restarted()).await;
    settled(&bench, &manifest).await;
    assert!(!bench.runs(PROGRAM, left));
    // Nobody restarts it any more, and nothing of it stays.
    bench.stop_daemon().await;
    let left = bench.crash_leaving("kube-proxy", PROGRAM).await;
    assert_eq!(bench.cleanup().await, Some(false));
    assert!(!bench.runs(PROGRAM, left));
}

pub(super) async fn a_command_that_somebody_changed_is_put_right<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let bench: B = configured(&cluster, &manifest).await;
    let begun = bench.moves().len();
    let order =
        Order::Command { name: "hybrid-overlay-node".to_owned(), command: "wrong".to_owned() };
    bench.person(order).await;
    cluster.whole_pass().await;
    // With what needs it.
    let up = ["hybrid-overlay-node", "kube-proxy"];
    let mut down = up;
    down.reverse();
    settled_by(&bench, &manifest, begun, &[stops(&down), starts(&up)].concat()).await;
}

pub(super) async fn a_name_that_somebody_gave_a_service_is_put_right<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    let begun = bench.moves().len();
    let service = async || {
        let mut services = bench.services().await.into_iter();
        services.find(|service| service.name.as_str() == "csi-proxy").unwrap()
    };
    let before = service().await;
    let name = "csi-proxy".to_owned();
    bench.person(Order::Show { name, shown: "My proxy".to_owned() }).await;
    let shown = service().await;
    assert_eq!((shown.display_name.as_str(), shown.errors_ignored), ("My proxy", false));
    cluster.whole_pass().await;
    until("it is as before", async || service().await == before).await;
    assert_eq!(bench.moves().get(begun..), Some([].as_slice()));
}

pub(super) async fn a_variable_that_is_no_text_goes<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench: B = B::new(&cluster).await;
    let before = bench.variables().await;
    bench.person(Order::Number { variable: host::PROXY_VARIABLES[0].to_owned() }).await;
    assert_ne!(bench.variables().await, before);
    join(&cluster, &mut bench, &manifest()).await;
    cluster.configured(VERSION).await;
    assert_eq!(bench.variables().await, before);
    // No program has seen it, so none has to forget it.
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION), None);
    // A cleanup takes it away, too.
    bench.stop_daemon().await;
    bench.person(Order::Number { variable: host::PROXY_VARIABLES[0].to_owned() }).await;
    assert_eq!(bench.cleanup().await, Some(false));
    assert_eq!(bench.variables().await, before);
}

/// As the Go operator's daemon does before a host is taken over, or a person.
pub(super) async fn a_variable_that_somebody_else_set_asks_for_one_restart<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench: B = B::new(&cluster).await;
    let proxied = proxied();
    for (name, value) in proxied.environment() {
        let (name, value) = (name.clone(), Some(value.clone()));
        bench.person(Order::Variable { name, value }).await;
    }
    let before = bench.variables().await;
    join(&cluster, &mut bench, &proxied).await;
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    assert_eq!(bench.variables().await, before);
    let proxy = proxied.environment()["HTTPS_PROXY"].clone();
    assert_eq!(bench.sees(host::KUBELET_SERVICE, "HTTPS_PROXY"), Some(proxy));
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION), None);
}

pub(super) async fn a_variable_that_is_put_back_asks_for_no_restart<B: Bench>() {
    let cluster = Cluster::start().await;
    let mut bench: B = joining(&cluster, &proxied()).await;
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    let before = bench.variables().await;
    for value in [Some("http://another.example.test".to_owned()), None] {
        bench.person(Order::Variable { name: "HTTPS_PROXY".to_owned(), value }).await;
        cluster.whole_pass().await;
        until("it is as before", async || bench.variables().await == before).await;
    }
    cluster.whole_pass().await;
    assert_eq!(cluster.annotation(names::REBOOT_ANNOTATION), None);
    assert_eq!(cluster.annotation(names::VERSION_ANNOTATION).as_deref(), Some(VERSION));
}

pub(super) async fn a_variable_goes_that_no_manifest_knows_any_more<B: Bench>() {
    const OURS: &str = "WMCO_OURS";
    const THEIRS: &str = "WMCO_THEIRS";
    let cluster = Cluster::start().await;
    let mut bench: B = B::new(&cluster).await;
    let theirs = Order::Variable { name: THEIRS.to_owned(), value: Some("1".to_owned()) };
    bench.person(theirs).await;
    let with = manifest_that_sets(&[(OURS, "1")]);
    join(&cluster, &mut bench, &with).await;
    restarted(&cluster, &mut bench).await;
    cluster.configured(VERSION).await;
    assert!(bench.has_variable(OURS).await);
    cluster.publish(VERSION, &manifest());
    restarted(&cluster, &mut bench).await;
    assert!(!bench.has_variable(OURS).await);
    // And when the host is cleaned while it is set.
    cluster.publish(VERSION, &with);
    until("ours is set", async || bench.has_variable(OURS).await).await;
    bench.stop_daemon().await;
    cluster.publish(VERSION, &manifest());
    assert!(bench.cleanup().await.is_some());
    assert!(!bench.has_variable(OURS).await && bench.has_variable(THEIRS).await);
}

pub(super) async fn a_foreign_service_with_our_tag_goes<B: Bench>() {
    let cluster = Cluster::start().await;
    let manifest = manifest();
    let mut bench: B = configured(&cluster, &manifest).await;
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
    // A daemon that runs would delete the one before it is started.
    bench.stop_daemon().await;
    bench.person(create(foreign[0], format!("{} {}", host::SERVICE_TAG, foreign[0]))).await;
    bench.person(create(foreign[1], "none of yours".to_owned())).await;
    for name in foreign {
        bench.person(Order::Start { name: name.to_owned() }).await;
    }
    bench.start_daemon().await;
    until("the foreign service goes", async || !seen(&bench).await.contains_key("foreign")).await;
    let left = seen(&bench).await;
    assert_eq!(left["bystander"].1, ServiceRunState::Running);
    assert_eq!(left.len(), manifest.services().len() + 1);
}
