//! Cluster objects from files instead of from a cluster.
//!
//! A file holds YAML or JSON, any number of documents, each an object or a list of objects (`kind:
//! List`, or a typed list such as `NodeList`) as `kubectl get -o yaml` prints them, or an array of
//! objects as `jq` does. `-` is standard input.
//!
//! [`Reader::objects`] sorts them by kind into [`Objects`]: kinds that commands look into are typed,
//! all others stay JSON, so that new commands can use them without a change here. Every object
//! keeps its [`Location`], for messages.
//!
//! ```
//! use bin_operator::input::Reader;
//!
//! let text = "apiVersion: v1\nkind: Node\nmetadata: {name: win-1}\n---\nkind: Machine\n";
//! let objects = Reader::new(text.as_bytes()).objects(&["-".into()])?;
//! assert_eq!(objects.nodes[0].object.metadata.name.as_deref(), Some("win-1"));
//! assert_eq!(objects.others[0].at.to_string(), "standard input, document 2");
//! Ok::<(), bin_operator::input::InputError>(())
//! ```
//!
//! # Guarantees
//! - Objects of one kind keep the order of files and documents.
//! - Empty documents are passed over and not counted.
//! - UTF-16 with its mark is read like UTF-8, and a folder like all of its files, as `oc adm inspect` writes them.
//! - A label without a value has an empty one, and base64 of a Secret may be in lines.
//! - No file is read beyond [`limits::INPUT_BYTES`].
//! - In YAML a key that stands twice is an error; in JSON the last one counts, as in the API server.

mod configuration;
mod encoding;
mod selection;
mod strays;
mod yaml;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use configuration::{CONFIGURATION, OPERATORS, of_cluster};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
pub use selection::{Selection, once};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
pub use strays::strays;
use wmco_core::facts::Facts;
use wmco_core::limits;
use wmco_core::members::{Shape, UnknownMember, unknown_members};
use yaml::YamlError;

/// What stands for standard input where a file is asked for.
const STANDARD_INPUT: &str = "-";

/// Ends of the names of files that count in a folder.
const OBJECT_FILES: [&str; 3] = ["json", "yaml", "yml"];

/// The members of a ConfigMap.
const CONFIG_MAP: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("kind", Shape::Any),
    ("metadata", Shape::Any),
    ("data", Shape::Any),
    ("binaryData", Shape::Any),
    ("immutable", Shape::Any),
]);

/// Objects by kind, each in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// `v1` ConfigMaps.
    pub config_maps: Vec<Located<ConfigMap>>,
    /// `v1` Nodes.
    pub nodes: Vec<Located<Node>>,
    /// `v1` Secrets.
    pub secrets: Vec<Located<Secret>>,
    /// `certificates.k8s.io/v1` CertificateSigningRequests.
    pub requests: Vec<Located<CertificateSigningRequest>>,
    /// Objects of all other kinds, as JSON with a `kind`.
    pub others: Vec<Located<Value>>,
    /// Typed lists without items, each with the version and the kind of the objects that there are none of.
    pub empty_lists: Vec<Value>,
    /// Members of ConfigMaps that nobody reads.
    pub unknown: Vec<Located<UnknownMember>>,
}

/// An object and where it stands. `Debug` shows the place only: the object may be secret.
#[derive(Clone)]
pub struct Located<T> {
    /// Where it was read.
    pub at: Location,
    /// The object itself.
    pub object: T,
}

/// A place in the input, for example `nodes.yaml, document 2, item 5`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Location {
    /// The file as it was named on the command line.
    pub file: PathBuf,
    /// Number of the document in the file, from 1, without empty ones.
    pub document: usize,
    /// Number of the item if the document is a list, from 1.
    pub item: Option<usize>,
}

