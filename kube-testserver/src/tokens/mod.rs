//! Tokens of service accounts: issuing, checking, and the Secrets that hold them.
//!
//! Tokens are JWTs (ES256). Tokens from TokenRequest expire and may be bound to an object; tokens in Secrets are
//! valid as long as the Secret exists. Source: Kubernetes documentation, "Managing Service Accounts".

mod request;
pub(crate) mod secrets;

pub(crate) use request::request;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

use crate::identity::User;
use crate::meta;
use crate::resources::StorageKey;
use crate::store::Store;

/// Default audience of tokens, and their issuer.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";
const SECRET_ISSUER: &str = "kubernetes/serviceaccount";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The key for tokens could not be made or used.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system's random source failed, check that it is readable")]
pub(crate) struct KeyError;

/// Signs and checks tokens.
pub(crate) struct TokenIssuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
    /// Users of the server's own clients, by their tokens, which are valid as long as the server runs.
    clients: Mutex<HashMap<String, User>>,
}

impl std::fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenIssuer([redacted])")
    }
}

/// The owner of a token.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    /// The service account.
    pub(crate) user: User,
    /// The wanted audiences that the token is for.
    pub(crate) audiences: Vec<String>,
}

impl TokenIssuer {
    /// An issuer with a new key.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn generate() -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| KeyError)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
            .map_err(|_| KeyError)?;
        Ok(Self { key, random, clients: Mutex::default() })
    }

    /// Signs claims as a token.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn sign(&self, claims: &Value) -> Result<String, KeyError> {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&json!({"alg": "ES256", "typ": "JWT"})), encode(claims));
        let signature = self.key.sign(&self.random, text.as_bytes()).map_err(|_| KeyError)?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Issues a random token for `user`.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn admit(&self, user: User) -> Result<String, KeyError> {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes).map_err(|_| KeyError)?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.insert(token.clone(), user);
        Ok(token)
    }

    /// The user of a token from [`admit`](Self::admit).
    fn client(&self, token: &str) -> Option<User> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Claims of a token that this issuer signed.
    fn claims(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key());
        key.verify(text.as_bytes(), &signature).ok()?;
        let (_, claims) = text.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }

    /// Returns the owner of a token; `None` if it was signed by another issuer, has expired, is for other
    /// audiences, or is bound to a deleted object.
    pub(crate) fn authenticate(
        &self,
        store: &Store,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Option<Authenticated> {
        if let Some(user) = self.client(token) {
            return Some(Authenticated { user, audiences: vec![AUDIENCE.to_owned()] });
        }
        let claims = self.claims(token)?;
        if claims.get("iss").and_then(Value::as_str) == Some(SECRET_ISSUER) {
            return of_secret(store, token, &claims, wanted);
        }
        bound(store, &claims, wanted, now)
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// The user of an existing service account with this uid.
fn account(store: &Store, namespace: &str, name: &str, uid: &str) -> Option<User> {
    let account = store.get(&StorageKey::new("", "serviceaccounts"), namespace, name)?;
    (meta::uid(account) == uid).then(|| user(namespace, name, uid))
}

/// The user of a service account.
pub(crate) fn user(namespace: &str, name: &str, uid: &str) -> User {
    let groups =
        ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let user = User::authenticated(&format!("system:serviceaccount:{namespace}:{name}"), &groups);
    User { uid: uid.to_owned(), ..user }
}

fn of_secret(
    store: &Store,
    token: &str,
    claims: &Value,
    wanted: &[String],
) -> Option<Authenticated> {
    let claim = |part: &str| {
        claims.get(format!("{SECRET_ISSUER}/{part}")).and_then(Value::as_str).unwrap_or("")
    };
    let namespace = claim("namespace");
    let secret = store.get(&StorageKey::new("", "secrets"), namespace, claim("secret.name"))?;
    if meta::is_deleting(secret) || text(secret, "/data/token") != STANDARD.encode(token) {
        return None;
    }
    let user =
        account(store, namespace, claim("service-account.name"), claim("service-account.uid"))?;
    // Such a token is only for the API server.
    let audiences: Vec<_> = wanted.iter().filter(|one| *one == AUDIENCE).cloned().collect();
    (!audiences.is_empty()).then_some(Authenticated { user, audiences })
}

fn bound(
    store: &Store,
    claims: &Value,
    wanted: &[String],
    now: Timestamp,
) -> Option<Authenticated> {
    let time = |claim| claims.get(claim).and_then(Value::as_i64);
    if text(claims, "/iss") != AUDIENCE
        || time("exp")? <= now.as_second()
        || time("nbf")? > now.as_second()
    {
        return None;
    }
    let own: Vec<_> = claims.get("aud")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let audiences: Vec<_> =
        wanted.iter().filter(|one| own.contains(&one.as_str())).cloned().collect();
    if audiences.is_empty() {
        return None;
    }
    let about = claims.get("kubernetes.io")?;
    let namespace = text(about, "/namespace");
    let mut user = account(
        store,
        namespace,
        text(about, "/serviceaccount/name"),
        text(about, "/serviceaccount/uid"),
    )?;
    let mut extra = |key: &str, value: String| user.extra.insert(key.to_owned(), vec![value]);
    extra(CREDENTIAL_ID, format!("JTI={}", text(claims, "/jti")));
    for (kind, plural) in [("pod", "pods"), ("secret", "secrets"), ("node", "nodes")] {
        let Some(reference) = about.get(kind) else { continue };
        let (name, uid) = (text(reference, "/name"), text(reference, "/uid"));
        let place = StorageKey::new("", plural);
        let of = if kind == "node" { "" } else { namespace };
        let object = store.get(&place, of, name);
        // The node that a Pod's token also names may be deleted.
        let needed = kind != "node" || about.get("pod").is_none();
        if needed && object.is_none_or(|object| meta::uid(object) != uid) {
            return None;
        }
        if kind != "secret" {
            extra(&format!("authentication.kubernetes.io/{kind}-name"), name.to_owned());
            extra(&format!("authentication.kubernetes.io/{kind}-uid"), uid.to_owned());
        }
    }
    Some(Authenticated { user, audiences })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn store() -> Store {
        let mut store = Store::default();
        store.put(
            &StorageKey::new("", "serviceaccounts"),
            json!({"metadata": {"name": "wicd", "namespace": "n", "uid": "u"}}),
        );
        store
    }

    fn claims() -> Value {
        json!({
            "iss": AUDIENCE, "aud": [AUDIENCE], "exp": 100, "nbf": 0, "jti": "j",
            "kubernetes.io": {"namespace": "n", "serviceaccount": {"name": "wicd", "uid": "u"}},
        })
    }

    #[track_caller]
    fn check(claims: &Value, now: i64, expected: Option<&str>) {
        let issuer = TokenIssuer::generate().unwrap();
        let token = issuer.sign(claims).unwrap();
        let now = Timestamp::from_second(now).unwrap();
        let found = issuer.authenticate(&store(), &token, &[AUDIENCE.to_owned()], now);
        assert_eq!(found.map(|found| found.user.name).as_deref(), expected);
    }

    #[test]
    fn a_token_of_ours_is_known() {
        check(&claims(), 50, Some("system:serviceaccount:n:wicd"));
    }

    #[test]
    fn an_old_one_is_not() {
        check(&claims(), 100, None);
    }

    #[test]
    fn one_for_others_is_not() {
        let mut claims = claims();
        claims["aud"] = json!(["x"]);
        check(&claims, 50, None);
    }

    #[test]
    fn one_of_an_account_that_was_made_anew_is_not() {
        let mut claims = claims();
        claims["kubernetes.io"]["serviceaccount"]["uid"] = "other".into();
        check(&claims, 50, None);
    }

    #[test]
    fn one_bound_to_a_pod_that_is_gone_is_not() {
        let mut claims = claims();
        claims["kubernetes.io"]["pod"] = json!({"name": "p", "uid": "x"});
        check(&claims, 50, None);
    }

    #[test]
    fn others_cannot_sign() {
        let token = TokenIssuer::generate().unwrap().sign(&claims()).unwrap();
        let issuer = TokenIssuer::generate().unwrap();
        let now = Timestamp::from_second(50).unwrap();
        assert!(issuer.authenticate(&store(), &token, &[AUDIENCE.to_owned()], now).is_none());
        assert!(issuer.authenticate(&store(), "nonsense", &[AUDIENCE.to_owned()], now).is_none());
    }

    #[test]
    fn keys_are_not_printed() {
        assert_eq!(format!("{:?}", TokenIssuer::generate().unwrap()), "TokenIssuer([redacted])");
    }
}
