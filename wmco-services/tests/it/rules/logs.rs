//! `docs/contract/services.md`, SVC60 to SVC62: settings of log rotation.

use wmco_core::units::Quantity;
use wmco_services::generate::{LogSettings, ManifestInputs, manifest};

const SIZE: &str = "SERVICES_LOG_FILE_SIZE";
const AGE: &str = "SERVICES_LOG_FILE_AGE";
const FLUSH: &str = "SERVICES_LOG_FLUSH_INTERVAL";

fn settings(set: &[(&str, &str)]) -> Result<LogSettings, String> {
    let variable = |name: &str| {
        set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    };
    LogSettings::from_environment(variable).map_err(|error| error.to_string())
}

// The first table. Each variable is parsed by the type of its value.

/// The parsers of sizes and of durations read `value` as `expected`, which is empty for an unset value.
#[track_caller]
fn both_read(value: &str, expected: &str) {
    size_reads(value, expected);
    duration_reads(value, expected);
}

#[track_caller]
fn reads(name: &str, value: &str, expected: &str) {
    let expected = if expected.is_empty() { String::new() } else { format!("{name}={expected}") };
    assert_eq!(settings(&[(name, value)]).map(|read| read.to_string()), Ok(expected));
}

#[track_caller]
fn size_reads(value: &str, expected: &str) {
    reads(SIZE, value, expected);
}

#[track_caller]
fn duration_reads(value: &str, expected: &str) {
    for name in [AGE, FLUSH] {
        reads(name, value, expected);
    }
}

/// The message names this variable, and no other.
#[track_caller]
fn refuses(names: &[&str], value: &str) {
    for name in names {
        let error = settings(&[(name, value)]).unwrap_err();
        assert!(error.starts_with(&format!("variable {name} ")), "{error}");
    }
}

#[track_caller]
fn size_refuses(value: &str) {
    refuses(&[SIZE], value);
}

#[track_caller]
fn duration_refuses(value: &str) {
    refuses(&[AGE, FLUSH], value);
}

#[test]
fn an_unset_variable_is_nothing() {
    assert!(!settings(&[]).unwrap().is_configured());
}

#[test]
fn an_empty_variable_is_nothing() {
    both_read("", "");
}

#[test]
fn spaces_are_nothing() {
    both_read("   ", "");
}

#[test]
fn a_number_is_a_size() {
    size_reads("100", "100");
}

#[test]
fn a_number_without_unit_is_no_duration() {
    duration_refuses("100");
}

#[test]
fn a_size_with_a_suffix() {
    size_reads("100M", "100M");
}

#[test]
fn a_size_with_spaces_around() {
    size_reads("  100Mi  ", "100Mi");
}

#[test]
fn a_duration_with_a_unit() {
    duration_reads("5s", "5s");
}

#[test]
fn a_duration_with_spaces_around() {
    duration_reads("  30s  ", "30s");
}

#[test]
fn a_size_of_zero() {
    size_reads("0", "0");
}

#[test]
fn a_duration_of_zero() {
    duration_reads("0s", "0s");
}

#[test]
fn a_negative_size() {
    size_refuses("-1");
}

#[test]
fn a_negative_duration() {
    duration_refuses("-5s");
}

#[test]
fn a_word_that_is_no_size() {
    size_refuses("notaquantity");
}

#[test]
fn a_word_that_is_no_duration() {
    duration_refuses("notaduration");
}

#[test]
fn an_unknown_unit_of_durations() {
    duration_refuses("10x");
}

#[test]
fn all_wrong_ones_are_told_at_once() {
    let error = settings(&[(SIZE, "x"), (AGE, "1"), (FLUSH, "-1s")]).unwrap_err();
    assert!([SIZE, AGE, FLUSH].iter().all(|name| error.contains(name)), "{error}");
}

// The second table.

