//! Reads the text tables.

/// A message type.
#[derive(Debug)]
pub(crate) struct Message {
    /// Its name in the tables.
    pub(crate) name: &'static str,
    /// Whether apply treats objects of this type as atomic.
    #[cfg_attr(
        not(feature = "server-side-apply"),
        expect(dead_code, reason = "of server-side apply alone")
    )]
    pub(crate) atomic: bool,
    /// Members as in protobuf, with inlined messages as single members.
    pub(crate) fields: Vec<Field>,
}

/// A member of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Name in JSON.
    pub(crate) json: &'static str,
    /// Number in protobuf.
    #[cfg_attr(
        not(any(test, feature = "protobuf")),
        expect(dead_code, reason = "of protobuf alone")
    )]
    pub(crate) number: u32,
    /// Type of its value.
    pub(crate) ty: Type,
    /// Whether the members of its message are in the parent's JSON object.
    pub(crate) inline: bool,
    /// When the member is written.
    pub(crate) presence: Presence,
    /// How apply merges it, if it is a list.
    pub(crate) list: ListKind,
    /// Whether apply treats it as atomic (for maps; `list` says it for lists).
    pub(crate) atomic: bool,
    /// How a strategic merge patch merges it.
    pub(crate) merge: Merge,
}

/// Type of a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Type {
    /// Any value; not inspected, and absent in protobuf.
    Any,
    /// True or false.
    Bool,
    /// Base64 in JSON.
    Bytes,
    /// A list of texts, with its own message in protobuf.
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
    /// A map with text keys.
    Map(Box<Type>),
    /// Another message.
    Message(&'static str),
    /// RFC 3339 with exactly six decimals.
    MicroTime,
    /// A quantity such as `4Gi`.
    Quantity,
    /// Embedded JSON.
    Raw,
    /// Text.
    Str,
    /// RFC 3339, to the second.
    Time,
}

/// When a member is written to JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Presence {
    /// Always, if necessary with the type's zero value.
    Always,
    /// If it was given, zero or not.
    Given,
    /// Always; null if it was not given.
    OrNull,
    /// If it is not the zero value.
    NonZero,
}

/// How apply merges a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ListKind {
    /// As a whole.
    Atomic,
    /// By the values of these members of its items.
    Map(Vec<MapKey>),
    /// By its items.
    Set,
}

/// A member that identifies an item of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MapKey {
    /// Name in JSON.
    pub(crate) name: &'static str,
    /// The value that an item without the member has.
    pub(crate) default: Option<&'static str>,
}

/// How a strategic merge patch merges a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Merge {
    /// A message or map member by member; anything else replaces the old value.
    ByType,
    /// A list by the value of this member.
    Key(&'static str),
    /// The new value always replaces the old one.
    Replace,
    /// A list as a set of plain values.
    Set,
}

/// The tables, each with the name of its file.
pub(crate) const TABLES: [(&str, &str); 6] = [
    ("meta.txt", include_str!("tables/meta.txt")),
    ("core.txt", include_str!("tables/core.txt")),
    ("pod.txt", include_str!("tables/pod.txt")),
    ("apps.txt", include_str!("tables/apps.txt")),
    ("groups.txt", include_str!("tables/groups.txt")),
    ("access.txt", include_str!("tables/access.txt")),
];

/// A parsed paragraph of a table.
pub(crate) enum Paragraph {
    /// The messages that are kinds of an API version.
    Kinds { api_version: &'static str, names: Vec<&'static str> },
    /// The members of a message.
    Message(Message),
}

/// Reads a table: a line that starts with a blank belongs to the paragraph before. An error contains the text that
/// cannot be parsed.
pub(crate) fn paragraphs(text: &'static str) -> Vec<Result<Paragraph, String>> {
    let mut starts: Vec<usize> = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.starts_with(char::is_whitespace) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let ranges = starts.iter().copied().zip(ends);
    ranges.filter_map(|(from, to)| text.get(from..to)).map(paragraph).collect()
}

fn paragraph(text: &'static str) -> Result<Paragraph, String> {
    let (head, rest) = text.split_once(':').ok_or_else(|| format!("no colon in `{text}`"))?;
    if let Some(api_version) = head.strip_prefix("kinds ") {
        return Ok(Paragraph::Kinds { api_version, names: rest.split_whitespace().collect() });
    }
    let (name, atomic) = match head.split_once(' ') {
        None => (head, false),
        Some((name, "atomic")) => (name, true),
        Some(_) => return Err(format!("`{head}` is no message")),
    };
    if !is_message(name) {
        return Err(format!("`{name}` is no name of a message"));
    }
    let members = rest.split(';').map(str::trim).filter(|member| !member.is_empty());
    let fields = members.map(field).collect::<Result<_, _>>();
    let fields = fields.map_err(|problem| format!("{name}: {problem}"))?;
    Ok(Paragraph::Message(Message { name, atomic, fields }))
}

/// `NodeSpec`, or `events.EventSeries` where two groups use a name.
fn is_message(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
}

fn field(text: &'static str) -> Result<Field, String> {
    let bad = |what: &str| format!("`{text}` has {what}");
    let mut words = text.split_whitespace();
    let (name, number) =
        words.next().and_then(|word| word.split_once('=')).ok_or_else(|| bad("no number"))?;
    let inline = name.starts_with('+');
    let mut field = Field {
        json: name.trim_start_matches('+'),
        number: number.parse().map_err(|_| bad("a number that is none"))?,
        ty: words.next().and_then(ty).ok_or_else(|| bad("no type"))?,
        inline,
        presence: Presence::NonZero,
        list: ListKind::Atomic,
        atomic: false,
        merge: Merge::ByType,
    };
    for flag in words {
        match flag {
            "!" => field.presence = Presence::Always,
            "*" => field.presence = Presence::Given,
            "nil" => field.presence = Presence::OrNull,
            "atomic" => field.atomic = true,
            "set" => field.list = ListKind::Set,
            "merge" => field.merge = Merge::Set,
            "replace" => field.merge = Merge::Replace,
            _ => match flag.strip_suffix(')').and_then(|flag| flag.split_once('(')) {
                Some(("map", keys)) => field.list = ListKind::Map(map_keys(keys)),
                Some(("merge", key)) => field.merge = Merge::Key(key),
                _ => return Err(bad(&format!("the unknown flag `{flag}`"))),
            },
        }
    }
    Ok(field)
}

fn map_keys(text: &'static str) -> Vec<MapKey> {
    let key = |key: &'static str| match key.split_once('=') {
        Some((name, default)) => MapKey { name, default: Some(default) },
        None => MapKey { name: key, default: None },
    };
    text.split(',').map(key).collect()
}

fn ty(text: &'static str) -> Option<Type> {
    let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close);
    Some(match text {
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
        _ => match (inside('[', ']'), inside('{', '}')) {
            (Some(item), _) => Type::List(Box::new(ty(item)?)),
            (_, Some(value)) => Type::Map(Box::new(ty(value)?)),
            (None, None) if is_message(text) => Type::Message(text),
            (None, None) => return None,
        },
    })
}
