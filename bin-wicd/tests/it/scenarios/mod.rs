//! What must happen on every kind of host.

mod content;
mod daemon;
mod joining;
mod logs;
mod others;

use std::collections::BTreeMap;

use wmco_core::names;
use wmco_core::proxy::ProxySettings;
use wmco_services::manifest::Manifest;

use crate::bench::{Bench, Move, manifest_with, seen, wanted};
use crate::cluster::{Cluster, until};

/// Runs each scenario on a host in memory and on one under Wine.
macro_rules! on_both {
    ($($scenario:ident: $($name:ident)*;)*) => {
        mod memory {
            $($(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$scenario::$name::<crate::memory::Memory>().await })*)*
        }

        mod wine {
            $($(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$scenario::$name::<crate::wine::Wine>().await })*)*
        }
    };
}

on_both! {
    joining:
        bootstrap_starts_containerd_then_kubelet
        the_rest_is_created_when_the_node_is_there
        variables_and_roots_ask_for_one_restart
        variables_that_are_not_wanted_any_more_go
        a_service_that_ends_at_once_holds_up_only_itself
        a_service_that_hangs_holds_the_mark_back_until_it_runs
        a_service_that_answers_500_holds_the_mark_back;
    content:
        a_changed_config_map_reconfigures_only_what_changed
        content_that_is_not_released_changes_nothing
        dependents_stop_first_and_start_last
        a_service_that_ignores_stop_is_ended;
    logs:
        a_storm_in_a_log_stays_within_the_bound_without_a_restart;
    others:
        a_stopped_and_a_deleted_service_come_back
        a_service_that_crashed_comes_back
        what_a_crashed_wrapper_left_ends_before_the_next_start_and_with_cleanup
        a_command_that_somebody_changed_is_put_right
        a_name_that_somebody_gave_a_service_is_put_right
        a_variable_that_is_no_text_goes
        a_variable_that_somebody_else_set_asks_for_one_restart
        a_variable_that_is_put_back_asks_for_no_restart
        a_variable_goes_that_no_manifest_knows_any_more
        a_foreign_service_with_our_tag_goes;
    daemon:
        certificates_are_renewed_without_a_restart
        nothing_to_do_changes_nothing
        cleanup_leaves_the_host_as_it_was
        the_daemon_stops_before_a_service_that_does_not
        killed_again_and_again_it_converges;
}

const VERSION: &str = "1.2.3-a1b2c3d";

/// A host that joins with the daemon, and its cluster.
async fn joining<B: Bench>(cluster: &Cluster, manifest: &Manifest) -> B {
    let mut bench = B::new(cluster).await;
    join(cluster, &mut bench, manifest).await;
    bench
}

/// Lets a host join.
async fn join<B: Bench>(cluster: &Cluster, bench: &mut B, manifest: &Manifest) {
    cluster.publish(VERSION, manifest);
    cluster.join(bench.address(), VERSION);
    bench.start_daemon().await;
}

/// A host that is all that the cluster wants.
async fn configured<B: Bench>(cluster: &Cluster, manifest: &Manifest) -> B {
    let bench = joining(cluster, manifest).await;
    cluster.configured(VERSION).await;
    bench
}

/// Waits until the services are those of the manifest, all running.
async fn settled<B: Bench>(bench: &B, manifest: &Manifest) {
    let wanted = wanted(bench, manifest);
    until("all services are as the manifest says", async || seen(bench).await == wanted).await;
}

/// The same by these moves since the first `begun` ones, and no other. The manager shows a service as running for a
/// moment after its process was ended, so that its start is waited for.
async fn settled_by<B: Bench>(bench: &B, manifest: &Manifest, begun: usize, expected: &[Move]) {
    let all = begun + expected.len();
    until("all is moved", async || bench.moves().len() >= all).await;
    settled(bench, manifest).await;
    assert_eq!(bench.moves()[begun..], *expected);
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

/// A manifest whose cluster has a proxy that nobody must use to reach this cluster.
fn proxied() -> Manifest {
    manifest_with(|inputs| {
        inputs.proxy = ProxySettings::from_environment(|name| match name {
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
