//! Runs programs that come with Windows.

use std::io::{self, Read};
use std::os::windows::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::Win32::System::Threading::CREATE_NO_WINDOW;
use wmco_services::windows::{ScriptOutput, WindowsError};

use super::processes::Process;
use super::text::narrow;

/// Pause between two looks at a process that has closed its output.
const LOOK: Duration = Duration::from_millis(20);

/// Most bytes of output that are kept.
const OUTPUT_BYTES: u64 = 1024 * 1024;

/// The system folder, usually `C:\Windows\System32`.
#[expect(unsafe_code, reason = "the variable SystemRoot may be anything")]
fn system_folder() -> io::Result<PathBuf> {
    let mut path = vec![0; 1024];
    let units = u32::try_from(path.len()).unwrap_or(u32::MAX);
    // SAFETY: the buffer is as long as `units` says.
    let length = unsafe { GetSystemDirectoryW(path.as_mut_ptr(), units) };
    if length == 0 || length >= units {
        return Err(io::Error::last_os_error());
    }
    Ok(narrow(&path).into())
}

/// Runs `program`, a path below the system folder, and returns its output, whatever its exit code
/// is.
///
/// # Errors
/// [`WindowsError::TimedOut`] after the process and its children were ended.
pub(super) fn run(
    program: &str,
    arguments: &[&str],
    limit: SignedDuration,
) -> Result<ScriptOutput, WindowsError> {
    let failed = |error| WindowsError::other(format!("run {program}"), error);
    let deadline = Instant::now() + Duration::try_from(limit).unwrap_or_default();
    let mut child = Command::new(system_folder().map_err(failed)?.join(program))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .creation_flags(CREATE_NO_WINDOW)
        .spawn()
        .map_err(failed)?;
    let process = Process::open(child.id()).map_err(failed)?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    match finish(&mut child, &stdout, &stderr, deadline) {
        Ok(Some(output)) => Ok(output),
        outcome => {
            if let Some(process) = process
                && let Err(error) = process.end_tree()
            {
                tracing::warn!(program, %error, "cannot end a program that takes too long");
            }
            outcome.map_err(failed)?;
            Err(WindowsError::TimedOut { object: program.to_owned(), limit })
        }
    }
}

/// Reads to the end on a thread of its own, which ends with the pipe.
fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let kept = pipe.by_ref().take(OUTPUT_BYTES).read_to_end(&mut bytes);
            // The rest is thrown away, so that the program does not wait for a reader.
            let _ = kept.and_then(|_| io::copy(&mut pipe, &mut io::sink()));
        }
        // Nobody waits any more after a timeout.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// What the program gave; `None` when it is not done at the deadline.
fn finish(
    child: &mut Child,
    stdout: &Receiver<String>,
    stderr: &Receiver<String>,
    deadline: Instant,
) -> io::Result<Option<ScriptOutput>> {
    let left = || deadline.saturating_duration_since(Instant::now());
    let Ok(stdout) = stdout.recv_timeout(left()) else { return Ok(None) };
    let Ok(stderr) = stderr.recv_timeout(left()) else { return Ok(None) };
    loop {
        if let Some(status) = child.try_wait()? {
            let code = status.code().unwrap_or_default();
            return Ok(Some(ScriptOutput { code, stdout, stderr }));
        }
        if left().is_zero() {
            return Ok(None);
        }
        std::thread::park_timeout(LOOK);
    }
}
