//! The manifests for a real cluster say what the code says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use wmco_core::limits;
use wmco_core::manifests::{GRANTS, Place};
use wmco_core::names::objects;

use crate::program::run;

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
    assert_eq!(beside_machines.len(), 1);
    assert_eq!(beside_machines[0]["resourceNames"], json!([objects::USER_DATA_SECRET]));
    assert_eq!(secrets(objects::CLUSTER_API_NAMESPACE), beside_machines);
}

/// All files below `folder` by their paths in it.
fn below(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    files
}

/// What of `deploy` people write.
const WRITTEN_BY_HAND: [&str; 2] = ["Containerfile", "README.md"];

#[test]
fn the_files_are_those_that_the_command_makes() {
    let target = tempfile::tempdir().unwrap();
    for (what, folder) in [("manifests", ""), ("bundle", "bundle")] {
        let folder = target.path().join(folder);
        let made = run(&["render", what, "--output-dir", folder.to_str().unwrap()], "");
        assert_eq!((made.status, made.err.as_str()), (0, ""));
    }
    let mut committed = below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy"));
    for name in WRITTEN_BY_HAND {
        committed.remove(name).unwrap();
    }
    let made = below(target.path());
    let again = "make them again with `make deploy`";
    assert_eq!(committed.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>(), "{again}");
    for (name, text) in &made {
        assert_eq!(&committed[name], text, "deploy/{name}: {again}");
    }
}

#[test]
fn one_stream_holds_what_kustomize_makes_of_the_files() {
    let stream = run(&["render", "manifests"], "").out;
    let mut stream: Vec<Value> = serde_saphyr::from_multiple(&stream).unwrap();
    let mut built = manifests(&[]);
    for objects in [&mut stream, &mut built] {
        objects.sort_by_key(|object| (object["kind"].to_string(), object["metadata"].to_string()));
    }
    assert_eq!(stream, built);
    let list = run(&["render", "manifests", "-o", "json"], "").json();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"].as_array().unwrap().len(), stream.len());
}

#[test]
fn another_namespace_image_and_options_are_in_their_places() {
    let given =
        ["--namespace", "winc", "--image", "quay.test/team/wmco:2", "--args=--debugLogging"];
    let list = run(&[&["render", "manifests", "-o", "json"], &given[..]].concat(), "").json();
    let items = list["items"].as_array().unwrap();
    let text = list.to_string();
    assert!(!text.contains(objects::DEFAULT_NAMESPACE), "{text}");
    let container = &pod(items).1[0];
    assert_eq!(container["image"], "quay.test/team/wmco:2");
    let variable = json!({"name": "ARGS", "value": "--debugLogging"});
    assert!(container["env"].as_array().unwrap().contains(&variable), "{container}");
}

#[test]
fn manifests_that_could_not_work_are_refused() {
    let refused = |given: &[&str], problem: &str| {
        run(&[&["render", "manifests"], given].concat(), "").is_refused(1, &[problem]);
    };
    refused(&["--namespace", "Winc"], "`Winc` is no namespace");
    for of_others in ["default", "kube-system", "kube-x", "openshift", "openshift-config"] {
        refused(&["--namespace", of_others], "belongs to the cluster");
    }
    let ours = run(&["render", "manifests", "--namespace", "openshift-windows-two"], "");
    assert_eq!(ours.status, 0, "{ours:?}");
    refused(&["--image", "a/B"], "image `a/B` cannot be used");
    refused(&["--args=--debug"], "--args: unexpected argument '--debug'");
}

/// The comment of each rule names what is in the operator's source.
#[test]
fn parts_that_need_a_right_exist() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for part in GRANTS.iter().flat_map(|grant| grant.parts) {
        let is_there = source.join(part).is_dir() || source.join(format!("{part}.rs")).is_file();
        assert!(is_there, "{part}");
    }
}

#[test]
fn the_bundle_is_taken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/bundle");
    let run = run(&["check", "bundle", folder.to_str().unwrap(), "-o", "json"], "");
    let found = run.json();
    assert_eq!((run.status, &found["ok"]), (0, &Value::Bool(true)), "{found}");
    let rules = found["problems"].as_array().unwrap().iter();
    let mut rules: Vec<_> = rules.map(|problem| problem["rule"].as_str().unwrap()).collect();
    rules.dedup();
    // The committed bundle has no image of its own yet.
    assert_eq!(rules, ["images-by-digest", "channel-names"]);
}

#[test]
fn a_bundle_that_could_not_be_installed_is_not_made() {
    let refused = |given: &[&str], problem: &str| {
        run(&[&["render", "bundle"], given].concat(), "").is_refused(1, &[problem]);
    };
    for version in ["0.0.0", "1.0.0+build.1", "1.0.0-RC1"] {
        refused(&["--bundle-version", version], "cannot be used, write for example 1.2.3");
    }
    refused(&["--catalog-image", "A B"], "catalogue's image `A B` cannot be used");
    refused(&["--bundle-image", "A B"], "bundle's image `A B` cannot be used");
    refused(&["--args=--help"], "--help and --version run nothing");
    for range in ["", "all", ">=0.0.0 <=1.2.3", ">=2.0.0", "<1.0.0\n"] {
        let given = ["--bundle-version", "1.2.3", "--skip-range", range];
        refused(&given, "cannot be used, write comparisons with versions");
    }
}

