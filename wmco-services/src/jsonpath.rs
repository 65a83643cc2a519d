//! Reads values of a Node by the path templates of the services ConfigMap.
//!
//! A template is one pair of braces around fields (`{.metadata.name}`), with a backslash before a character that would
//! end a name (`{.metadata.annotations.k8s\.ovn\.org/x}`). Brackets hold a quoted name, an index, a slice, `*`, a union
//! or a filter; `..` finds a name at any depth; `{range PATH}{PATH}{end}` works, too. Other text outside the braces
//! could never yield the single value that is required and is refused. Text without an opening brace is a constant.
//!
//! Source: `docs/contract/services.md`, SVC30.

use std::fmt;
use std::iter::Peekable;
use std::str::{Chars, FromStr};

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

/// A template that yields one text for a Node.
///
/// ```
/// use serde_json::json;
/// use wmco_services::jsonpath::NodePath;
///
/// let node = json!({"metadata": {"labels": {"a.b": "c"}}});
/// let path: NodePath = r"{.metadata.labels.a\.b}".parse()?;
/// assert_eq!(path.text(&node)?, "c");
/// assert_eq!(r"C:\k\kubeconfig".parse::<NodePath>()?.text(&node)?, r"C:\k\kubeconfig");
/// Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodePath {
    template: String,
    /// `None`: the template is a constant.
    segments: Option<Vec<Segment>>,
}

#[derive(Clone, Debug)]
enum Segment {
    Name(String),
    Any,
    /// The value itself and everything in it.
    Deep,
    Selector(JpQuery),
}

/// Why a template is refused or yields no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodePathError {
    /// The Node has no value at the path (yet).
    #[error("the node has nothing at `{template}`, wait for it or correct the path")]
    Missing {
        /// The template.
        template: String,
    },
    /// The Node has several values at the path.
    #[error("`{template}` gives {found} values, make it give one")]
    NotOne {
        /// The template.
        template: String,
        /// Number of values.
        found: usize,
    },
    /// The value is not text.
    #[error("`{template}` gives no text, make it end at a text field")]
    NotText {
        /// The template.
        template: String,
    },
    /// The template cannot be parsed.
    #[error("`{template}` is no node path: {problem}")]
    Syntax {
        /// The template.
        template: String,
        /// The problem, as the message words it.
        problem: String,
    },
}

impl NodePath {
    /// Whether the template is a constant, independent of a Node.
    pub fn is_constant(&self) -> bool {
        self.segments.is_none()
    }

    /// Returns the one text that the template yields for `node`, the Node as JSON.
    ///
    /// # Errors
    /// All except [`NodePathError::Syntax`].
    pub fn text(&self, node: &Value) -> Result<String, NodePathError> {
        let template = || self.template.clone();
        let Some(segments) = &self.segments else { return Ok(template()) };
        let mut values = vec![node];
        for segment in segments {
            let mut next = Vec::new();
            for value in values {
                next.extend(segment.select(value));
            }
            values = next;
        }
        match values.as_slice() {
            [] => Err(NodePathError::Missing { template: template() }),
            [Value::String(text)] if !names_no_text(segments) => Ok(text.clone()),
            [_] => Err(NodePathError::NotText { template: template() }),
            several => Err(NodePathError::NotOne { template: template(), found: several.len() }),
        }
    }
}

/// Fields of a Node that are text in its JSON but times in its API type.
const TIMES: [&str; 5] = [
    "creationTimestamp",
    "deletionTimestamp",
    "lastHeartbeatTime",
    "lastTransitionTime",
    "timeAdded",
];

/// Fields of a Node that hold quantities.
const QUANTITIES: [&str; 2] = ["capacity", "allocatable"];

/// Whether the path ends at a time or a quantity, which the original does not accept as text either.
fn names_no_text(segments: &[Segment]) -> bool {
    let named = |segment: Option<&Segment>, names: &[&str]| matches!(segment, Some(Segment::Name(name)) if names.contains(&name.as_str()));
    named(segments.last(), &TIMES) || named(segments.iter().rev().nth(1), &QUANTITIES)
}

