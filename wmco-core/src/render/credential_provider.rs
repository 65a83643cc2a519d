//! The kubelet's image credential providers, [`host::CREDENTIAL_PROVIDER_CONFIG`].
//!
//! [`host::CREDENTIAL_PROVIDER_CONFIG`]: crate::names::host::CREDENTIAL_PROVIDER_CONFIG

use serde::{Deserialize, Serialize};

use crate::units::GoDuration;

/// Extension of programs on Windows.
const SUFFIX: &str = ".exe";

/// Why a credential provider configuration cannot be rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialProviderError {
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
/// in full (`12h0m0s`). The kubelet's own checks are not repeated here.
/// Source: `docs/contract/node-files.md`, FILE22.
///
/// # Errors
/// The text is not YAML, or a member has the wrong type.
pub fn credential_provider(text: &str) -> Result<String, CredentialProviderError> {
    // Read as JSON values, because YAML alone would read the number 10 as the text "10".
    let options = serde_saphyr::options! { with_snippet: false };
    let value: serde_json::Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| CredentialProviderError::Yaml(Box::new(error)))?;
    let mut config: CredentialProviderConfig =
        serde_json::from_value(value).map_err(CredentialProviderError::Shape)?;
    for provider in config.providers.iter_mut().flatten() {
        // Windows ignores the case of file names.
        if !provider.name.to_ascii_lowercase().ends_with(SUFFIX) {
            provider.name.push_str(SUFFIX);
        }
    }
    serde_saphyr::to_string(&config).map_err(CredentialProviderError::Write)
}

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
    fn a_bad_duration_is_told() {
        let text = "providers: [{name: a, defaultCacheDuration: 1d}]";
        let error = credential_provider(text).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("`1d` is no duration"), "{source}");
    }
}
