//! The real kubectl at the simulated cluster. It fails where kubectl is not installed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use kube_testserver::TestServer;
use tempfile::TempDir;
use tokio::process::Command;

const OBJECTS: &str = r"
apiVersion: v1
kind: Node
metadata: {name: w1, labels: {kubernetes.io/os: windows}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  nodeName: w1
  containers: [{name: c, image: registry.example/pause:1}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, namespace: default}
data: {k: v}
";

struct Kubectl {
    cluster: TestServer,
    folder: TempDir,
}

impl Kubectl {
    async fn new() -> Self {
        let version = Command::new("kubectl").args(["version", "--client"]).output().await;
        let works = version.is_ok_and(|out| out.status.success());
        assert!(works, "install kubectl 1.27 or newer, these tests are about it");
        let cluster = TestServer::start().await.unwrap();
        let folder = TempDir::new().unwrap();
        let admin = folder.path().join("admin");
        cluster.write_kubeconfig(&admin, "admin", &["system:masters"]).unwrap();
        Self { cluster, folder }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(line.split_whitespace())
            .env("KUBECONFIG", self.folder.path().join("admin"))
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs kubectl; its output must hold each of `expected`.
    #[track_caller]
    fn run(&self, line: &str, expected: &'static [&'static str]) -> impl Future<Output = String> {
        let mut command = self.command(line);
        let line = line.to_owned();
        async move {
            let done = command.output().await.unwrap();
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let errors = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "kubectl {line}: {errors}");
            for part in expected {
                assert!(text.contains(part), "kubectl {line}: no {part:?} in {text}");
            }
            text
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn everyday_commands_work() {
    let kubectl = Kubectl::new().await;
    let file = shown(&kubectl.file("objects.yaml", OBJECTS));
    kubectl.run(&format!("apply -f {file}"), &["node/w1 created", "pod/p created"]).await;
    kubectl.run(&format!("apply -f {file}"), &["node/w1 unchanged", "applied unchanged"]).await;
    kubectl.run("label node w1 a=b", &["labeled"]).await;
    kubectl.run("annotate node w1 c=d", &["annotated"]).await;
    kubectl.run("cordon w1", &["cordoned"]).await;
    kubectl.run("get nodes", &["w1", "Unknown,SchedulingDisabled"]).await;
    kubectl.run("get nodes,csr,cm -A", &["node/w1", "configmap/applied"]).await;
    kubectl.run("describe node w1", &["Taints:", "Unschedulable:      true", "p "]).await;
    kubectl.run("create configmap made --from-literal=a=b", &["created"]).await;
    kubectl.run("create namespace n", &["created"]).await;
    kubectl.run("create secret generic s --from-literal=a=b -n n", &["created"]).await;
    kubectl.run("get secret s -n n -o jsonpath={.data.a}", &["Yg=="]).await;
    kubectl.run("patch configmap made -p {\"data\":{\"a\":\"c\"}}", &["patched"]).await;
    kubectl.run("auth can-i delete nodes", &["yes"]).await;
    kubectl.run("delete configmap made", &["deleted"]).await;
    kubectl.run("delete namespace n --timeout=20s", &["deleted"]).await;
    kubectl.run("drain w1 --force --grace-period=0 --timeout=20s", &["drained"]).await;
    assert_eq!(kubectl.cluster.count("create", "pods/eviction"), 1);
    kubectl.run("uncordon w1", &["uncordoned"]).await;
    kubectl.run("delete node w1", &["deleted"]).await;
}

/// What `kubectl get -o yaml` prints. kubectl asks for schemas in protobuf before it sends one.
#[tokio::test]
async fn lists_are_applied() {
    const LIST: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {k: v}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: default}, data: {k: v}}
";
    const ROLES: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleList
items:
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: default}, rules: []}
";
    let kubectl = Kubectl::new().await;
    let list = shown(&kubectl.file("list.yaml", LIST));
    let roles = shown(&kubectl.file("roles.yaml", ROLES));
    kubectl.run(&format!("apply -f {list}"), &["configmap/a created", "configmap/b created"]).await;
    kubectl.run(&format!("apply -f {list}"), &["configmap/b unchanged"]).await;
    kubectl.run(&format!("replace -f {list}"), &["configmap/a replaced"]).await;
    kubectl.run(&format!("apply -f {roles}"), &["/r created"]).await;
    let unknown = "apiVersion: networking.k8s.io/v1\nkind: Strange\nmetadata: {name: x}\n";
    let unknown = shown(&kubectl.file("unknown.yaml", unknown));
    let failed = kubectl.command(&format!("create -f {unknown}")).output().await.unwrap();
    let errors = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(errors.contains(r#"no matches for kind "Strange""#), "{errors}");
}

#[tokio::test]
async fn server_side_apply_works() {
    let kubectl = Kubectl::new().await;
    let file = shown(&kubectl.file("objects.yaml", OBJECTS));
    let apply = format!("apply --server-side -f {file}");
    kubectl.run(&apply, &["node/w1 serverside-applied"]).await;
    kubectl.run(&apply, &["configmap/applied serverside-applied"]).await;
    kubectl.run("get cm applied --show-managed-fields -o yaml", &["operation: Apply"]).await;
}

/// Ports without a protocol, which is part of their key, as people write them.
#[tokio::test]
async fn a_workload_is_applied_on_the_server_twice() {
    const WORKLOAD: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example/web:1', ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80}]}
";
    let kubectl = Kubectl::new().await;
    let file = shown(&kubectl.file("workload.yaml", WORKLOAD));
    for manager in ["one", "one", "other"] {
        let line = format!("apply --server-side --field-manager {manager} -f {file}");
        kubectl.run(&line, &["web serverside-applied", "service/web serverside-applied"]).await;
    }
    let ports = kubectl.run("get deploy web -o jsonpath={..ports}", &[]).await;
    assert_eq!(ports, r#"[{"containerPort":80,"protocol":"TCP"}]"#);
}

#[tokio::test]
async fn watching_shows_changes() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    let kubectl = Kubectl::new().await;
    kubectl.run("create configmap a --from-literal=k=v", &[]).await;
    let mut watching = kubectl.command("get configmaps -w").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("NAME"));
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("a "));
    kubectl.run("create configmap b", &[]).await;
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("b "));
    watching.kill().await.unwrap();
}

#[tokio::test]
async fn certificates_are_approved_and_issued() {
    let kubectl = Kubectl::new().await;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "some-group");
    params.distinguished_name.push(rcgen::DnType::CommonName, "someone");
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let csr = serde_json::json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr-1"},
        "spec": {
            "request": base64::Engine::encode(
                &base64::engine::general_purpose::STANDARD, request),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    });
    let file = shown(&kubectl.file("csr.json", &csr.to_string()));
    kubectl.run(&format!("create -f {file}"), &["created"]).await;
    kubectl.run("get csr", &["csr-1", "Pending"]).await;
    kubectl.run("certificate approve csr-1", &["approved"]).await;
    kubectl.run("get csr", &["Approved,Issued"]).await;
}
