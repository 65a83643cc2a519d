//! Mutated inputs of reports: whatever a file holds, each command answers, in text that no terminal obeys.
//!
//! `make search` tries many more of them, and gives each run [`SECONDS`] of processor time at most.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use wmco_core::text::steers_terminals;

use crate::program::run_within;
use crate::reports::{Input, inputs};

/// Variable with the most seconds of processor time for a run.
const SECONDS: &str = "SEARCH_CPU_SECONDS";

/// Commands that take any files with objects, besides those of the case itself.
const COMMANDS: [&str; 10] = [
    "check cluster -f",
    "check instances -f",
    "check machinesets -f",
    "check registries -f",
    "check services -f",
    "explain csr -f",
    "explain mirror quay.io/team/app:1 -f",
    "machineset --image ami-0123456789abcdef0 -f",
    "plan -f",
    "render registries -f",
];

/// Commands that take one file.
const OF_ONE_FILE: [&str; 3] = [
    "check host -f",
    "render credential-provider -f",
    "render user-data --platform AWS --public-key",
];

static ALL: LazyLock<Vec<Input>> = LazyLock::new(inputs);

const FORMATS: [&str; 3] = ["text", "json", "yaml"];

/// Texts that have broken programs before.
const TEXTS: [&str; 24] = [
    "\u{1b}[31mred",
    "\"\\e[31mred\"",
    "\"\\u202eleft\"",
    "\u{202e}left",
    "\u{feff}",
    "\"\\0\"",
    "\"a\\rb\\tc\"",
    "~",
    "[]",
    "{}",
    "[[[[]]]]",
    "-1",
    "1e999",
    "99999999999999999999999",
    "0x10",
    "true",
    "''",
    "&a [*a]",
    "*nobody",
    "!!binary x",
    "${NAME}",
    "2001:db8::1%eth0",
    "255.255.255.255/0",
    "|-\n\n",
];

/// One change of a file. Places are parts of its length.
#[derive(Clone, Debug)]
enum Mutation {
    /// The file ends there.
    Cut(Index),
    /// The line is gone.
    Remove(Index),
    /// The line stands there twice.
    Repeat(Index),
    /// The line is indented by so many blanks instead.
    Indent(Index, usize),
    /// The member of the line has this value.
    Value(Index, &'static str),
    /// The text stands there, too.
    Insert(Index, &'static str),
    /// The byte is another one.
    Byte(Index, u8),
    /// The line of another case stands there, too.
    Line(Index, Index, Index),
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<Index>;
    prop_oneof![
        1 => place().prop_map(Mutation::Cut),
        2 => place().prop_map(Mutation::Remove),
        2 => place().prop_map(Mutation::Repeat),
        2 => (place(), 0..12_usize).prop_map(|(at, blanks)| Mutation::Indent(at, blanks)),
        6 => (place(), select(&TEXTS[..])).prop_map(|(at, text)| Mutation::Value(at, text)),
        2 => (place(), select(&TEXTS[..])).prop_map(|(at, text)| Mutation::Insert(at, text)),
        1 => (place(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        2 => (place(), place(), place()).prop_map(|(at, of, line)| Mutation::Line(at, of, line)),
    ]
}

impl Mutation {
    fn apply(&self, file: &mut Vec<u8>) {
        if file.is_empty() {
            return;
        }
        let place = |at: &Index| at.index(file.len());
        let (begin, end) = match self {
            Self::Cut(at) | Self::Insert(at, _) | Self::Byte(at, _) => (place(at), place(at)),
            Self::Remove(at)
            | Self::Repeat(at)
            | Self::Indent(at, _)
            | Self::Value(at, _)
            | Self::Line(at, ..) => line(file, place(at)),
        };
        let old = file[begin..end].to_vec();
        match self {
            Self::Cut(_) => file.truncate(begin),
            Self::Remove(_) => drop(file.drain(begin..end)),
            Self::Repeat(_) => drop(file.splice(begin..begin, old)),
            Self::Indent(_, blanks) => {
                let text = old.iter().copied().skip_while(|byte| *byte == b' ');
                let new: Vec<u8> = [b' '].repeat(*blanks).into_iter().chain(text).collect();
                drop(file.splice(begin..end, new));
            }
            Self::Value(_, text) => {
                let colon = old.iter().position(|byte| *byte == b':').map_or(0, |at| at + 1);
                let new = [&old[..colon], b" ", text.as_bytes(), b"\n"].concat();
                drop(file.splice(begin..end, new));
            }
            Self::Insert(_, text) => drop(file.splice(begin..begin, text.bytes())),
            Self::Byte(_, byte) => file[begin] = *byte,
            Self::Line(_, of, at) => {
                let other = of.get(&ALL).files.values().next().cloned().unwrap_or_default();
                if !other.is_empty() {
                    let (from, to) = line(&other, at.index(other.len()));
                    drop(file.splice(begin..begin, other[from..to].iter().copied()));
                }
            }
        }
    }
}

/// Begin and end of the line around `at`, with its end of line.
fn line(file: &[u8], at: usize) -> (usize, usize) {
    let begin = file[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end =
        file[at..].iter().position(|byte| *byte == b'\n').map_or(file.len(), |end| at + end + 1);
    (begin, end)
}

/// What is wrong with an answer to `files`.
fn fault(files: &BTreeMap<String, Vec<u8>>, arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let limit = env::var(SECONDS).ok();
    let run = match run_within(limit.as_deref(), folder.path(), arguments) {
        Ok(run) => run,
        Err(fault) => return Some(fault),
    };
    let told = format!("{}{}", run.out, run.err);
    let steers = |letter: &char| steers_terminals(*letter) && !['\n', '\t'].contains(letter);
    match (run.status, told.chars().find(steers)) {
        (0..=2, None) => None,
        (0..=2, Some(letter)) => Some(format!("{letter:?} is not escaped in {told:?}")),
        (status, _) => Some(format!("exit {status}: {told}")),
    }
}

/// As many runs as are asked for, and a few otherwise: each starts the program.
fn config() -> ProptestConfig {
    let cases = env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    // A case names places in the corpus, which grows.
    ProptestConfig {
        cases: cases.unwrap_or(64),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn mutated_inputs_are_answered(
        case in any::<Index>(),
        file in any::<Index>(),
        mutations in prop::collection::vec(any_mutation(), 1..4),
        command in any::<Index>(),
        format in select(&FORMATS[..]),
    ) {
        let input = case.get(&ALL);
        let mut files = input.files.clone();
        let changed = file.index(files.len());
        for mutation in &mutations {
            mutation.apply(files.values_mut().nth(changed).unwrap());
        }
        let given = files.keys().cloned().collect::<Vec<_>>().join(" ");
        let any_files = COMMANDS.map(|command| format!("{command} {given}"));
        let name = files.keys().nth(changed).unwrap();
        let one_file = OF_ONE_FILE.map(|command| format!("{command} {name}"));
        let commands = [&input.commands[..], &any_files, &one_file].concat();
        let command = command.get(&commands);
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        if !arguments.contains(&"-o") {
            arguments.extend(["-o", format]);
        }
        if let Some(fault) = fault(&files, &arguments) {
            let shown = files.iter().map(|(name, it)| format!("{name}: {:?}", String::from_utf8_lossy(it)));
            let shown = shown.collect::<Vec<_>>().join("\n");
            prop_assert!(false, "{}: {fault}\nwith {shown}", arguments.join(" "));
        }
    }
}
