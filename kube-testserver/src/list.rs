//! GET of a collection or of an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::call::{Call, Query, options_subject};
use super::error::{ApiError, FieldError, Result};
use super::kinds;
use super::selectors::{FieldSelector, Selection};
use super::state::State;
use super::store::object_key;

/// Version of the continue token, which has the start of the next page.
const PAGE_VERSION: &str = "meta.k8s.io/v1";
/// The answer to a page of an expired list.
const EXPIRED_PAGE: &str = "The provided continue parameter is too old to display a consistent list result. You can \
     start a new list without the continue parameter, or use the continue token in this response \
     to retrieve the remainder of the results. Continuing with the provided token results in an \
     inconsistent list - objects that were created, modified, or deleted between the time the \
     first chunk was returned and now may show up in the list.";
const EXPIRED_LIST: &str = "The resourceVersion for the provided list is too old.";

/// The requested state of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    /// The selectors.
    pub selection: Selection,
    /// `resourceVersion` as given.
    pub version: String,
    /// `resourceVersionMatch` is `Exact`.
    pub exact: bool,
    /// Most items of a page.
    pub limit: Option<usize>,
    /// The token of the previous page.
    pub page: Option<String>,
    /// Seconds until a watch ends.
    pub timeout_s: Option<u64>,
    /// Whether a watch may send BOOKMARKs.
    pub bookmarks: bool,
    /// Whether a watch begins with the existing objects.
    pub initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads the query of a list or watch.
    ///
    /// # Errors
    /// 400 for unreadable values, 422 for invalid combinations.
    pub(crate) fn parse(query: &Query, call: &Call, is_watch: bool) -> Result<Self> {
        let text = |name: &str| query.get(name).unwrap_or("").to_owned();
        let labels = text("labelSelector").parse().map_err(ApiError::bad_request)?;
        let offered = kinds::fields(&call.resource);
        let (selector, namespaced) = (text("fieldSelector"), call.resource.namespaced);
        let fields = FieldSelector::parse(&selector, namespaced, offered.as_deref())
            .map_err(ApiError::bad_request)?;
        let limit = query.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
        let timeout = query.number("timeoutSeconds")?.and_then(|s| u64::try_from(s).ok());
        let initial = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let rule = text("resourceVersionMatch");
        let options = Self {
            selection: Selection { labels, fields },
            version: text("resourceVersion"),
            exact: rule == "Exact",
            limit: limit.filter(|limit| *limit > 0),
            page: Some(text("continue")).filter(|token| !token.is_empty()),
            timeout_s: timeout.filter(|seconds| *seconds > 0),
            bookmarks: query.flag("allowWatchBookmarks"),
            initial_events: initial,
        };
        let errors = if is_watch { options.check_watch(&rule) } else { options.check_list(&rule) };
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid(options_subject("ListOptions"), &errors))
        }
    }

    fn check_list(&self, rule: &str) -> Vec<FieldError> {
        const FIELD: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
        if !rule.is_empty() {
            if self.version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                forbid(FIELD, why);
            }
            if self.page.is_some() {
                forbid(FIELD, "resourceVersionMatch is forbidden when continue is provided");
            }
            if self.exact && self.version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                forbid(FIELD, why);
            }
        }
        if self.initial_events.is_some() {
            forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        if !matches!(rule, "" | "Exact" | "NotOlderThan") {
            let words = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(FIELD, &rule.into(), &words));
        }
        errors
    }

    fn check_watch(&self, rule: &str) -> Vec<FieldError> {
        const FIELD: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        if self.initial_events.is_some() && rule != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(FIELD, why));
        }
        if !rule.is_empty() {
            if self.initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(FIELD, why));
            }
            if rule != "NotOlderThan" {
                errors.push(FieldError::not_supported(FIELD, &rule.into(), &["NotOlderThan"]));
            }
            if self.page.is_some() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(FIELD, why));
            }
        }
        errors
    }
}

/// A page of a list, or all of it.
#[derive(Debug)]
pub(crate) struct Page {
    /// The stored objects.
    pub items: Vec<Arc<Value>>,
    /// The resourceVersion of their state.
    pub version: u64,
    /// Token for the next page; empty at the end.
    pub next: String,
    /// Number of items after this page, if known.
    pub remaining: Option<usize>,
}

/// The error for a version that is not reached yet: the client may wait for it.
pub(crate) fn not_reached(state: &State, version: &str) -> Option<ApiError> {
    let wanted: u64 = version.parse().ok()?;
    let current = state.store.version();
    (wanted > current).then(|| {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        let cause =
            json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        ApiError::timeout(&message, 1).with_causes(vec![cause])
    })
}

