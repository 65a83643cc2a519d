//! An HTTP request, split into the parts for handlers.

use axum::body::Bytes;
use axum::extract::Query as QueryString;
use axum::http::{HeaderMap, Method, header, request::Parts};
use percent_encoding::percent_decode_str;

use super::call::Query;
use super::error::{ApiError, Result};
use super::route::{self, ResourcePath};

/// A request in its parts.
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Query,
    pub(super) accept: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Incoming {
    /// Decodes path and query.
    ///
    /// # Errors
    /// 400 for an invalid query.
    pub(super) fn new(parts: Parts, accept: String, body: Bytes) -> Result<Self> {
        let query = QueryString::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let path = percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
        Ok(Self {
            method: parts.method,
            path,
            query: Query(query.0),
            accept,
            headers: parts.headers,
            body,
        })
    }

    pub(super) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The Content-Type without parameters.
    pub(super) fn media_type(&self) -> &str {
        self.header(header::CONTENT_TYPE).split(';').next().unwrap_or("").trim()
    }

    /// Whether the request is a watch, by path or query.
    pub(super) fn is_watch(&self, path: &ResourcePath) -> bool {
        path.is_watch || self.query.flag("watch")
    }

    /// The verb for the authorizer; empty for a method that objects do not support.
    pub(super) fn verb(&self, path: &ResourcePath) -> &'static str {
        route::verb(&self.method, !path.name.is_empty(), self.is_watch(path)).unwrap_or("")
    }
}

/// All `Accept` headers joined.
pub(super) fn accept(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}
