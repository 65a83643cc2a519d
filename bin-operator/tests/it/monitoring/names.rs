//! Names of metrics in queries, and those that there are.

use std::collections::BTreeSet;
use std::sync::Arc;

use bin_operator::metrics::{
    ActionLabels, CertificateLabels, CsrLabels, FindingLabels, InstanceLabels, IntentLabels,
    Metrics, NodeLabels, WorkLabels,
};
use wmco_core::monitoring::{self, ALERTS, SOURCES};
use wmco_ssh::{Options, Pool, PoolLimits, TcpDialer};

/// Names that a query looks up: words that are no function, no keyword, no label and no text.
pub(super) fn in_query(query: &str) -> BTreeSet<String> {
    const KEYWORDS: [&str; 6] = ["by", "without", "on", "group_left", "offset", "bool"];
    let (mut names, mut word) = (BTreeSet::new(), String::new());
    let (mut braces, mut text, mut labels) = (0, false, false);
    // What ends the last word ends with this.
    for (at, sign) in query.char_indices().chain([(query.len(), ' ')]) {
        if text {
            text = sign != '"';
            continue;
        }
        if braces == 0 && !labels && (sign.is_alphanumeric() || matches!(sign, '_' | ':')) {
            word.push(sign);
            continue;
        }
        let rest = query.get(at..).unwrap_or_default().trim_start();
        let ended = std::mem::take(&mut word);
        if KEYWORDS.contains(&ended.as_str()) {
            labels = rest.starts_with('(');
        } else if ended.starts_with(|first: char| first.is_alphabetic()) && !rest.starts_with('(') {
            // An aggregation may have its labels before what it adds up.
            let is_aggregation = ["sum", "max", "avg"].contains(&ended.as_str());
            // Units of a range, as in [5m], begin with a digit.
            if !is_aggregation {
                names.insert(ended);
            }
        }
        match sign {
            '"' => text = true,
            '{' | '[' => braces += 1,
            '}' | ']' => braces -= 1,
            ')' => labels = false,
            _ => {}
        }
    }
    names
}

/// All that our own text of metrics has, with everything told once.
fn ours() -> BTreeSet<String> {
    let pool = Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default());
    let metrics = Metrics::new(pool);
    let node = NodeLabels { node: "n".into() };
    let instance = InstanceLabels { instance: "i".into() };
    let certificate = CertificateLabels { certificate: "c", node: "n".into() };
    metrics.actions.get_or_create(&ActionLabels { action: "a", result: "ok" }).inc();
    metrics.csrs.get_or_create(&CsrLabels { kind: "k", verdict: "v", rule: "r" }).inc();
    metrics.instances.get_or_create(&IntentLabels { intent: "i" }).set(1);
    metrics.pending.get_or_create(&WorkLabels { instance: "i".into(), phase: "p" }).set(1);
    metrics.retries.get_or_create(&instance).set(1);
    metrics.unreachable.get_or_create(&instance).set(1);
    metrics.findings.get_or_create(&FindingLabels { severity: "blocking" }).set(1);
    for family in [&metrics.blocked_drains, &metrics.slots, &metrics.waits, &metrics.restarts] {
        family.get_or_create(&node).set(1);
    }
    for family in [&metrics.certificates_from, &metrics.certificates_until] {
        family.get_or_create(&certificate).set(1);
    }
    let text = metrics.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// All that a query may look up: ours, the exporter's, what rules record, and what Prometheus has of itself.
pub(super) fn known() -> BTreeSet<String> {
    let rules = monitoring::rules("ns")["spec"]["groups"][0]["rules"].as_array().unwrap().clone();
    let recorded = rules.iter().map(|rule| rule["record"].as_str().unwrap().to_owned());
    let others = SOURCES.iter().copied().chain(["up"]).map(str::to_owned);
    ours().into_iter().chain(recorded).chain(others).collect()
}

#[track_caller]
fn check(query: &str, expected: &[&str]) {
    assert_eq!(in_query(query).iter().map(String::as_str).collect::<Vec<_>>(), expected, "{query}");
}

#[test]
fn names_are_read_out_of_queries() {
    check("time() - a_b > 4 * 3600", &["a_b"]);
    check("sum by (x, y) (rate(a_total{z=\"q r\"}[5m]))", &["a_total"]);
    check("a * on (c) group_left (d, e) max by (f) (g{h!=\"\"})", &["a", "g"]);
    check("1 - avg without (core) (rate(r:s:t[1m]))", &["r:s:t"]);
    check("label_replace(a, \"b\", \"\", \"c d\", \"\")", &["a"]);
    check("absent(up{job=\"x\"} == 1)", &["up"]);
}

/// People find each metric and each alert in the README.
#[test]
fn the_book_names_what_there_is() {
    let page = include_str!("../../../../docs/src/monitoring.md");
    let histograms = ["wmco_csr_decision_seconds", "wmco_fleet_pass_seconds"];
    assert!(histograms.iter().all(|name| page.contains(&format!("`{name}`"))));
    let of_histogram =
        |name: &str| histograms.iter().any(|whole| name.starts_with(&format!("{whole}_")));
    let alerts = ALERTS.iter().map(|alert| alert.name.to_owned());
    for name in ours().into_iter().filter(|name| !of_histogram(name)).chain(alerts) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn rules_look_up_what_there_is() {
    let known = known();
    for group in monitoring::rules("ns")["spec"]["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            let names = in_query(rule["expr"].as_str().unwrap());
            assert!(!names.is_empty(), "{rule}");
            for name in names {
                assert!(known.contains(&name), "{name} in {rule}");
            }
        }
    }
    assert!(ALERTS.iter().any(|alert| in_query(alert.expr).contains("wmco_leader")));
}
