//! Renders the JSON of a services ConfigMap with its peculiarities. Source: `docs/contract/services.md`, SVC5 to SVC10.

use std::collections::BTreeMap;
use std::io;

use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter};
use wmco_core::names::objects::{ENVIRONMENT_KEY, FILES_KEY, SERVICES_KEY, WATCHED_KEY};
use wmco_core::protocol::ServicesData;

use super::{Manifest, NodeVariable};

pub(super) fn write(manifest: &Manifest) -> ServicesData {
    let mut data = BTreeMap::from([
        (SERVICES_KEY.to_owned(), text(&manifest.services)),
        (FILES_KEY.to_owned(), text(&manifest.files)),
        (WATCHED_KEY.to_owned(), text(&manifest.watched)),
    ]);
    if !manifest.environment.is_empty() {
        data.insert(ENVIRONMENT_KEY.to_owned(), text(&manifest.environment));
    }
    ServicesData(data)
}

#[expect(clippy::expect_used, reason = "plain data with text keys, written to memory")]
fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, HtmlSafe);
    value.serialize(&mut serializer).expect("plain data is JSON");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Escapes the characters that the original escapes, so that unchanged content stays the same text.
struct HtmlSafe;

impl Formatter for HtmlSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some((place, c)) = rest.char_indices().find(|(_, c)| special(*c)) {
            let (before, from) = rest.split_at(place);
            CompactFormatter.write_string_fragment(writer, before)?;
            write!(writer, "\\u{:04x}", u32::from(c))?;
            rest = from.get(c.len_utf8()..).unwrap_or_default();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

/// Writes an empty list as `null`.
pub(super) fn null_when_empty<S: Serializer>(
    list: &[NodeVariable],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if list.is_empty() { serializer.serialize_none() } else { list.serialize(serializer) }
}