/// Why the input cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Aliases make more of the file than is good.
    #[error(
        "{at} names or repeats too much by aliases, write out what `*NAME` stands for or name fewer things"
    )]
    Aliases {
        /// The document at which it was too much.
        at: Location,
    },
    /// More than one document where one is asked for.
    #[error("{} has more than one document, leave one in it", name(.file))]
    Many {
        /// The file.
        file: PathBuf,
    },
    /// A document is no object.
    #[error("{at} is no cluster object, write `apiVersion`, `kind` and `metadata`")]
    NoObject {
        /// Which document.
        at: Location,
    },
    /// The list of hosts is in several namespaces, none of which is the usual one.
    #[error(
        "the list of hosts is in the namespaces {found}, choose that of the operator with --namespace"
    )]
    Namespaces {
        /// Their names.
        found: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}, check its name and permissions", name(.file))]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A member has the wrong type.
    #[error("{at}, field `{field}` is wrong, correct it")]
    Shape {
        /// Which object.
        at: Location,
        /// Path of the member, for example `status.addresses[0].type`.
        field: String,
        /// What was found there.
        source: serde_json::Error,
    },
    /// Standard input was asked for twice, but can be read once.
    #[error("standard input can be read once, name a file instead of the second `-`")]
    StandardInput,
    /// More than anybody has.
    #[error(
        "{} has more than {} bytes, name fewer objects", name(.file), limits::INPUT_BYTES
    )]
    TooLong {
        /// The file.
        file: PathBuf,
    },
    /// An object is there twice, and nobody knows which of them holds.
    #[error("{what} is given twice, in {first} and in {second}: leave the one that holds")]
    Twice {
        /// Kind and name.
        what: String,
        /// One place.
        first: Location,
        /// The other.
        second: Location,
    },
    /// A document is neither YAML nor JSON.
    #[error("{at} is no YAML, correct it: {problem}")]
    Syntax {
        /// Which document.
        at: Location,
        /// Line and column, and what is wrong there.
        problem: String,
    },
}

/// Reads the files of one command; it hands standard input out once.
#[derive(Debug)]
pub struct Reader<R> {
    standard_input: Option<R>,
}

impl InputError {
    /// Replaces what was found in a wrong member, which parsers repeat in their messages.
    fn conceal(self) -> Self {
        match self {
            Self::Shape { at, field, .. } => {
                let hint = if field.starts_with("data.") {
                    "; `data` takes base64 in one piece, `stringData` takes text"
                } else {
                    ""
                };
                let source = serde::de::Error::custom(format!(
                    "its value is not shown, it may be secret{hint}"
                ));
                Self::Shape { at, field, source }
            }
            other => other,
        }
    }
}

impl<R: Read> Reader<R> {
    /// A reader that takes `standard_input` for `-`.
    pub const fn new(standard_input: R) -> Self {
        Self { standard_input: Some(standard_input) }
    }

    /// The objects in `files`.
    ///
    /// # Errors
    /// A file cannot be read, or a document is no object of its kind.
    pub fn objects(&mut self, files: &[PathBuf]) -> Result<Objects, InputError> {
        let mut objects = Objects::default();
        for file in expanded(files)? {
            objects.add_file(&file, self.bytes(&file)?)?;
        }
        Ok(objects)
    }

    /// The facts in `file`, one document in the shape of [`Facts`].
    ///
    /// # Errors
    /// The file cannot be read, or is not shaped so.
    pub fn facts(&mut self, file: &Path) -> Result<Facts, InputError> {
        let mut documents = documents(file, &self.text(file)?)?.into_iter();
        match (documents.next(), documents.next()) {
            (Some(document), None) => Ok(typed(document.at, document.object)?.object),
            (None, _) => Ok(Facts::default()),
            (Some(_), Some(_)) => Err(InputError::Many { file: file.to_owned() }),
        }
    }

    /// The text in `file`, without a byte order mark.
    ///
    /// # Errors
    /// The file cannot be read, or is neither UTF-8 nor UTF-16 with its mark.
    pub fn text(&mut self, file: &Path) -> Result<String, InputError> {
        text(file, self.bytes(file)?)
    }

