//! Settings of the stand-ins, each in a JSON file of [`FOLDER`](crate::FOLDER). A file that is missing
//! means the default.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How a service behaves; in `SERVICE.json`, looked at whenever it matters.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Behaviour {
    /// It stays in the state "starting".
    pub hangs: bool,
    /// It ends by itself so many milliseconds after it runs, with [`code`](Self::code).
    pub ends_after_ms: Option<u64>,
    /// Exit code of its own end.
    pub code: u32,
    /// It starts the program that it wraps, which keeps running when it ends itself.
    pub wraps: bool,
    /// It takes the order to stop and keeps running.
    pub ignores_stop: bool,
    /// Where on 127.0.0.1 it tells its health, from its start on.
    pub port: Option<u16>,
    /// HTTP status of its health at the moment; 500 is unhealthy.
    pub health: u16,
    /// It writes a log, fast. Has to be there when it starts; may be held back until later.
    pub storm: Option<Storm>,
}

/// A log that is written by tens of megabytes a second, and then one last line.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Storm {
    /// The log.
    pub log: String,
    /// Not yet.
    pub held_back: bool,
    /// So many bytes, in lines of [`LINE`](Self::LINE).
    pub bytes: u64,
}

impl Storm {
    /// Bytes of a line.
    pub const LINE: usize = 1000;

    /// After so many lines the writer lets others have the machine for a millisecond. Where it wrote as fast as the
    /// disk takes it, the bound would be a matter of how soon a busy machine lets the daemon look.
    pub const BREATH: u64 = 40;

    /// What the last line says.
    pub const LAST: &str = "the last line";

    /// A line with its number.
    pub fn line(number: u64) -> String {
        format!("{number:010} {}\n", "x".repeat(Self::LINE - 12))
    }

    /// How many lines there are, but for the last one.
    pub fn lines(&self) -> u64 {
        self.bytes / Self::LINE as u64
    }
}

/// Argument of a program that was started by its wrapper.
pub const WRAPPED: &str = "--wrapped";

/// File of [`Answers`].
pub const POWERSHELL: &str = "powershell.json";

/// What PowerShell answers: the first entry whose text is part of the script. Others fail.
pub type Answers = Vec<(String, Answer)>;

/// What a script gives.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Answer {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// It never ends.
    pub hangs: bool,
}

/// File with the state of the containers feature, in the words of `dism.exe`.
pub const CONTAINERS: &str = "containers.txt";

/// Reads the settings of a stand-in.
pub fn read<T: DeserializeOwned + Default>(folder: &Path, file: &str) -> T {
    let text = std::fs::read(folder.join(file)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
