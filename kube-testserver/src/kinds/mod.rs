//! How the server treats each built-in kind: defaults, strategies, validation, warnings, columns, selectable
//! fields. Metadata is checked by `write`.
//!
//! Source: the Kubernetes API reference and the answers of kube-apiserver 1.36.

#[cfg(feature = "admission-policy")]
mod admission_policy;
mod ages;
mod budget;
mod data;
mod definition;
mod event;
mod finalizers;
mod lease;
mod namespace;
mod node;
mod pod;
mod rbac;
mod request;
mod service;
mod slice;
mod values;
mod workload;

pub(crate) use ages::age_of;
pub(crate) use finalizers::{is_known_finalizer, unknown_finalizers};
pub(crate) use node::{NOT_READY_TAINT, new_taints};
pub(crate) use pod::{admit as admit_pod, tolerate};
pub(crate) use values::put;

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::call::Call;
use super::error::{FieldError, Result};
use super::resources::Resource;
use super::store::Store;
use super::{meta, names, schema};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const TEXT: &str = "string";
const NUMBER: &str = "integer";

/// Name, type and priority of each column. Source: Kubernetes' `pkg/printers/internalversion`.
pub(crate) type Columns = &'static [(&'static str, &'static str, i64)];

/// Complaints about a name.
pub(crate) type NameRule = fn(&str) -> Vec<String>;

/// A field that a selector may name, and JSON pointers to its value in the stored object: the first that is there.
pub(crate) type SelectableField = (String, Vec<String>);

const NAME_AND_AGE: Columns = &[("Name", TEXT, 0), ("Age", TEXT, 0)];
const CREATED_AT: Columns = &[("Name", TEXT, 0), ("Created At", "date", 0)];

/// What distinguishes a kind from others. The provided methods are those of a kind without peculiarities.
pub(crate) trait Strategy: fmt::Debug + Sync {
    /// The rule for names.
    fn name_rule(&self) -> NameRule {
        names::dns1123_subdomain
    }

    /// Fills in the defaults of decoding, for every write.
    fn default(&self, _object: &mut Value) {}

    /// Sets what the server decides about a new object.
    fn prepare_create(&self, _store: &Store, _call: &Call, _object: &mut Value) {}

    /// Keeps or resets what a change may not decide.
    fn prepare_update(&self, _store: &Store, _call: &Call, _before: &Value, _object: &mut Value) {}

    /// The member of `metadata` whose changes count in `generation` like those of the spec.
    fn generation_counts(&self) -> Option<&'static str> {
        None
    }

    /// Validates a new object, metadata apart.
    ///
    /// # Errors
    /// 501 for parts of a kind that are not simulated.
    fn validate(&self, _call: &Call, _object: &Value) -> Result<Vec<FieldError>> {
        Ok(vec![])
    }

    /// Validates a change, metadata apart.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    fn validate_update(
        &self,
        call: &Call,
        _before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        if call.subresource.is_empty() { self.validate(call, object) } else { Ok(vec![]) }
    }

    /// Warnings about an accepted object; `before` is `None` for a new one.
    fn warnings(&self, _before: Option<&Value>, _object: &Value) -> Vec<String> {
        vec![]
    }

    /// The columns of its Table.
    fn columns(&self) -> Columns {
        NAME_AND_AGE
    }

    /// The cells of one row.
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![meta::name(object).into(), ages::age(object, now)]
    }

    /// Fields that selectors may name besides name and namespace; `None` for none, which has an error message of
    /// its own.
    fn fields(&self) -> Option<Vec<SelectableField>> {
        None
    }
}

/// A kind without peculiarities, for example a custom resource.
#[derive(Debug)]
struct Plain;

impl Strategy for Plain {}

/// The strategy of the kind.
pub(crate) fn of(resource: &Resource) -> &'static dyn Strategy {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps") => &data::ConfigMaps,
        ("", "events") => &event::Events { is_new_api: false },
        ("", "namespaces") => &namespace::Namespaces,
        ("", "nodes") => &node::Nodes,
        ("", "pods") => &pod::Pods,
        ("", "secrets") => &data::Secrets,
        ("", "services") => &service::Services,
        #[cfg(feature = "admission-policy")]
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            &admission_policy::AdmissionPolicies::Policies
        }
        #[cfg(feature = "admission-policy")]
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => {
            &admission_policy::AdmissionPolicies::Bindings
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => &definition::Definitions,
        ("apps", "daemonsets") => &workload::Workloads::DaemonSets,
        ("apps", "deployments") => &workload::Workloads::Deployments,
        ("apps", "replicasets") => &workload::Workloads::ReplicaSets,
        ("apps", "statefulsets") => &workload::Workloads::StatefulSets,
        ("certificates.k8s.io", "certificatesigningrequests") => &request::Requests,
        ("coordination.k8s.io", "leases") => &lease::Leases,
        ("discovery.k8s.io", "endpointslices") => &slice::EndpointSlices,
        ("events.k8s.io", "events") => &event::Events { is_new_api: true },
        ("policy", "poddisruptionbudgets") => &budget::PodDisruptionBudgets,
        ("rbac.authorization.k8s.io", "clusterrolebindings") => {
            &rbac::RoleBindings { namespaced: false }
        }
        ("rbac.authorization.k8s.io", "clusterroles") => &rbac::Roles { namespaced: false },
        ("rbac.authorization.k8s.io", "rolebindings") => &rbac::RoleBindings { namespaced: true },
        ("rbac.authorization.k8s.io", "roles") => &rbac::Roles { namespaced: true },
        _ => &Plain,
    }
}

/// Fills in what decoding fills in, on every write.
pub(crate) fn default(call: &Call, object: &mut Value) {
    if matches!(call.subresource.as_str(), "binding" | "eviction" | "token") {
        // The body is of another kind than the resource.
        return;
    }
    of(&call.resource).default(object);
}

/// Sets what the server decides about a new object.
pub(crate) fn prepare_create(store: &Store, call: &Call, object: &mut Value) {
    of(&call.resource).prepare_create(store, call, object);
    canonical(object);
}

/// Keeps or resets what a change may not decide.
pub(crate) fn prepare_update(store: &Store, call: &Call, before: &Value, object: &mut Value) {
    of(&call.resource).prepare_update(store, call, before, object);
    canonical(object);
}

/// Normalizes an object to the form of its kind, after a strategy changed it.
fn canonical(object: &mut Value) {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("");
    if let Some(message) = schema::kind(text("apiVersion"), text("kind"))
        && let Ok(shaped) = schema::shape::object(message, object)
    {
        *object = shaped.value;
    }
}

/// The fields that selectors may name besides name and namespace.
pub(crate) fn fields(resource: &Resource) -> Option<Vec<SelectableField>> {
    let Some(custom) = &resource.custom else { return of(resource).fields() };
    let paths: Vec<&str> =
        custom.selectable.iter().map(|path| path.trim_start_matches('.')).collect();
    Some(same_as_stored(&paths))
}

/// Fields whose names are their paths in the stored object.
fn same_as_stored(fields: &[&str]) -> Vec<SelectableField> {
    let pointer = |field: &str| vec![format!("/{}", field.replace('.', "/"))];
    fields.iter().map(|field| ((*field).to_owned(), pointer(field))).collect()
}

/// A map of texts in one cell.
fn labels(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")));
    let text = pairs.collect::<Vec<_>>().join(",");
    if text.is_empty() { NONE.to_owned() } else { text }
}
