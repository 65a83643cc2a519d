//! The dashboard shows what there is.

use serde_json::Value;
use wmco_core::monitoring::shipped;
use wmco_core::names::monitoring::{DASHBOARD_LABEL, DASHBOARD_NAMESPACE};

use super::names::{in_query, known};
use super::promtool::{Query, check};

/// The ConfigMap, and the queries of all panels.
fn dashboard() -> (Value, Vec<String>) {
    let map = shipped("ns").into_iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let data = map["data"].as_object().unwrap();
    let text = data.values().next().unwrap().as_str().unwrap();
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let rows = dashboard["rows"].as_array().unwrap();
    let panels = rows.iter().flat_map(|row| row["panels"].as_array().unwrap());
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    (map, queries)
}

#[test]
fn the_console_finds_it() {
    let (map, queries) = dashboard();
    assert_eq!(map["metadata"]["namespace"], DASHBOARD_NAMESPACE);
    assert_eq!(map["metadata"]["labels"][DASHBOARD_LABEL], "true");
    assert_eq!(map["data"].as_object().unwrap().len(), 1);
    assert!(queries.len() >= 12, "{queries:?}");
}

#[test]
fn panels_look_up_what_there_is() {
    let known = known();
    for query in dashboard().1 {
        let names = in_query(&query);
        assert!(!names.is_empty(), "{query}");
        for name in names {
            assert!(known.contains(&name), "{name} in {query}");
        }
    }
}

/// Prometheus takes each query; there is nothing to show.
#[test]
fn panels_are_queries() {
    let queries = dashboard().1;
    let nothing: Vec<Query<'_>> =
        queries.iter().map(|query| (query.as_str(), "1m", &[][..])).collect();
    check(&[], &nothing);
}
