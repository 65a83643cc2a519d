//! What the daemon does when the services ConfigMap changes.

use wicd_wine::hands::Order;
use wicd_wine::told::Behaviour;
use wmco_core::names::{self, host};
use wmco_services::manifest::Manifest;

use super::{VERSION, configured, settled, settled_by, starts, stops};
use crate::bench::{Bench, manifest, seen, wanted, with_other_command};
use crate::cluster::{Cluster, until};

pub(super) async fn a_changed_config_map_reconfigures_only_what_changed<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    let (before, begun) = (bench.services().await, bench.moves().len());
    let changed = with_other_command("csi-proxy");
    cluster.publish(VERSION, &changed);
    let expected = [stops(&["csi-proxy"]), starts(&["csi-proxy"])].concat();
    settled_by(&bench, &changed, begun, &expected).await;
    let after = bench.services().await;
    for service in before.iter().filter(|service| service.name.as_str() != "csi-proxy") {
        assert!(after.contains(service), "{service:?} is not among {after:?}");
    }
}

pub(super) async fn content_that_is_not_released_changes_nothing<B: Bench>() {
    let digest = |manifest: &Manifest| manifest.render().digest().to_string();
    let cluster = Cluster::start().await;
    let mut bench = B::new(&cluster).await;
    let (old, new) = (manifest(), with_other_command("csi-proxy"));
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
    let begun = bench.moves().len();
    bench.person(Order::Stop { name: "csi-proxy".to_owned() }).await;
    // The order may be on its way while the service still runs.
    until("it runs again", async || bench.moves()[begun..].ends_with(&starts(&["csi-proxy"])))
        .await;
    settled(&bench, &old).await;
    // A daemon that starts again knows what was released before, and marks its node with that.
    bench.kill_daemon().await;
    cluster.annotate(names::VERSION_ANNOTATION, None);
    bench.start_daemon().await;
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&bench, &old));
    // One that was released what it never saw leaves the host alone, and does not mark its node.
    bench.kill_daemon().await;
    let unseen = with_other_command(host::CONTAINERD_SERVICE);
    cluster.annotate(names::SERVICES_ANNOTATION, Some(&digest(&unseen)));
    cluster.annotate(names::VERSION_ANNOTATION, None);
    let patches = cluster.patches();
    bench.start_daemon().await;
    cluster.whole_pass().await;
    assert_eq!((seen(&bench).await, cluster.patches()), (wanted(&bench, &old), patches));
    cluster.annotate(names::SERVICES_ANNOTATION, Some(&digest(&new)));
    cluster.configured(VERSION).await;
    assert_eq!(seen(&bench).await, wanted(&bench, &new));
}

pub(super) async fn dependents_stop_first_and_start_last<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    let begun = bench.moves().len();
    let changed = with_other_command(host::CONTAINERD_SERVICE);
    cluster.publish(VERSION, &changed);
    let up = ["containerd", "kubelet", "hybrid-overlay-node", "kube-proxy"];
    let mut down = up;
    down.reverse();
    settled_by(&bench, &changed, begun, &[stops(&down), starts(&up)].concat()).await;
}

pub(super) async fn a_service_that_ignores_stop_is_ended<B: Bench>() {
    let cluster = Cluster::start().await;
    let bench: B = configured(&cluster, &manifest()).await;
    bench.tell("csi-proxy", &Behaviour { ignores_stop: true, ..Behaviour::default() });
    let (changed, begun) = (with_other_command("csi-proxy"), bench.moves().len());
    cluster.publish(VERSION, &changed);
    until("it runs again", async || bench.moves()[begun..].ends_with(&starts(&["csi-proxy"])))
        .await;
    settled(&bench, &changed).await;
}
