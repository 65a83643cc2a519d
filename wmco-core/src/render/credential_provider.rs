//! The kubelet's image credential providers, [`host::CREDENTIAL_PROVIDER_CONFIG`].
//!
//! [`host::CREDENTIAL_PROVIDER_CONFIG`]: crate::names::host::CREDENTIAL_PROVIDER_CONFIG

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::members::{Shape, UnknownMember, unknown_members};
use crate::units::GoDuration;

/// The kind of the file.
const KIND: &str = "CredentialProviderConfig";

/// Extension of programs on Windows.
const SUFFIX: &str = ".exe";

/// Why a credential provider configuration cannot be rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialProviderError {
    /// An object of another kind.
    #[error(
        "the credential provider file is of another kind, write `kind: CredentialProviderConfig`"
    )]
    Kind,
    /// A name that is no name of a file.
    #[error(
        "field `providers[{number}].name` of the credential provider file is no name of a program, so kubelets refuse \
         the file: write the name of a file without its folder"
    )]
    Name {
        /// Which provider, from 0.
        number: usize,
    },
    /// No list of providers.
    #[error("the credential provider file has no `providers`, write the list of them")]
    NoProviders,
    /// Two providers run the same program.
    #[error(
        "field `providers[{number}].name` of the credential provider file names a program that another provider has, so \
         kubelets refuse the file: leave one of them"
    )]
    Twice {
        /// The second provider, from 0.
        number: usize,
    },
    /// A member does not have the type that the kubelet expects.
    #[error(
        "the credential provider file is no CredentialProviderConfig, correct it in the MachineConfig"
    )]
    Shape(#[source] serde_json::Error),
    /// The result cannot be written as YAML.
    #[error("the credential provider file cannot be written as YAML")]
    Write(#[source] serde_saphyr::SerializeError),
    /// The text is not YAML.
    #[error("the credential provider file is no YAML, correct it in the MachineConfig")]
    Yaml(#[source] Box<serde_saphyr::Error>),
}

/// Rewrites the Linux workers' `CredentialProviderConfig` for Windows nodes: each provider's `name`, which is the
/// file that the kubelet runs, gets the extension `.exe`.
///
/// `text` is YAML or JSON, the result YAML. Only members that the kubelet knows are kept, and durations are written
/// in full (`12h0m0s`). Of the kubelet's own checks only those of kind and names are repeated here;
/// [`missing_provider_members`] has those of other members.
/// Source: `docs/contract/node-files.md`, FILE22.
///
/// # Errors
/// The text is not YAML, of another kind, a member has the wrong type, or a name is not that of a file or not unique.
pub fn credential_provider(text: &str) -> Result<String, CredentialProviderError> {
    let mut config: CredentialProviderConfig =
        serde_json::from_value(value(text)?).map_err(CredentialProviderError::Shape)?;
    if config.kind.as_deref().is_some_and(|kind| kind != KIND) {
        return Err(CredentialProviderError::Kind);
    }
    let providers = config.providers.as_mut().ok_or(CredentialProviderError::NoProviders)?;
    let mut names = BTreeSet::new();
    for (number, provider) in providers.iter_mut().enumerate() {
        if !is_program(&provider.name) {
            return Err(CredentialProviderError::Name { number });
        }
        // Windows ignores the case of file names.
        if !provider.name.to_ascii_lowercase().ends_with(SUFFIX) {
            provider.name.push_str(SUFFIX);
        }
        if !names.insert(provider.name.to_ascii_lowercase()) {
            return Err(CredentialProviderError::Twice { number });
        }
    }
    serde_saphyr::to_string(&config).map_err(CredentialProviderError::Write)
}

/// The members of a `CredentialProviderConfig` that kubelets do not know. They refuse a file with such a member.
///
/// ```
/// use wmco_core::render::unknown_provider_members;
///
/// let [unknown] = &unknown_provider_members("provider: []")[..] else { panic!() };
/// assert_eq!(unknown.right.as_deref(), Some("providers"));
/// ```
pub fn unknown_provider_members(text: &str) -> Vec<UnknownMember> {
    let value = value(text).unwrap_or_default();
    // An object of another kind has other members.
    let kind = value.get("kind").and_then(serde_json::Value::as_str);
    if kind.is_none_or(|kind| kind == KIND) { unknown_members(&value, &SHAPE) } else { Vec::new() }
}

/// The members of a `CredentialProviderConfig` that kubelets demand and that `text` lacks or has empty, by their paths.
/// They refuse such a file.
///
/// ```
/// use wmco_core::render::missing_provider_members;
///
/// let text = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: []";
/// assert_eq!(missing_provider_members(text), ["providers"]);
/// ```
pub fn missing_provider_members(text: &str) -> Vec<String> {
    let config = value(text).unwrap_or_default();
    let top = missing(&config, "", &["apiVersion", "kind", "providers"]);
    let providers = config.get("providers").and_then(serde_json::Value::as_array);
    let of_providers =
        providers.into_iter().flatten().enumerate().flat_map(|(number, provider)| {
            let at = format!("providers[{number}].");
            missing(provider, &at, &["apiVersion", "defaultCacheDuration", "matchImages"])
        });
    top.into_iter().chain(of_providers).collect()
}

/// Those of `names` that `object`, whose members are `at` this path, lacks or has empty.
fn missing(object: &serde_json::Value, at: &str, names: &[&str]) -> Vec<String> {
    let is_empty = |value: &serde_json::Value| {
        value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
    };
    let lacks = |name: &&&str| object.get(**name).is_none_or(is_empty);
    names.iter().filter(lacks).map(|name| format!("{at}{name}")).collect()
}

fn value(text: &str) -> Result<serde_json::Value, CredentialProviderError> {
    // Read as JSON values, because YAML alone would read the number 10 as the text "10".
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| CredentialProviderError::Yaml(Box::new(error)))
}

/// Whether a kubelet takes `name` for a program, and Windows for a file.
fn is_program(name: &str) -> bool {
    let is_wrong = |letter: char| {
        letter.is_whitespace() || letter.is_control() || r#"/\:*?"<>|"#.contains(letter)
    };
    !name.is_empty() && ![".", ".."].contains(&name) && !name.contains(is_wrong)
}

const SHAPE: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("kind", Shape::Any),
    ("providers", Shape::List(&PROVIDER)),
]);

