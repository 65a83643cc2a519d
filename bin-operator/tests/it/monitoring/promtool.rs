//! Runs `promtool` on the rules that are shipped.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use wmco_core::monitoring;

/// Debian's package `prometheus` has it; `scripts/setup.sh test` installs that.
const PROMTOOL: &str = "promtool";

const RULES: &str = "rules.json";

/// Runs it in a folder where the rules are; `test` is a file of tests, if there is one.
fn run(arguments: &[&str], test: Option<&Value>) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let rules = &monitoring::rules("ns")["spec"];
    fs::write(folder.path().join(RULES), rules.to_string()).unwrap();
    if let Some(test) = test {
        fs::write(folder.path().join("test.json"), test.to_string()).unwrap();
    }
    let ran = Command::new(PROMTOOL).args(arguments).current_dir(folder.path()).output();
    let ran = ran.expect("promtool runs: install Debian's package `prometheus`");
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Series, their values from the start on, one each 30 seconds.
pub(super) type Series<'a> = &'a [(&'a str, &'a str)];

/// A query, when it is asked, and what it has to give: labels and values.
pub(super) type Query<'a> = (&'a str, &'a str, &'a [(&'a str, f64)]);

/// What promtool says of queries, each with its time and what it has to give, after these series.
#[track_caller]
pub(super) fn check(series: Series<'_>, queries: &[Query<'_>]) {
    let series: Vec<Value> =
        series.iter().map(|(name, values)| json!({"series": name, "values": values})).collect();
    let queries: Vec<Value> = queries
        .iter()
        .map(|(query, time, samples)| {
            let samples: Vec<Value> = samples
                .iter()
                .map(|(labels, value)| json!({"labels": labels, "value": value}))
                .collect();
            json!({"expr": query, "eval_time": time, "exp_samples": samples})
        })
        .collect();
    let test = json!({
        "rule_files": [RULES],
        "evaluation_interval": "30s",
        "tests": [{"interval": "30s", "input_series": series, "promql_expr_test": queries}],
    });
    let (passed, said) = run(&["test", "rules", "test.json"], Some(&test));
    assert!(passed, "{said}");
}

#[test]
fn promtool_takes_the_rules() {
    let (passed, text) = run(&["check", "rules", RULES], None);
    let rules = monitoring::rules("ns")["spec"]["groups"].as_array().unwrap().clone();
    let count: usize = rules.iter().map(|group| group["rules"].as_array().unwrap().len()).sum();
    assert!(passed && text.contains(&format!("{count} rules found")), "{text}");
}

#[test]
fn promtool_finds_what_is_wrong() {
    let test = json!({
        "rule_files": [RULES], "evaluation_interval": "30s",
        "tests": [{
            "interval": "30s", "input_series": [],
            "promql_expr_test": [
                {"expr": "vector(1)", "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 2}]},
            ],
        }],
    });
    assert!(!run(&["test", "rules", "test.json"], Some(&test)).0);
}
