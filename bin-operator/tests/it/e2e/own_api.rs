//! How an API server of our own is started and ended. The programs here only look like one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::support::own_api::{OwnApi, audit};

/// Waits for the one that stays, says how it was started and which of its files are missing, and ends.
const ENDS: &str = r#"
until [ -s "$(dirname "$0")/pid" ]; do sleep 0.05; done
for argument; do
    case $argument in --*-file=*) [ -s "${argument#*=}" ] || echo "missing: $argument" ;; esac
    echo "$argument"
done
echo "cannot go on" >&2
exit 3"#;

/// Writes its process ID, and runs until the order to end.
const STAYS: &str = r#"
echo $$ >"$(dirname "$0")/pid"
exec sleep 600"#;

fn assets(programs: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in programs {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

async fn refusal(assets: &Path) -> String {
    match OwnApi::start(assets).await {
        Ok(_) => panic!("there is no API server"),
        Err(error) => bin_operator::chain(error.as_ref()),
    }
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let folder = assets(&[("etcd", STAYS)]);
    let text = refusal(folder.path()).await;
    let missing = folder.path().join("kube-apiserver");
    assert!(text.starts_with(&format!("{} does not exist", missing.display())), "{text}");
    assert!(text.contains("KUBEBUILDER_ASSETS"), "{text}");
    assert!(!folder.path().join("pid").exists(), "etcd was not started for nothing");
}

#[tokio::test]
async fn an_api_server_that_ends_is_told_with_its_log_and_etcd_ends_with_it() {
    let folder = assets(&[("etcd", STAYS), ("kube-apiserver", ENDS)]);
    let text = refusal(folder.path()).await;
    assert!(text.starts_with("kube-apiserver ended with exit status: 3: "), "{text}");
    assert!(text.ends_with("cannot go on"), "{text}");
    assert!(!text.contains("missing: "), "{text}");
    for argument in [
        "--bind-address=127.0.0.1",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--etcd-servers=http://127.0.0.1:",
    ] {
        assert!(
            text.contains(&format!("\n{argument}")) || text.contains(&format!(" {argument}")),
            "{text}"
        );
    }
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    assert!(test_kill_process(pid).is_err(), "etcd still runs");
}

#[tokio::test]
async fn an_etcd_that_ends_is_told() {
    let folder = assets(&[("etcd", ENDS), ("kube-apiserver", STAYS)]);
    let text = refusal(folder.path()).await;
    assert!(text.starts_with("etcd ended with exit status: 3: "), "{text}");
    assert!(text.contains("--listen-client-urls=http://127.0.0.1:"), "{text}");
}

#[test]
fn what_was_refused_to_a_user_is_read_in_the_audit_log() {
    let event = |user: &str, code: u16| {
        json!({
            "user": {"username": user}, "verb": "list", "requestURI": format!("/api/{user}/{code}"),
            "responseStatus": {"code": code},
        })
    };
    let log = [event("ours", 200), event("other", 403), event("ours", 403), event("ours", 404)];
    // The last line is cut short, as the server may still write it.
    let log = log.map(|event| event.to_string()).join("\n") + "\n{\"user\":";
    assert_eq!(audit::refused(&log, "ours").unwrap(), ["list /api/ours/403"]);
    let nobody = audit::refused(&log, "nobody").unwrap_err().to_string();
    assert_eq!(nobody, "the audit log has no request of nobody");
}
