//! Finds problems that keep the Machines of a MachineSet from becoming Windows nodes.

mod labels;
mod machine;
mod missing;
mod placeholders;
mod selection;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::hints::{Hint, hint};
use super::name::check_name;
use super::platform::Platform;
use super::spelling;
use crate::facts::UserDataRef;
use crate::names::machine_api::CLUSTER_LABEL;
use crate::names::objects::{MACHINE, MACHINE_API_NAMESPACE, USER_DATA_SECRET};
use crate::names::{MACHINE_OS_LABEL, OS_ID_WINDOWS};

/// A finding in a MachineSet. Both texts are one printable line.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// The field, for example `spec.template.metadata.labels[machine.openshift.io/os-id]`.
    pub at: String,
    /// The problem there, and the remedy.
    pub text: String,
}

/// Findings in a MachineSet that is meant for Windows.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inspection {
    /// Its platform; `None` if the kind of its provider specification is unknown.
    pub platform: Option<Platform>,
    /// Problems that keep its Machines from becoming Windows nodes.
    pub problems: Vec<Finding>,
    /// Possible mistakes.
    pub warnings: Vec<Finding>,
}

/// Reports the problems of `machine_set`; `None` if nothing in it refers to Windows.
///
/// It is meant for Windows if it has the label [`MACHINE_OS_LABEL`] anywhere, by its user-data Secret, or by its
/// name, image or disk.
///
/// ```
/// use serde_json::json;
/// use wmco_core::machine_set::inspect;
///
/// let set = json!({"kind": "MachineSet", "metadata": {"name": "windows"}});
/// let found = inspect(&set).expect("its name says Windows");
/// assert!(found.problems.iter().any(|problem| problem.at.contains("os-id")));
/// assert_eq!(inspect(&json!({"metadata": {"name": "worker"}})), None);
/// ```
pub fn inspect(machine_set: &Value) -> Option<Inspection> {
    let mut spelled = machine_set.clone();
    if let Some(provider) = spelled.pointer_mut(PROVIDER) {
        *provider = spelling::usual(provider);
    }
    let set = Set(&spelled);
    if !set.is_meant_for_windows() {
        return None;
    }
    let mut found = Inspection { platform: set.platform(), ..Inspection::default() };
    header(set, &mut found);
    labels::check(set, &mut found);
    machine::check(set, &mut found);
    placeholders::check(&spelled, &mut found);
    Some(found)
}

/// Like [`inspect`], and compares it with `others`, all MachineSets of the cluster: no two may select the same Machines.
///
/// ```
/// use serde_json::json;
/// use wmco_core::machine_set::inspect_among;
///
/// let set = |name: &str| json!({
///     "metadata": {"name": name},
///     "spec": {
///         "selector": {"matchLabels": {"of": "prod"}},
///         "template": {"metadata": {"labels": {"of": "prod"}}},
///     },
/// });
/// let (windows, worker) = (set("windows"), set("worker"));
/// let found = inspect_among(&windows, [&windows, &worker]).unwrap();
/// assert!(found.problems.iter().any(|problem| problem.text.contains("worker")));
/// ```
pub fn inspect_among<'a>(
    machine_set: &Value,
    others: impl IntoIterator<Item = &'a Value>,
) -> Option<Inspection> {
    let mut found = inspect(machine_set)?;
    selection::check(Set(machine_set), others.into_iter().map(Set), &mut found);
    Some(found)
}

/// The name of `machine_set`, or an empty text.
pub(super) fn name_of(machine_set: &Value) -> &str {
    Set(machine_set).text("/metadata/name")
}

