//! JSON syntax errors with the messages of Go's `encoding/json`.

use serde_json::Value;

/// Deepest nesting that Go reads.
const DEEPEST: usize = 10_000;

/// Go's name for the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The first syntax error in the bytes, for example `unexpected end of JSON input`.
pub(crate) fn syntax_error(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { open: Vec::new(), step: Step::Value { or_end: false } };
    // The blank after the text ends a number.
    bytes
        .iter()
        .chain(b" ")
        .find_map(|byte| {
            scanner.take(*byte).err().map(|context| match context {
                Context::TooDeep => "exceeded max depth".to_owned(),
                Context::At(place) => format!("invalid character {} {place}", shown(*byte)),
                Context::In { literal, expected } => {
                    let (byte, expected) = (shown(*byte), shown(expected));
                    format!("invalid character {byte} in literal {literal} (expecting {expected})")
                }
            })
        })
        .or_else(|| {
            let is_whole = scanner.step == Step::End && scanner.open.is_empty();
            (!is_whole).then(|| "unexpected end of JSON input".to_owned())
        })
}

/// The character of a byte in single quotes.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

/// The next expected token in an open list or object.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Item,
    Key,
    Member,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Step {
    /// Before a value; `or_end` in a list that may be empty.
    Value {
        or_end: bool,
    },
    /// Before a key; `or_end` in an object that may be empty.
    Key {
        or_end: bool,
    },
    /// After a value.
    End,
    Text,
    Escape,
    /// This many hexadecimal digits are missing.
    Unicode(u8),
    Minus,
    Integer,
    Zero,
    Dot,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    /// A literal whose remaining bytes are these.
    Literal {
        word: &'static str,
        at: usize,
    },
}

