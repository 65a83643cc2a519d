//! A Machine and a MachineSet of the Machine API, reduced to the fields that decisions need.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::UserDataRef;
use crate::names;
use crate::names::machine_api::MACHINE_SET_KIND;

/// The fields of a Machine that decisions need.
///
/// Each field is read on its own: an invalid field is left out, and never prevents reading the others.
///
/// ```
/// use serde_json::json;
/// use wmco_core::facts::MachineFacts;
///
/// let machine = MachineFacts::of(&json!({
///     "metadata": {"name": "win-x7k2p", "uid": "u-1",
///         "labels": {"machine.openshift.io/os-id": "Windows"},
///         "ownerReferences": [{"kind": "MachineSet", "name": "win", "uid": "s-1"}]},
///     "status": {"phase": "Running", "nodeRef": {"name": "win-x7k2p", "uid": "n-1"},
///         "addresses": [{"type": "InternalIP", "address": "10.0.128.1"}]},
/// }));
/// assert!(machine.is_windows && !machine.is_ignored);
/// assert_eq!(machine.machine_set.unwrap().name, "win");
/// assert_eq!(machine.node.unwrap().uid, "n-1");
/// ```
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineFacts {
    /// Its name.
    pub name: String,
    /// Its UID, so that no action hits a successor of the same name.
    pub uid: String,
    /// When the API server stored it first.
    #[schemars(with = "Option<String>")]
    pub created: Option<Timestamp>,
    /// Whether its label marks it as a Windows Machine.
    pub is_windows: bool,
    /// Whether an administrator asked to leave it alone.
    pub is_ignored: bool,
    /// Whether it is deleted and only waits for its finalizers.
    pub is_deleted: bool,
    /// Its phase; `None` before the Machine API sets one.
    pub phase: Option<String>,
    /// Its addresses, in the Machine's order.
    pub addresses: Vec<MachineAddress>,
    /// Its Node.
    pub node: Option<Reference>,
    /// The MachineSet that creates a replacement when it is deleted: its controller, or its first owner of that
    /// kind.
    pub machine_set: Option<Reference>,
}

/// An address of a Machine.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineAddress {
    /// Its type, such as `InternalIP`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub address: String,
}

/// A reference to an object.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// The fields of a MachineSet that decisions need.
///
/// ```
/// use wmco_core::facts::MachineSetFacts;
///
/// let set = MachineSetFacts::of(&serde_json::json!({"metadata": {"name": "win", "uid": "s-1"}}));
/// assert_eq!(set.replicas, 1, "so many are made where nobody says how many");
/// ```
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetFacts {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Desired number of Machines.
    pub replicas: usize,
    /// The system of new Machines, by the label [`MACHINE_OS_LABEL`](crate::names::MACHINE_OS_LABEL).
    pub os: Option<String>,
    /// Whether new Machines are to be left alone.
    pub ignores: bool,
    /// The Secret with the user data of new Machines.
    pub user_data: UserDataRef,
    /// Whether it is deleted and only waits for its finalizers.
    pub is_deleted: bool,
}

impl MachineFacts {
    /// Reads a Machine object.
    pub fn of(machine: &Value) -> Self {
        let label = |name: &str| text(machine.pointer("/metadata/labels")?.get(name));
        let addresses = machine.pointer("/status/addresses").and_then(Value::as_array);
        let address = |it: &Value| MachineAddress {
            kind: text(it.get("type")).unwrap_or_default(),
            address: text(it.get("address")).unwrap_or_default(),
        };
        let owners = machine.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let owners = owners.map(Vec::as_slice).unwrap_or_default();
        let sets =
            || owners.iter().filter(|o| text(o.get("kind")).as_deref() == Some(MACHINE_SET_KIND));
        let controls =
            |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
        Self {
            name: text(machine.pointer("/metadata/name")).unwrap_or_default(),
            uid: text(machine.pointer("/metadata/uid")).unwrap_or_default(),
            created: text(machine.pointer("/metadata/creationTimestamp"))
                .and_then(|text| text.parse().ok()),
            is_windows: label(names::MACHINE_OS_LABEL).as_deref() == Some(names::OS_ID_WINDOWS),
            is_ignored: label(names::IGNORE_LABEL).as_deref() == Some(names::TRUE),
            is_deleted: is_deleted(machine),
            phase: text(machine.pointer("/status/phase")).filter(|phase| !phase.is_empty()),
            addresses: addresses.into_iter().flatten().map(address).collect(),
            node: machine.pointer("/status/nodeRef").and_then(reference),
            machine_set: sets().find(controls).or_else(|| sets().next()).and_then(reference),
        }
    }
}

