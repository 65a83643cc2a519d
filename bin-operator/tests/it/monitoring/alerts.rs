//! Each alert fires when it should, and not a moment before.

use std::collections::BTreeSet;

use wmco_core::monitoring::ALERTS;

use super::promtool::{Query, Series, check};

/// An alert, the series that raise it, when it does not fire yet and when it does, and the labels that it has then
/// besides its own.
struct Row {
    name: &'static str,
    series: Series<'static>,
    not_at: &'static str,
    at: &'static str,
    labels: &'static str,
}

/// Values that stay for a day.
const ZERO: &str = "0x2880";
const ONE: &str = "1x2880";

/// Times since 1970 begin at 0, when the tests do.
const ROWS: [Row; 10] = [
    Row {
        name: "WindowsMachineConfigOperatorDown",
        series: &[("up{job=\"windows-machine-config-operator-metrics\"}", "1x10 0x60")],
        // The last scrape that was answered is at 5m.
        not_at: "15m",
        at: "15m30s",
        labels: "",
    },
    Row {
        name: "WindowsMachineConfigOperatorNoLeader",
        series: &[("wmco_leader{pod=\"a\"}", ZERO), ("wmco_leader{pod=\"b\"}", "1x10 0x60")],
        not_at: "15m",
        at: "15m30s",
        labels: "",
    },
    Row {
        name: "WindowsNodeStuck",
        series: &[(
            "wmco_instance_pending_since_timestamp_seconds{instance=\"win-1\",phase=\"upgrade\"}",
            ZERO,
        )],
        not_at: "75m",
        at: "75m30s",
        labels: "instance=\"win-1\",phase=\"upgrade\"",
    },
    Row {
        name: "WindowsNodeDrainBlocked",
        series: &[("wmco_drain_blocked_since_timestamp_seconds{node=\"win-1\"}", ZERO)],
        not_at: "35m",
        at: "35m30s",
        labels: "node=\"win-1\"",
    },
    Row {
        name: "WindowsHostUnreachable",
        series: &[("wmco_host_unreachable_since_timestamp_seconds{instance=\"10.0.0.1\"}", ZERO)],
        not_at: "15m",
        at: "15m30s",
        labels: "instance=\"10.0.0.1\"",
    },
    Row {
        name: "WindowsNodeRestartPending",
        series: &[("wmco_restart_pending_since_timestamp_seconds{node=\"win-1\"}", ZERO)],
        not_at: "4h15m",
        at: "4h15m30s",
        labels: "node=\"win-1\"",
    },
    Row {
        name: "WindowsDisruptionSlotHeld",
        series: &[("wmco_slot_held_since_timestamp_seconds{node=\"win-1\"}", ZERO)],
        not_at: "2h15m",
        at: "2h15m30s",
        labels: "node=\"win-1\"",
    },
    Row {
        name: "WindowsCertificateExpiring",
        // As WICD's, which live for an hour and five minutes: 8 % are 5 min 12 s.
        series: &[
            (
                "wmco_certificate_valid_from_timestamp_seconds{certificate=\"wicd\",node=\"win-1\"}",
                ZERO,
            ),
            (
                "wmco_certificate_expiry_timestamp_seconds{certificate=\"wicd\",node=\"win-1\"}",
                "3900x2880",
            ),
        ],
        not_at: "1h1m30s",
        at: "1h2m",
        labels: "certificate=\"wicd\",node=\"win-1\"",
    },
    Row {
        name: "WindowsPreflightFinding",
        series: &[
            ("wmco_preflight_findings{severity=\"blocking\"}", "0x10 2x60"),
            ("wmco_preflight_findings{severity=\"warning\"}", ONE),
        ],
        not_at: "20m",
        at: "20m30s",
        // Its own severity wins over that of the finding.
        labels: "",
    },
    Row {
        name: "WindowsActionsFailing",
        // One a minute.
        series: &[
            ("wmco_actions_total{action=\"apply\",result=\"error\"}", "0+0.5x200"),
            ("wmco_actions_total{action=\"probe\",result=\"error\"}", "0+0.25x200"),
            ("wmco_actions_total{action=\"probe\",result=\"ok\"}", "0+9x200"),
        ],
        not_at: "30m",
        at: "60m",
        labels: "action=\"apply\"",
    },
];

#[test]
fn each_alert_fires_in_time_and_not_before() {
    for Row { name, series, not_at, at, labels } in ROWS {
        let alert = ALERTS.iter().find(|alert| alert.name == name).unwrap();
        let query = format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}}");
        let labels = if labels.is_empty() { String::new() } else { format!("{labels},") };
        let severity = alert.severity.name();
        let firing = format!(
            "ALERTS{{alertname=\"{name}\",alertstate=\"firing\",{labels}severity=\"{severity}\"}}"
        );
        check(series, &[(&query, not_at, &[]), (&query, at, &[(&firing, 1.0)])]);
    }
}

#[test]
fn every_alert_is_tried() {
    let tried: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
    let all: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name).collect();
    assert_eq!(tried, all);
    assert_eq!(ROWS.len(), all.len());
}

/// What is below the limits raises nothing, for however long.
#[test]
fn a_calm_fleet_raises_nothing() {
    let series = [
        ("up{job=\"windows-machine-config-operator-metrics\"}", ONE),
        ("wmco_leader{pod=\"a\"}", ONE),
        ("wmco_preflight_findings{severity=\"blocking\"}", ZERO),
        ("wmco_preflight_findings{severity=\"warning\"}", ONE),
        ("wmco_actions_total{action=\"probe\",result=\"error\"}", "0+0.3x2880"),
        // Half of its time is left.
        ("wmco_certificate_valid_from_timestamp_seconds{certificate=\"wicd\"}", ZERO),
        ("wmco_certificate_expiry_timestamp_seconds{certificate=\"wicd\"}", "172800x2880"),
    ];
    let nothing: [Query<'_>; 3] =
        [("ALERTS", "1h", &[]), ("ALERTS", "6h", &[]), ("ALERTS", "23h", &[])];
    check(&series, &nothing);
}
