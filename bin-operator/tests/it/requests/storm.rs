//! Thousands of requests at once: every decision right, nothing of others touched.
//!
//! `WMCO_STORM=10000` makes it as many; it prints figures.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use rcgen::SanType;

use super::scenery::{Asked, Scene, client_of, daemon_of, serving_of};

/// As many are quick in a debug build.
const FEW: usize = 1_000;
/// Requests that are made side by side.
const CLIENTS: usize = 16;

/// Kind, verdict and rule.
type Outcome = (&'static str, &'static str, &'static str);

/// One sort of request: who asks for what, and what becomes of it.
struct Sort {
    outcome: Outcome,
    has_host: bool,
    /// Operating system of the Node, if there is one.
    node: Option<&'static str>,
    ask: fn(&str) -> Asked,
    spoil: fn(&str) -> String,
}

const fn sort(
    outcome: Outcome,
    has_host: bool,
    node: Option<&'static str>,
    ask: fn(&str) -> Asked,
    spoil: fn(&str) -> String,
) -> Sort {
    Sort { outcome, has_host, node, ask, spoil }
}

const WINDOWS: Option<&str> = Some("windows");
const CLIENT: &str = "kubelet-client";
const SERVING: &str = "kubelet-serving";
const WICD: &str = "wicd";

const SORTS: &[Sort] = &[
    sort((CLIENT, "approve", ""), true, None, client_of, same),
    sort((SERVING, "approve", ""), true, WINDOWS, serving_of, same),
    sort((WICD, "approve", ""), true, WINDOWS, daemon_of, same),
    // Ours and wrong.
    sort((CLIENT, "refuse", "requester"), true, None, |n| by("jane", client_of(n)), same),
    sort((CLIENT, "refuse", "usages"), true, None, without_usages, same),
    sort((CLIENT, "refuse", "pem"), true, None, client_of, twice),
    sort((CLIENT, "ignore", "node-absent"), true, WINDOWS, client_of, same),
    sort((SERVING, "refuse", "requester"), true, WINDOWS, |n| by("jane", serving_of(n)), same),
    sort((SERVING, "refuse", "name-kinds"), true, WINDOWS, with_email, same),
    sort((SERVING, "wait", "addresses"), true, WINDOWS, with_foreign_name, same),
    sort((SERVING, "wait", "node"), true, None, serving_of, same),
    sort(
        (WICD, "refuse", "requester"),
        true,
        WINDOWS,
        |n| by("system:wicd-node:x", daemon_of(n)),
        same,
    ),
    sort((WICD, "refuse", "lifetime"), true, WINDOWS, for_a_year, same),
    sort((WICD, "refuse", "node-os"), false, Some("linux"), daemon_of, same),
    // Not ours.
    sort((CLIENT, "ignore", "instance"), false, None, client_of, same),
    sort((CLIENT, "ignore", "node-os"), false, Some("linux"), client_of, same),
    sort((SERVING, "ignore", "node-os"), false, Some("linux"), serving_of, same),
    sort((WICD, "ignore", "common-name"), false, None, of_a_user, same),
    sort((WICD, "ignore", "pem"), false, None, of_a_user, twice),
    sort(("none", "ignore", "signer"), false, None, for_another_signer, same),
];

fn same(pem: &str) -> String {
    pem.to_owned()
}

fn twice(pem: &str) -> String {
    pem.repeat(2)
}

fn by(user: &str, asked: Asked) -> Asked {
    Asked { user: user.to_owned(), ..asked }
}

fn without_usages(node: &str) -> Asked {
    Asked { usages: vec!["client auth"], ..client_of(node) }
}

fn with_email(node: &str) -> Asked {
    let mut asked = serving_of(node);
    asked.names.push(SanType::Rfc822Name("a@b.example".try_into().unwrap()));
    asked
}

fn with_foreign_name(node: &str) -> Asked {
    let mut asked = serving_of(node);
    asked.names.push(SanType::DnsName("api.example.net".try_into().unwrap()));
    asked
}

fn for_a_year(node: &str) -> Asked {
    Asked { lifetime: Some(365 * 24 * 3600), ..daemon_of(node) }
}

fn of_a_user(node: &str) -> Asked {
    let common_name = format!("user-{node}");
    let organization = "people";
    Asked { common_name, organization, user: "jane".to_owned(), groups: vec![], ..daemon_of(node) }
}

fn for_another_signer(node: &str) -> Asked {
    Asked { signer: "example.net/signer", ..client_of(node) }
}

/// One request of a storm; every one has a node name of its own.
struct One {
    sort: &'static Sort,
    node: String,
    address: String,
}

impl One {
    fn all(count: usize) -> Vec<Self> {
        let sorts = SORTS.iter().cycle().zip(0_u32..).take(count);
        let one = |(sort, number): (&'static Sort, u32)| Self {
            sort,
            node: format!("node-{number}"),
            address: std::net::Ipv4Addr::from(0x0a40_0000 + number).to_string(),
        };
        sorts.map(one).collect()
    }

    fn asked(&self) -> Asked {
        let name = format!("csr-{}", self.node);
        Asked { name, ..(self.sort.ask)(&self.node) }
    }
}

/// Resident memory of this process in MiB, cluster and clients included.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).map(str::trim);
    kib.and_then(|kib| kib.parse::<usize>().ok()).unwrap_or_default() / 1024
}

