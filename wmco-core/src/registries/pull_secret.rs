//! Credentials of the whole cluster, from the pull secret.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use zeroize::Zeroizing;

use super::finding::{ClusterObject, RegistryFinding, RegistryProblem, shown};
use super::image_config::prefixes;
use super::location::{ImageLocation, is_docker_hub, without_scheme};
use crate::members::{Shape, unknown_members};
use crate::names::registries::{
    DOCKER_CONFIG_KEY, DOCKER_HUB, DOCKER_HUB_INDEX, PULL_SECRET, SECRET_KIND,
};
use crate::secret::Secret;

/// The credentials in the pull secret, by registry or a part of one. Invalid entries are ignored.
///
/// ```
/// use wmco_core::registries::{PullSecret, PullSecretData};
///
/// let text = br#"{"auths": {"quay.io/team": {"username": "bob", "password": "hush"}}}"#;
/// let secret = PullSecret::read(PullSecretData::Text(text));
/// let credentials = secret.for_location(&"quay.io/team/app".parse()?).unwrap();
/// assert_eq!(credentials.key(), "quay.io/team");
/// assert!(!format!("{secret:?}").contains("hush"));
/// Ok::<(), wmco_core::registries::BadLocation>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PullSecret {
    credentials: BTreeMap<String, PullCredentials>,
    /// What entries are for, usable or not.
    keys: BTreeSet<String>,
    /// Registries with a helper that other programs run for their credentials.
    helpers: BTreeSet<String>,
    /// The Secret.
    pub(super) object: ClusterObject,
    pub(super) findings: Vec<RegistryFinding>,
}

/// The observed state of the pull secret.
#[derive(Clone, Copy)]
pub enum PullSecretData<'a> {
    /// The Secret does not exist.
    NoSecret,
    /// The Secret does not have the key [`DOCKER_CONFIG_KEY`].
    NoKey,
    /// The value of the key.
    Text(&'a [u8]),
}

/// User and password for a registry or a part of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PullCredentials {
    key: String,
    /// Value of the header `Authorization`.
    header: Secret,
}

impl PullCredentials {
    /// The registry or part of one that they are for, for example `quay.io/team`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value of the header `Authorization`.
    pub(super) const fn header(&self) -> &Secret {
        &self.header
    }
}

impl Default for PullSecret {
    fn default() -> Self {
        Self::read(PullSecretData::NoSecret)
    }
}

/// The content of an entry.
enum Found {
    Credentials {
        header: Secret,
        /// Whether characters in them are probably not meant.
        stray: bool,
    },
    Empty,
    IdentityToken,
    Broken(&'static str),
}

impl PullSecret {
    /// Reads the pull secret.
    pub fn read(data: PullSecretData<'_>) -> Self {
        let object = ClusterObject { kind: SECRET_KIND, name: PULL_SECRET.to_owned(), uid: None };
        let mut secret = Self {
            credentials: BTreeMap::new(),
            keys: BTreeSet::new(),
            helpers: BTreeSet::new(),
            object,
            findings: Vec::new(),
        };
        let text = match data {
            PullSecretData::NoSecret => return secret.unusable("there is no such Secret"),
            PullSecretData::NoKey => return secret.unusable("it has no such key"),
            PullSecretData::Text(text) => text,
        };
        // The parser's message could repeat a part of a password.
        let Ok(config) = serde_json::from_slice::<Value>(text) else {
            return secret.unusable("it is no JSON");
        };
        if config.get("credHelpers").is_some_and(|it| !it.is_object() && !it.is_null()) {
            let problem = RegistryProblem::WrongShape { expected: "an object" };
            secret.tell("credHelpers".to_owned(), problem);
        }
        if config.get("credsStore").and_then(Value::as_str).is_some_and(|name| !name.is_empty()) {
            secret.tell("credsStore".to_owned(), RegistryProblem::CredentialStore);
        }
        let helpers = config.get("credHelpers").and_then(Value::as_object);
        let helpers = helpers.into_iter().flat_map(serde_json::Map::keys);
        secret.helpers = helpers.filter_map(|key| Some(normalized(key)?.0)).collect();
        match config.get("auths") {
            Some(Value::Object(entries)) => {
                for unknown in unknown_members(&config, &DOCKER_CONFIG) {
                    // Docker has many settings.
                    if unknown.right.is_some() {
                        let problem = RegistryProblem::UnknownMember { right: unknown.right };
                        secret.tell(unknown.path, problem);
                    }
                }
                for (key, entry) in entries {
                    secret.add(key, entry);
                }
                secret
            }
            None | Some(Value::Null) => match config.as_object() {
                Some(members) if members.keys().all(|name| name == "auths") => secret,
                Some(_) => secret.unusable("it has no `auths`"),
                None => secret.unusable("it is no object"),
            },
            Some(_) => secret.unusable("its `auths` is no object"),
        }
    }

