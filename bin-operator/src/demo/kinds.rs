//! Definitions of kinds that OpenShift and its operators bring and plain Kubernetes lacks.
//!
//! They are as open as can be: whatever OpenShift's own definitions accept these accept, too, and keep.

use kube::Resource;
use serde_json::{Value, json};
use wmco_core::names::monitoring::{
    OPERATOR_CONDITION, OPERATOR_CONDITIONS, SERVICE_MONITOR, SERVICE_MONITORS,
};
use wmco_core::names::registries::{
    CONFIG_GROUP, CONFIG_VERSION, CONTENT_SOURCE_POLICY_GROUP, CONTENT_SOURCE_POLICY_KIND,
    CONTENT_SOURCE_POLICY_VERSION, DIGEST_MIRROR_SET_KIND, IMAGE_CONFIG_KIND, TAG_MIRROR_SET_KIND,
};

use crate::openshift::{
    ApiServer, ClusterVersion, ControllerConfig, Infrastructure, MachineConfig, MachineConfigPool,
    Network, OperatorNetwork, Proxy,
};

/// A kind that somebody else brings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForeignKind {
    group: String,
    version: String,
    kind: String,
    plural: String,
    scope: Scope,
    status: Status,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    Cluster,
    Namespaced,
}

/// How clients write the status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    /// As a sub-resource; what a write of the whole object says of it does not count.
    Apart,
    /// With everything else.
    Within,
}

/// All kinds of others that the operator reads or writes, but for those of the Machine API.
pub fn all() -> Vec<ForeignKind> {
    use Scope::{Cluster, Namespaced};
    use Status::{Apart, Within};
    let config = |kind, plural| {
        ForeignKind::new((CONFIG_GROUP, CONFIG_VERSION, kind), plural, Cluster, Apart)
    };
    let policy =
        (CONTENT_SOURCE_POLICY_GROUP, CONTENT_SOURCE_POLICY_VERSION, CONTENT_SOURCE_POLICY_KIND);
    vec![
        ForeignKind::of::<Infrastructure>(Apart),
        ForeignKind::of::<Network>(Within),
        ForeignKind::of::<OperatorNetwork>(Within),
        ForeignKind::of::<ControllerConfig>(Apart),
        ForeignKind::of::<Proxy>(Apart),
        ForeignKind::of::<ApiServer>(Apart),
        ForeignKind::of::<ClusterVersion>(Apart),
        ForeignKind::of::<MachineConfigPool>(Apart),
        ForeignKind::of::<MachineConfig>(Within),
        config(DIGEST_MIRROR_SET_KIND, "imagedigestmirrorsets"),
        config(TAG_MIRROR_SET_KIND, "imagetagmirrorsets"),
        config(IMAGE_CONFIG_KIND, "images"),
        ForeignKind::new(policy, "imagecontentsourcepolicies", Cluster, Within),
        ForeignKind::new(OPERATOR_CONDITION, OPERATOR_CONDITIONS, Namespaced, Apart),
        ForeignKind::new(SERVICE_MONITOR, SERVICE_MONITORS, Namespaced, Apart),
    ]
}

impl ForeignKind {
    fn new(
        (group, version, kind): (&str, &str, &str),
        plural: &str,
        scope: Scope,
        status: Status,
    ) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        Self { group, version, kind, plural, scope, status }
    }

    fn of<K: Resource<DynamicType = ()>>(status: Status) -> Self {
        let (group, version, kind) = (K::group(&()), K::version(&()), K::kind(&()));
        Self::new((&group, &version, &kind), &K::plural(&()), Scope::Cluster, status)
    }

    /// Name of its CustomResourceDefinition.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Its CustomResourceDefinition.
    pub fn definition(&self) -> Value {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let subresources = match self.status {
            Status::Apart => json!({"status": {}}),
            Status::Within => json!({}),
        };
        let scope = match self.scope {
            Scope::Cluster => "Cluster",
            Scope::Namespaced => "Namespaced",
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": self.group,
                "scope": scope,
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.kind.to_lowercase(),
                },
                "versions": [{
                    "name": self.version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": any},
                    "subresources": subresources,
                }],
            },
        })
    }

    /// The same where one client writes whole objects, their status with everything else.
    pub(super) fn definition_for_one_writer(&self) -> Value {
        Self { status: Status::Within, ..self.clone() }.definition()
    }
}
