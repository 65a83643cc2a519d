//! `check cluster`, `check host` and what `plan` says of a cluster that is not fit.

use serde_json::{Value, json};
use wmco_core::names;

use crate::program::{Run, run};

fn network(plug_in: &str) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Network", "metadata": {"name": "cluster"},
        "spec": {
            "networkType": plug_in, "serviceNetwork": ["172.30.0.0/16"],
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
        },
    })
}

fn check(objects: &[Value], arguments: &[&str]) -> Run {
    let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
    let input = documents.join("\n---\n");
    run(&[&["check", "cluster", "-f", "-"], arguments].concat(), &input)
}

#[test]
fn a_fit_cluster_is_a_yes() {
    let run = check(&[network("OVNKubernetes")], &["--server-version", "v1.36.2"]);
    let text = "the cluster is fit for Windows nodes, as far as it was judged\nnot judged, for want of it: Infrastructure, \
                ClusterVersion, Network of operator.openshift.io, APIServer, Proxy, Nodes\n";
    assert_eq!((run.status, run.out.as_str()), (0, text), "{run:?}");
    let found = check(&[network("OVNKubernetes")], &["-o", "json"]).json();
    assert_eq!(found["notJudged"][0], "Infrastructure");
}

#[test]
fn what_blocks_is_a_no_and_says_what_to_do() {
    let run = check(&[network("OpenShiftSDN")], &["--server-version", "v1.20.1"]);
    assert_eq!(run.status, 1, "{run:?}");
    insta::assert_snapshot!(run.out);
    let run = check(&[network("OpenShiftSDN")], &["-o", "json"]);
    let found = run.json();
    assert_eq!((run.status, &found["ok"]), (1, &json!(false)));
    assert_eq!(found["findings"][0]["requirement"], "network-type");
    assert_eq!(found["findings"][0]["severity"], "blocking");
}

#[test]
fn a_warning_is_a_yes() {
    let infrastructure = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"},
        "status": {
            "apiServerInternalURI": "https://api-int.test:6443", "controlPlaneTopology": "External",
            "platformStatus": {"type": "AWS"},
        },
    });
    let run = check(&[infrastructure], &[]);
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.out.starts_with("warning  control-plane: "), "{}", run.out);
    assert!(run.out.contains("nodes, as far as it was judged; findings: 1\n"), "{}", run.out);
}

fn config(kind: &str, members: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": "cluster"},
    });
    object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    object
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_in_true_words() {
    for (members, expected) in [
        (
            json!({"status": {"httpsProxy": "http://u:hush@p.test:99999"}}),
            "`status.httpsProxy` is no URL",
        ),
        (
            json!({"status": {"httpProxy": "http://u:hush@p.test:x"}}),
            "`status.httpProxy` is no URL",
        ),
        (
            json!({"status": "hush"}),
            "the `status` of proxy cluster does not say which proxy is in force",
        ),
    ] {
        let run = check(&[network("OVNKubernetes"), config("Proxy", &members)], &[]);
        assert_eq!(run.status, 1, "{run:?}");
        assert!(run.out.contains(expected), "{run:?}");
        assert!(!run.out.contains("hush") && !run.out.contains("asks for a proxy"), "{run:?}");
    }
}

#[test]
fn a_tls_profile_that_is_none_is_a_warning() {
    for (profile, expected) in [
        (json!(["Old"]), "`spec.tlsSecurityProfile` is not an object"),
        (json!({"type": "old"}), "`spec.tlsSecurityProfile.type` is `old`"),
        (
            json!({"type": "Custom", "costom": {}}),
            "`spec.tlsSecurityProfile.costom` is read by nobody",
        ),
    ] {
        let spec = json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": profile});
        let server = config("APIServer", &json!({"spec": spec}));
        let run = check(&[network("OVNKubernetes"), server], &[]);
        assert_eq!(run.status, 0, "{run:?}");
        assert!(run.out.contains("warning  tls-profile") && run.out.contains(expected), "{run:?}");
    }
}

#[test]
fn an_input_without_a_cluster_is_refused() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    check(&[pod], &[]).is_refused(2, &["nothing that tells of a cluster", "-f FILE"]);
    run(&["check", "cluster"], "").is_refused(2, &["--filename"]);
}

fn probe() -> Value {
    json!({
        "protocol": 1, "agent": {"version": "1", "sha256": "0".repeat(64), "installed": null},
        "hostName": "win-1", "osBuild": "10.0.20348", "addresses": ["10.0.0.5"],
        "containers": "enabled", "reboot": [], "bootId": "1", "files": {}, "services": {},
        "environment": {}, "networks": [], "directories": [], "daemonCertificateValid": false,
        "state": null,
    })
}

#[test]
fn a_host_is_judged_by_its_probe() {
    let host = |probe: &Value, arguments: &[&str]| {
        run(&[&["check", "host", "-f", "-"], arguments].concat(), &probe.to_string())
    };
    let run = host(&probe(), &[]);
    assert_eq!(
        (run.status, run.out.as_str()),
        (0, "the host is fit for Windows nodes\n"),
        "{run:?}"
    );
    let mut old = probe();
    old["osBuild"] = "10.0.17763".into();
    assert_eq!(host(&old, &[]).status, 0);
    let run = host(&old, &["--vxlan-port", "9898"]);
    assert!(run.status == 1 && run.out.starts_with("blocks   vxlan-port: "), "{run:?}");
    host(&json!({"protocol": 1}), &[]).is_refused(2, &["standard input", "probe"]);
    let mut later = probe();
    later["protocol"] = json!(99);
    host(&later, &[]).is_refused(2, &["protocol 99, not 1", "agent of this version"]);
    host(&old, &["--vxlan-port", "0"]).is_refused(2, &["--vxlan-port"]);
}

#[test]
fn a_plan_for_an_unfit_cluster_says_why_nothing_new_begins() {
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "windows-instances"},
        "data": {"10.0.0.5": "username=a"},
    });
    let run = run(&["plan", "-f", "-"], &format!("{list}\n---\n{}", network("OpenShiftSDN")));
    assert!(run.out.contains("10.0.0.5: leave, because the cluster is not fit"), "{run:?}");
    assert!(run.err.contains("blocks: network-type: "), "{run:?}");
}

/// Work that has begun goes on, and a host leaves all the same.
#[test]
fn a_plan_for_an_unfit_cluster_says_what_waits_for_it() {
    let node = |is_upgrading: bool| {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "win-1", "labels": {names::OS_LABEL: "windows", names::BYOH_LABEL: "true"},
                "annotations": {names::VERSION_ANNOTATION: "0.0.9"},
            },
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]},
        });
        if is_upgrading {
            node["metadata"]["labels"][names::UPGRADING_LABEL] = "true".into();
        }
        node
    };
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "windows-instances"},
        "data": {"10.0.0.5": "username=a"},
    });
    let waits = ", and not before the cluster is fit for new work\n";
    for (plug_in, is_upgrading, expected) in [
        ("OpenShiftSDN", false, true),
        ("OpenShiftSDN", true, false),
        ("OVNKubernetes", false, false),
    ] {
        let input = format!("{list}\n---\n{}\n---\n{}", node(is_upgrading), network(plug_in));
        let run = run(&["plan", "-f", "-"], &input);
        assert!(run.out.contains("would then upgrade it from 0.0.9"), "{run:?}");
        assert_eq!(run.out.contains(waits), expected, "{run:?}");
    }
}