const PROVIDER: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("args", Shape::Any),
    ("defaultCacheDuration", Shape::Any),
    ("env", Shape::List(&Shape::Object(&[("name", Shape::Any), ("value", Shape::Any)]))),
    ("matchImages", Shape::Any),
    ("name", Shape::Any),
    (
        "tokenAttributes",
        Shape::Object(&[
            ("cacheType", Shape::Any),
            ("optionalServiceAccountAnnotationKeys", Shape::Any),
            ("requireServiceAccount", Shape::Any),
            ("requiredServiceAccountAnnotationKeys", Shape::Any),
            ("serviceAccountTokenAudience", Shape::Any),
        ]),
    ),
]);

/// Source: Kubernetes reference, "kubelet configuration (v1)", `CredentialProviderConfig`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct CredentialProviderConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    providers: Option<Vec<Provider>>,
}

#[derive(Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Provider {
    api_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    default_cache_duration: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<Vec<Variable>>,
    match_images: Option<Vec<String>>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_attributes: Option<TokenAttributes>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct TokenAttributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    optional_service_account_annotation_keys: Option<Vec<String>>,
    require_service_account: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    required_service_account_annotation_keys: Option<Vec<String>>,
    service_account_token_audience: String,
}

/// A duration in the form that Go writes.
#[derive(Deserialize, Serialize)]
#[serde(try_from = "String")]
struct Written(String);

