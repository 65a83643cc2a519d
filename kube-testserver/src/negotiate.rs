//! Negotiates the form of an answer.

use serde_json::Value;

use super::error::{ApiError, Result};
use super::protobuf;

/// Encoding of the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

/// Transformation of the objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transform {
    /// Nothing.
    None,
    /// `PartialObjectMetadata` or a list of it.
    Metadata {
        /// The client asked for the list form.
        list: bool,
    },
    /// The Table that kubectl prints.
    Table(RowObject),
}

/// The part of its object in each row of a Table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum RowObject {
    /// The metadata.
    #[default]
    Metadata,
    /// Nothing.
    Nothing,
    /// All of it.
    Whole,
}

impl RowObject {
    /// Reads `includeObject`.
    ///
    /// # Errors
    /// 400 for another value.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::Nothing),
            "Object" => Ok(Self::Whole),
            other => {
                Err(ApiError::bad_request(format!("unrecognized includeObject value: {other:?}")))
            }
        }
    }
}

/// The negotiated form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Wanted {
    /// Encoding of the body.
    pub encoding: Encoding,
    /// Transformation of the objects.
    pub transform: Transform,
}

/// Plain JSON.
pub(crate) const JSON: Wanted = Wanted { encoding: Encoding::Json, transform: Transform::None };

struct Clause<'a> {
    media: &'a str,
    params: Vec<(&'a str, &'a str)>,
    quality: f64,
}

fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept
        .split(',')
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or("");
            let params: Vec<_> =
                parts.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
            let quality = params.iter().find(|(key, _)| *key == "q");
            let quality = quality.and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
            Clause { media, params, quality }
        })
        .filter(|clause| !clause.media.is_empty())
        .collect();
    // Stable: equal qualities keep their order.
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

fn encodings(media: &str, has_protobuf: bool) -> Option<Encoding> {
    match media {
        "*/*" | "application/*" | "application/json" => Some(Encoding::Json),
        "application/yaml" => Some(Encoding::Yaml),
        "application/vnd.kubernetes.protobuf" if has_protobuf => Some(Encoding::Protobuf),
        _ => None,
    }
}

impl Clause<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn transform(&self) -> Option<Transform> {
        let Some(kind) = self.param("as") else { return Some(Transform::None) };
        let version = self.param("v").unwrap_or("");
        if self.param("g") != Some("meta.k8s.io") || !matches!(version, "v1" | "v1beta1") {
            return None;
        }
        match kind {
            "Table" => Some(Transform::Table(RowObject::Metadata)),
            "PartialObjectMetadata" => Some(Transform::Metadata { list: false }),
            "PartialObjectMetadataList" => Some(Transform::Metadata { list: true }),
            _ => None,
        }
    }
}

/// Chooses by the `Accept` header. Custom resources have no protobuf form.
///
/// # Errors
/// 406 if no form fits.
pub(crate) fn negotiate(accept: &str, is_custom: bool) -> Result<Wanted> {
    let has_protobuf = protobuf::IS_OFFERED && !is_custom;
    let clauses = clauses(accept);
    if clauses.is_empty() {
        return Ok(JSON);
    }
    let found = clauses.iter().find_map(|clause| {
        let encoding = encodings(clause.media, has_protobuf)?;
        Some(Wanted { encoding, transform: clause.transform()? })
    });
    if let Some(wanted) = found {
        return Ok(wanted);
    }
    let protobuf = if has_protobuf { ", application/vnd.kubernetes.protobuf" } else { "" };
    let list = format!("application/json, application/yaml{protobuf}");
    if is_custom || clauses.iter().any(|clause| encodings(clause.media, true).is_some()) {
        return Err(ApiError::not_acceptable(format!(
            "only the following media types are accepted: {list}"
        )));
    }
    Err(ApiError::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {list}"
    ))
    .with_details(Value::Object(serde_json::Map::new())))
}

/// The first of the media types in `known` that the `Accept` header prefers; without one, the first of all.
pub(crate) fn preferred<'a>(accept: &str, known: &[&'a str]) -> Option<&'a str> {
    let clauses = clauses(accept);
    if clauses.is_empty() {
        return known.first().copied();
    }
    clauses.iter().find_map(|clause| {
        let is_any = matches!(clause.media, "*/*" | "application/*");
        known.iter().copied().find(|media| is_any || *media == clause.media)
    })
}

/// The encoding of an error: the client's preferred one among the supported encodings.
pub(crate) fn encoding_of_error(accept: &str) -> Encoding {
    let known =
        clauses(accept).iter().find_map(|clause| encodings(clause.media, protobuf::IS_OFFERED));
    known.unwrap_or(Encoding::Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clause_that_is_known_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(
            negotiate(table, true).unwrap().transform,
            Transform::Table(RowObject::Metadata)
        );
        let unknown = "application/json;as=Nothing;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(negotiate(unknown, true).unwrap(), JSON);
        let both = "application/vnd.kubernetes.protobuf,application/json";
        let built_in = if protobuf::IS_OFFERED { Encoding::Protobuf } else { Encoding::Json };
        assert_eq!(negotiate(both, false).unwrap().encoding, built_in);
        assert_eq!(negotiate(both, true).unwrap().encoding, Encoding::Json);
        assert_eq!(
            negotiate("application/json;q=0.1, application/yaml", true).unwrap().encoding,
            Encoding::Yaml
        );
    }

    #[test]
    fn nothing_that_is_known_is_406() {
        assert_eq!(negotiate("text/html", false).unwrap_err().code, 406);
        assert_eq!(negotiate("text/html, */*", false).unwrap(), JSON);
    }
}
