//! `render services`, `check services` and `schema services`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::program::{Run, run, run_in};
use crate::vectors::{Case, cases};

/// The crate that makes and reads these ConfigMaps has the vectors.
const SERVICES: &str = include_str!("../../../wmco-services/tests/vectors/services.json");
const VALIDATE: &str = include_str!("../../../wmco-services/tests/vectors/services_validate.json");

type Texts = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Input {
    platform: String,
    debug: bool,
    vxlan_port: String,
    ignition_args: Texts,
    env: Texts,
    api_server_endpoint: String,
}

#[derive(Deserialize)]
struct Expect {
    data: Option<Value>,
}

/// Drops members that are null or empty lists: within a service they mean the same as none.
fn without_nothing(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, without_nothing(value)))
            .filter(|(_, value)| !value.is_null() && value.as_array().is_none_or(|l| !l.is_empty()))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nothing).collect(),
        other => other,
    }
}

fn render(environment: &Texts, arguments: &[&str]) -> Run {
    let arguments = [&["render", "services", "-o", "json"], arguments].concat();
    run_in(environment, &arguments, "")
}

#[test]
fn the_vectors_of_rendering_hold() {
    let cases: Vec<Case<Input, Expect>> = cases("services", SERVICES);
    assert!(cases.len() >= 46);
    for Case { name, input, expect } in cases {
        let mut arguments = vec![
            format!("--platform={}", input.platform),
            format!("--api-server={}", input.api_server_endpoint),
            format!("--vxlan-port={}", input.vxlan_port),
        ];
        arguments.extend(input.debug.then(|| "--debug".to_owned()));
        arguments.extend(input.ignition_args.iter().map(|(k, v)| format!("--kubelet-arg={k}={v}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let run = render(&input.env, &arguments);
        let Some(data) = expect.data else {
            assert_eq!((run.status, run.out.as_str()), (1, ""), "{name}: {run:?}");
            assert!(run.err.contains("SERVICES_LOG_"), "{name}: {run:?}");
            continue;
        };
        assert_eq!(run.status, 0, "{name}: {run:?}");
        let map = run.json();
        assert_eq!(map["immutable"], true);
        let found: BTreeMap<&String, Value> = map["data"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, text)| (key, serde_json::from_str(text.as_str().unwrap()).unwrap()))
            .collect();
        assert_eq!(without_nothing(json!(found)), without_nothing(data), "{name}");
    }
}

const FLAGS: [&str; 2] = ["--platform=None", "--api-server=https://api-int.example.test:6443"];

#[test]
fn the_config_map_is_the_operators() {
    let map = render(&Texts::new(), &FLAGS).json();
    let version = bin_operator::VERSION;
    assert_eq!(map["kind"], "ConfigMap");
    assert_eq!(map["metadata"]["name"], format!("windows-services-{version}"));
    assert_eq!(map["metadata"]["namespace"], "openshift-windows-machine-config-operator");
    let named = render(
        &Texts::new(),
        &[FLAGS[0], FLAGS[1], "--namespace=winc", "--operator-version=1.2.3-a1b2c3d"],
    );
    assert_eq!(
        named.json()["metadata"],
        json!({"name": "windows-services-1.2.3-a1b2c3d", "namespace": "winc"})
    );
}

const CLUSTER: &str = "\
kind: Infrastructure
apiVersion: config.openshift.io/v1
status:
  apiServerInternalURI: https://api-int.example.test:6443
  platformStatus: {type: Azure}
---
kind: Network
apiVersion: operator.openshift.io/v1
spec: {defaultNetwork: {ovnKubernetesConfig: {hybridOverlayConfig: {hybridOverlayVXLANPort: 4799}}}}
---
kind: Network
apiVersion: config.openshift.io/v1
spec: {}
";

#[test]
fn files_say_what_flags_do_not() {
    let print = |more: &[&str]| {
        let arguments = [&["render", "services", "-f", "-", "-o", "text"], more].concat();
        let run = run(&arguments, CLUSTER);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        run.out
    };
    let text = print(&[]);
    assert!(text.contains("\ncloud-node-manager (needs a node)\n"), "{text}");
    assert!(text.contains("--hybrid-overlay-vxlan-port 4799"), "{text}");
    let text = print(&["--platform", "GCP", "--vxlan-port", "", "--api-server", "https://x:1"]);
    assert!(!text.contains("cloud-node-manager") && !text.contains("vxlan-port"), "{text}");
    assert!(text.contains("--k8s-apiserver=https://x:1 "), "{text}");
}

#[test]
fn the_proxy_of_the_cluster_counts_unless_the_environment_has_one() {
    let proxy = |of: &str| {
        let object = format!("kind: Proxy\napiVersion: config.openshift.io/v1\n{of}");
        format!("{CLUSTER}---\n{object}")
    };
    let render = |of: &str, set: &[(&str, &str)]| {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        run_in(&set.collect(), &["render", "services", "-f", "-", "-o", "json"], &proxy(of))
    };
    let of_cluster = "status: {httpsProxy: 'http://u:hush@proxy.test:1', noProxy: a}";
    let printed = render(of_cluster, &[]);
    assert!(printed.out.contains("http://u:hush@proxy.test:1"), "{}", printed.out);
    let printed = render(of_cluster, &[("HTTP_PROXY", "http://own.test:1")]);
    assert!(printed.out.contains("http://own.test:1"), "{}", printed.out);
    assert!(!printed.out.contains("proxy.test"), "{}", printed.out);
    for wrong in ["status: {httpsProxy: 'hush'}", "spec: {httpsProxy: 'http://hush.test:1'}"] {
        let refused = render(wrong, &[]);
        assert_eq!((refused.status, refused.out.as_str()), (1, ""));
        assert!(refused.err.contains("roxy") && !refused.err.contains("hush"), "{}", refused.err);
    }
}

/// The object of another group, or of another name, is not the cluster's; two of the same are one too many.
#[test]
fn only_the_clusters_own_objects_count() {
    let with =
        |more: &str| run(&["render", "services", "-f", "-"], &format!("{CLUSTER}---\n{more}"));
    let infrastructure = |version: &str, name: &str| {
        format!(
            "kind: Infrastructure\napiVersion: {version}\nmetadata: {{name: {name}}}\n\
             status: {{apiServerInternalURI: 'https://other.test:6443', platformStatus: {{type: AWS}}}}\n"
        )
    };
    let alone = with("").out;
    assert!(alone.contains("api-int.example.test"), "{alone}");
    assert_eq!(with(&infrastructure("example.test/v1", "cluster")).out, alone);
    assert_eq!(with(&infrastructure("config.openshift.io/v1", "other")).out, alone);
    with(&infrastructure("config.openshift.io/v1", "cluster"))
        .is_refused(2, &["Infrastructure cluster"]);
}

#[test]
fn a_wrong_file_is_told_with_its_field() {
    let run =
        run(&["render", "services", "-f", "-"], &CLUSTER.replace("{type: Azure}", "{type: 1}"));
    assert_eq!(run.status, 2);
    assert!(run.err.contains("standard input, document 1, field `status`"), "{}", run.err);
}

#[test]
fn what_nobody_says_is_asked_for() {
    let run = render(&Texts::new(), &["--platform=None"]);
    assert_eq!(run.status, 2);
    insta::assert_snapshot!(run.err, @"error: the URL of the API server is not known, tell it with --api-server or in a file with the Infrastructure");
}

#[test]
fn wrong_flags_are_wrong_usage() {
    for flag in ["--vxlan-port=0", "--vxlan-port=65536", "--vxlan-port=x", "--kubelet-arg=words"] {
        assert_eq!(render(&Texts::new(), &[FLAGS[0], FLAGS[1], flag]).status, 2, "{flag}");
    }
}

#[test]
fn a_value_that_is_no_argument_is_a_no() {
    let run = render(
        &Texts::new(),
        &[FLAGS[0], FLAGS[1], "--kubelet-arg=--cloud-provider=external --v=9"],
    );
    assert_eq!((run.status, run.out.as_str()), (1, ""));
    assert!(run.err.contains("the kubelet argument cloud-provider"), "{}", run.err);
}

#[test]
fn all_wrong_log_settings_are_told_at_once() {
    let environment = Texts::from([
        ("SERVICES_LOG_FILE_SIZE".to_owned(), "10MB".to_owned()),
        ("SERVICES_LOG_FILE_AGE".to_owned(), "7d".to_owned()),
    ]);
    let run = render(&environment, &FLAGS);
    assert_eq!(run.status, 1);
    insta::assert_snapshot!(run.err, @"error: variable SERVICES_LOG_FILE_SIZE is no quantity, write for example 100M or 1Gi; variable SERVICES_LOG_FILE_AGE is no duration, write for example 168h or 1m30s");
}

/// On its command line, which outweighs containerd's configuration.
#[test]
fn the_log_level_of_containerd_is_that_of_people() {
    let environment = Texts::from([("CONTAINERD_LOG_LEVEL".to_owned(), "warn".to_owned())]);
    let run = render(&environment, &FLAGS);
    assert!(run.out.contains("--run-service --log-level warn"), "{run:?}");
    let wrong = Texts::from([("CONTAINERD_LOG_LEVEL".to_owned(), "loud".to_owned())]);
    render(&wrong, &FLAGS)
        .is_refused(1, &["variable CONTAINERD_LOG_LEVEL: there is no such level"]);
}

#[test]
fn the_operator_ends_with_wrong_settings_of_containerd() {
    let environment = Texts::from([
        ("WATCH_NAMESPACE".to_owned(), "winc".to_owned()),
        ("CONTAINERD_PAUSE_IMAGE".to_owned(), "pause".to_owned()),
    ]);
    let run = run_in(&environment, &["run"], "");
    run.is_refused(2, &["variable CONTAINERD_PAUSE_IMAGE: write the whole name"]);
}

#[test]
fn the_operator_ends_with_all_wrong_log_settings() {
    let environment = Texts::from([
        ("WATCH_NAMESPACE".to_owned(), "winc".to_owned()),
        ("SERVICES_LOG_FILE_SIZE".to_owned(), "-1M".to_owned()),
        ("SERVICES_LOG_FILE_AGE".to_owned(), "-1h".to_owned()),
        ("SERVICES_LOG_FLUSH_INTERVAL".to_owned(), "5".to_owned()),
    ]);
    let run = run_in(&environment, &["run"], "");
    assert_eq!(run.status, 2);
    insta::assert_snapshot!(run.err, @"error: variable SERVICES_LOG_FILE_SIZE is negative, write a quantity of 0 or more; variable SERVICES_LOG_FILE_AGE is negative, write a duration of 0s or more; variable SERVICES_LOG_FLUSH_INTERVAL is no duration, write for example 168h or 1m30s");
}

/// Hosts would get a variable that no program can use.
#[test]
fn a_proxy_in_the_environment_that_is_none_is_refused() {
    for url in ["http://user:hush@p.test:99999", "http://user:hush@p.test:x", "socks5://u:hush@p:1"]
    {
        let environment = Texts::from([("HTTPS_PROXY".to_owned(), url.to_owned())]);
        let run = run_in(&environment, &["render", "services", FLAGS[0], FLAGS[1]], "");
        run.is_refused(1, &["variable HTTPS_PROXY", "http://HOST:PORT"]);
        assert!(!run.err.contains("hush"), "{run:?}");
    }
}

#[test]
fn people_see_commands_and_no_values_of_variables() {
    let environment = Texts::from([
        ("HTTPS_PROXY".to_owned(), "http://user:hush@proxy.test:3128".to_owned()),
        ("SERVICES_LOG_FILE_AGE".to_owned(), "168h".to_owned()),
    ]);
    let arguments = ["render", "services", FLAGS[0], FLAGS[1], "--kubelet-arg=v=9"];
    let run = run_in(&environment, &arguments, "");
    assert!(!run.out.contains("hush"), "{}", run.out);
    insta::assert_snapshot!(run.err, @r#"
    note: kubelets on Windows do not get the option v
    note: the log runner ignores an age of logs without SERVICES_LOG_FILE_SIZE; only the daemon removes old files
    "#);
    let version = format!("windows-services-{}", bin_operator::VERSION);
    insta::assert_snapshot!(run.out.replace(&version, "windows-services-VERSION"), @r#"
    ConfigMap windows-services-VERSION in namespace openshift-windows-machine-config-operator

    containerd (bootstrap)
      C:\k\containerd\containerd.exe --config C:\k\containerd\containerd_conf.toml --log-file C:\var\log\containerd\containerd.log --run-service --log-level info
      run = C:\Temp\windows-defender-exclusion.ps1 -BinPath C:\k\containerd\containerd.exe

    kubelet (bootstrap; after containerd)
      C:\k\kube-log-runner.exe -log-file=C:\var\log\kubelet\kubelet.log -log-file-age=168h C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig --cert-dir=c:\var\lib\kubelet\pki\ --windows-service --node-labels=node.openshift.io/os_id=Windows --windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS --v=2 --node-ip=NODE_IP
      NODE_IP = (Get-NetRoute -DestinationPrefix '0.0.0.0/0' | Get-NetIpAddress -AddressFamily IPv4 -ifIndex {$_.ifIndex}[0]).IPAddress

    windows_exporter (needs a node)
      C:\k\windows_exporter.exe --collectors.enabled cpu,logical_disk,net,os,service,system,container,memory,cpu_info --web.config.file C:\k\tls\windows-exporter-webconfig.yaml --log.level info --log.file C:\var\log\windows_exporter\windows_exporter.log

    hybrid-overlay-node (needs a node; after kubelet)
      C:\k\hybrid-overlay-node.exe --node NODE_NAME --bootstrap-kubeconfig=C:\k\kubeconfig --cert-dir=C:\k\cni\config --cert-duration=24h --windows-service --logfile C:\var\log\hybrid-overlay\hybrid-overlay.log --k8s-apiserver=https://api-int.example.test:6443 --k8s-cacert C:\k\bootstrap-ca.crt
      NODE_NAME = {.metadata.name}

    csi-proxy (needs a node)
      C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=2

    kube-proxy (needs a node; after hybrid-overlay-node)
      C:\k\kube-log-runner.exe -log-file=C:\var\log\kube-proxy\kube-proxy.log -log-file-age=168h C:\k\kube-proxy.exe --config C:\k\kube-proxy.conf --windows-service
      run = C:\Temp\network-conf.ps1 -hostnameOverride NODE_NAME -clusterCIDR NODE_SUBNET -kubeConfigPath KUBE_CONFIG_PATH -kubeProxyConfigPath KUBE_PROXY_CONFIG_PATH -verbosity VERBOSITY

    variables: HTTPS_PROXY
    "#);
}

#[derive(Deserialize)]
struct ValidateInput {
    data: Texts,
}

#[derive(Deserialize)]
struct ValidateExpect {
    ok: bool,
    correct_ok: Option<bool>,
    debatable: bool,
    bootstrap_services: Option<Vec<String>>,
    service_order: Option<Vec<String>>,
}

fn check(documents: &str, format: &str) -> Run {
    run(&["check", "services", "-f", "-", "-o", format], documents)
}

fn config_map(data: &Texts) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": data,
        "metadata": {"name": "windows-services-1.2.3-a1b2c3d", "namespace": "winc"}})
}

#[test]
fn the_vectors_of_checking_hold() {
    let cases: Vec<Case<ValidateInput, ValidateExpect>> = cases("services_validate", VALIDATE);
    assert!(cases.len() >= 64);
    for Case { name, input, expect } in cases.into_iter().filter(|case| !case.expect.debatable) {
        let run = check(&config_map(&input.data).to_string(), "json");
        let ok = expect.correct_ok.unwrap_or(expect.ok);
        assert_eq!(run.status, i32::from(!ok), "{name}: {run:?}");
        let row = &run.json()[0];
        assert_eq!(row["ok"], ok, "{name}");
        assert_eq!(row["problems"].as_array().unwrap().is_empty(), ok, "{name}");
        // Where the original wrongly says no, it gives no order.
        for (found, expected) in [
            (&row["bootstrap"], expect.bootstrap_services.filter(|_| ok)),
            (&row["services"], expect.service_order.filter(|_| ok)),
        ] {
            if let Some(expected) = expected {
                assert_eq!(*found, json!(expected), "{name}");
            }
        }
    }
}

const WRONG: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: windows-services-1.2.3-a1b2c3d}
data:
  services: '[{"name":"a","path":"c","priority":1,"dependencies":["a","RpcSs"]},{"name":"b","path":"","bootstrap":true,"priority":"1"}]'
  environmentVars: '{"HTTP_PROXY": ["hush"]}'
