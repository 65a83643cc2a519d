//! Secrets of type `kubernetes.io/service-account-token`: filled by the server, and deleted with their account.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::meta;
use crate::resources::StorageKey;
use crate::store::Store;

use super::{SECRET_ISSUER, TokenIssuer};

/// The type of such Secrets.
pub(crate) const TYPE: &str = "kubernetes.io/service-account-token";
/// The annotation that names the account.
pub(crate) const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
/// The annotation with the uid of the account.
pub(crate) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// The token controller's action for a Secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The account is deleted, or has another uid.
    Delete,
    /// The Secret is right, or of another type.
    Leave,
    /// Store this object instead.
    Update(Value),
}

/// Decides about one Secret. `ca` is the cluster's CA certificate in PEM.
pub(crate) fn reconcile(store: &Store, issuer: &TokenIssuer, ca: &str, secret: &Value) -> Step {
    if secret.get("type").and_then(Value::as_str) != Some(TYPE) || meta::is_deleting(secret) {
        return Step::Leave;
    }
    let (namespace, name) = (meta::namespace(secret), meta::name(secret));
    let account_name = meta::annotation(secret, ACCOUNT_NAME).unwrap_or("");
    let place = StorageKey::new("", "serviceaccounts");
    let Some(account) = store.get(&place, namespace, account_name) else { return Step::Delete };
    let uid = meta::uid(account);
    if meta::annotation(secret, ACCOUNT_UID).is_some_and(|stated| stated != uid) {
        return Step::Delete;
    }
    let mut wanted = secret.clone();
    if let Some(annotations) = wanted.pointer_mut("/metadata/annotations") {
        set(annotations, ACCOUNT_UID, uid.into());
    }
    let mut data = secret.get("data").cloned().unwrap_or_else(|| json!({}));
    set(&mut data, "ca.crt", STANDARD.encode(ca).into());
    set(&mut data, "namespace", STANDARD.encode(namespace).into());
    if data.get("token").is_none() {
        let claim = |part: &str| format!("{SECRET_ISSUER}/{part}");
        let claims = json!({
            "iss": SECRET_ISSUER,
            "sub": format!("system:serviceaccount:{namespace}:{account_name}"),
            claim("namespace"): namespace,
            claim("secret.name"): name,
            claim("service-account.name"): account_name,
            claim("service-account.uid"): uid,
        });
        // Without randomness the Secret stays empty, as without the controller.
        if let Ok(token) = issuer.sign(&claims) {
            set(&mut data, "token", STANDARD.encode(token).into());
        }
    }
    set(&mut wanted, "data", data);
    if wanted == *secret { Step::Leave } else { Step::Update(wanted) }
}

fn set(object: &mut Value, member: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::AUDIENCE;
    use super::super::tests::store;
    use super::*;

    fn secret() -> Value {
        json!({"metadata": {"name": "tok", "namespace": "n",
            "annotations": {ACCOUNT_NAME: "wicd"}}, "type": TYPE})
    }

    #[test]
    fn it_is_filled_once_and_its_token_works_as_long_as_it_is_there() {
        let (mut store, issuer) = (store(), TokenIssuer::generate().unwrap());
        let Step::Update(filled) = reconcile(&store, &issuer, "CA", &secret()) else { panic!() };
        assert_eq!(filled["data"]["namespace"], "bg==");
        assert_eq!(filled["metadata"]["annotations"][ACCOUNT_UID], "u");
        assert_eq!(reconcile(&store, &issuer, "CA", &filled), Step::Leave);

        let token = STANDARD.decode(filled["data"]["token"].as_str().unwrap()).unwrap();
        let token = String::from_utf8(token).unwrap();
        let wanted = [AUDIENCE.to_owned()];
        let now = jiff::Timestamp::UNIX_EPOCH;
        assert!(issuer.authenticate(&store, &token, &wanted, now).is_none());
        let place = StorageKey::new("", "secrets");
        store.put(&place, filled);
        let found = issuer.authenticate(&store, &token, &wanted, now).unwrap();
        assert_eq!(found.user.uid, "u");
        assert!(found.user.extra.is_empty());
        store.remove(&place, "n", "tok");
        assert!(issuer.authenticate(&store, &token, &wanted, now).is_none());
    }

    #[test]
    fn it_goes_with_its_account() {
        let (mut store, issuer) = (store(), TokenIssuer::generate().unwrap());
        store.remove(&StorageKey::new("", "serviceaccounts"), "n", "wicd");
        assert_eq!(reconcile(&store, &issuer, "CA", &secret()), Step::Delete);
    }

    #[test]
    fn other_secrets_are_left() {
        let mut other = secret();
        other["type"] = "Opaque".into();
        let issuer = TokenIssuer::generate().unwrap();
        assert_eq!(reconcile(&store(), &issuer, "CA", &other), Step::Leave);
    }
}
