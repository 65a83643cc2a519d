//! Example objects to install the bundle from a catalog.

use serde_json::{Value, json};

use super::{Bundle, DEFAULT_CHANNEL, lives_in, yaml};
use crate::manifests;
use crate::monitoring;
use crate::names::objects::OPERATOR;
use crate::registries::ImageReference;
use crate::render::ContainerdSettings;

/// Namespace whose catalogs every Subscription may use.
const MARKETPLACE: &str = "openshift-marketplace";

/// Registry in the example of a disconnected cluster.
const MIRROR: &str = "mirror.corp.example:5000";

const CATALOG: &str = "wmco-rs";

const OPERATORS: &str = "operators.coreos.com";

impl Bundle<'_> {
    /// Files by path.
    pub(super) fn examples(&self) -> Vec<(String, String)> {
        let namespace = self.installation.namespace();
        let catalog = catalog(self.catalog_image);
        let install = [
            manifests::namespace(namespace),
            json!({
                "apiVersion": format!("{OPERATORS}/v1"), "kind": "OperatorGroup",
                "metadata": {"name": OPERATOR, "namespace": namespace},
                "spec": {"targetNamespaces": [namespace]},
            }),
            subscription(namespace, self.installation.arguments()),
        ];
        let dashboard = monitoring::shipped(namespace)
            .into_iter()
            .filter(|object| !lives_in(object, namespace));
        let file = |name: &str, comment: &str, objects: &[Value]| {
            let objects: Vec<String> = objects.iter().map(yaml).collect();
            (format!("examples/{name}"), format!("{comment}{}", objects.join("---\n")))
        };
        vec![
            file(
                "catalog-source.yaml",
                "# The catalogue. Its image is built with `opm`; see the users' book.\n",
                &[catalog],
            ),
            file(
                "subscription.yaml",
                "# The installation. `Manual` lets a person confirm each new version. Options of the operator stand in the\n\
                 # variable ARGS (spec.config.env); it takes the place of what the bundle says there. A namespace takes\n\
                 # one OperatorGroup: leave ours out where there is one.\n",
                &install,
            ),
            file(
                "disconnected.yaml",
                "# For a cluster that reaches one registry alone: where that has the catalogue and the images. Apply\n\
                 # it in place of catalog-source.yaml.\n",
                &self.disconnected(),
            ),
            (
                "examples/secrets-policy.yaml".to_owned(),
                manifests::secrets_policy(namespace).text(),
            ),
            file(
                "dashboard.yaml",
                "# The console's dashboard; the Operator Lifecycle Manager cannot bring it, for it lives in another\n\
                 # namespace.\n",
                &dashboard.collect::<Vec<_>>(),
            ),
        ]
    }

    fn disconnected(&self) -> Vec<Value> {
        let pause = ContainerdSettings::default().pause_image;
        let images = [self.installation.image(), self.own_image, pause.as_str()];
        // One kind is for images named by digest, the other for images named by tag.
        let kinds = [
            ("ImageDigestMirrorSet", "imageDigestMirrors", true),
            ("ImageTagMirrorSet", "imageTagMirrors", false),
        ];
        let sets = kinds.into_iter().filter_map(|(kind, field, by_digest)| {
            let images = images.into_iter().filter(|image| image.contains('@') == by_digest);
            let mirrors: Vec<Value> = images.filter_map(mirrored).collect();
            (!mirrors.is_empty()).then(|| {
                json!({
                    "apiVersion": "config.openshift.io/v1", "kind": kind,
                    "metadata": {"name": OPERATOR},
                    "spec": {field: mirrors},
                })
            })
        });
        let image = self.catalog_image.parse::<ImageReference>();
        let repository =
            image.map_or_else(|_| CATALOG.to_owned(), |image| image.repository().to_owned());
        [catalog(&format!("{MIRROR}/{repository}:{}", self.version))]
            .into_iter()
            .chain(sets)
            .collect()
    }
}

/// The mirror of an image, as a mirror set names it; `None` if the text is no image.
fn mirrored(image: &str) -> Option<Value> {
    let image: ImageReference = image.parse().ok()?;
    let (host, repository) = (image.host(), image.repository());
    Some(json!({
        "source": format!("{host}/{repository}"), "mirrors": [format!("{MIRROR}/{repository}")],
    }))
}

fn catalog(image: &str) -> Value {
    json!({
        "apiVersion": format!("{OPERATORS}/v1alpha1"), "kind": "CatalogSource",
        "metadata": {"name": CATALOG, "namespace": MARKETPLACE},
        "spec": {"sourceType": "grpc", "image": image, "displayName": "wmco-rs"},
    })
}

fn subscription(namespace: &str, arguments: &str) -> Value {
    let mut subscription = json!({
        "apiVersion": format!("{OPERATORS}/v1alpha1"), "kind": "Subscription",
        "metadata": {"name": OPERATOR, "namespace": namespace},
        "spec": {
            "name": OPERATOR,
            "channel": DEFAULT_CHANNEL,
            "source": CATALOG,
            "sourceNamespace": MARKETPLACE,
            "installPlanApproval": "Automatic",
        },
    });
    if let (false, Some(Value::Object(spec))) = (arguments.is_empty(), subscription.get_mut("spec"))
    {
        let variable = json!({"name": manifests::ARGUMENTS, "value": arguments});
        spec.insert("config".to_owned(), json!({"env": [variable]}));
    }
    subscription
}
