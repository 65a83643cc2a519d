//! The operator's Deployment.

use serde_json::{Value, json};

use super::Installation;
use super::text::{Document, File};
use crate::names::monitoring::OPERATOR_METRICS_PORT;
use crate::names::objects::OPERATOR;

/// Folder in the container for compressed payload; it is created again if it is lost.
pub const CACHE_FOLDER: &str = "/cache";

/// Arguments of the program in its container; those in [`ARGUMENTS`] follow and take precedence.
pub const RUN: [&str; 3] = ["run", "--cache", CACHE_FOLDER];

/// Environment variable with the namespace that the operator serves.
pub const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";

/// Environment variable with the name of the operator's pod.
pub const POD_NAME: &str = "POD_NAME";

/// Environment variable with more options of `run`, separated by single blanks. A Subscription sets it.
pub const ARGUMENTS: &str = "ARGS";

/// How long the pod may take to finish its work and release its Lease, in seconds.
const END_SECONDS: u32 = 30;

/// How long the pod stays on an unreachable node, in seconds.
const STAY_SECONDS: u32 = 120;

/// Source of the operator's namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watched {
    /// From its pod.
    Namespace,
    /// From the Operator Lifecycle Manager's annotation.
    TargetNamespaces,
}

pub(super) fn file(installation: &Installation<'_>) -> File {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": OPERATOR, "namespace": installation.namespace, "labels": {"name": OPERATOR},
        },
        "spec": spec(installation.image, installation.arguments, Watched::Namespace),
    });
    File::new(
        "deployment.yaml",
        "The operator. Its image: kustomize edit set image wmco-operator=IMAGE. No user is named: the cluster may\n\
         choose one, else it is that of the image. Its port serves /metrics, for who may get it, /healthz and\n\
         /readyz by HTTPS.",
        [Document::of(object)],
    )
}

/// The Deployment's specification. Source: `docs/contract/cluster.md`, CLU28.
pub(crate) fn spec(image: &str, arguments: &str, watched: Watched) -> Value {
    let labels = json!({"name": OPERATOR});
    let toleration = |key: &str| {
        json!({
            "key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": STAY_SECONDS,
        })
    };
    json!({
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": OPERATOR,
                "priorityClassName": "system-cluster-critical",
                "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
                "tolerations": [
                    {
                        "key": "node-role.kubernetes.io/master", "operator": "Exists",
                        "effect": "NoSchedule",
                    },
                    toleration("node.kubernetes.io/unreachable"),
                    toleration("node.kubernetes.io/not-ready"),
                ],
                "terminationGracePeriodSeconds": END_SECONDS,
                "securityContext": {
                    "runAsNonRoot": true,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container(image, arguments, watched)],
                "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}],
            },
        },
    })
}

fn container(image: &str, arguments: &str, watched: Watched) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": OPERATOR_METRICS_PORT, "scheme": "HTTPS"}});
    json!({
        "name": "manager",
        "image": image,
        "args": RUN,
        "env": environment(arguments, watched),
        "ports": [{"name": OPERATOR_METRICS_PORT, "containerPort": 9182}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": {"cpu": "20m", "memory": "300Mi"},
            "limits": {"cpu": "200m", "memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{"name": "cache", "mountPath": CACHE_FOLDER}],
    })
}

fn environment(arguments: &str, watched: Watched) -> Vec<Value> {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let watched = match watched {
        Watched::Namespace => "metadata.namespace",
        Watched::TargetNamespaces => "metadata.annotations['olm.targetNamespaces']",
    };
    let mut variables = vec![field(WATCH_NAMESPACE, watched), field(POD_NAME, "metadata.name")];
    if !arguments.is_empty() {
        variables.push(json!({"name": ARGUMENTS, "value": arguments}));
    }
    variables
}