/// Upper bound in seconds of the bucket in which the part `of` of all decisions lies.
fn quantile(metrics: &str, of: f64) -> String {
    let buckets: Vec<(&str, f64)> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("wmco_csr_decision_seconds_bucket{le=\""))
        .filter_map(|line| line.split_once("\"} "))
        .map(|(bound, count)| (bound, count.parse().unwrap()))
        .collect();
    let all = buckets.last().unwrap().1;
    let bucket = buckets.iter().find(|(_, count)| *count >= all * of);
    bucket.unwrap().0.to_owned()
}

/// Makes every request and waits until each is answered as its sort says. Returns figures.
async fn storm(scene: &Scene, all: &[One], round: u64) -> String {
    let begun = Instant::now();
    let made: Vec<_> = stream::iter(all)
        .map(|one| async {
            let asked = one.asked();
            scene.ask_with(&asked, &(one.sort.spoil)(&asked.pem())).await
        })
        .buffered(CLIENTS)
        .collect()
        .await;
    let asked_in = begun.elapsed();
    let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
    for one in all {
        *outcomes.entry(one.sort.outcome).or_default() += round;
    }
    let answered = || outcomes.iter().all(|((k, v, r), n)| scene.count(k, v, r) == *n);
    scene.until(answered).await;
    let approved = |one: &One| one.sort.outcome.1 == "approve";
    let granted =
        |one: &&One| scene.stored(&one.asked().name).status.unwrap_or_default().conditions;
    let ours = || all.iter().filter(|one| approved(one));
    scene.until(|| ours().all(|one| granted(&one).is_some())).await;
    let figures = format!(
        "{} requests made in {asked_in:.1?}, all answered after {:.1?}; {} MiB resident; half of \
         the decisions took at most {} s, 99 % at most {} s",
        all.len(),
        begun.elapsed(),
        resident(),
        quantile(&scene.metrics.text(), 0.5),
        quantile(&scene.metrics.text(), 0.99),
    );

    for (one, made) in all.iter().zip(&made) {
        let stored = scene.stored(&one.asked().name);
        if approved(one) {
            let conditions = stored.status.unwrap().conditions.unwrap();
            let reasons: Vec<_> = conditions.iter().map(|c| c.reason.as_deref().unwrap()).collect();
            let reason =
                if one.sort.outcome.0 == WICD { "WICDAutoApproved" } else { "WMCOApprove" };
            assert_eq!(reasons, [reason]);
        } else {
            let version = made.metadata.resource_version.clone();
            assert_eq!(stored.metadata.resource_version, version, "{:?}", one.sort.outcome);
        }
    }
    // Nothing was answered in any other way.
    let counted: u64 = scene
        .metrics
        .text()
        .lines()
        .filter(|line| line.starts_with("wmco_csr_decisions_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    // What came before the DNS was asked about its host waited for that.
    let waited =
        [CLIENT, SERVING].iter().map(|kind| scene.count(kind, "wait", "instance")).sum::<u64>();
    assert_eq!(counted - waited, outcomes.values().sum::<u64>(), "{}", scene.metrics.text());
    figures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decision_of_a_storm_is_right() {
    let count = std::env::var("WMCO_STORM").map_or(FEW, |count| count.parse().unwrap());
    let all = One::all(count);
    let hosts = all.iter().filter(|one| one.sort.has_host);
    let hosts = hosts.map(|one| (one.address.clone(), one.node.to_uppercase())).collect();
    let scene = Scene::start(&hosts).await;
    for one in &all {
        if let Some(os) = one.sort.node {
            scene.node(&one.node, os, &one.address);
        }
    }
    scene.approve(false).await;
    let before = resident();
    println!("{}", storm(&scene, &all, 1).await);
    let after = resident();

    // What goes leaves nothing behind: another storm of new requests needs no more memory.
    for one in &all {
        scene
            .requests()
            .delete(&one.asked().name, &kube::api::DeleteParams::default())
            .await
            .unwrap();
    }
    scene.cluster.expire_history();
    println!("{}", storm(&scene, &all, 2).await);
    let again = resident();
    println!("memory: {before} MiB before, {after} MiB after one storm, {again} MiB after two");
    let grown = after.saturating_sub(before);
    assert!(again <= after + grown / 2 + 32, "{before}, {after}, {again} MiB");
    scene.stop().await;
}
