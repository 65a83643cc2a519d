//! Alerts, each with the next step for an administrator.

use serde_json::{Value, json};

use crate::names::objects::DEFAULT_NAMESPACE;

/// An alert.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// Condition as a PromQL expression.
    pub expr: &'static str,
    /// How long the condition must hold before the alert fires.
    pub lasting: &'static str,
    /// Urgency of the alert.
    pub severity: Severity,
    /// The problem, in one line.
    pub summary: &'static str,
    /// The problem, with the names of objects.
    pub description: &'static str,
    /// The next step.
    pub runbook: &'static str,
}

/// Urgency of an alert.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// Act at once.
    Critical,
    /// Act within the day.
    Warning,
}

/// All alerts.
pub const ALERTS: [Alert; 10] = [
    Alert {
        name: "WindowsMachineConfigOperatorDown",
        expr: r#"absent(up{job="windows-machine-config-operator-metrics"} == 1)"#,
        lasting: "10m",
        severity: Severity::Critical,
        summary: "The Windows Machine Config Operator does not run.",
        description: "No process of the operator has answered Prometheus for 10 minutes. Windows nodes run on, but \
                      no host is configured, upgraded or removed, and no certificate request of a Windows node is \
                      answered.",
        runbook: "Look at `oc get pods -n openshift-windows-machine-config-operator` and at the logs of the last \
                  container (`oc logs --previous`). If the pod runs, compare the certificate in secret \
                  windows-machine-config-operator-metrics-tls with the service CA.",
    },
    Alert {
        name: "WindowsMachineConfigOperatorNoLeader",
        expr: "max(wmco_leader) < 1",
        lasting: "10m",
        severity: Severity::Critical,
        summary: "No process of the Windows Machine Config Operator leads.",
        description: "The operator runs, but none of its processes has had the Lease for 10 minutes, so nothing is \
                      done.",
        runbook: "Look who holds it: `oc get lease windows-machine-config-operator-lock -n \
                  openshift-windows-machine-config-operator -o yaml`. If the holder is gone, wait until its lease \
                  has run out (137 s); if `/readyz` of the pod fails, its log names what it waits for.",
    },
    Alert {
        name: "WindowsNodeStuck",
        expr: "time() - wmco_instance_pending_since_timestamp_seconds > 3600",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "Work on a Windows instance does not come to its end.",
        description: "Instance {{ $labels.instance }} has not come to rest for more than an hour; what goes on now: \
                      {{ $labels.phase }}.",
        runbook: "Read the Events of the instance: `oc get events -n openshift-windows-machine-config-operator \
                  --field-selector involvedObject.name=windows-instances`, or `oc describe machine` for a Machine. \
                  Each names the next step. `oc describe node` shows the conditions DrainBlocked and \
                  SSHHostKeyMismatch.",
    },
    Alert {
        name: "WindowsNodeDrainBlocked",
        expr: "time() - wmco_drain_blocked_since_timestamp_seconds > 1800",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "Pods do not leave a Windows node.",
        description: "Pods on node {{ $labels.node }} have blocked its drain for more than half an hour.",
        runbook: "`oc describe node {{ $labels.node }}`: the condition DrainBlocked names the pods and what holds \
                  them. Give a PodDisruptionBudget room, or delete pods that nobody needs.",
    },
    Alert {
        name: "WindowsHostUnreachable",
        expr: "time() - wmco_host_unreachable_since_timestamp_seconds > 600",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "The operator does not reach a Windows host.",
        description: "Host {{ $labels.instance }} has not let the operator in over SSH for more than 10 minutes.",
        runbook: "Read the last Event InstanceSetupFailure or MachineSetupFailure about it. Check that the host \
                  runs, that port 22 is open from the control plane, and that its user has the key of secret \
                  cloud-private-key. If the host is gone, take its entry out of windows-instances.",
    },
    Alert {
        name: "WindowsNodeRestartPending",
        expr: "time() - wmco_restart_pending_since_timestamp_seconds > 4 * 3600",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "A Windows node has waited for a restart for hours.",
        description: "Node {{ $labels.node }} has asked for a restart for more than four hours, so settings there \
                      are not in force.",
        runbook: "Nodes are restarted one after the other. The metric wmco_slot_held_since_timestamp_seconds \
                  names the one whose turn it is; `oc describe node` tells what that one waits for.",
    },
    Alert {
        name: "WindowsDisruptionSlotHeld",
        expr: "time() - wmco_slot_held_since_timestamp_seconds > 2 * 3600",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "A Windows node holds the slot for disruptions for long.",
        description: "Node {{ $labels.node }} has been disrupted for more than two hours. Others that need a slot wait for it.",
        runbook: "`oc describe node {{ $labels.node }}` and the Events tell what it waits for. If its host is gone, \
                  take its entry out of windows-instances, or delete its Machine; the slot is free once its Node is \
                  gone.",
    },
    Alert {
        name: "WindowsCertificateExpiring",
        expr: "(wmco_certificate_expiry_timestamp_seconds - time()) / (wmco_certificate_expiry_timestamp_seconds - \
               wmco_certificate_valid_from_timestamp_seconds) < 0.08",
        // Of the shortest, which live an hour, no more is left than five minutes.
        lasting: "2m",
        severity: Severity::Warning,
        summary: "A certificate of Windows nodes was not renewed in time.",
        description: "The {{ $labels.certificate }} certificate{{ with $labels.node }} of node {{ . }}{{ end }} has \
                      less than a twelfth of its time left. It is renewed earlier when all is well.",
        runbook: "`oc get csr` shows whether the node asks for a new one; Events CertificateRefused on a request \
                  say why it was not approved. No request: look at the kubelet's log on the node (`oc adm \
                  node-logs`). For the exporter's: see whether the service CA operator works.",
    },
    Alert {
        name: "WindowsPreflightFinding",
        expr: r#"wmco_preflight_findings{severity="blocking"} > 0"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "The cluster does not meet what Windows nodes need.",
        description: "The operator found {{ $value }} things in the cluster that keep it from configuring new \
                      Windows nodes. Nodes that run are left as they are.",
        runbook: "Each finding is an Event on ConfigMap windows-instances with the next step; `wmco-operator check \
                  cluster --live` prints all of them.",
    },
    Alert {
        name: "WindowsActionsFailing",
        expr: r#"sum by (action) (increase(wmco_actions_total{result="error"}[30m])) > 20"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "What the operator does on Windows hosts fails often.",
        description: "The action {{ $labels.action }} failed {{ $value | humanize }} times within 30 minutes.",
        runbook: "Read the Events on ConfigMap windows-instances and on Machines, and the operator's log: each \
                  failure names its host, its cause and the next attempt.",
    },
];

/// All alerts as Prometheus rules of an operator in `namespace`.
pub(super) fn rules(namespace: &str) -> Vec<Value> {
    let rule = |alert: &Alert| {
        json!({
            "alert": alert.name,
            "expr": alert.expr,
            "for": alert.lasting,
            "labels": {"severity": alert.severity.name()},
            "annotations": {
                "summary": alert.summary,
                "description": alert.description,
                "runbook": alert.runbook.replace(DEFAULT_NAMESPACE, namespace),
            },
        })
    };
    ALERTS.iter().map(rule).collect()
}

impl Severity {
    /// The value of Prometheus' label `severity`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}