/// Lists objects.
///
/// # Errors
/// 400 for invalid versions and tokens, 410 for expired states.
pub(crate) fn list(state: &State, call: &Call, options: &ListOptions) -> Result<Page> {
    if let Some(token) = &options.page {
        if !options.version.is_empty() && options.version != "0" {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return next_page(state, call, options, token);
    }
    let wanted = match options.version.as_str() {
        "" => None,
        text => Some(text.parse::<u64>().map_err(|_| bad_version(text))?),
    };
    // With a limit, a version means exactly that version; older clients page this way.
    let exact = options.exact || (options.limit.is_some() && wanted.is_some_and(|v| v > 0));
    let (objects, version) = match wanted.filter(|_| exact) {
        Some(version) => {
            let old = state.store.list_at(&call.place(), &call.namespace, version);
            (old.map_err(|_| ApiError::expired(EXPIRED_LIST))?, version)
        }
        None => (now(state, call), state.store.version()),
    };
    let limit = options.limit.filter(|_| wanted != Some(0));
    Ok(page(objects.into_iter(), options, limit, version))
}

fn bad_version(text: &str) -> ApiError {
    ApiError::bad_request(format!(
        "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
    ))
}

fn now(state: &State, call: &Call) -> BTreeMap<String, Arc<Value>> {
    let objects = state.store.list(&call.place(), &call.namespace);
    objects
        .map(|object| {
            let (namespace, name) = (super::meta::namespace(object), super::meta::name(object));
            (object_key(namespace, name), Arc::clone(object))
        })
        .collect()
}

fn next_page(state: &State, call: &Call, options: &ListOptions, token: &str) -> Result<Page> {
    let bad = || ApiError::bad_request("continue key is not valid: the token cannot be read");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    let start = token.get("start").and_then(Value::as_str).ok_or_else(bad)?;
    if token.get("v").and_then(Value::as_str) != Some(PAGE_VERSION) {
        return Err(bad());
    }
    let (objects, version) = match token.get("rv").and_then(Value::as_u64) {
        // A token without version continues at the present version.
        None => (now(state, call), state.store.version()),
        Some(version) => {
            let old = state.store.list_at(&call.place(), &call.namespace, version);
            (old.map_err(|_| expired_page(start))?, version)
        }
    };
    let rest = objects.into_iter().filter(|(key, _)| key.as_str() >= start);
    Ok(page(rest, options, options.limit, version))
}

fn expired_page(start: &str) -> ApiError {
    let mut error = ApiError::expired(EXPIRED_PAGE);
    error.next_page = Some(token(None, start).into());
    error
}

fn token(version: Option<u64>, start: &str) -> String {
    let mut token = json!({"v": PAGE_VERSION, "start": start});
    if let (Some(version), Some(members)) = (version, token.as_object_mut()) {
        members.insert("rv".to_owned(), version.into());
    }
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn page(
    objects: impl Iterator<Item = (String, Arc<Value>)>,
    options: &ListOptions,
    limit: Option<usize>,
    version: u64,
) -> Page {
    let mut chosen = objects.filter(|(_, object)| options.selection.matches(object));
    let Some(limit) = limit else {
        let items = chosen.map(|(_, object)| object).collect();
        return Page { items, version, next: String::new(), remaining: None };
    };
    let mut items = Vec::new();
    let mut last = String::new();
    for (key, object) in chosen.by_ref().take(limit) {
        last = key;
        items.push(object);
    }
    let left = chosen.count();
    if left == 0 {
        return Page { items, version, next: String::new(), remaining: None };
    }
    // The key right after the last item.
    let next = token(Some(version), &format!("{last}\u{0}"));
    let remaining = options.selection.is_empty().then_some(left);
    Page { items, version, next, remaining }
}

impl Page {
    /// The list object as JSON. Items of built-in kinds carry no type of their own.
    pub(crate) fn to_list(&self, call: &Call) -> Value {
        let resource = &call.resource;
        let items: Vec<Value> = self
            .items
            .iter()
            .map(|item| {
                let mut item = resource.present(item);
                if resource.custom.is_none()
                    && let Some(members) = item.as_object_mut()
                {
                    members.remove("kind");
                    members.remove("apiVersion");
                }
                item
            })
            .collect();
        json!({
            "kind": resource.list_kind,
            "apiVersion": resource.api_version(),
            "metadata": self.metadata(resource.custom.is_some()),
            "items": items,
        })
    }

    /// The list's metadata; custom resources have an empty `continue`.
    pub(crate) fn metadata(&self, shows_empty: bool) -> Value {
        let mut meta = json!({"resourceVersion": self.version.to_string()});
        if let Some(members) = meta.as_object_mut() {
            if !self.next.is_empty() || shows_empty {
                members.insert("continue".to_owned(), self.next.clone().into());
            }
            if let Some(remaining) = self.remaining {
                members.insert("remainingItemCount".to_owned(), remaining.into());
            }
        }
        meta
    }
}
