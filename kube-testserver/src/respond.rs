//! Converts answers to HTTP responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use super::error::ApiError;
use super::negotiate::{Encoding, JSON, Wanted, encoding_of_error};
use super::protobuf;
use super::watch::Watch;

/// The answer of a handler.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// HTTP status.
    pub code: u16,
    /// The body.
    pub body: Arc<Value>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// Additional headers, for example `retry-after`.
    pub headers: BTreeMap<&'static str, String>,
}

impl Answer {
    /// An answer without warnings.
    pub(crate) fn new(code: u16, body: impl Into<Arc<Value>>) -> Self {
        Self { code, body: body.into(), warnings: Vec::new(), headers: BTreeMap::new() }
    }

    /// Adds a `Warning` header for each text.
    #[must_use]
    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

/// The result of a handler.
pub(super) enum Reply {
    /// An object in the wanted encoding.
    Object(Answer, Wanted),
    /// Bytes with their own media type.
    Bytes(Vec<u8>, &'static str),
    /// JSON with its own media type.
    Document(Value, &'static str),
    /// Plain text.
    Text(StatusCode, String),
    /// A stream of events.
    Watch(Box<Watch>, Wanted),
}

impl Reply {
    /// The text for unknown paths.
    pub(super) fn no_such_page() -> Self {
        Self::Text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())
    }

    pub(super) fn json(value: Value) -> Self {
        Self::Object(Answer::new(200, value), JSON)
    }
}

pub(super) fn respond(reply: Result<Reply, ApiError>, accept: &str) -> Response {
    let mut response = match reply {
        Ok(Reply::Object(answer, wanted)) => object(&answer, wanted.encoding),
        Ok(Reply::Bytes(bytes, media)) => with_type(StatusCode::OK, media, bytes.into()),
        Ok(Reply::Document(value, media)) => {
            with_type(StatusCode::OK, media, value.to_string().into())
        }
        Ok(Reply::Text(code, text)) => with_type(code, "text/plain; charset=utf-8", text.into()),
        Ok(Reply::Watch(watch, wanted)) => {
            let media = match wanted.encoding {
                Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
                Encoding::Json | Encoding::Yaml => "application/json",
            };
            with_type(StatusCode::OK, media, Body::from_stream(watch.stream()))
        }
        Err(error) => failure(&error, accept),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn failure(error: &ApiError, accept: &str) -> Response {
    let mut answer = Answer::new(error.code, error.to_status());
    let wait = error.details.as_ref().and_then(|details| details.get("retryAfterSeconds"));
    if let Some(seconds) = wait.and_then(Value::as_u64) {
        answer.headers.insert("retry-after", seconds.to_string());
    }
    answer.warnings.clone_from(&error.warnings);
    object(&answer, encoding_of_error(accept))
}

fn object(answer: &Answer, encoding: Encoding) -> Response {
    let code = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (media, body) = encode(&answer.body, encoding);
    let mut response = with_type(code, media, body);
    let headers = response.headers_mut();
    for text in &answer.warnings {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    for (name, value) in &answer.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(*name, value);
        }
    }
    response
}

/// Kinds without a protobuf form, and YAML that cannot be written, are sent as JSON.
fn encode(value: &Arc<Value>, encoding: Encoding) -> (&'static str, Body) {
    let other = match encoding {
        Encoding::Protobuf => {
            protobuf::to_protobuf(value).map(|bytes| (protobuf::MEDIA_TYPE, bytes.into()))
        }
        Encoding::Yaml => serde_saphyr::to_string(value.as_ref())
            .ok()
            .map(|text| ("application/yaml", text.into())),
        Encoding::Json => None,
    };
    other.unwrap_or_else(|| {
        let mut text = value.to_string();
        text.push('\n');
        ("application/json", text.into())
    })
}

fn with_type(code: StatusCode, media: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
