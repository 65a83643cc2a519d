//! Reads the text tables.

/// One message type.
#[derive(Debug)]
pub(crate) struct Message {
    /// Its name in the tables.
    pub(crate) name: &'static str,
    /// Apply owns objects of this type as one.
    pub(crate) atomic: bool,
    /// Members by protobuf, inlined messages unopened.
    pub(crate) fields: Vec<Field>,
}

/// One member of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Name in JSON.
    pub(crate) json: &'static str,
    /// Number in protobuf.
    pub(crate) number: u32,
    /// What it holds.
    pub(crate) ty: Type,
    /// The members of its message stand in the parent's JSON object.
    pub(crate) inline: bool,
    /// When it is written.
    pub(crate) presence: Presence,
    /// How apply merges it, if a list.
    pub(crate) list: ListKind,
    /// Apply owns it as one (maps; lists are atomic by `list`).
    pub(crate) atomic: bool,
    /// How a strategic merge patch merges it, if a list.
    pub(crate) merge: Merge,
}

/// Type of a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Type {
    /// Anything; not looked into, and absent in protobuf.
    Any,
    /// True or false.
    Bool,
    /// Base64 in JSON.
    Bytes,
    /// A list of texts that is a message of its own in protobuf.
    Extra,
    /// A double.
    F64,
    /// A `fieldsV1` set.
    Fields,
    /// 32-bit signed.
    I32,
    /// 64-bit signed.
    I64,
    /// A number or a text.
    IntOrString,
    /// A list.
    List(Box<Type>),
    /// A map from text.
    Map(Box<Type>),
    /// Another message.
    Message(&'static str),
    /// RFC 3339 with exactly six decimals.
    MicroTime,
    /// A quantity such as `4Gi`.
    Quantity,
    /// JSON in JSON.
    Raw,
    /// Text.
    Str,
    /// RFC 3339, to the second.
    Time,
}

/// When a member is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Presence {
    /// Always, with the type's zero value if need be.
    Always,
    /// Whenever it was given, zero or not.
    Given,
    /// Always; null if not given.
    OrNull,
    /// When it is not the zero value.
    NonZero,
}

/// How apply takes a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ListKind {
    /// As one value.
    Atomic,
    /// By the values of these members of its items.
    Map(Vec<&'static str>),
    /// By its items.
    Set,
}

/// How a strategic merge patch takes a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Merge {
    /// By the value of this member.
    Key(&'static str),
    /// The new list replaces the old.
    Replace,
    /// As a set of plain values.
    Set,
}

pub(super) enum Paragraph {
    Kinds { api_version: &'static str, names: Vec<&'static str> },
    Message(Message),
}

/// Splits a table; a line that starts with a blank goes on with the paragraph before.
pub(super) fn paragraphs(text: &'static str) -> Vec<Paragraph> {
    let mut starts: Vec<usize> = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.starts_with(char::is_whitespace) {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    starts
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => text.get(*from..*to),
            _ => None,
        })
        .filter_map(paragraph)
        .collect()
}

fn paragraph(text: &'static str) -> Option<Paragraph> {
    if let Some(rest) = text.strip_prefix("kinds ") {
        let (api_version, names) = rest.split_once(':')?;
        return Some(Paragraph::Kinds { api_version, names: names.split_whitespace().collect() });
    }
    let (head, rest) = text.split_once(':')?;
    let mut head = head.split_whitespace();
    let name = head.next()?;
    let fields = rest.split(';').filter_map(field).collect();
    Some(Paragraph::Message(Message { name, atomic: head.next() == Some("atomic"), fields }))
}

fn field(text: &'static str) -> Option<Field> {
    let mut words = text.split_whitespace();
    let (name, number) = words.next()?.split_once('=')?;
    let inline = name.starts_with('+');
    let mut field = Field {
        json: name.trim_start_matches('+'),
        number: number.parse().ok()?,
        ty: ty(words.next()?),
        inline,
        presence: Presence::NonZero,
        list: ListKind::Atomic,
        atomic: false,
        merge: Merge::Replace,
    };
    for flag in words {
        match flag {
            "!" => field.presence = Presence::Always,
            "*" => field.presence = Presence::Given,
            "nil" => field.presence = Presence::OrNull,
            "atomic" => field.atomic = true,
            "set" => field.list = ListKind::Set,
            "merge" => field.merge = Merge::Set,
            _ => keyed(&mut field, flag),
        }
    }
    Some(field)
}

fn keyed(field: &mut Field, flag: &'static str) {
    let Some((word, keys)) = flag.trim_end_matches(')').split_once('(') else { return };
    match word {
        "map" => field.list = ListKind::Map(keys.split(',').collect()),
        "merge" => field.merge = Merge::Key(keys),
        _ => {}
    }
}

fn ty(text: &'static str) -> Type {
    let inner = |text: &'static str| Box::new(ty(text.get(1..text.len() - 1).unwrap_or_default()));
    match text {
        "any" => Type::Any,
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "extra" => Type::Extra,
        "f64" => Type::F64,
        "fields" => Type::Fields,
        "i32" => Type::I32,
        "i64" => Type::I64,
        "intstr" => Type::IntOrString,
        "microtime" => Type::MicroTime,
        "quantity" => Type::Quantity,
        "raw" => Type::Raw,
        "str" => Type::Str,
        "time" => Type::Time,
        _ if text.starts_with('[') => Type::List(inner(text)),
        _ if text.starts_with('{') => Type::Map(inner(text)),
        _ => Type::Message(text),
    }
}