impl TryFrom<String> for Written {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let duration: Result<GoDuration, _> = text.parse();
        duration.map(|d| Self(d.to_string())).map_err(|problem| format!("`{text}` {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::vectors::{Case, cases};

    #[derive(Deserialize)]
    struct Input {
        yaml: String,
    }

    #[derive(Deserialize)]
    struct Expect {
        parsed: Option<Value>,
        debatable: bool,
    }

    /// Removes null members, which mean the same as missing ones.
    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(without_nulls).collect(),
            other => other,
        }
    }

    #[test]
    fn the_vectors_hold() {
        let text = include_str!("../../tests/vectors/credential_provider.json");
        for Case { name, input, expect } in cases::<Input, Expect>(text, 11) {
            let text = credential_provider(&input.yaml).ok();
            let parsed = text.map(|text| serde_saphyr::from_str::<Value>(&text).unwrap());
            if !expect.debatable {
                assert_eq!(parsed.map(without_nulls), expect.parsed.map(without_nulls), "{name}");
            }
        }
    }

    #[test]
    fn names_get_their_suffix_once() {
        let text = "kind: CredentialProviderConfig\nproviders:\n- name: quay-provider\n  \
                    matchImages: ['*.test', 'yes', '1e3']\n- name: other-provider.exe\n";
        insta::assert_snapshot!(credential_provider(text).unwrap(), @r#"
        kind: CredentialProviderConfig
        providers:
        - apiVersion: ""
          defaultCacheDuration: null
          matchImages:
          - "*.test"
          - "yes"
          - "1e3"
          name: quay-provider.exe
        - apiVersion: ""
          defaultCacheDuration: null
          matchImages: null
          name: other-provider.exe
        "#);
    }

    #[test]
    fn what_kubelets_refuse_is_not_written() {
        for (text, expected) in [
            ("kind: ConfigMap\ndata: {}", "CredentialProviderConfig"),
            ("kind: CredentialProviderConfig\nprovider: [{name: x}]", "`providers`"),
            ("providers: [{name: ''}]", "providers[0].name"),
            ("providers: [{matchImages: [a.test]}]", "providers[0].name"),
            ("providers: [{name: x}, {name: ../x}]", "providers[1].name"),
            ("providers: [{name: 'a\\x'}]", "providers[0].name"),
            ("providers: [{name: 'C:x'}]", "providers[0].name"),
            ("providers: [{name: a b}]", "providers[0].name"),
            ("providers: [{name: '..'}]", "providers[0].name"),
            ("providers: [{name: x}, {name: X.exe}]", "providers[1].name"),
        ] {
            let error = credential_provider(text).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|it| it.contains(expected)), "{text}: {error:?}");
        }
    }

    #[test]
    fn members_that_kubelets_demand_are_missed() {
        let whole = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n\
                     - {name: a, apiVersion: credentialprovider.kubelet.k8s.io/v1, \
                     defaultCacheDuration: 0s, matchImages: [a.test]}\n";
        assert_eq!(missing_provider_members(whole), [""; 0]);
        for (from, to, expected) in [
            ("kind: CredentialProviderConfig\n", "", "kind"),
            ("kubelet.config.k8s.io/v1", "''", "apiVersion"),
            ("matchImages: [a.test]", "matchImages: []", "providers[0].matchImages"),
            ("defaultCacheDuration: 0s, ", "", "providers[0].defaultCacheDuration"),
            ("credentialprovider.kubelet.k8s.io/v1", "null", "providers[0].apiVersion"),
        ] {
            assert_eq!(missing_provider_members(&whole.replace(from, to)), [expected], "{from}");
        }
    }

    #[test]
    fn a_bad_duration_is_told() {
        let text = "providers: [{name: a, defaultCacheDuration: 1d}]";
        let error = credential_provider(text).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("`1d` is no duration"), "{source}");
    }
}