impl Segment {
    fn select<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Name(name) => value.get(name).into_iter().collect(),
            Self::Any => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(members) => members.values().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            },
            Self::Deep => {
                let mut all = vec![value];
                all.extend(Self::Any.select(value).into_iter().flat_map(|part| self.select(part)));
                all
            }
            Self::Selector(query) => js_path_process(query, value)
                .map(|found| found.into_iter().map(|found| found.val).collect())
                .unwrap_or_default(),
        }
    }
}

impl FromStr for NodePath {
    type Err = NodePathError;

    fn from_str(template: &str) -> Result<Self, NodePathError> {
        let template = template.to_owned();
        if template.is_empty() {
            let problem = "write a path or the value itself".to_owned();
            return Err(NodePathError::Syntax { template, problem });
        }
        if !template.contains('{') {
            return Ok(Self { template, segments: None });
        }
        match segments(&template) {
            Ok(segments) => Ok(Self { template, segments: Some(segments) }),
            Err(problem) => Err(NodePathError::Syntax { template, problem }),
        }
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.template)
    }
}

/// Characters that end a name unless escaped by a backslash.
fn ends_name(c: char) -> bool {
    c.is_whitespace() || ".,[]$@{}".contains(c)
}

fn segments(template: &str) -> Result<Vec<Segment>, String> {
    let Some(range) = template.strip_prefix("{range ") else { return path(template) };
    let (over, each) = range
        .strip_suffix("{end}")
        .and_then(|range| range.split_once("}{"))
        .ok_or("write a range as {range PATH}{PATH}{end}")?;
    let mut segments = path(&format!("{{{over}}}"))?;
    segments.extend(path(&format!("{{{each}"))?);
    Ok(segments)
}

/// Parses the segments in a pair of braces.
fn path(template: &str) -> Result<Vec<Segment>, String> {
    let inner = template
        .strip_prefix('{')
        .ok_or("put nothing before the opening brace")?
        .strip_suffix('}')
        .ok_or("end it with the closing brace, and put nothing after")?
        .trim_matches(' ');
    let inner = inner.strip_prefix(['$', '@']).unwrap_or(inner);
    let mut rest = inner.chars().peekable();
    let mut segments = Vec::new();
    while let Some(c) = rest.next() {
        match c {
            '.' => {
                if rest.next_if_eq(&'.').is_some() {
                    segments.push(Segment::Deep);
                }
                match rest.peek() {
                    Some('[') => {}
                    Some('*') => {
                        rest.next();
                        segments.push(Segment::Any);
                    }
                    _ => segments.push(Segment::Name(name(&mut rest)?)),
                }
            }
            '[' => segments.push(bracket(&mut rest)?),
            '{' | '}' => return Err("use one pair of braces only".to_owned()),
            other => return Err(format!("write `.` or `[` instead of `{other}`")),
        }
    }
    Ok(segments)
}

fn name(rest: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut name = String::new();
    while let Some(c) = rest.next_if(|c| !ends_name(*c)) {
        match c {
            '\\' => name.push(rest.next().ok_or("write a character after the last backslash")?),
            other => name.push(other),
        }
    }
    if name.is_empty() {
        return Err("write a name after each `.`".to_owned());
    }
    Ok(name)
}