impl MachineSetFacts {
    /// Reads a MachineSet object.
    pub fn of(set: &Value) -> Self {
        let replicas = set.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let provider = set.pointer("/spec/template/spec/providerSpec/value");
        let label = |name| text(set.pointer(MACHINE_LABELS)?.get(name));
        Self {
            name: text(set.pointer("/metadata/name")).unwrap_or_default(),
            uid: text(set.pointer("/metadata/uid")).unwrap_or_default(),
            replicas: usize::try_from(replicas).unwrap_or(usize::MAX),
            os: label(names::MACHINE_OS_LABEL),
            ignores: label(names::IGNORE_LABEL).as_deref() == Some(names::TRUE),
            user_data: provider.map(UserDataRef::of).unwrap_or_default(),
            is_deleted: is_deleted(set),
        }
    }

    /// Why its new Machines never become nodes of ours, if they do not: the first mistake, with its field.
    ///
    /// ```
    /// use serde_json::json;
    /// use wmco_core::facts::MachineSetFacts;
    ///
    /// let labels = json!({"machine.openshift.io/os-id": "Linux"});
    /// let set = json!({"metadata": {"name": "win"}, "spec": {"template": {"metadata": {"labels": labels}}}});
    /// assert_eq!(
    ///     MachineSetFacts::of(&set).mistake().unwrap(),
    ///     "spec.template.metadata.labels[machine.openshift.io/os-id] of machineset win is \"Linux\", write \"Windows\", \
    ///      in this case"
    /// );
    /// ```
    pub fn mistake(&self) -> Option<String> {
        let label = |name, text: String| (format!("spec.template.metadata.labels[{name}]"), text);
        let os = os_mistake(self.os.as_deref(), "");
        let os = os.map(|text| label(names::MACHINE_OS_LABEL, text));
        let ignored = || {
            let text = || label(names::IGNORE_LABEL, format!("is true: {IGNORED_MISTAKE}"));
            self.ignores.then(text)
        };
        let user_data = || {
            let (path, text) = self.user_data.mistakes().next()?;
            Some((format!("providerSpec.value{}", path.replace('/', ".")), text))
        };
        let (path, text) = os.or_else(ignored).or_else(user_data)?;
        Some(format!("{path} of machineset {} {text}", self.name))
    }
}

/// Path of the labels of new Machines in a MachineSet.
pub(crate) const MACHINE_LABELS: &str = "/spec/template/metadata/labels";

/// Why no MachineSet is to give its Machines the ignore label.
pub(crate) const IGNORED_MISTAKE: &str =
    "the operator leaves such Machines alone, take the label off";

/// What is wrong with the system of new Machines, which may stand `elsewhere`.
pub(crate) fn os_mistake(os: Option<&str>, elsewhere: &str) -> Option<String> {
    const OS: &str = names::OS_ID_WINDOWS;
    match os {
        Some(OS) => None,
        Some(os) => Some(format!("is {os:?}, write {OS:?}, in this case")),
        None => Some(format!(
            "is missing{elsewhere}, so the operator takes the Machines for Linux; write {OS:?} here"
        )),
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(str::to_owned)
}

fn is_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|since| !since.is_null())
}

fn reference(value: &Value) -> Option<Reference> {
    let name = text(value.get("name")).filter(|name| !name.is_empty())?;
    Some(Reference { name, uid: text(value.get("uid")).unwrap_or_default() })
}
