//! Inputs of public reports and of own trials: a file below `tests/reports` is a case, with the commands to run and
//! what has to come out. A new report is one more file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use wmco_core::text::steers_terminals;

use crate::program::run_at;

/// One file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is in the input.
    #[expect(dead_code, reason = "it is for people, and each case has to have it")]
    about: String,
    /// Where it was seen.
    #[expect(dead_code, reason = "it is for people, and each case has to have it")]
    source: String,
    /// The input by name: a text as it is, anything else as JSON.
    files: BTreeMap<String, Value>,
    /// How files are written that are not plain UTF-8.
    #[serde(default)]
    encodings: BTreeMap<String, Encoding>,
    runs: Vec<Expected>,
}

/// How a file is written.
#[derive(Clone, Copy, Deserialize)]
enum Encoding {
    /// As Windows PowerShell 5 redirects the output of programs.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// As editors of Windows save.
    #[serde(rename = "utf-8-mark-crlf")]
    Utf8MarkCrlf,
    /// A byte for each letter, as older programs of Windows write; line ends stay.
    #[serde(rename = "latin-1")]
    Latin1,
}

/// What one run has to do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The arguments, split at blanks.
    command: String,
    exit: i32,
    /// Texts that have to be in the output or among the messages.
    #[serde(default)]
    says: Vec<String>,
    /// Texts that must not be there.
    #[serde(default)]
    conceals: Vec<String>,
    /// For `explain csr`: the verdict on each request, by its name.
    verdicts: Option<BTreeMap<String, String>>,
    /// The rule by which requests are refused.
    rule: Option<String>,
}

impl Encoding {
    fn bytes(self, text: &str) -> Vec<u8> {
        let plain = text;
        let text = text.replace('\n', "\r\n");
        match self {
            Self::Latin1 => plain.chars().map(|c| u8::try_from(c).unwrap()).collect(),
            Self::Utf16Le => "\u{feff}"
                .encode_utf16()
                .chain(text.encode_utf16())
                .flat_map(u16::to_le_bytes)
                .collect(),
            Self::Utf16Be => "\u{feff}"
                .encode_utf16()
                .chain(text.encode_utf16())
                .flat_map(u16::to_be_bytes)
                .collect(),
            Self::Utf8MarkCrlf => format!("\u{feff}{text}").into_bytes(),
        }
    }
}

impl Expected {
    /// What is wrong with the run in `folder`.
    fn faults(&self, folder: &Path) -> Vec<String> {
        let mut arguments: Vec<&str> = self.command.split_whitespace().collect();
        let run = run_at(folder, &arguments);
        let told = format!("{}{}", run.out, run.err);
        let mut faults = Vec::new();
        if run.status != self.exit {
            faults.push(format!("exit {}, not {}: {told}", run.status, self.exit));
        }
        for text in self.says.iter().filter(|text| !told.contains(*text)) {
            faults.push(format!("{text:?} is not in: {told}"));
        }
        for text in self.conceals.iter().filter(|text| told.contains(*text)) {
            faults.push(format!("{text:?} is in: {told}"));
        }
        // No text of a file may steer the terminal.
        if let Some(bad) = told.chars().find(|c| steers_terminals(*c) && *c != '\n') {
            faults.push(format!("{bad:?} is not escaped: {told:?}"));
        }
        if let Some(expected) = &self.verdicts {
            arguments.extend(["-o", "json"]);
            let printed = run_at(folder, &arguments).out;
            let answers: Vec<Value> = serde_json::from_str(&printed).unwrap_or_default();
            let found: BTreeMap<String, String> = answers
                .iter()
                .map(|answer| (text_of(&answer["name"]), text_of(&answer["verdict"])))
                .collect();
            if found != *expected {
                faults.push(format!("{found:?}, not {expected:?}: {told}"));
            }
            for answer in answers.iter().filter(|answer| answer["verdict"] == "refuse") {
                let reason = text_of(&answer["reason"]);
                let is_meant = |rule: &String| reason.starts_with(&format!("{rule}:"));
                if self.rule.as_ref().is_some_and(|rule| !is_meant(rule)) {
                    faults.push(format!("{reason}, not by {:?}", self.rule));
                }
            }
        }
        faults.into_iter().map(|fault| format!("{}: {fault}", self.command)).collect()
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a case runs with.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) commands: Vec<String>,
}

/// Of all cases.
pub(crate) fn inputs() -> Vec<Input> {
    let kinds = ["mirrors", "objects", "requests", "ssh"];
    let cases = kinds.into_iter().flat_map(cases).map(|(_, case)| case);
    cases
        .map(|case| Input {
            files: case.bytes(),
            commands: case.runs.into_iter().map(|run| run.command).collect(),
        })
        .collect()
}

impl Case {
    /// The files as they are written.
    fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let written = self.files.iter().map(|(name, content)| {
            let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            let encoding = self.encodings.get(name);
            let bytes = encoding.map_or_else(|| text.clone().into_bytes(), |it| it.bytes(&text));
            (name.clone(), bytes)
        });
        written.collect()
    }

    fn faults(&self) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in self.bytes() {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        self.runs.iter().flat_map(|run| run.faults(folder.path())).collect()
    }
}

/// The cases of `kind`, with their names.
fn cases(kind: &str) -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports").join(kind);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let case = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        let case = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file.file_stem().unwrap().to_string_lossy().into_owned(), case)
    };
    files.into_iter().map(case).collect()
}

#[track_caller]
fn every_case_of(kind: &str) {
    let cases = cases(kind);
    assert!(!cases.is_empty());
    let faults = cases.iter().flat_map(|(name, case)| {
        case.faults().into_iter().map(move |fault| format!("{name}: {fault}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn reports_about_requests() {
    every_case_of("requests");
}

#[test]
fn reports_about_mirrors() {
    every_case_of("mirrors");
}

#[test]
fn reports_about_objects() {
    every_case_of("objects");
}

#[test]
fn reports_about_ssh() {
    every_case_of("ssh");
}
