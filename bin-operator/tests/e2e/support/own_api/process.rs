//! A program that runs until the order to end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(10);

/// How much of its log people are shown.
const LINES: usize = 20;

/// A running program. Dropping it ends it, and waits for that.
pub(super) struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    pub(super) fn start(program: &Path, arguments: &[String], log: &Path) -> anyhow::Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let output = File::create(log)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        Ok(Self { child, name, log: log.to_owned() })
    }

    /// # Errors
    /// When it has ended, with how, and the end of its log.
    pub(super) fn has_not_ended(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                anyhow::bail!("{} ended with {status}: {}", self.name, self.end_of_log())
            }
        }
    }

    /// What it said last.
    pub(super) fn end_of_log(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

impl Drop for Process {
    #[expect(clippy::disallowed_methods, reason = "a drop cannot await")]
    fn drop(&mut self) {
        let end = Instant::now() + FAREWELL;
        // Only a process that was not waited for yet has its number still, so nobody else is met.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