/// Parses the content of a bracket, up to the closing bracket.
fn bracket(rest: &mut Peekable<Chars<'_>>) -> Result<Segment, String> {
    let mut content = String::new();
    let mut quote = None;
    let mut depth = 0_usize;
    loop {
        let c = rest.next().ok_or("close every bracket and every quote")?;
        match (c, quote) {
            ('\\', Some(_)) => {
                content.push(c);
                content.push(rest.next().ok_or("close every bracket and every quote")?);
                continue;
            }
            (']', None) if depth == 0 => break,
            (']', None) => depth -= 1,
            ('[', None) => depth += 1,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        content.push(c);
    }
    let content = content.trim();
    if let Some(name) = quoted(content) {
        return Ok(Segment::Name(name));
    }
    if content == "*" {
        return Ok(Segment::Any);
    }
    parse_json_path(&format!("$[{content}]"))
        .map(Segment::Selector)
        .map_err(|_| format!("`[{content}]` is no index, slice, union or filter"))
}

/// Returns the name in `content` if it is a single quoted text.
fn quoted(content: &str) -> Option<String> {
    let mut rest = content.chars();
    let quote = rest.next().filter(|c| "'\"".contains(*c))?;
    let mut name = String::new();
    while let Some(c) = rest.next() {
        match c {
            '\\' => name.push(rest.next()?),
            c if c == quote => return rest.next().is_none().then_some(name),
            other => name.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(template: &str) -> Result<String, String> {
        let node = json!({
            "metadata": {"name": "n", "labels": {"it's": "q", "a]b": "r"}},
            "status": {"addresses": [
                {"type": "Hostname", "address": "h"},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ]},
        });
        let path: NodePath = template.parse().map_err(|error: NodePathError| error.to_string())?;
        path.text(&node).map_err(|error| error.to_string())
    }

    #[test]
    fn quoted_names_may_hold_quotes_and_brackets() {
        assert_eq!(text(r"{.metadata.labels['it\'s']}").as_deref(), Ok("q"));
        assert_eq!(text(r"{.metadata.labels['a]b']}").as_deref(), Ok("r"));
    }

    #[test]
    fn filters_pick_one_of_many() {
        let picked = text(r#"{.status.addresses[?(@.type=="InternalIP")].address}"#);
        assert_eq!(picked.as_deref(), Ok("10.0.0.1"));
    }

    #[test]
    fn a_name_is_found_at_any_depth() {
        assert_eq!(text("{..name}").as_deref(), Ok("n"));
        assert_eq!(text("{.metadata..a\\]b}").as_deref(), Ok("r"));
        assert!(text("{..address}").unwrap_err().contains("gives 2 values"));
        for bad in ["{..}", "{...name}", "{.metadata..}"] {
            assert!(text(bad).unwrap_err().contains("write a name"), "{bad}");
        }
    }

    #[test]
    fn a_range_over_one_is_that_one() {
        let range = r#"{range .status.addresses[?(@.type=="Hostname")]}{.address}{end}"#;
        assert_eq!(text(range).as_deref(), Ok("h"));
        assert!(text("{range .status.addresses[*]}{.type}{end}").unwrap_err().contains("2 values"));
        assert!(text("{range .metadata}{.name}{.uid}{end}").is_err());
    }

    #[test]
    fn a_line_may_not_end_within() {
        assert!(text("{.metadata.name\n}").is_err());
    }

    #[test]
    fn refusals_say_what_to_do() {
        insta::assert_snapshot!(text("{.metadata..}").unwrap_err(), @"`{.metadata..}` is no node path: write a name after each `.`");
        insta::assert_snapshot!(text("").unwrap_err(), @"`` is no node path: write a path or the value itself");
        insta::assert_snapshot!(text("{range .status.addresses[*]}{.type}").unwrap_err(), @"`{range .status.addresses[*]}{.type}` is no node path: write a range as {range PATH}{PATH}{end}");
        insta::assert_snapshot!(text("{.metadata.uid}").unwrap_err(), @"the node has nothing at `{.metadata.uid}`, wait for it or correct the path");
        insta::assert_snapshot!(text("{.status.addresses[*].type}").unwrap_err(), @"`{.status.addresses[*].type}` gives 2 values, make it give one");
        insta::assert_snapshot!(text("{.metadata}").unwrap_err(), @"`{.metadata}` gives no text, make it end at a text field");
    }
}
