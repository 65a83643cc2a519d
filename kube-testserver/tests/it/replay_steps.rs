//! Carrying out the steps of a transcript.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use kube_testserver::TestServer;
use serde::Serialize as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::replay_match::{Captured, difference, includes, normalise, text_matches};

/// How long to poll when the step has no limit.
const POLL_S: f64 = 20.0;
const POLL_PERIOD: Duration = Duration::from_millis(20);
/// How long a watch is listened to for events that are not expected.
const QUIET: Duration = Duration::from_millis(150);
/// The annotation of the BOOKMARK that ends the initial events.
const INITIAL_END: &str = "/metadata/annotations/k8s.io~1initial-events-end";

/// One scenario at one cluster.
pub(crate) struct Player<'a> {
    cluster: &'a TestServer,
    identities: &'a Value,
    clients: HashMap<String, Client>,
    captured: Captured,
    keeps_managed_fields: bool,
}

/// An answer as it is compared.
struct Answer {
    status: u16,
    headers: hyper::HeaderMap,
    bytes: Bytes,
    body: Option<Value>,
}

type Outcome = Result<(), String>;

impl<'a> Player<'a> {
    /// Begins a scenario.
    pub(crate) fn new(cluster: &'a TestServer, scenario: &'a Value) -> Self {
        Self {
            cluster,
            identities: &scenario["identities"],
            clients: HashMap::new(),
            captured: Captured::default(),
            keeps_managed_fields: scenario["managed_fields"] == true,
        }
    }

