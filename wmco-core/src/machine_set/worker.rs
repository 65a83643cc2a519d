//! An existing MachineSet of the cluster, as the base of a new one.

use serde_json::Value;

use super::inspect::{inspect, name_of};
use super::platform::Platform;
use super::spelling;
use crate::names::machine_api::{
    CAPACITY_AMD64, CAPACITY_LABELS_ANNOTATION, CLUSTER_LABEL, MACHINE_SET_KIND,
};

/// A MachineSet of Linux workers.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    object: &'a Value,
    /// The platform of its machines.
    pub platform: Platform,
}

/// Why no MachineSet can be used as the base.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// None has the name that was asked for.
    #[error("no MachineSet is called {name:?}, there are: {}", listed(.there))]
    Name {
        /// The name.
        name: String,
        /// Names of the existing MachineSets.
        there: Vec<String>,
    },
    /// There is no MachineSet.
    #[error("there is no MachineSet of Linux workers, leave -f out or give one")]
    None,
    /// The kind of its provider specification is unknown.
    #[error(
        "MachineSet {name:?}, field spec.template.spec.providerSpec.value.kind is {kind:?}, and has to be \
         one of {}",
        known()
    )]
    Provider {
        /// Name of the MachineSet.
        name: String,
        /// The kind, empty if there is none.
        kind: String,
    },
    /// Several MachineSets are possible.
    #[error("there are several MachineSets, choose one with --from: {}", listed(.there))]
    Several {
        /// Their names.
        there: Vec<String>,
    },
}

/// Formats names as printable text.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

fn known() -> String {
    Platform::ALL.map(Platform::provider_kind).join(", ")
}

impl<'a> Worker<'a> {
    /// Chooses the MachineSet `name` among `objects`; without a name the only one that is not meant for Windows.
    /// Objects of other kinds are ignored.
    ///
    /// # Errors
    /// There is none, or more than one, or its platform is unknown.
    ///
    /// ```
    /// use serde_json::json;
    /// use wmco_core::machine_set::{Platform, Worker};
    ///
    /// let value = json!({"kind": "VSphereMachineProviderSpec"});
    /// let spec = json!({"template": {"spec": {"providerSpec": {"value": value}}}});
    /// let set = json!({"kind": "MachineSet", "metadata": {"name": "prod-x7k2p-worker"}, "spec": spec});
    /// assert_eq!(Worker::choose([&set], None)?.platform, Platform::VSphere);
    /// Ok::<(), wmco_core::machine_set::WorkerError>(())
    /// ```
    pub fn choose(
        objects: impl IntoIterator<Item = &'a Value>,
        name: Option<&str>,
    ) -> Result<Self, WorkerError> {
        let sets: Vec<&Value> = objects
            .into_iter()
            .filter(|object| object.get("kind").and_then(Value::as_str) == Some(MACHINE_SET_KIND))
            .collect();
        let names = |sets: &[&Value]| sets.iter().map(|set| name_of(set).to_owned()).collect();
        let Some(name) = name else {
            let linux: Vec<&Value> =
                sets.into_iter().filter(|set| inspect(set).is_none()).collect();
            return match linux.as_slice() {
                [] => Err(WorkerError::None),
                [set] => Self::of(set),
                several => Err(WorkerError::Several { there: names(several) }),
            };
        };
        match sets.iter().find(|set| name_of(set) == name) {
            Some(set) => Self::of(set),
            None => Err(WorkerError::Name { name: name.to_owned(), there: names(&sets) }),
        }
    }

    fn of(object: &'a Value) -> Result<Self, WorkerError> {
        let value = object.pointer("/spec/template/spec/providerSpec/value").map(spelling::usual);
        let kind = value.as_ref().and_then(|value| value.get("kind")?.as_str()).unwrap_or_default();
        Platform::of_provider(kind).map(|platform| Self { object, platform }).ok_or_else(|| {
            WorkerError::Provider { name: name_of(object).to_owned(), kind: kind.to_owned() }
        })
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        name_of(self.object)
    }

    /// Its provider specification, spelled as usual.
    pub(super) fn provider_spec(self) -> Value {
        let value = self.object.pointer("/spec/template/spec/providerSpec/value");
        value.map(spelling::usual).unwrap_or_default()
    }

    /// Taints of its nodes.
    pub(super) fn taints(self) -> Option<&'a Value> {
        self.object
            .pointer("/spec/template/spec/taints")
            .filter(|taints| taints.as_array().is_some_and(|taints| !taints.is_empty()))
    }

    /// Infrastructure name of its cluster.
    pub(super) fn infrastructure(self) -> Option<&'a str> {
        let labels =
            ["/metadata/labels", "/spec/template/metadata/labels", "/spec/selector/matchLabels"];
        labels.into_iter().find_map(|labels| {
            let label = self.object.pointer(labels)?.get(CLUSTER_LABEL)?.as_str()?;
            (!label.is_empty()).then_some(label)
        })
    }

    /// Whether its machines can run Windows: not on ARM.
    pub(super) fn is_amd64(self) -> bool {
        let annotations = self.object.pointer("/metadata/annotations");
        let labels = annotations.and_then(|all| all.get(CAPACITY_LABELS_ANNOTATION));
        labels
            .and_then(Value::as_str)
            .is_none_or(|labels| labels.split(',').any(|label| label.trim() == CAPACITY_AMD64))
    }
}