    /// As [`Self::text`], with marks in place of what is no text, for files whose comments may be in any encoding.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lossy_text(&mut self, file: &Path) -> Result<String, InputError> {
        let bytes = self.bytes(file)?;
        let lossy = || String::from_utf8_lossy(&bytes).into_owned();
        Ok(encoding::text(bytes.clone()).unwrap_or_else(|_| lossy()))
    }

    /// The content of `file` as it is.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn bytes(&mut self, file: &Path) -> Result<Vec<u8>, InputError> {
        if file != Path::new(STANDARD_INPUT) {
            let open = File::open(file);
            return at_most(limits::INPUT_BYTES, file, open);
        }
        let input = self.standard_input.take().ok_or(InputError::StandardInput)?;
        at_most(limits::INPUT_BYTES, file, Ok(input))
    }
}

/// All that is in `input`, which was opened as `file`.
fn at_most(limit: u64, file: &Path, input: io::Result<impl Read>) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = input.and_then(|input| input.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(|source| InputError::Read { file: file.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLong { file: file.to_owned() });
    }
    Ok(bytes)
}

impl Objects {
    /// Adds the objects in `bytes`, which [`Reader::bytes`] gave for `file`.
    ///
    /// # Errors
    /// The bytes are no text, or a document is no object of its kind.
    pub fn add_file(&mut self, file: &Path, bytes: Vec<u8>) -> Result<(), InputError> {
        for Located { at, object } in documents(file, &text(file, bytes)?)? {
            self.add_document(at, object)?;
        }
        Ok(())
    }

    /// Sorts one document in: an object, or each item of a list.
    fn add_document(&mut self, at: Location, document: Value) -> Result<(), InputError> {
        if let Value::Array(items) = document {
            for (item, number) in items.into_iter().zip(1..) {
                self.add(Location { item: Some(number), ..at.clone() }, item)?;
            }
            return Ok(());
        }
        let text = |member| document.get(member).and_then(Value::as_str);
        let Some(kind) = text("kind") else { return Err(InputError::NoObject { at }) };
        let Some((kind, items)) = kind.strip_suffix("List").zip(document.get("items")) else {
            return self.add(at, document);
        };
        let items = match items {
            Value::Null => &Vec::new(),
            Value::Array(items) => items,
            _ => {
                let source = serde::de::Error::custom("a list of objects is expected");
                return Err(InputError::Shape { at, field: "items".to_owned(), source });
            }
        };
        if items.is_empty() && !kind.is_empty() {
            self.empty_lists.push(json!({ "apiVersion": text("apiVersion"), "kind": kind }));
        }
        for (item, number) in items.iter().zip(1..) {
            let at = Location { item: Some(number), ..at.clone() };
            let mut item = item.clone();
            // Items of typed lists leave out what the list says for all of them.
            if let (Some(members), false) = (item.as_object_mut(), kind.is_empty()) {
                members.entry("kind").or_insert_with(|| kind.into());
                if let Some(version) = text("apiVersion") {
                    members.entry("apiVersion").or_insert_with(|| version.into());
                }
            }
            self.add(at, item)?;
        }
        Ok(())
    }

    fn add(&mut self, at: Location, mut object: Value) -> Result<(), InputError> {
        let text = |member| object.get(member).and_then(Value::as_str).map(str::to_owned);
        let Some(kind) = text("kind") else { return Err(InputError::NoObject { at }) };
        let version = text("apiVersion");
        fill_empty_texts(&mut object);
        // A missing version is that of the built-in kind.
        match (version.as_deref(), kind.as_str()) {
            (None | Some("v1"), "ConfigMap") => {
                let unknown = unknown_members(&object, &CONFIG_MAP).into_iter();
                let unknown = unknown.map(|object| Located { at: at.clone(), object });
                self.unknown.extend(unknown);
                self.config_maps.push(typed(at, object)?);
            }
            (None | Some("v1"), "Node") => self.nodes.push(typed(at, object)?),
            (None | Some("v1"), "Secret") => {
                if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
                    data.values_mut().for_each(join);
                }
                self.secrets.push(typed(at, object).map_err(InputError::conceal)?);
            }
            (None | Some("certificates.k8s.io/v1"), "CertificateSigningRequest") => {
                object.pointer_mut("/spec/request").map(join);
                self.requests.push(typed(at, object)?);
            }
            _ => self.others.push(Located { at, object }),
        }
        Ok(())
    }

    /// Objects of `kind` among [`Self::others`], of whatever group.
    pub fn others_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Located<Value>> {
        let is_of = |object: &Value| object.get("kind").and_then(Value::as_str) == Some(kind);
        self.others.iter().filter(move |other| is_of(&other.object))
    }
}

