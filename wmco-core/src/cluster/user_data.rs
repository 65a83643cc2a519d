//! Reconciles the Secrets with user data, which new cloud machines run at their first start.
//!
//! # Guarantees
//! - The written text lets in the operator's keys and no others. A text that differs only otherwise changes the
//!   Secret but replaces no Machine; for Machines only [`user_data_keys`] counts. Source:
//!   `docs/contract/machines.md`, MACH10.
//! - A Secret is written only if it still has the observed revision. Its other keys stay.
//! - No key or text is printed, in a plan or elsewhere.

use std::collections::BTreeMap;

use super::{Action, Because, Plan, Revision};
use crate::authorized_key::AuthorizedKey;
use crate::names::objects;
use crate::render::{user_data, user_data_keys};
use crate::secret::Secret;

/// User data that new machines are to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DesiredUserData<'a> {
    /// The cluster's platform, as [`platforms`](crate::names::platforms) spells it.
    pub platform: &'a str,
    /// The key that the operator logs in with.
    pub key: &'a AuthorizedKey,
    /// The next key during a key exchange. A new machine gets both keys, so that the operator can log in before and
    /// after the exchange.
    pub next: Option<&'a AuthorizedKey>,
}

/// An existing Secret with user data.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserDataSecret {
    /// Type of the Secret.
    pub type_: String,
    /// Its data.
    pub data: BTreeMap<String, Secret>,
    /// Whether its data cannot be changed.
    pub is_immutable: bool,
    /// The observed revision.
    pub revision: Revision,
}

/// Returns the steps for the Secrets in these namespaces, all of which exist.
///
/// ```
/// use wmco_core::cluster::user_data::{DesiredUserData, reconcile};
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key = line.parse()?;
/// let desired = DesiredUserData { platform: "AWS", key: &key, next: None };
/// let plan = reconcile(&desired, &[("openshift-machine-api".to_owned(), None)].into());
/// let step = "create-user-data openshift-machine-api, because it is missing";
/// assert_eq!(plan.steps[0].to_string(), step);
/// Ok::<(), wmco_core::authorized_key::BadAuthorizedKey>(())
/// ```
pub fn reconcile(
    desired: &DesiredUserData<'_>,
    observed: &BTreeMap<String, Option<UserDataSecret>>,
) -> Plan {
    let rendered = user_data(desired.platform, desired.key, desired.next);
    let text = || Secret::new(rendered.as_bytes());
    let mut plan = Plan::default();
    // The Machine API's namespace is last in the alphabet and comes first, because most Machines wait for its
    // Secret.
    for (namespace, found) in observed.iter().rev() {
        let namespace = namespace.clone();
        let Some(secret) = found else {
            plan.push(Action::CreateUserData { namespace, text: text() }, Because::Missing);
            continue;
        };
        let differs = secret.unlike(&rendered);
        let found = secret.revision.clone();
        match (secret.is_opaque(), differs, secret.is_immutable) {
            (true, None, _) => {}
            (true, Some(because), false) => {
                plan.push(Action::ChangeUserData { namespace, found, text: text() }, because);
            }
            (true, Some(because), true) => {
                let data = secret.data_with(text());
                plan.push(Action::ReplaceUserData { namespace, found, data }, because);
            }
            (false, _, _) => {
                let data = secret.data_with(text());
                plan.push(Action::ReplaceUserData { namespace, found, data }, Because::Type);
            }
        }
    }
    plan
}

impl UserDataSecret {
    /// The difference of its text from the rendered one, if there is one.
    fn unlike(&self, rendered: &str) -> Option<Because> {
        let found = self.data.get(objects::USER_DATA_KEY).map(Secret::expose).unwrap_or_default();
        if found == rendered.as_bytes() {
            return None;
        }
        let keys = user_data_keys(&String::from_utf8_lossy(found));
        if keys == user_data_keys(rendered) {
            return Some(Because::DiffersIn { keys: vec![objects::USER_DATA_KEY.to_owned()] });
        }
        Some(Because::OtherKeys)
    }

    /// Whether the type fits; the type of a Secret cannot be changed.
    fn is_opaque(&self) -> bool {
        self.type_.is_empty() || self.type_ == objects::OPAQUE_TYPE
    }