    /// Does one step. The error tells what differs.
    pub(crate) async fn step(&mut self, step: &Value) -> Outcome {
        match step["control"].as_str() {
            Some("compact") => self.cluster.expire_history(),
            Some("sleep") => {
                let seconds = step["seconds"].as_f64().unwrap();
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
            Some(other) => panic!("unknown control {other}"),
            None if step["watch"].is_object() => return self.watch(step).await,
            None => return self.request(step).await,
        }
        Ok(())
    }

    fn client(&mut self, identity: &str) -> Client {
        let (cluster, identities) = (self.cluster, self.identities);
        let make = || match identity {
            "anonymous" => Client::anonymous(cluster),
            "admin" => Client::of(cluster, "admin", &["system:masters"]),
            other => {
                let known = &identities[other];
                let groups = known["groups"].as_array().unwrap().iter();
                let groups: Vec<&str> = groups.map(|group| group.as_str().unwrap()).collect();
                Client::of(cluster, known["user"].as_str().unwrap(), &groups)
            }
        };
        self.clients.entry(identity.to_owned()).or_insert_with(make).clone()
    }

    async fn send(&mut self, request: &Value) -> Response<Incoming> {
        let request = self.captured.fill_all(request);
        let client = self.client(request["as"].as_str().unwrap_or("admin"));
        client.send(http_request(&request)).await
    }

    async fn fetch(&mut self, request: &Value) -> Answer {
        let (parts, body) = self.send(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let mut body = serde_json::from_slice(&bytes).ok();
        if let Some(body) = &mut body {
            normalise(body, self.keeps_managed_fields);
        }
        Answer { status: parts.status.as_u16(), headers: parts.headers, bytes, body }
    }

    async fn request(&mut self, step: &Value) -> Outcome {
        let answer = match step["poll"].as_object() {
            None => self.fetch(&step["do"]).await,
            Some(_) => self.poll(step).await?,
        };
        if step["expect"].is_object() {
            return self.check(&step["expect"], &answer);
        }
        let accepted = match step["accept"].as_array() {
            Some(codes) => codes.contains(&answer.status.into()),
            None => step["poll"].is_object() || [200, 201, 202].contains(&answer.status),
        };
        if !accepted {
            let body = String::from_utf8_lossy(&answer.bytes).into_owned();
            return Err(format!("answered {} {body}", answer.status));
        }
        if let Some(capture) = step["capture"].as_object() {
            self.captured.keep(capture, &answer.body.unwrap_or_default())?;
        }
        Ok(())
    }

    async fn poll(&mut self, step: &Value) -> Result<Answer, String> {
        let poll = &step["poll"];
        let seconds = poll["timeout_s"].as_f64().unwrap_or(POLL_S);
        let deadline = Instant::now() + Duration::from_secs_f64(seconds);
        loop {
            let answer = self.fetch(&step["do"]).await;
            let body = answer.body.clone().unwrap_or_default();
            let wanted = poll["all"].as_array().map(Vec::as_slice).unwrap_or_default();
            let unmet = wanted.iter().find(|condition| !holds(condition, &body));
            if poll["status"] == answer.status && unmet.is_none() {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                return Err(format!("still {} {body}, waiting for {poll}", answer.status));
            }
            tokio::time::sleep(POLL_PERIOD).await;
        }
    }

    fn check(&mut self, expect: &Value, answer: &Answer) -> Outcome {
        let text = String::from_utf8_lossy(&answer.bytes);
        if expect["status"] != answer.status {
            return Err(format!(
                "expected {}, answered {} {text}",
                expect["status"], answer.status
            ));
        }
        check_headers(expect, &answer.headers)?;
        if let Some(pattern) = expect["text"].as_str() {
            return if text_matches(pattern, &text) {
                Ok(())
            } else {
                Err(format!("expected the text {pattern:?}, found {text:?}"))
            };
        }
        if let Some(prefix) = expect["body_base64_prefix"].as_str() {
            let prefix = STANDARD.decode(prefix).unwrap();
            if answer.bytes.get(..4) != prefix.get(..4) {
                return Err("the body does not begin with the magic bytes".to_owned());
            }
        }
        self.check_body(expect, answer.body.as_ref())
    }

    fn check_body(&mut self, expect: &Value, body: Option<&Value>) -> Outcome {
        let nothing = Value::Null;
        let actual = body.unwrap_or(&nothing);
        check_paths(expect, &expect["body"], actual)?;
        for pointer in expect["absent"].as_array().into_iter().flatten() {
            if let Some(found) = actual.pointer(pointer.as_str().unwrap()) {
                return Err(format!("{pointer}: expected nothing, found {found}"));
            }
        }
        for (pointer, count) in expect["counts"].as_object().into_iter().flatten() {
            let found = actual.pointer(pointer).and_then(Value::as_array).map(Vec::len);
            if found.map(Value::from).as_ref() != Some(count) {
                return Err(format!("{pointer}: expected {count} items, found {found:?}"));
            }
        }
        for wanted in expect["contains"].as_array().into_iter().flatten() {
            let list = actual.pointer(wanted["in"].as_str().unwrap()).and_then(Value::as_array);
            let mut items = list.into_iter().flatten();
            if !items.any(|item| includes(&wanted["match"], item)) {
                return Err(format!("{}: nothing like {}", wanted["in"], wanted["match"]));
            }
        }
        if let Some(capture) = expect["capture"].as_object() {
            self.captured.keep(capture, actual)?;
        }
        self.check_relations(&expect["relations"])
    }

    fn check_relations(&self, relations: &Value) -> Outcome {
        relations.as_array().into_iter().flatten().try_for_each(|one| self.captured.check(one))
    }

    async fn watch(&mut self, step: &Value) -> Outcome {
        let (parts, body) = self.send(&step["watch"]).await.into_parts();
        let expect = &step["expect"];
        if parts.status != 200 || expect["status"] != 200 {
            let bytes = body.collect().await.unwrap().to_bytes();
            let json = serde_json::from_slice(&bytes).ok();
            let status = parts.status.as_u16();
            let answer = Answer { status, headers: parts.headers, bytes, body: json };
            return self.check(expect, &answer);
        }
        check_headers(expect, &parts.headers)?;
        for inner in step["while"].as_array().into_iter().flatten() {
            Box::pin(self.step(inner))
                .await
                .map_err(|why| format!("while {}: {why}", inner["do"]))?;
        }
        let seconds = step["watch"]["timeout_s"].as_f64().unwrap();
        let limit = Duration::from_secs_f64(seconds);
        let wanted = step["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let collapse = step["bookmarks"] == "collapse";
        let must_end = step["ended"] == true;
        let mut events = Events::new(body);
        let found = events.read(wanted.len(), collapse, must_end, limit).await?;
        for (index, event) in wanted.iter().enumerate() {
            let Some(found) = found.get(index) else {
                return Err(format!("event {index}: expected {} but none came", event["type"]));
            };
            self.event(event, found).map_err(|why| format!("event {index}: {why}"))?;
        }
        if let Some(more) = found.get(wanted.len()) {
            return Err(format!("not expected: {more}"));
        }
        self.check_relations(&step["relations"])
    }

    fn event(&mut self, expected: &Value, found: &Value) -> Outcome {
        if expected["type"] != found["type"] {
            return Err(format!("expected {}, found {found}", expected["type"]));
        }
        let mut object = found["object"].clone();
        normalise(&mut object, self.keeps_managed_fields);
        check_paths(expected, &expected["object"], &object)?;
        match expected["capture"].as_object() {
            Some(capture) => self.captured.keep(capture, &object),
            None => Ok(()),
        }
    }
}

/// What stands at the binding paths must be the same.
fn check_paths(expect: &Value, expected: &Value, actual: &Value) -> Outcome {
    for pointer in expect["paths"].as_array().into_iter().flatten() {
        let pointer = pointer.as_str().unwrap();
        let Some(expected) = expected.pointer(pointer) else { continue };
        let Some(actual) = actual.pointer(pointer) else {
            return Err(format!("{pointer}: missing in {actual}"));
        };
        if let Some(why) = difference(expected, actual, pointer) {
            return Err(why);
        }
    }
    Ok(())
}

fn check_headers(expect: &Value, headers: &hyper::HeaderMap) -> Outcome {
    for (name, wanted) in expect["headers"].as_object().into_iter().flatten() {
        let found: Vec<&str> =
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let single = [wanted.clone()];
        let wanted = wanted.as_array().map_or(&single[..], Vec::as_slice);
        for pattern in wanted.iter().map(|pattern| pattern.as_str().unwrap()) {
            if !found.iter().any(|value| text_matches(pattern, value)) {
                return Err(format!("header {name}: expected {pattern:?}, found {found:?}"));
            }
        }
    }
    Ok(())
}

fn holds(condition: &Value, body: &Value) -> bool {
    let found = body.pointer(condition["path"].as_str().unwrap());
    if condition["present"] == true {
        return found.is_some();
    }
    if let Some(wanted) = condition.get("equals") {
        return found.is_some_and(|found| difference(wanted, found, "").is_none());
    }
    let items = found.and_then(Value::as_array).into_iter().flatten();
    items.into_iter().any(|item| includes(&condition["has"], item))
}

fn http_request(request: &Value) -> Request<Full<Bytes>> {
    let text = |field: &str| request[field].as_str();
    let mut uri = text("path").unwrap().to_owned();
    let query = request["query"].as_object().into_iter().flatten();
    let query: Vec<String> = query
        .map(|(key, value)| format!("{}={}", encode(key), encode(value.as_str().unwrap())))
        .collect();
    if !query.is_empty() {
        uri = format!("{uri}?{}", query.join("&"));
    }
    let body: Option<Vec<u8>> = if let Some(body) = request.get("body") {
        Some(as_python_writes(body))
    } else if let Some(text) = text("body_text") {
        Some(text.as_bytes().to_vec())
    } else {
        text("body_base64").map(|text| STANDARD.decode(text).unwrap())
    };
    let method = Method::from_bytes(text("method").unwrap_or("GET").as_bytes()).unwrap();
    let mut builder = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "localhost")
        .header("accept", text("accept").unwrap_or("application/json"));
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        builder = match value.as_array() {
            Some(values) => values
                .iter()
                .fold(builder, |builder, value| builder.header(name, value.as_str().unwrap())),
            None => builder.header(name, value.as_str().unwrap()),
        };
    }
    if body.is_some() {
        builder =
            builder.header("content-type", text("content_type").unwrap_or("application/json"));
    }
    builder.body(Full::new(body.unwrap_or_default().into())).unwrap()
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// JSON with blanks after colons and commas: messages of the API quote bodies.
fn as_python_writes(body: &Value) -> Vec<u8> {
    struct Blanks;
    impl serde_json::ser::Formatter for Blanks {
        fn begin_array_value<W: ?Sized + std::io::Write>(
            &mut self,
            out: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }
        fn begin_object_key<W: ?Sized + std::io::Write>(
            &mut self,
            out: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }
        fn begin_object_value<W: ?Sized + std::io::Write>(
            &mut self,
            out: &mut W,
        ) -> std::io::Result<()> {
            out.write_all(b": ")
        }
    }
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Blanks);
    body.serialize(&mut serializer).unwrap();
    out
}

/// The lines of a watch.
struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    fn new(body: Incoming) -> Self {
        Self { body, text: String::new() }
    }

