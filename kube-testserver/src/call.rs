//! A request after routing and authentication, and the options in its query.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::error::{ApiError, FieldError, Result, Subject};
use super::identity::User;
use super::resources::{Resource, StorageKey};

/// Treatment of unknown and repeated fields of a body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped, each with a `Warning` header.
    #[default]
    Warn,
    /// 400.
    Strict,
}

/// The parameters of the query, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(pub Vec<(String, String)>);

impl Query {
    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A switch: true if it is present and neither `false` nor `0`, as in Kubernetes.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    /// A whole number.
    ///
    /// # Errors
    /// 400 if the value is not a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax for {name}"
            ))
        })
    }
}

/// The options of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// Answer as if done, store nothing.
    pub dry_run: bool,
    /// The field manager in `managedFields`.
    #[cfg_attr(
        not(feature = "server-side-apply"),
        expect(dead_code, reason = "of server-side apply alone")
    )]
    pub manager: String,
    /// Treatment of unknown fields.
    pub validation: FieldValidation,
    /// Whether server-side apply takes fields over from other managers.
    #[cfg_attr(
        not(feature = "server-side-apply"),
        expect(dead_code, reason = "of server-side apply alone")
    )]
    pub force: bool,
}

impl WriteOptions {
    /// Reads the options of a write.
    ///
    /// # Errors
    /// 422 naming `CreateOptions`, `UpdateOptions` or `PatchOptions` (`kind`).
    pub(crate) fn parse(
        query: &Query,
        kind: &str,
        user_agent: &str,
        is_apply: bool,
    ) -> Result<Self> {
        let mut errors = Vec::new();
        let given = query.get("fieldManager").unwrap_or("");
        let force = query.get("force").map(|_| query.flag("force"));
        if kind == "PatchOptions" {
            if is_apply && given.is_empty() {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            } else if !is_apply && force.is_some() {
                errors.push(FieldError::forbidden(
                    "force",
                    "may not be specified for non-apply patch",
                ));
            }
        }
        if given.len() > 128 {
            errors.push(FieldError::too_long("fieldManager", 128));
        } else if let Some(bad) = given.chars().position(char::is_control) {
            let why = format!("should only contain printable characters (position {bad})");
            errors.push(FieldError::invalid("fieldManager", &given.into(), &why));
        }
        errors.extend(dry_run_error(query));
        let validation = match query.get("fieldValidation").unwrap_or("") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let words = ["", "Ignore", "Strict", "Warn"];
                let field = "fieldValidation";
                errors.push(FieldError::not_supported(field, &other.into(), &words));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid(options_subject(kind), &errors));
        }
        let manager = if given.is_empty() { default_manager(user_agent) } else { given.to_owned() };
        Ok(Self {
            dry_run: query.get("dryRun").is_some_and(|value| !value.is_empty()),
            manager,
            validation,
            force: force.unwrap_or(false),
        })
    }
}

/// The validation error of a `dryRun` other than `All`.
pub(crate) fn dry_run_error(query: &Query) -> Option<FieldError> {
    let values: Vec<&str> =
        query.0.iter().filter(|(key, _)| key == "dryRun").map(|(_, v)| v.as_str()).collect();
    let bad = values.iter().any(|value| !value.is_empty() && *value != "All");
    bad.then(|| FieldError::not_supported("dryRun", &values.into(), &["All"]))
}

/// The subject of an error about an invalid option.
pub(crate) fn options_subject(kind: &str) -> Subject<'_> {
    Subject { group: "meta.k8s.io", kind, name: "" }
}

/// The User-Agent up to the first slash, in at most 128 bytes.
fn default_manager(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or("");
    let printable: String = name.chars().filter(|c| !c.is_control()).collect();
    let end = (0..=printable.len().min(128)).rev().find(|end| printable.is_char_boundary(*end));
    printable.get(..end.unwrap_or(0)).unwrap_or("").to_owned()
}

/// The operation of a write, for admission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    /// A new object.
    Create,
    /// A change.
    Update,
    /// A removal.
    Delete,
}

/// A request about objects of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The requesting user.
    pub user: User,
    /// The requested resource.
    pub resource: Arc<Resource>,
    /// For example `status`; empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-scoped resources and requests over all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// Options of a write.
    pub options: WriteOptions,
    /// Time of the request.
    pub now: Timestamp,
}

impl Call {
    /// The group in errors: the server treats both Event APIs as one.
    fn group(&self) -> &str {
        if self.resource.plural == "events" { "" } else { &self.resource.group }
    }

    /// The object with its plural resource, for most errors.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: self.group(), kind: &self.resource.plural, name: &self.name }
    }

    /// `object` with its kind, for `Invalid` errors.
    pub(crate) fn kind_subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: self.group(), kind: &self.resource.kind, name }
    }

    /// 422 for `object` if there are errors.
    ///
    /// # Errors
    /// `errors` is not empty.
    pub(crate) fn valid(&self, object: &Value, errors: &[FieldError]) -> Result<()> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(self.kind_subject(super::meta::name(object)), errors))
    }

    /// The same request about another object.
    pub(crate) fn about(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// The storage place of the objects.
    pub(crate) fn place(&self) -> StorageKey {
        self.resource.storage()
    }

    /// 404 for the object.
    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.subject())
    }
}
