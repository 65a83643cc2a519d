//! Members of objects that nobody reads: a misspelt name, or a right one at the wrong place.
//!
//! An API server drops such members without a word, and so does everybody who reads an object from a file. Then a
//! setting does not hold that a person wrote.
//!
//! ```
//! use wmco_core::members::{Shape, unknown_members};
//!
//! const SHAPE: Shape = Shape::Object(&[("spec", Shape::Object(&[("replicas", Shape::Any)]))]);
//! let object = serde_json::json!({"spec": {"replica": 2}});
//! let [unknown] = &unknown_members(&object, &SHAPE)[..] else { panic!() };
//! assert_eq!(unknown.path, "spec.replica");
//! assert_eq!(unknown.right.as_deref(), Some("spec.replicas"));
//! ```

use serde_json::Value;

use crate::limits;
use crate::text::harmless;

/// The members that an object may have.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Anything.
    Any,
    /// These members, and no others.
    Object(&'static [(&'static str, Self)]),
    /// Any number of items of this shape.
    List(&'static Self),
}

/// A member that nobody reads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownMember {
    /// Its path, as printable text.
    pub path: String,
    /// The path that was probably meant.
    pub right: Option<String>,
}

/// A member with a value of another type than its shape has; an API server refuses such an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Misshapen {
    /// Its path, as printable text; empty for the object itself.
    pub path: String,
    /// What it has to be: "an object" or "a list".
    pub expected: &'static str,
}

/// The members of `object` that `shape` does not have. A value of another type than in `shape` is not looked into.
pub fn unknown_members(object: &Value, shape: &Shape) -> Vec<UnknownMember> {
    search(object, shape).found
}

/// The members of `object` that are of another type than in `shape`. Null is no member.
///
/// ```
/// use wmco_core::members::{Shape, misshapen};
///
/// const SHAPE: Shape = Shape::Object(&[("spec", Shape::Object(&[("replicas", Shape::Any)]))]);
/// let [wrong] = &misshapen(&serde_json::json!({"spec": [2]}), &SHAPE)[..] else { panic!() };
/// assert_eq!((wrong.path.as_str(), wrong.expected), ("spec", "an object"));
/// ```
pub fn misshapen(object: &Value, shape: &Shape) -> Vec<Misshapen> {
    search(object, shape).misshapen
}

fn search(object: &Value, shape: &Shape) -> Search {
    let mut search = Search { root: *shape, found: Vec::new(), misshapen: Vec::new() };
    search.look(object, shape, "", "");
    search
}

struct Search {
    root: Shape,
    found: Vec<UnknownMember>,
    misshapen: Vec<Misshapen>,
}

impl Search {
    /// Looks into `value` at `path`. `plain` is the same path without the numbers of items.
    fn look(&mut self, value: &Value, shape: &Shape, path: &str, plain: &str) {
        match (shape, value) {
            (Shape::Object(known), Value::Object(members)) => {
                for (name, value) in members {
                    let [inner, plain_inner] = [path, plain].map(|path| joined(path, name));
                    if let Some((_, shape)) = known.iter().find(|(known, _)| known == name) {
                        self.look(value, shape, &inner, &plain_inner);
                    } else {
                        let right = self.right(name, known, path, plain);
                        self.found.push(UnknownMember { path: inner, right });
                    }
                }
            }
            (Shape::List(shape), Value::Array(items)) => {
                for (number, item) in items.iter().enumerate() {
                    self.look(item, shape, &format!("{path}[{number}]"), plain);
                }
            }
            (Shape::Any, _) | (Shape::Object(_) | Shape::List(_), Value::Null) => {}
            (Shape::Object(_), _) => self.wrong(path, "an object"),
            (Shape::List(_), _) => self.wrong(path, "a list"),
        }
    }

    fn wrong(&mut self, path: &str, expected: &'static str) {
        self.misshapen.push(Misshapen { path: path.to_owned(), expected });
    }

