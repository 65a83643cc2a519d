//! Checks that fields of the ClusterServiceVersion have the types that its readers expect.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;
use serde_json::Value;

use super::{Found, TYPES, text};

const API_VERSION: &str = "operators.coreos.com/v1alpha1";

/// The typed fields; unknown fields are ignored, as the API server does.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "they are there to be read")]
struct ServiceVersion {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be read")]
struct Metadata {
    name: String,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "they are there to be read")]
struct Spec {
    display_name: Option<String>,
    description: Option<String>,
    icon: Option<Vec<BTreeMap<String, String>>>,
    version: Option<String>,
    replaces: Option<String>,
    skips: Option<Vec<String>>,
    min_kube_version: Option<String>,
    maturity: Option<String>,
    provider: Option<BTreeMap<String, String>>,
    keywords: Option<Vec<String>>,
    links: Option<Vec<BTreeMap<String, String>>>,
    maintainers: Option<Vec<BTreeMap<String, String>>>,
    labels: Option<BTreeMap<String, String>>,
    install_modes: Option<Vec<InstallMode>>,
    install: Option<Install>,
    related_images: Option<Vec<BTreeMap<String, String>>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be read")]
struct InstallMode {
    r#type: String,
    supported: bool,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be read")]
struct Install {
    strategy: Option<String>,
    spec: Option<Strategy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "they are there to be read")]
struct Strategy {
    deployments: Option<Vec<Deployment>>,
    permissions: Option<Vec<Permissions>>,
    cluster_permissions: Option<Vec<Permissions>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be read")]
struct Deployment {
    name: Option<String>,
    label: Option<BTreeMap<String, String>>,
    spec: Option<DeploymentSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "they are there to be read")]
struct Permissions {
    service_account_name: String,
    rules: Vec<PolicyRule>,
}

pub(super) fn check(file: &str, object: &Value, found: &mut Found) {
    let version = text(object, "/apiVersion");
    if version != API_VERSION {
        found.push(TYPES, file, format!("has apiVersion `{version}`, write {API_VERSION}"));
    }
    if let Err(error) = ServiceVersion::deserialize(object) {
        found.push(TYPES, file, format!("has a field of a wrong type: {error}"));
    }
}