enum Context {
    At(&'static str),
    In { literal: &'static str, expected: u8 },
    TooDeep,
}

struct Scanner {
    open: Vec<Place>,
    step: Step,
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

impl Scanner {
    fn take(&mut self, byte: u8) -> Result<(), Context> {
        let at = |place| Err(Context::At(place));
        let next = match (self.step, byte) {
            (Step::Value { .. } | Step::Key { .. }, byte) if is_blank(byte) => self.step,
            (Step::Value { or_end: true }, b']') => return self.after(byte),
            (Step::Value { .. }, byte) => return self.begin(byte),
            (Step::Key { or_end: true }, b'}') => {
                self.replace(Place::Member);
                return self.after(byte);
            }
            (Step::Text, b'"') => Step::End,
            (Step::Text, b'\\') => Step::Escape,
            (Step::Text, 0..0x20) => return at("in string literal"),
            (Step::Text, _)
            | (Step::Key { .. }, b'"')
            | (Step::Escape, b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => Step::Text,
            (Step::Key { .. }, _) => return at("looking for beginning of object key string"),
            (Step::Escape, b'u') => Step::Unicode(4),
            (Step::Escape, _) => return at("in string escape code"),
            (Step::Unicode(missing), byte) if byte.is_ascii_hexdigit() => match missing {
                1 => Step::Text,
                _ => Step::Unicode(missing - 1),
            },
            (Step::Unicode(_), _) => return at(r"in \u hexadecimal character escape"),
            (Step::Minus, b'0') => Step::Zero,
            (Step::Minus | Step::Integer, b'0'..=b'9') => Step::Integer,
            (Step::Minus, _) => return at("in numeric literal"),
            (Step::Integer | Step::Zero, b'.') => Step::Dot,
            (Step::Integer | Step::Zero | Step::Fraction, b'e' | b'E') => Step::Exponent,
            (Step::Dot | Step::Fraction, b'0'..=b'9') => Step::Fraction,
            (Step::Dot, _) => return at("after decimal point in numeric literal"),
            (Step::Exponent, b'+' | b'-') => Step::ExponentSign,
            (Step::Exponent | Step::ExponentSign | Step::ExponentDigits, b'0'..=b'9') => {
                Step::ExponentDigits
            }
            (Step::Exponent | Step::ExponentSign, _) => {
                return at("in exponent of numeric literal");
            }
            (Step::Literal { word, at }, byte) => match word.as_bytes().get(at..) {
                Some([expected, rest @ ..]) if *expected == byte => {
                    if rest.is_empty() {
                        Step::End
                    } else {
                        Step::Literal { word, at: at + 1 }
                    }
                }
                Some([expected, ..]) => {
                    return Err(Context::In { literal: word, expected: *expected });
                }
                _ => Step::End,
            },
            (Step::End | Step::Integer | Step::Zero | Step::Fraction | Step::ExponentDigits, _) => {
                return self.after(byte);
            }
        };
        self.step = next;
        Ok(())
    }

    /// A byte where a value begins.
    fn begin(&mut self, byte: u8) -> Result<(), Context> {
        self.step = match byte {
            b'{' => {
                self.open.push(Place::Key);
                Step::Key { or_end: true }
            }
            b'[' => {
                self.open.push(Place::Item);
                Step::Value { or_end: true }
            }
            b'"' => Step::Text,
            b'-' => Step::Minus,
            b'0' => Step::Zero,
            b'1'..=b'9' => Step::Integer,
            b't' => Step::Literal { word: "true", at: 1 },
            b'f' => Step::Literal { word: "false", at: 1 },
            b'n' => Step::Literal { word: "null", at: 1 },
            _ => return Err(Context::At("looking for beginning of value")),
        };
        if self.open.len() > DEEPEST { Err(Context::TooDeep) } else { Ok(()) }
    }

    /// A byte after a value.
    fn after(&mut self, byte: u8) -> Result<(), Context> {
        self.step = match (self.open.last(), byte) {
            (_, byte) if is_blank(byte) => Step::End,
            (None, _) => return Err(Context::At("after top-level value")),
            (Some(Place::Key), b':') => {
                self.replace(Place::Member);
                Step::Value { or_end: false }
            }
            (Some(Place::Key), _) => return Err(Context::At("after object key")),
            (Some(Place::Member), b',') => {
                self.replace(Place::Key);
                Step::Key { or_end: false }
            }
            (Some(Place::Item), b',') => Step::Value { or_end: false },
            (Some(Place::Member), b'}') | (Some(Place::Item), b']') => {
                self.open.pop();
                Step::End
            }
            (Some(Place::Member), _) => return Err(Context::At("after object key:value pair")),
            (Some(Place::Item), _) => return Err(Context::At("after array element")),
        };
        Ok(())
    }

    fn replace(&mut self, place: Place) {
        if let Some(last) = self.open.last_mut() {
            *last = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_those_of_go() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("[1", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("\"\\", "invalid character ' ' in string escape code"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("'a'", r"invalid character '\'' looking for beginning of value"),
            ("\0", r"invalid character '\x00' looking for beginning of value"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
            ("not", "invalid character 'o' in literal null (expecting 'u')"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} {}", "invalid character '{' after top-level value"),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (r#""\u12g4""#, r"invalid character 'g' in \u hexadecimal character escape"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e", "invalid character ' ' in exponent of numeric literal"),
            ("01", "invalid character '1' after top-level value"),
        ] {
            assert_eq!(syntax_error(text.as_bytes()).as_deref(), Some(error), "{text}");
        }
        for text in ["{}", " [] ", "1", "-0.5e+3", "null", r#"{"a":[1,{"b":"A\n"}]}"#] {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
        }
        assert_eq!(syntax_error(&[b'['; 10_001]).as_deref(), Some("exceeded max depth"));
    }

    proptest::proptest! {
        /// Both JSON parsers accept the same texts, apart from depth and lone surrogates.
        #[test]
        fn it_agrees_with_serde(text in r#"[\[\]{}:,"a\\u01e.+\- tfn]{0,12}"#) {
            let read = serde_json::from_str::<serde::de::IgnoredAny>(&text);
            proptest::prop_assert_eq!(syntax_error(text.as_bytes()).is_none(), read.is_ok());
        }
    }
}