---
apiVersion: v1
kind: ConfigMap
immutable: true
metadata: {name: windows-services-1.2.4-a1b2c3d}
data:
  services: '[{"name":"late","path":"c NODE","priority":2,"dependencies":["soon"],"nodeVariablesInCommand":[{"name":"NODE","nodeObjectJsonPath":".metadata.name"}]},{"name":"soon","path":"c","bootstrap":true,"priority":1}]'
  files: '[]'
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {services: x}
"#;

#[test]
fn people_get_every_problem_with_its_place() {
    let run = check(WRONG, "text");
    assert_eq!((run.status, run.err.as_str()), (1, ""));
    insta::assert_snapshot!(run.out, @r#"
    ConfigMap windows-services-1.2.3-a1b2c3d in standard input, document 1:

      error    environmentVars.HTTP_PROXY: fix the JSON at `environmentVars.HTTP_PROXY`: write text
      error    files: add the key `files`; `[]` will do
      error    services[0].dependencies: services need each other in a circle, drop one dependency: a -> a
      error    services[1].priority: fix the JSON at `services[1].priority`: write a whole number, 0 or more
      error    services[1].path: field `path` of service `b` is empty, fill it
      warning  services[0].dependencies[1]: service `RpcSs` is not in this ConfigMap, so Windows must bring it
      warning  immutable: is not set, so the operator recreates this ConfigMap; write `immutable: true`

    refused, 5 problems

    ConfigMap windows-services-1.2.4-a1b2c3d in standard input, document 2:

      warning  services[0].nodeVariablesInCommand[0].nodeObjectJsonPath: `.metadata.name` stands for itself, put it in braces to read it from the node

    fine, starts in this order: soon, late
    "#);
}

#[test]
fn yaml_says_the_same_as_json() {
    let yaml: Value = serde_saphyr::from_str(&check(WRONG, "yaml").out).unwrap();
    assert_eq!(yaml, check(WRONG, "json").json());
}

#[test]
fn a_config_map_of_another_name_is_checked_only_when_there_is_no_better() {
    let data = Texts::from(["services", "files"].map(|key| (key.to_owned(), "[]".to_owned())));
    let mut map = config_map(&data);
    map["metadata"]["name"] = "services".into();
    let run = check(&map.to_string(), "text");
    assert_eq!(run.status, 0);
    insta::assert_snapshot!(run.err, @"note: ConfigMap services in standard input, document 1 is checked, but nodes read windows-services-VERSION only");
    let run = check("kind: Node", "text");
    assert_eq!((run.status, run.out.as_str()), (2, ""));
    insta::assert_snapshot!(run.err, @"error: the input has no ConfigMap windows-services-VERSION, add it with -f FILE");
}

#[test]
fn what_is_rendered_passes_the_check() {
    let map = render(&Texts::new(), &FLAGS).out;
    let run = check(&map, "json");
    assert_eq!((run.status, run.json()[0]["warnings"].clone()), (0, json!([])));
}

#[test]
fn the_schema_has_one_for_each_key() {
    let schema = run(&["schema", "services", "-o", "json"], "").json();
    let keys: Vec<&String> = schema.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["environmentVars", "files", "services", "watchedEnvironmentVars"]);
    assert_eq!(schema["services"]["type"], "array");
}

#[test]
fn a_platform_is_known_in_any_case_and_no_other_is_taken() {
    let endpoint = "--api-server=https://api.test:6443";
    let render = |platform: &str| render(&Texts::new(), &[platform, endpoint]);
    let usual = render("--platform=Azure");
    assert!(usual.out.contains("cloud-node-manager"), "{usual:?}");
    assert_eq!(render("--platform=azure").out, usual.out);
    render("--platform=Foo").is_refused(2, &["AWS", "BareMetal"]);
}
