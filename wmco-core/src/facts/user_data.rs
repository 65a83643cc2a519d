//! Which Secret a MachineSet gives its new Machines.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::names::objects::{MACHINE_API_NAMESPACE, USER_DATA_SECRET};

/// A reference to the Secret of user data in a provider specification; parts that are not there are empty. The Secret
/// that the operator keeps is the only one of which it knows what Machines make of it.
///
/// ```
/// use serde_json::json;
/// use wmco_core::facts::UserDataRef;
///
/// let ours = UserDataRef::of(&json!({"userDataSecret": {"name": "windows-user-data"}}));
/// assert_eq!(ours.mistakes().count(), 0);
/// let others = UserDataRef::of(&json!({"userDataSecret": {"name": "worker-user-data"}}));
/// let (path, text) = others.mistakes().next().unwrap();
/// assert_eq!(path, "/userDataSecret/name");
/// assert!(text.starts_with("is \"worker-user-data\", so the operator cannot log in"));
/// ```
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserDataRef {
    /// The Secret's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl UserDataRef {
    /// Path of the Secret's name in a provider specification.
    pub const NAME: &'static str = "/userDataSecret/name";

    const NAMESPACE: &'static str = "/userDataSecret/namespace";

    /// Reads the `value` of a `providerSpec`.
    pub fn of(provider: &Value) -> Self {
        let text =
            |path| provider.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { name: text(Self::NAME), namespace: text(Self::NAMESPACE) }
    }

    /// Why the operator cannot log in to Machines that are made with it: what is wrong at which path below the `value`
    /// of the `providerSpec`.
    pub fn mistakes(&self) -> impl Iterator<Item = (&'static str, String)> {
        let name = (self.name != USER_DATA_SECRET).then(|| {
            let text = format!(
                "is {:?}, so the operator cannot log in to the machines; write {USER_DATA_SECRET:?}",
                self.name
            );
            (Self::NAME, text)
        });
        let is_elsewhere = !["", MACHINE_API_NAMESPACE].contains(&self.namespace.as_str());
        let namespace = is_elsewhere.then(|| {
            let text =
                format!("is {:?}, and the Secret is in {MACHINE_API_NAMESPACE}", self.namespace);
            (Self::NAMESPACE, text)
        });
        name.into_iter().chain(namespace)
    }
}