    /// What was meant by `name`: a member with a similar name beside it, or one with this name elsewhere.
    fn right(
        &self,
        name: &str,
        known: &[(&'static str, Shape)],
        path: &str,
        plain: &str,
    ) -> Option<String> {
        let of_same_name = || {
            let mut paths = Vec::new();
            places(&self.root, "", name, &mut paths);
            paths.into_iter().find(|found| *found != joined(plain, name))
        };
        let similar = known
            .iter()
            .filter(|(known, _)| is_similar(known, name))
            .max_by_key(|(known, _)| common(known, name));
        similar.map(|(known, _)| joined(path, known)).or_else(of_same_name)
    }
}

/// The paths in `shape` of members that are called `name`, whatever the case.
fn places(shape: &Shape, path: &str, name: &str, found: &mut Vec<String>) {
    match shape {
        Shape::Any => {}
        Shape::List(item) => places(item, &format!("{path}[]"), name, found),
        Shape::Object(members) => {
            for (member, shape) in *members {
                let inner = joined(path, member);
                places(shape, &inner, name, found);
                if member.eq_ignore_ascii_case(name) {
                    found.push(inner);
                }
            }
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    let name = harmless(name, limits::FINDING_TEXT_BYTES);
    // A name with a dot would read like two.
    let name = if name.contains('.') { format!("[{name}]") } else { name };
    if path.is_empty() || name.starts_with('[') {
        format!("{path}{name}")
    } else {
        format!("{path}.{name}")
    }
}

/// Whether at least half of both names is the same, from the front and from the end.
fn is_similar(one: &str, other: &str) -> bool {
    difference(one, other) * 2 <= one.len().max(other.len())
}

/// How many letters of the longer name the other one does not have in common with it.
pub(crate) fn difference(one: &str, other: &str) -> usize {
    one.len().max(other.len()).saturating_sub(common(one, other))
}

/// How many letters both names have in common, from the front and from the end, whatever the case.
fn common(one: &str, other: &str) -> usize {
    let letters =
        |text: &str| text.bytes().map(|byte| byte.to_ascii_lowercase()).collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    let equal = |(one, other): &(&u8, &u8)| one == other;
    let front = one.iter().zip(&other).take_while(equal).count();
    let end = one.iter().rev().zip(other.iter().rev()).take_while(equal).count();
    (front + end).min(one.len()).min(other.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ITEM: Shape =
        Shape::Object(&[("source", Shape::Any), ("mirrorSourcePolicy", Shape::Any)]);
    #[test]
    fn what_is_of_another_type_is_told_with_its_path() {
        let paths = |object: Value| {
            let found = misshapen(&object, &SHAPE).into_iter();
            found.map(|it| format!("{} {}", it.path, it.expected)).collect::<Vec<_>>()
        };
        assert_eq!(paths(json!([])), [" an object"]);
        assert_eq!(paths(json!({"spec": "x"})), ["spec an object"]);
        let spec = json!({"spec": {"imageDigestMirrors": [1, {}, "x"], "sources": [1]}});
        let expected = ["[0] an object", "[2] an object"];
        let expected = expected.map(|end| format!("spec.imageDigestMirrors{end}"));
        assert_eq!(paths(spec), [&expected[..], &["spec.sources an object".to_owned()]].concat());
        let spec = json!({"kind": [], "spec": {"imageDigestMirrors": null, "sources": null}});
        assert_eq!(paths(spec), [""; 0]);
    }

    #[test]
    fn a_password_in_a_name_is_not_shown() {
        unknown(&json!({"https://bob:hush@x/": 1}), "[redacted]@x/", None);
    }

    const SHAPE: Shape = Shape::Object(&[
        ("kind", Shape::Any),
        (
            "spec",
            Shape::Object(&[
                ("imageDigestMirrors", Shape::List(&ITEM)),
                ("sources", Shape::Object(&[("blocked", Shape::Any)])),
            ]),
        ),
    ]);

    #[track_caller]
    fn unknown(object: &Value, path: &str, right: Option<&str>) {
        let expected = UnknownMember { path: path.into(), right: right.map(str::to_owned) };
        assert_eq!(unknown_members(object, &SHAPE), [expected]);
    }

    #[test]
    fn what_is_known_is_silent_whatever_its_type() {
        for object in [
            json!({"kind": 7, "spec": {"imageDigestMirrors": [{"source": {"any": 1}}]}}),
            json!({"spec": [], "kind": null}),
            json!({"spec": {"imageDigestMirrors": {"source": 1}}}),
            json!("text"),
        ] {
            assert_eq!(unknown_members(&object, &SHAPE), []);
        }
    }

    #[test]
    fn a_similar_name_beside_it_is_meant() {
        let entry = |name: &str| json!({"spec": {"imageDigestMirrors": [{}, {name: 1}]}});
        let right = Some("spec.imageDigestMirrors[1].mirrorSourcePolicy");
        for name in ["sourcePolicy", "MirrorSourcePolicy", "mirrorSourcesPolicy"] {
            unknown(&entry(name), &format!("spec.imageDigestMirrors[1].{name}"), right);
        }
        let list = json!({"spec": {"repositoryDigestMirrors": []}});
        unknown(&list, "spec.repositoryDigestMirrors", Some("spec.imageDigestMirrors"));
    }

    #[test]
    fn a_right_name_at_the_wrong_place_is_told() {
        unknown(&json!({"spec": {"blocked": []}}), "spec.blocked", Some("spec.sources.blocked"));
        let right = Some("spec.imageDigestMirrors");
        unknown(&json!({"imageDigestMirrors": []}), "imageDigestMirrors", right);
        let right = Some("spec.imageDigestMirrors[].mirrorSourcePolicy");
        unknown(&json!({"spec": {"mirrorSourcePolicy": 1}}), "spec.mirrorSourcePolicy", right);
    }

    #[test]
    fn nothing_is_proposed_for_what_is_like_nothing() {
        unknown(&json!({"x\u{1b}y": 1}), "x\\u{1b}y", None);
        unknown(&json!({"10.0.0.5": 1}), "[10.0.0.5]", None);
    }
}
