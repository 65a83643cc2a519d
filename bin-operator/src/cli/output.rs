//! Results on standard output.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use wmco_core::text::{for_terminals, steers_terminals};

/// How to print a result.
#[derive(Args, Clone, Copy, Debug)]
pub struct Output {
    /// Format of the result: `text` is for people and may change.
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
}

/// Forms of a result.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Output {
    /// Prints `result` in the chosen form, with `text` for people.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn print(
        self,
        result: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Text => print(&for_terminals(&text())),
            Format::Json => {
                print(&format!("{}\n", in_json(&serde_json::to_string_pretty(result)?)))
            }
            Format::Yaml => print(&in_yaml(result)?),
        }
    }
}

/// `result` in YAML. Where a text in it steers terminals, that is JSON, which is YAML too and has codes for such
/// letters in any text.
fn in_yaml(result: &impl Serialize) -> anyhow::Result<String> {
    let yaml = serde_saphyr::to_string(result)?;
    let steers = |letter: char| steers_terminals(letter) && !matches!(letter, '\n' | '\t');
    if yaml.contains(steers) {
        return Ok(format!("{}\n", in_json(&serde_json::to_string_pretty(result)?)));
    }
    Ok(yaml)
}

/// `json` with the codes of JSON for what steers terminals; such letters are in texts only.
fn in_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        if steers_terminals(letter) && letter != '\n' {
            let _ = write!(safe, "\\u{:04x}", u32::from(letter));
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// Prints `text` as it is. A reader that has seen enough, such as `head`, is no error.
///
/// # Errors
/// Standard output takes no more.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output, check where it goes")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a file with its folders, over the one that is there.
///
/// # Errors
/// Names the path.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        bail!("{} is a link, remove it or choose another folder", path.display());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