/// Checks version, namespace, name and number.
fn header(set: Set<'_>, found: &mut Inspection) {
    let (group, version, _) = MACHINE;
    let (api, expected) = (set.text("/apiVersion"), format!("{group}/{version}"));
    if api != expected {
        found.problem("apiVersion", format!("is {api:?}, and the Machine API takes {expected}"));
    }
    match set.text("/metadata/namespace") {
        MACHINE_API_NAMESPACE => {}
        "" => found.warning(
            "metadata.namespace",
            format!("is not set, apply it with `-n {MACHINE_API_NAMESPACE}`"),
        ),
        other => found.problem(
            "metadata.namespace",
            format!("is {other:?}, and Machines count in {MACHINE_API_NAMESPACE} only"),
        ),
    }
    if let Err(error) = check_name(found.platform, set.text("/metadata/name")) {
        found.problem("metadata.name", error.to_string());
    }
    match set.0.pointer("/spec/replicas") {
        // The API server defaults to one.
        None | Some(Value::Null) => {}
        Some(number) if number.as_u64() == Some(0) => {
            found.warning("spec.replicas", "is 0, so there are no Machines until it is scaled up");
        }
        Some(number) if number.as_u64().is_some_and(|many| i32::try_from(many).is_ok()) => {}
        Some(_) => found.problem("spec.replicas", "is no number of Machines, write for example 1"),
    }
}

/// A MachineSet, which may be any JSON. Paths are JSON pointers (RFC 6901).
#[derive(Clone, Copy)]
struct Set<'a>(&'a Value);

/// Path of the provider specification.
const PROVIDER: &str = "/spec/template/spec/providerSpec/value";

/// The field at `at` of the provider specification.
fn field(at: &str) -> String {
    let member = at.replace("/0", "[0]").replace('/', ".");
    format!("spec.template.spec.providerSpec.value{member}")
}

impl<'a> Set<'a> {
    /// The text at `at`; empty if there is none.
    fn text(self, at: &str) -> &'a str {
        self.0.pointer(at).and_then(Value::as_str).unwrap_or_default()
    }

    /// The value of `label` in the labels at `at`.
    fn label(self, at: &str, label: &str) -> Option<&'a Value> {
        self.0.pointer(at)?.get(label)
    }

    fn provider(self, at: &str) -> Option<&'a Value> {
        self.0.pointer(PROVIDER)?.pointer(at)
    }

    fn provider_text(self, at: &str) -> &'a str {
        self.provider(at).and_then(Value::as_str).unwrap_or_default()
    }

    fn platform(self) -> Option<Platform> {
        Platform::of_provider(self.provider_text("/kind"))
    }

    /// Infrastructure name of its cluster.
    fn infrastructure(self) -> &'a str {
        [labels::OWN, labels::MACHINES, labels::SELECTED]
            .into_iter()
            .find_map(|at| self.label(at, CLUSTER_LABEL)?.as_str())
            .unwrap_or_default()
    }

    fn hint(self, text: &str) -> Option<Hint> {
        hint(text, self.infrastructure())
    }

    fn is_meant_for_windows(self) -> bool {
        let labelled = [labels::OWN, labels::MACHINES, labels::NODES, labels::SELECTED]
            .into_iter()
            .filter_map(|at| self.label(at, MACHINE_OS_LABEL)?.as_str())
            .any(|os| os.eq_ignore_ascii_case(OS_ID_WINDOWS));
        let system = self.provider_text(machine::AZURE_SYSTEM);
        if labelled
            || system.eq_ignore_ascii_case(OS_ID_WINDOWS)
            || self.provider_text(UserDataRef::NAME) == USER_DATA_SECRET
        {
            return true;
        }
        let says = |text: &str| self.hint(text) == Some(Hint::Windows);
        let is_linux = system.eq_ignore_ascii_case(machine::AZURE_LINUX);
        // What people call things is no proof, but may show that the rest was forgotten.
        machine::image_names(self).any(says) || !is_linux && says(self.text("/metadata/name"))
    }
}

impl Inspection {
    fn problem(&mut self, at: impl Into<String>, text: impl Into<String>) {
        self.problems.push(Finding { at: at.into(), text: text.into() });
    }

    fn warning(&mut self, at: impl Into<String>, text: impl Into<String>) {
        self.warnings.push(Finding { at: at.into(), text: text.into() });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.text)
    }
}
