//! What stand-ins saw: one file for each event, named so that their order is that of the names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Folder of the events, below [`FOLDER`](crate::FOLDER).
const FOLDER: &str = "journal";

/// Something that a stand-in saw.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Event {
    /// A service was started.
    Started {
        /// Its name.
        service: String,
        /// Its command line, in words.
        words: Vec<String>,
        /// Its environment.
        variables: BTreeMap<String, String>,
    },
    /// A service was told to stop.
    StopAsked {
        /// Its name.
        service: String,
    },
    /// A script was run.
    Script {
        /// Its text.
        text: String,
    },
    /// `dism.exe` was run.
    Dism {
        /// With these arguments.
        words: Vec<String>,
    },
}

/// Where the events of the stand-ins in `folder` are.
pub fn place(folder: &Path) -> PathBuf {
    folder.join(FOLDER)
}

/// All events so far, oldest first.
///
/// # Errors
/// The folder cannot be read.
pub fn read(folder: &Path) -> io::Result<Vec<Event>> {
    let entries = std::fs::read_dir(place(folder))?;
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.map(|e| e.path())).collect::<io::Result<_>>()?;
    // What is still being written has another ending.
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    files.iter().map(|file| Ok(serde_json::from_slice(&std::fs::read(file)?)?)).collect()
}

/// Adds an event.
///
/// # Errors
/// The file cannot be written.
#[cfg(windows)]
pub fn add(event: &Event) -> io::Result<()> {
    let folder = place(Path::new(crate::FOLDER));
    let name = format!("{:020}-{}", jiff::Timestamp::now().as_nanosecond(), std::process::id());
    let new = folder.join(format!("{name}.new"));
    std::fs::write(&new, serde_json::to_vec(event)?)?;
    std::fs::rename(new, folder.join(format!("{name}.json")))
}