    fn data_with(&self, text: Secret) -> BTreeMap<String, Secret> {
        let mut data = self.data.clone();
        data.insert(objects::USER_DATA_KEY.to_owned(), text);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::platforms;

    const NAMESPACE: &str = objects::MACHINE_API_NAMESPACE;

    fn key(last: char) -> AuthorizedKey {
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4";
        format!("{line}{last}").parse().unwrap()
    }

    fn ours() -> String {
        user_data(platforms::AWS, &key('f'), None)
    }

    fn secret(text: &str) -> UserDataSecret {
        UserDataSecret {
            type_: "Opaque".into(),
            data: [(objects::USER_DATA_KEY.to_owned(), Secret::new(text))].into(),
            is_immutable: false,
            revision: Revision { uid: Some("u".into()), resource_version: Some("7".into()) },
        }
    }

    fn plan(found: Option<UserDataSecret>) -> Plan {
        let desired = DesiredUserData { platform: platforms::AWS, key: &key('f'), next: None };
        reconcile(&desired, &[(NAMESPACE.to_owned(), found)].into())
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut UserDataSecret), expected: &[&str]) {
        let mut found = secret(&ours());
        change(&mut found);
        let steps = plan(Some(found)).steps;
        assert_eq!(steps.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    fn set(secret: &mut UserDataSecret, text: impl Into<Vec<u8>>) {
        secret.data.insert(objects::USER_DATA_KEY.into(), Secret::new(text));
    }

    #[test]
    fn identical_text_is_left_alone() {
        check(|_| {}, &[]);
        check(|it| it.type_.clear(), &[]);
        check(|it| it.is_immutable = true, &[]);
        check(|it| drop(it.data.insert("other".into(), Secret::new("x"))), &[]);
    }

    #[test]
    fn other_text_with_the_same_key_is_told_from_another_key() {
        let text = ["change-user-data openshift-machine-api, because it differs in userData"];
        check(|it| set(it, format!("{}# mine", ours())), &text);
        check(|it| set(it, user_data(platforms::GCP, &key('f'), None)), &text);
        let keys = ["change-user-data openshift-machine-api, because it lets in other keys"];
        check(|it| set(it, user_data(platforms::AWS, &key('e'), None)), &keys);
        check(|it| set(it, user_data(platforms::AWS, &key('f'), Some(&key('e')))), &keys);
        check(|it| set(it, [0xff, 0xfe]), &keys);
        check(|it| it.data.clear(), &keys);
    }

    #[test]
    fn what_cannot_be_changed_is_replaced_and_keeps_the_rest() {
        let immutable = |it: &mut UserDataSecret| {
            it.is_immutable = true;
            set(it, "other");
        };
        check(
            immutable,
            &["replace-user-data openshift-machine-api, because it lets in other keys"],
        );
        check(
            |it| it.type_ = "kubernetes.io/tls".into(),
            &["replace-user-data openshift-machine-api, because it is of another type"],
        );
        let mut found = secret("");
        immutable(&mut found);
        found.data.insert("other".into(), Secret::new("x"));
        let mut expected = found.data.clone();
        expected.insert(objects::USER_DATA_KEY.into(), Secret::new(ours()));
        let Plan { steps } = plan(Some(found.clone()));
        let action = Action::ReplaceUserData {
            namespace: NAMESPACE.into(),
            found: found.revision,
            data: expected,
        };
        assert_eq!(steps.into_iter().map(|step| step.action).collect::<Vec<_>>(), [action]);
    }

    #[test]
    fn each_namespace_that_exists_gets_it_the_machine_apis_first() {
        let desired = DesiredUserData { platform: platforms::AWS, key: &key('f'), next: None };
        assert_eq!(reconcile(&desired, &BTreeMap::new()), Plan::default());
        let both = [NAMESPACE, objects::CLUSTER_API_NAMESPACE];
        let observed = both.map(|namespace| (namespace.to_owned(), None)).into();
        let steps = reconcile(&desired, &observed).steps;
        let expected = both
            .map(|namespace| format!("create-user-data {namespace}, because it is missing"))
            .to_vec();
        assert_eq!(steps.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_machine_lets_in_both_keys_during_an_exchange() {
        let (key, next) = (key('f'), key('e'));
        let desired = DesiredUserData { platform: platforms::AWS, key: &key, next: Some(&next) };
        let found = Some(secret(&ours()));
        let Plan { steps } = reconcile(&desired, &[(NAMESPACE.to_owned(), found)].into());
        let Action::ChangeUserData { text, found, .. } = &steps[0].action else {
            panic!("{steps:?}")
        };
        assert_eq!(*found, secret("").revision);
        let keys = user_data_keys(std::str::from_utf8(text.expose()).unwrap());
        assert_eq!(keys, [key, next].into());
    }

    #[test]
    fn no_text_is_printed() {
        let mut found = secret("hidden");
        found.is_immutable = true;
        let changed = UserDataSecret { is_immutable: false, ..found.clone() };
        let edited = secret(&format!("{}# hidden", ours()));
        for secret in [None, Some(changed), Some(found), Some(edited)] {
            let plan = plan(secret.clone());
            let json = serde_json::to_string(&plan).unwrap();
            let steps = plan.steps.iter().map(ToString::to_string).collect::<String>();
            let printed = format!("{secret:?} {plan:?} {json} {steps}");
            for text in ["hidden", "powershell", "ssh-ed25519", "AAAA"] {
                assert!(!printed.contains(text), "{printed}");
            }
        }
    }
}