/// Returns the log text, and the log runner's flags for kubelet and kube-proxy.
fn wrapped(set: &[(&str, &str)]) -> (String, Vec<String>) {
    let logs = settings(set).unwrap();
    assert_eq!(logs.is_configured(), !set.is_empty());
    let said = logs.to_string();
    let inputs =
        ManifestInputs { logs, api_server: "https://a:1".to_owned(), ..ManifestInputs::default() };
    let manifest = manifest(&inputs).unwrap();
    let flags = |service: &str| -> Vec<String> {
        let command = &manifest.service(&service.parse().unwrap()).unwrap().command;
        let line = command.strip_prefix(r"C:\k\kube-log-runner.exe ").unwrap();
        let (runner, _) = line.split_once(&format!(r" C:\k\{service}.exe ")).unwrap();
        let log = format!(r"-log-file=C:\var\log\{service}\{service}.log");
        runner.strip_prefix(&log).unwrap().split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(flags("kubelet"), flags("kube-proxy"));
    (said, flags("kubelet"))
}

#[test]
fn no_log_settings() {
    assert_eq!(wrapped(&[]), (String::new(), Vec::new()));
}

#[test]
fn log_size_only() {
    let (said, flags) = wrapped(&[(SIZE, "100M")]);
    assert_eq!(
        (said.as_str(), flags),
        ("SERVICES_LOG_FILE_SIZE=100M", vec!["-log-file-size=100M".to_owned()])
    );
}

#[test]
fn log_age_only() {
    let (said, flags) = wrapped(&[(AGE, "24h")]);
    assert_eq!(
        (said.as_str(), flags),
        ("SERVICES_LOG_FILE_AGE=24h", vec!["-log-file-age=24h".to_owned()])
    );
}

#[test]
fn log_flush_only() {
    let (said, flags) = wrapped(&[(FLUSH, "5s")]);
    assert_eq!(
        (said.as_str(), flags),
        ("SERVICES_LOG_FLUSH_INTERVAL=5s", vec!["-flush-interval=5s".to_owned()])
    );
}

#[test]
fn all_log_settings() {
    let (said, flags) = wrapped(&[(FLUSH, "5s"), (AGE, "24h"), (SIZE, "100M")]);
    assert_eq!(
        said,
        "SERVICES_LOG_FILE_SIZE=100M SERVICES_LOG_FILE_AGE=24h SERVICES_LOG_FLUSH_INTERVAL=5s"
    );
    assert_eq!(flags, ["-log-file-size=100M", "-log-file-age=24h", "-flush-interval=5s"]);
}

// The daemon's value for a size.

#[track_caller]
fn megabytes(text: &str, expected: Option<u64>) {
    let read = text.parse::<Quantity>().map(Quantity::megabytes);
    assert_eq!(read.ok(), expected, "{text}");
    if !text.is_empty() {
        let settings = settings(&[(SIZE, text)]);
        assert_eq!(settings.ok().and_then(|settings| settings.megabytes()), expected, "{text}");
    }
}

#[test]
fn megabytes_of_1m() {
    megabytes("1M", Some(1));
}

#[test]
fn megabytes_of_100mi() {
    megabytes("100Mi", Some(105));
}

#[test]
fn megabytes_of_1g() {
    megabytes("1G", Some(1000));
}

#[test]
fn megabytes_of_1gi() {
    megabytes("1Gi", Some(1074));
}

#[test]
fn megabytes_of_0() {
    megabytes("0", Some(0));
}

#[test]
fn megabytes_of_500() {
    megabytes("500", Some(1));
}

#[test]
fn megabytes_of_500k() {
    megabytes("500k", Some(1));
}

#[test]
fn megabytes_of_2000k() {
    megabytes("2000k", Some(2));
}

#[test]
fn megabytes_of_1e() {
    megabytes("1E", Some(1_000_000_000_000));
}

#[test]
fn megabytes_of_nothing() {
    megabytes("", None);
}

#[test]
fn megabytes_of_a_word() {
    megabytes("notaquantity", None);
}

#[test]
fn megabytes_of_a_negative_size() {
    megabytes("-1M", None);
}