    /// Sets the Secret's UID in all findings.
    #[must_use]
    pub fn with_uid(mut self, uid: Option<&str>) -> Self {
        self.object.uid = uid.map(str::to_owned);
        for finding in &mut self.findings {
            finding.object = self.object.clone();
        }
        self
    }

    /// The credentials with the longest key that contains `location`.
    pub fn for_location(&self, location: &ImageLocation) -> Option<&PullCredentials> {
        let host = credentials_host(&location.host_key()).to_owned();
        prefixes(location.path()).find_map(|path| self.credentials.get(&joined(&host, path)))
    }

    /// Whether an entry is for `location`, whatever it holds.
    pub(super) fn names(&self, location: &ImageLocation) -> bool {
        let host = credentials_host(&location.host_key()).to_owned();
        prefixes(location.path()).any(|path| self.keys.contains(&joined(&host, path)))
    }

    /// The first key of credentials for a part of `location`.
    pub(super) fn within(&self, location: &ImageLocation) -> Option<&str> {
        let host = credentials_host(&location.host_key()).to_owned();
        let start = joined(&host, location.path()) + "/";
        let (key, _) = self.credentials.range(start.clone()..).next()?;
        key.starts_with(&start).then_some(key)
    }

    /// The first key of credentials for `location` at another port of its host, or without one.
    pub(super) fn at_another_port(&self, location: &ImageLocation) -> Option<&str> {
        let name = location.host_name().to_ascii_lowercase();
        let keys = self.credentials.range(name.clone()..).map(|(key, _)| key.as_str());
        let mut keys = keys.take_while(|key| key.starts_with(&name));
        keys.find(|key| {
            let other: Option<ImageLocation> = key.parse().ok();
            let is_there = |path: &str| prefixes(location.path()).any(|prefix| prefix == path);
            other.is_some_and(|it| it.host_name() == name && is_there(it.path()))
        })
    }

    /// The key of a credential helper for `location`.
    pub(super) fn helper(&self, location: &ImageLocation) -> Option<&str> {
        let host = credentials_host(&location.host_key()).to_owned();
        let mut keys = prefixes(location.path()).map(|path| joined(&host, path));
        keys.find_map(|key| self.helpers.get(&key)).map(String::as_str)
    }

    fn add(&mut self, key: &str, entry: &Value) {
        let field = format!("auths[{}]", shown(key));
        let Some((normal, exact)) = normalized(key) else {
            let reason = "their key is no registry or part of one, write for example `quay.io` or `quay.io/team`";
            return self.tell(field, RegistryProblem::BrokenCredentials { reason });
        };
        self.keys.insert(normal.clone());
        for unknown in unknown_members(entry, &ENTRY) {
            let at = format!("{field}.{}", unknown.path);
            self.tell(at, RegistryProblem::UnknownMember { right: unknown.right });
        }
        match read_entry(entry) {
            Found::Credentials { header, stray } => {
                if stray {
                    self.tell(field.clone(), RegistryProblem::StrayCharacters);
                }
                let known = self.credentials.get(&normal);
                if known.is_some_and(|known| known.header != header) {
                    let problem = RegistryProblem::CredentialsTwice { key: normal.clone() };
                    self.tell(field, problem);
                }
                // A key written as a URL does not override the same key without a scheme.
                if exact || !self.credentials.contains_key(&normal) {
                    let credentials = PullCredentials { key: normal.clone(), header };
                    self.credentials.insert(normal, credentials);
                }
            }
            Found::Empty => self.tell(field, RegistryProblem::EmptyCredentials),
            Found::IdentityToken => self.tell(field, RegistryProblem::IdentityToken),
            Found::Broken(reason) => {
                self.tell(field, RegistryProblem::BrokenCredentials { reason });
            }
        }
    }

    fn unusable(mut self, reason: &'static str) -> Self {
        self.tell(format!("data[{DOCKER_CONFIG_KEY}]"), RegistryProblem::PullSecret { reason });
        self
    }

