//! Kinds of OpenShift, its own ones and those that stand in for them.

use kube::api::{Api as KubeApi, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::api::{PostParams, ValidationDirective};
use serde_json::{Value, json};
use wmco_core::names::objects;

use super::cluster::{plain, run};
use super::support::objects::Objects;

const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// A definition that is as strict about these fields as OpenShift's own.
fn strict(plural: &str, kind: &str, spec: &Value) -> Value {
    let group = "machineconfiguration.openshift.io";
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {"spec": spec, "status": {
                        "type": "object",
                        "properties": {"configuration": {
                            "type": "object", "properties": {"name": {"type": "string"}},
                        }},
                    }},
                }},
            }],
        },
    })
}

/// The required fields are those of OpenShift's definition, nullable where they are there.
fn strict_controller_config() -> Value {
    let nullable = |kind: &str| json!({"type": kind, "nullable": true});
    let open = json!({
        "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true,
    });
    let text = json!({"type": "string"});
    let bytes = json!({"type": "string", "format": "byte"});
    let fields = json!({
        "additionalTrustBundle": nullable("string"), "baseOSContainerImage": text,
        "cloudProviderCAData": nullable("string"), "cloudProviderConfig": text,
        "clusterDNSIP": text, "dns": open,
        "images": {"type": "object", "additionalProperties": text}, "infra": open,
        "ipFamilies": text, "kubeAPIServerServingCAData": bytes, "network": open, "proxy": open,
        "releaseImage": text, "rootCAData": bytes,
    });
    let required: Vec<_> = fields.as_object().unwrap().keys().cloned().collect();
    strict(
        "controllerconfigs",
        "ControllerConfig",
        &json!({
            "type": "object", "required": required, "properties": fields,
        }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_objects_that_are_there_are_left_alone_and_strict_ones_will_do() {
    let (cluster, api) = plain().await;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let there =
        [strict_controller_config(), strict("machineconfigpools", "MachineConfigPool", &any)];
    for definition in &there {
        cluster.put(definition).unwrap();
    }
    let namespace = objects::BOOTSTRAPPER_NAMESPACE;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    cluster.put(&object).unwrap();
    let definition = |name: &Value| {
        cluster.object(DEFINITIONS.0, DEFINITIONS.1, "", name.as_str().unwrap()).unwrap()
    };
    let before = there.each_ref().map(|it| definition(&it["metadata"]["name"]));

    let findings = run(&api, 1).await;
    assert_eq!(
        findings.left_alone,
        [
            "namespaces openshift-machine-config-operator",
            "customresourcedefinitions.apiextensions.k8s.io controllerconfigs.machineconfiguration.openshift.io",
            "customresourcedefinitions.apiextensions.k8s.io machineconfigpools.machineconfiguration.openshift.io",
        ]
    );
    assert!(!findings.installed.iter().any(|name| name.starts_with("machineconfigpools.")));
    assert_eq!(findings.not_removed, Vec::<String>::new());
    assert_eq!(there.each_ref().map(|it| definition(&it["metadata"]["name"])), before);
    assert!(cluster.object("", "namespaces", "", namespace).is_some());
    // Others may ask with the account in a namespace that was there, so its requests are not removed.
    let requests = cluster.objects("certificates.k8s.io", "certificatesigningrequests", "");
    let users: Vec<_> =
        requests.iter().map(|it| it["spec"]["username"].as_str().unwrap()).collect();
    assert_eq!(users, [objects::BOOTSTRAPPER_USER]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_stand_in_keep_whatever_openshift_writes() {
    let (cluster, api) = plain().await;
    let mut objects = Objects::new(&api.client);
    assert_eq!(objects.install_kinds().await.unwrap().len(), 15);
    let of = |kind: &str, plural: &str| {
        let kind = GroupVersionKind::gvk("config.openshift.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        KubeApi::<DynamicObject>::all_with(api.client.clone(), &resource)
    };
    let spec = json!({"platformSpec": {"type": "AWS", "aws": {"serviceEndpoints": []}}});
    let status = json!({
        "infrastructureName": "c-7", "apiServerInternalURI": "https://api-int.c:6443",
        "platformStatus": {"type": "AWS", "aws": {"region": "r", "resourceTags": null}},
    });
    let object = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": {"name": objects::CLUSTER}, "spec": spec, "status": status,
    });
    let infrastructures = of("Infrastructure", "infrastructures");
    let made: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let made = infrastructures.create(&PostParams::default(), &made).await.unwrap();
    assert_eq!((&made.data["spec"], made.data.get("status")), (&spec, None), "status is apart");
    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("installer")
    };
    let patch = Patch::Apply(&object);
    let written = infrastructures.patch_status(objects::CLUSTER, &strict, &patch).await.unwrap();
    assert_eq!(written.data["status"], status);

    // The cluster network operator writes the status of this one with everything else.
    let network = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Network",
        "metadata": {"name": objects::CLUSTER},
        "spec": {"networkType": "OVNKubernetes", "networkDiagnostics": {"mode": ""}},
        "status": {"clusterNetworkMTU": 1400},
    });
    let networks = of("Network", "networks");
    let written = networks.patch(objects::CLUSTER, &strict, &Patch::Apply(&network)).await.unwrap();
    assert_eq!(
        (&written.data["spec"], &written.data["status"]),
        (&network["spec"], &network["status"])
    );
    cluster.stop().await;
}