#[test]
fn options_of_the_bundle_are_those_of_its_subscription() {
    let files = run(&["render", "bundle", "--args=--deny-requests", "-o", "json"], "").json();
    let text = files["examples/subscription.yaml"].as_str().unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let env = &only(&objects, "Subscription")["spec"]["config"]["env"];
    assert_eq!(env, &json!([{"name": "ARGS", "value": "--deny-requests"}]));
}

/// A cluster that reaches one registry alone loads catalogue, bundle, operator and pause image from there.
#[test]
fn the_example_of_a_disconnected_cluster_has_all_images() {
    let image = "quay.test/team/bundle:1";
    let files = run(&["render", "bundle", "--bundle-image", image, "-o", "json"], "").json();
    let text = files["examples/disconnected.yaml"].as_str().unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mirrors = only(&objects, "ImageTagMirrorSet")["spec"]["imageTagMirrors"].clone();
    let sources: Vec<_> =
        mirrors.as_array().unwrap().iter().map(|it| it["source"].as_str().unwrap()).collect();
    for expected in ["quay.test/team/bundle", "wmco-operator", "pause"] {
        assert!(sources.iter().any(|source| source.ends_with(expected)), "{sources:?}");
    }
}

#[test]
fn files_of_former_manifests_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let render = || run(&["render", "manifests", "--output-dir", path], "");
    assert_eq!((render().status, render().err.as_str()), (0, ""));
    for name in ["deployment-old.yaml", "notes.txt"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let told = "warning: deployment-old.yaml is not part of these manifests, remove it\n";
    assert_eq!(render().err, told);
}

#[test]
fn what_is_no_file_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(run(&["render", "bundle", "--output-dir", path], "").status, 0);
    let link = folder.path().join("manifests/link.yaml");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    run(&["check", "bundle", path], "").is_refused(2, &["link.yaml is no file"]);
    fs::remove_file(link).unwrap();
    fs::write(folder.path().join("picture.png"), [0xff, 0xfe]).unwrap();
    assert_eq!(
        run(&["check", "bundle", path], "").status,
        0,
        "what is beside it is of no interest"
    );

    let target = folder.path().join("target");
    fs::write(&target, "mine").unwrap();
    fs::remove_file(folder.path().join("Dockerfile")).unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join("Dockerfile")).unwrap();
    let again = run(&["render", "bundle", "--output-dir", path], "");
    assert_eq!(again.status, 2, "{again:?}");
    assert!(again.err.contains("Dockerfile is a link"), "{again:?}");
    assert_eq!(fs::read_to_string(target).unwrap(), "mine");
}

#[test]
fn a_bundle_that_breaks_a_rule_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let refused = run(&["check", "bundle", path], "");
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.out.contains("error: metadata/annotations.yaml: holds no annotations"),
        "{refused:?}"
    );
    run(&["check", "bundle", &format!("{path}/none")], "")
        .is_refused(2, &["cannot read the folder"]);

    let made = run(&["render", "bundle", "--output-dir", path], "");
    assert_eq!((made.status, made.err.as_str()), (0, ""));
    fs::write(
        folder.path().join("manifests/old.yaml"),
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}",
    )
    .unwrap();
    let again = run(&["render", "bundle", "--output-dir", path], "");
    assert_eq!(again.err, "warning: manifests/old.yaml is not part of this bundle, remove it\n");
    let refused = run(&["check", "bundle", path], "");
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.out.contains("error: manifests/old.yaml: is a Deployment"), "{refused:?}");
}

/// What the Operator Lifecycle Manager gives is what the operator has with our manifests, in places that it knows.
#[test]
fn the_bundle_gives_the_rights_of_the_manifests() {
    let files = run(&["render", "bundle", "-o", "json"], "").json();
    let name = format!("manifests/{}.clusterserviceversion.yaml", objects::OPERATOR);
    let version: Value = serde_saphyr::from_str(files[&name].as_str().unwrap()).unwrap();
    let install = &version["spec"]["install"]["spec"];
    for grant in GRANTS {
        let field = if grant.place == Place::Own { "permissions" } else { "clusterPermissions" };
        let rules = install[field][0]["rules"].as_array().unwrap();
        let rule = json!(grant.rule(objects::DEFAULT_NAMESPACE));
        assert_eq!(rules.iter().filter(|found| **found == rule).count(), 1, "{field}: {rule}");
    }
    // No right on Secrets of any name in the whole cluster.
    for rule in install["clusterPermissions"][0]["rules"].as_array().unwrap() {
        let secrets = rule["resources"].as_array().unwrap().contains(&"secrets".into());
        assert!(!secrets || rule["resourceNames"].is_array(), "{rule}");
    }
    let pod = |deployment: &Value| deployment["spec"]["template"]["spec"].clone();
    let (mut olm, mut plain) =
        (pod(&install["deployments"][0]), pod(only(&manifests(&[]), "Deployment")));
    for pod in [&mut olm, &mut plain] {
        pod["containers"][0]["env"].take();
    }
    assert_eq!(olm, plain);
}
