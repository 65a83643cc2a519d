//! Makes a new MachineSet.

use serde_json::{Map, Value, json};

use super::architecture::arm;
use super::draft::Draft;
use super::error::MachineSetError;
use super::inspect::{Finding, inspect, name_of};
use super::name::{SHORT_NAME, check_name};
use super::options::{MachineSetOptions, Setting};
use super::platform::Platform;
use super::provider;
use super::worker::Worker;
use crate::names::machine_api::{
    CLUSTER_LABEL, MACHINE_ROLE_LABEL, MACHINE_ROLE_WORKER, MACHINE_SET_KIND, MACHINE_SET_LABEL,
    MACHINE_TYPE_LABEL,
};
use crate::names::objects::{MACHINE, MACHINE_API_NAMESPACE};
use crate::names::{MACHINE_OS_LABEL, OS_ID_WINDOWS, WORKER_LABEL};

/// A MachineSet, with remarks.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The object for the API server.
    pub machine_set: Value,
    /// Members of the existing MachineSet's provider specification that were left out.
    pub left_out: Vec<&'static str>,
    /// What was written otherwise than it was given, each with its field.
    pub notes: Vec<String>,
    /// Possible mistakes.
    pub warnings: Vec<Finding>,
}

impl Generated {
    /// Whether one of `objects` is a MachineSet of the same name, which this one would overwrite.
    pub fn is_among<'a>(&self, objects: impl IntoIterator<Item = &'a Value>) -> bool {
        let own = name_of(&self.machine_set);
        objects.into_iter().any(|object| {
            let kind = object.get("kind").and_then(Value::as_str);
            kind == Some(MACHINE_SET_KIND) && name_of(object) == own
        })
    }
}

/// Makes a MachineSet for Windows on `platform`, or on the platform of `worker`.
///
/// Copies infrastructure name, taints and provider specification from `worker`, with another image, another
/// user-data Secret, a bigger disk if necessary, and without the members that only Linux uses. `options` take
/// precedence.
///
/// # Errors
/// The names of the missing, invalid or unused options.
pub fn generate(
    platform: Option<Platform>,
    options: &MachineSetOptions,
    worker: Option<Worker<'_>>,
) -> Result<Generated, MachineSetError> {
    let platform = match (platform, worker) {
        (Some(asked), Some(worker)) if asked != worker.platform => {
            let (worker, platform) = (worker.name().to_owned(), worker.platform);
            return Err(MachineSetError::OtherPlatform { worker, platform, asked });
        }
        (Some(platform), _) | (None, Some(Worker { platform, .. })) => platform,
        (None, None) => return Err(MachineSetError::NoPlatform),
    };
    let text = |option: &Option<String>| option.clone().filter(|text| !text.is_empty());
    let infrastructure = text(&options.infrastructure)
        .or_else(|| Some(worker?.infrastructure()?.to_owned()))
        .unwrap_or_default();

    let mut draft = match worker {
        Some(worker) => Draft::new(worker.provider_spec(), true, options),
        None => Draft::new(provider::usual(platform, &infrastructure, options), false, options),
    };
    if infrastructure.is_empty() {
        draft.missing.push(Setting::Infrastructure);
    }
    draft.mend_types(platform);
    let of_arm = arm(platform, &draft.value).is_some();
    provider::for_windows(platform, &mut draft)?;
    if (of_arm || worker.is_some_and(|worker| !worker.is_amd64()))
        && draft.known.contains(&Setting::InstanceType)
        && draft.option(Setting::InstanceType).is_none()
    {
        draft.missing.push(Setting::InstanceType);
    }
    let settings: Vec<Setting> =
        options.given().filter(|setting| !draft.known.contains(setting)).collect();
    if !settings.is_empty() {
        return Err(MachineSetError::Unused { settings, platform });
    }
    if !draft.missing.is_empty() {
        draft.missing.sort_unstable();
        draft.missing.dedup();
        return Err(MachineSetError::Missing { settings: draft.missing, platform });
    }

    check_name(None, &infrastructure)
        .map_err(|source| MachineSetError::Name { setting: Setting::Infrastructure, source })?;
    let name =
        text(&options.name).unwrap_or_else(|| usual_name(platform, &infrastructure, &draft.value));
    check_name(Some(platform), &name)
        .map_err(|source| MachineSetError::Name { setting: Setting::Name, source })?;

    let taints = worker.and_then(Worker::taints);
    let replicas = options.replicas.unwrap_or(1);
    let machine_set = object(&name, &infrastructure, replicas, taints, draft.value);
    let (problems, warnings) =
        inspect(&machine_set).map(|found| (found.problems, found.warnings)).unwrap_or_default();
    if problems.is_empty() {
        Ok(Generated { machine_set, left_out: draft.left_out, notes: draft.notes, warnings })
    } else {
        Err(MachineSetError::Refused { problems })
    }
}

/// The name as in OpenShift's samples, or a short one if it becomes part of computer names.
fn usual_name(platform: Platform, infrastructure: &str, value: &Value) -> String {
    let zone = match platform {
        Platform::Aws => value.pointer("/placement/availabilityZone"),
        Platform::Gcp => value.pointer("/zone"),
        Platform::Azure | Platform::Nutanix | Platform::VSphere => return SHORT_NAME.to_owned(),
    };
    let zone = zone.and_then(Value::as_str).unwrap_or_default();
    format!("{infrastructure}-windows-worker-{zone}")
}

fn object(
    name: &str,
    infrastructure: &str,
    replicas: u32,
    taints: Option<&Value>,
    provider_spec: Value,
) -> Value {
    let (group, version, _) = MACHINE;
    let selected = [(CLUSTER_LABEL, infrastructure), (MACHINE_SET_LABEL, name)];
    let machine = [
        (MACHINE_ROLE_LABEL, MACHINE_ROLE_WORKER),
        (MACHINE_TYPE_LABEL, MACHINE_ROLE_WORKER),
        (MACHINE_OS_LABEL, OS_ID_WINDOWS),
    ];
    let spec: Map<String, Value> = [
        ("metadata", json!({"labels": {WORKER_LABEL: ""}})),
        ("providerSpec", Map::from_iter([("value".to_owned(), provider_spec)]).into()),
    ]
    .into_iter()
    .chain(taints.map(|taints| ("taints", taints.clone())))
    .map(|(member, value)| (member.to_owned(), value))
    .collect();
    json!({
        "apiVersion": format!("{group}/{version}"),
        "kind": MACHINE_SET_KIND,
        "metadata": {
            "labels": {CLUSTER_LABEL: infrastructure},
            "name": name,
            "namespace": MACHINE_API_NAMESPACE,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels(selected)},
            "template": {
                "metadata": {"labels": labels(selected.into_iter().chain(machine))},
                "spec": spec,
            },
        },
    })
}

fn labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    labels.into_iter().map(|(label, value)| (label.to_owned(), value.into())).collect()
}