    fn tell(&mut self, field: String, problem: RegistryProblem) {
        let object = self.object.clone();
        self.findings.push(RegistryFinding { object, field, problem, registry: None });
    }
}

/// The members of an entry, as Docker writes them.
const ENTRY: Shape = Shape::Object(&[
    ("auth", Shape::Any),
    ("email", Shape::Any),
    ("identitytoken", Shape::Any),
    ("password", Shape::Any),
    ("registrytoken", Shape::Any),
    ("serveraddress", Shape::Any),
    ("username", Shape::Any),
]);

/// The members about credentials of Docker's configuration.
const DOCKER_CONFIG: Shape = Shape::Object(&[
    ("HttpHeaders", Shape::Any),
    ("auths", Shape::Any),
    ("credHelpers", Shape::Any),
    ("credsStore", Shape::Any),
]);

/// Registry in lower case with path, and whether `key` has exactly this form; `None` if it is no registry, or has a
/// path that no mirror has.
fn normalized(key: &str) -> Option<(String, bool)> {
    let text = without_scheme(key).trim_end_matches('/');
    // Docker has always appended the API version to its registry.
    let is_hub = text.to_ascii_lowercase().starts_with(DOCKER_HUB_INDEX);
    let is_url = text.len() < key.len() || is_hub;
    let text = ["/v1", "/v2"]
        .into_iter()
        .find_map(|version| text.strip_suffix(version).filter(|_| is_url))
        .unwrap_or(text);
    let location: ImageLocation = text.parse().ok()?;
    // No slash too many is passed over here: other programs compare keys as they are.
    let is_whole = text.len() == location.to_string().len() && !location.has_version();
    let host = location.host_key();
    let known_as = credentials_host(&host);
    let normal = joined(known_as, location.path());
    is_whole.then_some((normal, !is_url && known_as == host))
}

/// The host under which credentials for `host` (lower case) are kept: Docker Hub has three names.
fn credentials_host(host: &str) -> &str {
    if is_docker_hub(host) { DOCKER_HUB } else { host }
}

fn joined(host: &str, path: &str) -> String {
    if path.is_empty() { host.to_owned() } else { format!("{host}/{path}") }
}

fn read_entry(entry: &Value) -> Found {
    let Some(members) = entry.as_object() else {
        return Found::Broken("write an object with `auth`");
    };
    let mut texts = ["auth", "username", "password", "identitytoken", "registrytoken"].map(
        |name| match members.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err("write its members as texts, in quotes"),
        },
    );
    if let Some(Err(reason)) = texts.iter().find(|text| text.is_err()) {
        return Found::Broken(reason);
    }
    let [auth, user, password, identity_token, registry_token] =
        texts.each_mut().map(|text| text.as_deref().unwrap_or_default());
    let has_token = !identity_token.is_empty() || !registry_token.is_empty();
    let pair = if auth.is_empty() {
        match (user, password) {
            ("", "") if !has_token => return Found::Empty,
            (_, "") if has_token => return Found::IdentityToken,
            (_, "") => return Found::Broken("write a `password` beside the `username`"),
            ("", _) => return Found::Broken("write a `username` beside the `password`"),
            (user, _) if user.contains(':') => {
                return Found::Broken("write a `username` without a colon");
            }
            (_, _) => Zeroizing::new(format!("{user}:{password}").into_bytes()),
        }
    } else {
        match decoded(auth) {
            Some(pair) => pair,
            None => return Found::Broken("write USER:PASSWORD in base64 as its `auth`"),
        }
    };
    match pair.as_slice() {
        pair if pair.iter().position(|byte| *byte == b':') == pair.len().checked_sub(1) => {
            match pair {
                // The user beside a token has no password, or is a mere placeholder.
                _ if has_token => Found::IdentityToken,
                b":" => Found::Empty,
                _ => Found::Broken("write a password behind the colon in its `auth`"),
            }
        }
        // Docker refuses such a file as well.
        [b':', ..] => Found::Broken("write a user before the colon in its `auth`"),
        pair => {
            let encoded = Zeroizing::new(BASE64_STANDARD.encode(pair));
            let header = Secret::new(format!("Basic {}", encoded.as_str()));
            Found::Credentials { header, stray: has_stray_characters(pair) }
        }
    }
}

/// Whether user or password begins or ends with a blank, or holds a control character, as people leave them by mistake.
fn has_stray_characters(pair: &[u8]) -> bool {
    std::str::from_utf8(pair).is_ok_and(|pair| {
        let mut both = pair.splitn(2, ':');
        pair.contains(char::is_control) || both.any(|part| part.trim() != part)
    })
}

/// Decodes `USER:PASSWORD` from base64, with or without padding and line ends.
fn decoded(auth: &str) -> Option<Zeroizing<Vec<u8>>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let auth: Zeroizing<String> =
        Zeroizing::new(auth.chars().filter(|c| !matches!(c, '\r' | '\n')).collect());
    let pair = GeneralPurpose::new(&STANDARD, config).decode(auth.as_bytes()).ok()?;
    let pair = Zeroizing::new(pair);
    pair.contains(&b':').then_some(pair)
}