    /// Reads events until `count` have come and it is quiet, or until the stream ends.
    async fn read(
        &mut self,
        count: usize,
        collapse: bool,
        must_end: bool,
        limit: Duration,
    ) -> Result<Vec<Value>, String> {
        let deadline = Instant::now() + limit;
        let mut events: Vec<Value> = Vec::new();
        loop {
            let complete = events.len() >= count && !must_end;
            let until = if complete { deadline.min(Instant::now() + QUIET) } else { deadline };
            match self.next(until).await {
                Next::Event(event) => {
                    let bookmark = event["type"] == "BOOKMARK"
                        && event["object"].pointer(INITIAL_END).is_none();
                    let repeated =
                        events.last().is_some_and(|last| bookmark && last["type"] == "BOOKMARK");
                    if !bookmark || (collapse && !repeated) {
                        events.push(event);
                    }
                }
                Next::Quiet if must_end => {
                    return Err(format!("the stream did not end; it brought {}", json!(events)));
                }
                Next::Ended | Next::Quiet => return Ok(events),
            }
        }
    }

    async fn next(&mut self, until: Instant) -> Next {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                let read = self.text.len() - rest.len();
                self.text.drain(..read);
                return Next::Event(event);
            }
            let wait = until.saturating_duration_since(Instant::now());
            match timeout(wait, self.body.frame()).await {
                Err(_) => return Next::Quiet,
                Ok(None | Some(Err(_))) => return Next::Ended,
                Ok(Some(Ok(frame))) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    self.text.push_str(std::str::from_utf8(&bytes).unwrap());
                }
            }
        }
    }
}

enum Next {
    Event(Value),
    Ended,
    Quiet,
}
