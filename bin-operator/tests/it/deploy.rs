//! The manifests for a real cluster say what the code says.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use wmco_core::cluster::rbac;
use wmco_core::limits;
use wmco_core::names::objects;

/// The manifests as people apply them, with these components of kustomize.
fn manifests(components: &[&str]) -> Vec<Value> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let target = tempfile::tempdir().unwrap();
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    };
    copy(&source, target.path());
    let mut list = fs::read_to_string(source.join("kustomization.yaml")).unwrap();
    for component in components {
        copy(&source.join(component), &target.path().join(component));
        writeln!(list, "components: [{component}]").unwrap();
    }
    fs::write(target.path().join("kustomization.yaml"), list).unwrap();
    let built = Command::new("kubectl").arg("kustomize").arg(target.path()).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    serde_saphyr::from_multiple(&String::from_utf8(built.stdout).unwrap()).unwrap()
}

fn only<'a>(manifests: &'a [Value], kind: &str) -> &'a Value {
    let mut found = manifests.iter().filter(|manifest| manifest["kind"] == kind);
    let (first, None) = (found.next().unwrap(), found.next()) else { panic!("several {kind}s") };
    first
}

/// The pod, and what of it is one per container.
fn pod(manifests: &[Value]) -> (Value, Vec<Value>) {
    let pod = only(manifests, "Deployment")["spec"]["template"]["spec"].clone();
    let containers = ["containers", "initContainers", "ephemeralContainers"];
    let containers = containers.iter().filter_map(|kind| pod[kind].as_array()).flatten();
    let containers: Vec<Value> = containers.cloned().collect();
    assert!(!containers.is_empty());
    (pod, containers)
}

#[test]
fn the_pod_has_the_seccomp_profile_of_the_runtime() {
    let (pod, containers) = pod(&manifests(&[]));
    assert_eq!(pod["securityContext"]["seccompProfile"], json!({"type": "RuntimeDefault"}));
    for container in containers {
        assert!(container["securityContext"]["seccompProfile"].is_null(), "the pod's counts");
    }
}

#[test]
fn containers_cannot_write_to_their_root() {
    for container in pod(&manifests(&[])).1 {
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    }
}

#[test]
fn containers_have_no_capabilities() {
    for container in pod(&manifests(&[])).1 {
        assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
        assert!(!matches!(container["securityContext"]["privileged"], Value::Bool(true)));
    }
}

#[test]
fn containers_get_no_more_privileges() {
    for container in pod(&manifests(&[])).1 {
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    }
}

#[test]
fn nothing_runs_as_root() {
    let (pod, containers) = pod(&manifests(&[]));
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    for container in containers {
        assert!(!matches!(container["securityContext"]["runAsNonRoot"], Value::Bool(false)));
        assert!(container["securityContext"]["runAsUser"].is_null(), "the cluster may choose it");
    }
}

#[test]
fn every_volume_is_limited_and_none_is_the_hosts() {
    let (pod, _) = pod(&manifests(&[]));
    for volume in pod["volumes"].as_array().unwrap() {
        assert!(volume["hostPath"].is_null(), "{volume}");
        let limit = &volume["emptyDir"]["sizeLimit"];
        assert!(volume["emptyDir"].is_null() || limit.is_string(), "{volume}");
    }
}

#[test]
fn the_pod_shares_nothing_with_its_host() {
    let manifests = manifests(&[]);
    let (pod, containers) = pod(&manifests);
    for shared in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(!matches!(pod[shared], Value::Bool(true)), "{shared}");
    }
    for port in containers.iter().filter_map(|container| container["ports"].as_array()).flatten() {
        assert!(port["hostPort"].is_null(), "{port}");
    }
    let groups = |rule: &Value| rule["apiGroups"].as_array().cloned().unwrap_or_default();
    let constraint = |rule: &Value| groups(rule).contains(&"security.openshift.io".into());
    let rules = manifests.iter().filter_map(|manifest| manifest["rules"].as_array()).flatten();
    assert_eq!(rules.filter(|rule| constraint(rule)).count(), 0, "it needs no other constraints");
    let labels = &only(&manifests, "Namespace")["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
}

#[test]
fn the_pod_has_time_to_give_its_lease_back() {
    let (pod, _) = pod(&manifests(&[]));
    let needed = limits::LEASE_RELEASE * 2 + limits::HTTP_END;
    let given = pod["terminationGracePeriodSeconds"].as_i64().unwrap();
    assert!(given >= 5 * needed.as_secs(), "{given} s");
}

#[test]
fn the_network_of_the_host_is_there_for_who_asks_for_it() {
    let manifests = manifests(&["host-network"]);
    let (pod, _) = pod(&manifests);
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["dnsPolicy"], "ClusterFirstWithHostNet");
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let labels = &only(&manifests, "Namespace")["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "privileged");
    let role = manifests.iter().find(|manifest| {
        manifest["kind"] == "ClusterRole" && manifest["metadata"]["name"] == objects::OPERATOR
    });
    let rules = role.unwrap()["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["resourceNames"] == json!(["hostnetwork-v2"])));
}

#[test]
fn the_rights_beside_the_cluster_api_are_there_for_who_asks_for_them() {
    let manifests = manifests(&["cluster-api"]);
    let secrets = |namespace: &str| -> Vec<Value> {
        let role = manifests.iter().find(|manifest| {
            manifest["kind"] == "Role" && manifest["metadata"]["namespace"] == namespace
        });
        let rules = role.unwrap()["rules"].as_array().unwrap().iter();
        rules.filter(|rule| rule["resources"] == json!(["secrets"])).cloned().collect()
    };
    let beside_machines = secrets(objects::MACHINE_API_NAMESPACE);
    assert_eq!(beside_machines.len(), 2);
    assert_eq!(secrets(objects::CLUSTER_API_NAMESPACE), beside_machines);
}

#[test]
fn the_daemons_rights_are_those_of_the_code() {
    let text = include_str!("../../../deploy/wicd-rights.yaml");
    let mut written: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mut coded = rbac::shipped(objects::DEFAULT_NAMESPACE);
    for objects in [&mut written, &mut coded] {
        objects.sort_by_key(|object| (object["kind"].to_string(), object["metadata"].to_string()));
    }
    assert_eq!(written, coded);
}
