//! From JSON to protobuf. Members that are absent or null are not written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::super::schema::{self, Message, Type};
use super::wire::Writer;

pub(super) fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut of = Writer::default();
    of.bytes(1, api_version.as_bytes());
    of.bytes(2, kind.as_bytes());
    let mut out = Writer::default();
    out.bytes(1, &of.0);
    out.bytes(2, raw);
    out.bytes(3, b"");
    out.bytes(4, b"");
    out.0
}

pub(super) fn watch_event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Writer::default();
    raw.bytes(1, object);
    let mut out = Writer::default();
    out.bytes(1, kind.as_bytes());
    out.bytes(2, &raw.0);
    out.0
}

pub(super) fn list(item: &'static Message, list: &Value) -> Option<Vec<u8>> {
    let mut out = Writer::default();
    let metadata = list.get("metadata").unwrap_or(&Value::Null);
    out.bytes(1, &message(schema::message("ListMeta")?, metadata)?);
    for object in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        out.bytes(2, &message(item, object)?);
    }
    Some(out.0)
}

pub(super) fn message(of: &'static Message, value: &Value) -> Option<Vec<u8>> {
    let mut out = Writer::default();
    for field in &of.fields {
        if field.inline {
            // Its members are in our own object.
            scalar(&mut out, field.number, &field.ty, value)?;
            continue;
        }
        match (&field.ty, value.get(field.json)) {
            (_, None | Some(Value::Null)) => {}
            (Type::List(inner), Some(items)) => {
                for item in items.as_array()? {
                    scalar(&mut out, field.number, inner, item)?;
                }
            }
            (Type::Map(inner), Some(entries)) => {
                for (key, value) in entries.as_object()? {
                    let mut entry = Writer::default();
                    entry.bytes(1, key.as_bytes());
                    scalar(&mut entry, 2, inner, value)?;
                    out.bytes(field.number, &entry.0);
                }
            }
            (ty, Some(value)) => scalar(&mut out, field.number, ty, value)?,
        }
    }
    Some(out.0)
}

/// Writes a value; `None` if it does not fit its type, which never happens for a stored object.
fn scalar(out: &mut Writer, number: u32, ty: &Type, value: &Value) -> Option<()> {
    match ty {
        Type::Any | Type::List(_) | Type::Map(_) => {}
        Type::Bool => out.integer(number, value.as_bool()?.into()),
        Type::Bytes => out.bytes(number, &STANDARD.decode(value.as_str().unwrap_or("")).ok()?),
        Type::Extra => {
            let mut texts = Writer::default();
            for text in value.as_array()? {
                texts.bytes(1, text.as_str()?.as_bytes());
            }
            out.bytes(number, &texts.0);
        }
        Type::F64 => out.double(number, value.as_f64()?),
        Type::Fields | Type::Raw => {
            let mut raw = Writer::default();
            raw.bytes(1, value.to_string().as_bytes());
            out.bytes(number, &raw.0);
        }
        Type::I32 | Type::I64 => out.integer(number, value.as_i64()?),
        Type::IntOrString => {
            let mut either = Writer::default();
            match value {
                Value::String(text) => {
                    either.integer(1, 1);
                    either.integer(2, 0);
                    either.bytes(3, text.as_bytes());
                }
                value => {
                    either.integer(1, 0);
                    either.integer(2, value.as_i64()?);
                    either.bytes(3, b"");
                }
            }
            out.bytes(number, &either.0);
        }
        Type::Message(name) => out.bytes(number, &message(schema::message(name)?, value)?),
        Type::MicroTime | Type::Time => {
            let time: Timestamp = value.as_str()?.parse().ok()?;
            let mut parts = Writer::default();
            parts.integer(1, time.as_second());
            let nanos = if *ty == Type::Time { 0 } else { time.subsec_nanosecond() };
            parts.integer(2, nanos.into());
            out.bytes(number, &parts.0);
        }
        Type::Quantity => {
            let mut text = Writer::default();
            text.bytes(1, value.as_str()?.as_bytes());
            out.bytes(number, &text.0);
        }
        Type::Str => out.bytes(number, value.as_str()?.as_bytes()),
    }
    Some(())
}
