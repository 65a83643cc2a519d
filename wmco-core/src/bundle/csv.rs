//! The ClusterServiceVersion.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::Bundle;
use crate::manifests::{self, Place, Watched};
use crate::names::objects::OPERATOR;
use crate::render::ContainerdSettings;
use crate::support_matrix::SUPPORTED;

const DISPLAY_NAME: &str = "Windows Machine Config Operator (wmco-rs)";
const SUMMARY: &str = "Makes Windows machines nodes of the cluster, upgrades and removes them.";
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Prefix of the annotations with the operator's features on OpenShift; the console filters by them.
pub(super) const FEATURES: &str = "features.operators.openshift.io/";

impl Bundle<'_> {
    pub(super) fn csv(&self) -> Value {
        let image = self.installation.image();
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {
                "name": self.name(),
                "annotations": self.annotations(),
                "labels": {
                    "operatorframework.io/arch.amd64": "supported",
                    "operatorframework.io/os.linux": "supported",
                },
            },
            "spec": {
                "displayName": DISPLAY_NAME,
                "description": include_str!("description.md"),
                "icon": [{
                    "base64data": BASE64_STANDARD.encode(include_str!("icon.svg")),
                    "mediatype": "image/svg+xml",
                }],
                "version": self.version.to_string(),
                "minKubeVersion": SUPPORTED.kubernetes.first().map(|least| format!("{least}.0")),
                "maturity": "alpha",
                "provider": {"name": "wmco-rs", "url": REPOSITORY},
                "keywords": ["windows", "windows nodes", "machine config"],
                "links": [{"name": "Source code and documentation", "url": REPOSITORY}],
                "installModes": install_modes(),
                "install": {"strategy": "deployment", "spec": self.install()},
                "relatedImages": [
                    {"name": "operator", "image": image},
                    {"name": "pause", "image": ContainerdSettings::default().pause_image},
                ],
            },
        })
    }

    fn annotations(&self) -> Value {
        let namespace = self.installation.namespace();
        let skip_range =
            self.skip_range.map_or_else(|| format!(">=0.0.0 <{}", self.version), ToOwned::to_owned);
        let template = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": manifests::namespace_labels()},
        });
        let annotations = json!({
            "alm-examples": "[]",
            "capabilities": "Seamless Upgrades",
            "categories": "OpenShift Optional",
            "containerImage": self.installation.image(),
            "description": SUMMARY,
            "olm.skipRange": skip_range,
            "operatorframework.io/cluster-monitoring": "true",
            "operatorframework.io/suggested-namespace": namespace,
            "operatorframework.io/suggested-namespace-template": template.to_string(),
            "repository": REPOSITORY,
            "support": "wmco-rs",
        });
        // The operator uses no cloud token, and its cryptography is not a validated module.
        let features = [
            ("cnf", false),
            ("cni", true),
            ("csi", false),
            ("disconnected", true),
            ("fips-compliant", false),
            ("proxy-aware", true),
            ("tls-profiles", true),
            ("token-auth-aws", false),
            ("token-auth-azure", false),
            ("token-auth-gcp", false),
        ];
        let features = features.map(|(feature, is_there)| {
            (format!("{FEATURES}{feature}"), is_there.to_string().into())
        });
        let annotations = annotations.as_object().cloned().unwrap_or_default();
        annotations.into_iter().chain(features).collect::<Map<_, _>>().into()
    }

    fn install(&self) -> Value {
        let installation = &self.installation;
        let namespace = installation.namespace();
        let (image, arguments) = (installation.image(), installation.arguments());
        let rules = |holds: fn(Place) -> bool| {
            json!([{
                "serviceAccountName": OPERATOR, "rules": manifests::rules(namespace, holds),
            }])
        };
        json!({
            "deployments": [{
                "name": OPERATOR,
                "label": {"name": OPERATOR},
                "spec": manifests::deployment_spec(image, arguments, Watched::TargetNamespaces),
            }],
            "permissions": rules(|place| place == Place::Own),
            "clusterPermissions": rules(|place| place != Place::Own),
        })
    }
}

/// Install modes: the operator serves its own namespace only. Source: `docs/contract/cluster.md`, CLU30.
fn install_modes() -> Value {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    modes.map(|mode| json!({"type": mode, "supported": mode == "OwnNamespace"})).to_vec().into()
}
