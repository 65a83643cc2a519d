//! From protobuf to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::super::schema::{self, Message, Type};
use super::wire::{Reader, Wire, WireError};

/// The envelope around an object.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) raw: Vec<u8>,
}

pub(super) fn envelope(bytes: &[u8]) -> Result<Envelope, WireError> {
    let mut envelope = Envelope::default();
    for member in Reader(bytes) {
        match member? {
            (1, wire) => {
                for member in Reader(wire.bytes()?) {
                    match member? {
                        (1, wire) => wire.text()?.clone_into(&mut envelope.api_version),
                        (2, wire) => wire.text()?.clone_into(&mut envelope.kind),
                        _ => {}
                    }
                }
            }
            (2, wire) => envelope.raw = wire.bytes()?.to_vec(),
            _ => {}
        }
    }
    Ok(envelope)
}

/// Decodes a message. Members with unknown numbers are skipped, as protobuf requires.
pub(super) fn message(of: &'static Message, bytes: &[u8]) -> Result<Value, WireError> {
    let mut out = Map::new();
    for member in Reader(bytes) {
        let (number, wire) = member?;
        let Some(field) = of.fields.iter().find(|field| field.number == number) else { continue };
        match &field.ty {
            Type::List(inner) => {
                let list = out.entry(field.json).or_insert_with(|| Value::Array(vec![]));
                if let Some(list) = list.as_array_mut() {
                    items(inner, wire, list)?;
                }
            }
            Type::Map(inner) => {
                let map = out.entry(field.json).or_insert_with(|| Value::Object(Map::new()));
                if let Some(map) = map.as_object_mut() {
                    let (key, value) = entry(inner, wire.bytes()?)?;
                    map.insert(key, value);
                }
            }
            ty if field.inline => {
                if let Value::Object(members) = value(ty, wire)? {
                    out.extend(members);
                }
            }
            ty => {
                out.insert(field.json.to_owned(), value(ty, wire)?);
            }
        }
    }
    Ok(out.into())
}

/// Decodes one more item; numbers may also be packed.
fn items(inner: &Type, wire: Wire<'_>, list: &mut Vec<Value>) -> Result<(), WireError> {
    match (inner, wire) {
        (Type::I32 | Type::I64, Wire::Bytes(packed)) => {
            let mut reader = Reader(packed);
            while !reader.0.is_empty() {
                list.push(reader.varint()?.cast_signed().into());
            }
        }
        _ => list.push(value(inner, wire)?),
    }
    Ok(())
}

fn entry(inner: &Type, bytes: &[u8]) -> Result<(String, Value), WireError> {
    let (mut key, mut read) = (String::new(), None);
    for member in Reader(bytes) {
        match member? {
            (1, wire) => wire.text()?.clone_into(&mut key),
            (2, wire) => read = Some(value(inner, wire)?),
            _ => {}
        }
    }
    // An empty value may be left out.
    let value = match (read, inner) {
        (Some(value), _) => value,
        (None, Type::Bytes) => "".into(),
        (None, ty) => schema::shape::zero(ty),
    };
    Ok((key, value))
}

fn value(ty: &Type, wire: Wire<'_>) -> Result<Value, WireError> {
    Ok(match ty {
        Type::Bool => (wire.varint()? != 0).into(),
        Type::Bytes => STANDARD.encode(wire.bytes()?).into(),
        Type::Extra => {
            let texts = Reader(wire.bytes()?).filter_map(|member| match member {
                Ok((1, wire)) => Some(wire.text().map(Value::from)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            });
            Value::Array(texts.collect::<Result<_, _>>()?)
        }
        Type::F64 => wire.double()?.into(),
        // A set or an extension is JSON; invalid JSON counts as absent.
        Type::Fields | Type::Raw => {
            let json = numbered(wire.bytes()?, 1)?.map(Wire::bytes).transpose()?;
            json.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or(Value::Null)
        }
        Type::I32 | Type::I64 => wire.integer()?.into(),
        Type::IntOrString => {
            let bytes = wire.bytes()?;
            let part = |number| numbered(bytes, number);
            if part(1)?.map(Wire::integer).transpose()?.unwrap_or(0) == 0 {
                part(2)?.map(Wire::integer).transpose()?.unwrap_or(0).into()
            } else {
                part(3)?.map(Wire::text).transpose()?.unwrap_or("").into()
            }
        }
        Type::Any | Type::List(_) | Type::Map(_) => Value::Null,
        Type::Message(name) => match schema::message(name) {
            Some(of) => message(of, wire.bytes()?)?,
            None => Value::Null,
        },
        Type::MicroTime => time(wire, "%Y-%m-%dT%H:%M:%S%.6fZ")?,
        Type::Quantity => {
            numbered(wire.bytes()?, 1)?.map(Wire::text).transpose()?.unwrap_or("0").into()
        }
        Type::Str => wire.text()?.into(),
        Type::Time => time(wire, "%Y-%m-%dT%H:%M:%SZ")?,
    })
}

/// The last member with that number.
fn numbered(bytes: &[u8], number: u32) -> Result<Option<Wire<'_>>, WireError> {
    let mut found = None;
    for member in Reader(bytes) {
        let (at, wire) = member?;
        if at == number {
            found = Some(wire);
        }
    }
    Ok(found)
}

/// Decodes a time; an empty message means no time.
fn time(wire: Wire<'_>, format: &str) -> Result<Value, WireError> {
    let bytes = wire.bytes()?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let seconds = numbered(bytes, 1)?.map(Wire::integer).transpose()?.unwrap_or(0);
    let nanos = numbered(bytes, 2)?.map(Wire::integer).transpose()?.unwrap_or(0);
    let time = Timestamp::new(seconds, i32::try_from(nanos).unwrap_or(0)).unwrap_or_default();
    Ok(time.strftime(format).to_string().into())
}