impl<T> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Located").field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", name(&self.file), self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// The file that a command names, as people know it.
pub fn name(file: &Path) -> String {
    if file == Path::new(STANDARD_INPUT) {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// `files`, with the files in them in place of folders, in the order of their names.
///
/// # Errors
/// A folder cannot be read.
pub fn expanded(files: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let mut found = Vec::new();
    // The next one is at the end.
    let mut open: Vec<PathBuf> = files.iter().rev().cloned().collect();
    while let Some(path) = open.pop() {
        if !path.is_dir() {
            found.push(path);
            continue;
        }
        let read = |source| InputError::Read { file: path.clone(), source };
        let inside = fs::read_dir(&path).map_err(read)?;
        let inside = inside.map(|entry| {
            let entry = entry?;
            Ok((entry.path(), entry.file_type()?))
        });
        let inside: io::Result<Vec<_>> = inside.collect();
        let is_object = |path: &Path| {
            let end = path.extension().unwrap_or_default();
            OBJECT_FILES.iter().any(|known| end.eq_ignore_ascii_case(known))
        };
        let mut inside: Vec<PathBuf> = inside
            .map_err(read)?
            .into_iter()
            // A link could lead back up.
            .filter(|(path, kind)| kind.is_dir() || (!kind.is_symlink() && is_object(path)))
            .map(|(path, _)| path)
            .collect();
        inside.sort_by(|one, other| other.cmp(one));
        open.extend(inside);
    }
    Ok(found)
}

/// `bytes` as text, without the mark that programs of Windows put in front of it.
fn text(file: &Path, bytes: Vec<u8>) -> Result<String, InputError> {
    encoding::text(bytes).map_err(|source| InputError::Read { file: file.to_owned(), source })
}

/// Makes one line of base64. People write it in several, and the API server, too, passes over line ends there.
fn join(base64: &mut Value) {
    if let Value::String(base64) = base64 {
        base64.retain(|character| !matches!(character, '\r' | '\n'));
    }
}

/// Gives labels and annotations without a value an empty one, as an API server does.
fn fill_empty_texts(object: &mut Value) {
    for member in ["/metadata/labels", "/metadata/annotations"] {
        let texts = object.pointer_mut(member).and_then(Value::as_object_mut);
        for text in texts.into_iter().flat_map(|texts| texts.values_mut()) {
            if text.is_null() {
                *text = Value::String(String::new());
            }
        }
    }
}

/// `value` as an object of a type that the caller knows.
///
/// # Errors
/// [`InputError::Shape`] names the member that does not fit.
pub fn typed<T: DeserializeOwned>(at: Location, value: Value) -> Result<Located<T>, InputError> {
    match serde_path_to_error::deserialize(value) {
        Ok(object) => Ok(Located { at, object }),
        Err(error) => Err(InputError::Shape {
            at,
            field: error.path().to_string(),
            source: error.into_inner(),
        }),
    }
}

/// The documents in `text`, without empty ones.
fn documents(file: &Path, text: &str) -> Result<Vec<Located<Value>>, InputError> {
    let at = |index: usize| Location { file: file.to_owned(), document: index + 1, item: None };
    let located = |(index, object)| Located { at: at(index), object };
    // JSON is YAML too, but this is many times faster, and big dumps are JSON.
    if text.trim_start().starts_with(['{', '[']) {
        let json: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_str(text).into_iter().collect();
        if let Ok(json) = json {
            return Ok(json.into_iter().enumerate().map(located).collect());
        }
    }
    match yaml::documents(text) {
        Ok(documents) => Ok(documents.into_iter().enumerate().map(located).collect()),
        Err((index, YamlError::Aliases)) => Err(InputError::Aliases { at: at(index) }),
        Err((index, YamlError::Syntax(problem))) => {
            Err(InputError::Syntax { at: at(index), problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn read(text: &str) -> Result<Objects, InputError> {
        Reader::new(text.as_bytes()).objects(&[PathBuf::from("-")])
    }

    #[track_caller]
    fn refused(text: &str) -> String {
        format!("{:#}", anyhow::Error::from(read(text).unwrap_err()))
    }

    #[test]
    fn no_file_is_read_beyond_the_limit() {
        let read = |limit| at_most(limit, Path::new("-"), Ok(&b"abc"[..]));
        assert_eq!(read(3).unwrap(), b"abc");
        let told = read(2).unwrap_err().to_string();
        assert!(told.starts_with("standard input has more than 536870912 bytes, "), "{told}");
    }

    #[test]
    fn documents_are_sorted_by_kind() {
        let objects = read(
            "# a comment\n---\nkind: Node\napiVersion: v1\n---\n---\nkind: Machine\n---\n\
             kind: Secret\napiVersion: v1\n---\nkind: Secret\napiVersion: example.test/v1\n",
        )
        .unwrap();
        assert_eq!((objects.nodes.len(), objects.secrets.len()), (1, 1));
        let places: Vec<_> = objects.others.iter().map(|other| other.at.document).collect();
        assert_eq!(places, [2, 4], "empty documents are not counted");
        assert_eq!(objects.others_of("Machine").count(), 1);
    }

    #[test]
    fn lists_are_taken_apart() {
        let objects = read(
            r#"{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Node"}, {"kind": "X"}]}
               {"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n"}}]}"#,
        )
        .unwrap();
        assert_eq!(objects.nodes.len(), 2);
        let last = objects.nodes.last().unwrap();
        assert_eq!(last.object.metadata.name.as_deref(), Some("n"));
        assert_eq!(last.at.to_string(), "standard input, document 2, item 1");
        for text in [r#"[{"kind": "X"}, {"kind": "Node"}]"#, "- kind: X\n- kind: Node\n"] {
            let place = read(text).unwrap().nodes[0].at.to_string();
            assert_eq!(place, "standard input, document 1, item 2");
        }
    }

    #[test]
    fn json_escapes_are_read() {
        let text = r#"{"kind": "ConfigMap", "data": {"a": "\ud83d\ude00\u0001\r\n"}}"#;
        for text in [text.to_owned(), format!("---\n{text}")] {
            let objects = read(&text).unwrap();
            let data = objects.config_maps[0].object.data.as_ref().unwrap();
            assert_eq!(data["a"], "\u{1f600}\u{1}\r\n");
        }
    }

    #[test]
    fn a_wrong_member_is_told_with_its_path() {
        let message = refused("kind: X\n---\nkind: ConfigMap\ndata: {a: 1}\n");
        assert!(message.contains("document 2, field `data.a` is wrong"), "{message}");
        let message = refused("kind: NodeList\nitems: [{status: {addresses: [{type: 1}]}}]\n");
        assert!(message.contains("item 1, field `status.addresses[0].type`"), "{message}");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["a", "[a]", "kind: 1", "kind: List\nitems: [{}]", "{}"] {
            assert!(refused(text).contains("is no cluster object"), "{text}");
        }
    }

    #[test]
    fn broken_yaml_is_told_with_its_document() {
        let message = refused("kind: X\n---\nkind: [\n");
        assert!(message.contains("document 2 is no YAML"), "{message}");
        let message = refused("kind: ConfigMap\ndata:\n  a: x\n  a: y\n");
        assert!(message.contains("document 1 is no YAML"), "{message}");
    }

    #[test]
    fn nothing_of_a_secret_is_printed() {
        let message = refused("kind: Secret\ndata: hush\n");
        assert!(
            message.contains("field `data` is wrong") && !message.contains("hush"),
            "{message}"
        );
        let objects = read("kind: Secret\nstringData: {token: hush}\n").unwrap();
        assert!(!format!("{objects:?}").contains("hush"));
    }

    #[test]
    fn depth_is_limited_and_size_is_not() {
        for text in ["- ".repeat(9999), "[".repeat(9999), r#"{"a":"#.repeat(9999)] {
            assert!(refused(&text).contains("document 1 is no YAML"));
        }
        let many = "---\nkind: X\n".repeat(3000);
        assert_eq!(read(&many).unwrap().others.len(), 3000);
    }

    /// A document in which each of `levels` lists names the one before nine times.
    fn bomb(levels: usize, word: &str) -> String {
        let mut text = format!("kind: X\nl0: &l0 [{word}]\n");
        for level in 1..levels {
            let aliases = vec![format!("*l{}", level - 1); 9].join(", ");
            writeln!(text, "l{level}: &l{level} [{aliases}]").unwrap();
        }
        text
    }

    #[test]
    fn aliases_cannot_make_a_small_file_big() {
        let long = "x".repeat(100_000);
        let many = vec![bomb(4, "x"); 1500].join("---\n");
        for text in [bomb(10, "x"), bomb(3, &long), many] {
            // Written out, the first alone has 400 million words.
            let message = refused(&text);
            assert!(message.contains("`*NAME`") && message.contains("write out"), "{message}");
            assert!(message.len() < 300, "{message}");
        }
    }

    #[test]
    fn aliases_of_people_are_read() {
        let text = "kind: ConfigMap\nmetadata: {labels: &l {a: b}, annotations: *l}\n";
        let text = format!("{text}---\n{}", bomb(4, "x"));
        let objects = read(&text).unwrap();
        assert_eq!(objects.config_maps[0].object.metadata.annotations.as_ref().unwrap()["a"], "b");
        assert_eq!(objects.others[0].object["l3"][8][8][8][0], "x");
    }

    #[test]
    fn files_of_windows_editors_are_read() {
        let objects =
            read("\u{feff}kind: Node\r\nmetadata: {name: a}\r\n---\r\nkind: X\r\n").unwrap();
        assert_eq!(objects.nodes[0].object.metadata.name.as_deref(), Some("a"));
        assert_eq!(objects.others.len(), 1);
        assert_eq!(read("\u{feff}{\"kind\": \"Node\"}").unwrap().nodes.len(), 1);
    }

    #[test]
    fn base64_of_a_request_may_have_several_lines() {
        let text = "kind: CertificateSigningRequest\nspec:\n  request: |\n    aGVs\n    bG8=\n";
        assert_eq!(read(text).unwrap().requests[0].object.spec.request.0, b"hello");
        let message = refused(&text.replace("aGVs", "aG!s"));
        assert!(message.contains("field `spec.request` is wrong"), "{message}");
    }

    #[test]
    fn standard_input_is_read_once() {
        let mut reader = Reader::new(&b"kind: X"[..]);
        let files = ["-", "-"].map(PathBuf::from);
        assert!(matches!(reader.objects(&files), Err(InputError::StandardInput)));
    }

    #[test]
    fn facts_are_read_from_yaml_too() {
        let text = "dns:\n  forward:\n    a.test: 10.0.0.1\n";
        let facts = Reader::new(text.as_bytes()).facts(Path::new("-")).unwrap();
        assert_eq!(facts.dns.forward.len(), 1);
        let error = Reader::new(&b"dns: {forward: {a: b}}"[..]).facts(Path::new("-")).unwrap_err();
        assert!(error.to_string().contains("field `dns.forward.a`"), "{error}");
        let error = Reader::new(&b"{}\n---\n{}"[..]).facts(Path::new("-")).unwrap_err();
        assert!(matches!(error, InputError::Many { .. }), "{error}");
    }
}
