//! Runs programs that come with Windows.

use std::io::{self, Read};
use std::os::windows::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::Win32::System::Threading::CREATE_NO_WINDOW;
use wmco_services::windows::{ScriptOutput, Wait, WindowsError};

use super::processes::Process;
use super::text::narrow;

/// Pause between two looks at a process that has closed its output.
const LOOK: Duration = Duration::from_millis(20);

/// Pause between two questions whether anybody still waits for a program's output.
const OUTPUT_LOOK: Duration = Duration::from_millis(200);

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
/// [`WindowsError::TimedOut`] or [`WindowsError::Interrupted`], after the process and its children
/// were ended.
pub(super) fn run(
    program: &str,
    arguments: &[&str],
    wait: Wait<'_>,
) -> Result<ScriptOutput, WindowsError> {
    let failed = |error| WindowsError::other(format!("run {program}"), error);
    let begun = Instant::now();
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
    let should_continue = || {
        wait.check(|| program.to_owned())?;
        let limit = wait.limit();
        if begun.elapsed() < limit.unsigned_abs() {
            Ok(())
        } else {
            Err(WindowsError::TimedOut { object: program.to_owned(), limit })
        }
    };
    let outcome = finish(&mut child, &stdout, &stderr, &should_continue);
    if outcome.is_err()
        && let Some(process) = process
        && let Err(error) = process.end_tree()
    {
        tracing::warn!(program, %error, "cannot end a program that nobody waits for");
    }
    outcome?.map_err(failed)
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

/// What the program gave, unless `should_continue` refuses before it is done.
fn finish(
    child: &mut Child,
    stdout: &Receiver<String>,
    stderr: &Receiver<String>,
    should_continue: &dyn Fn() -> Result<(), WindowsError>,
) -> Result<io::Result<ScriptOutput>, WindowsError> {
    let (stdout, stderr) = (text(stdout, should_continue)?, text(stderr, should_continue)?);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                let code = status.code().unwrap_or_default();
                return Ok(Ok(ScriptOutput { code, stdout, stderr }));
            }
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        should_continue()?;
        std::thread::park_timeout(LOOK);
    }
}

/// What comes out of [`drain`], unless `should_continue` refuses before.
fn text(
    drained: &Receiver<String>,
    should_continue: &dyn Fn() -> Result<(), WindowsError>,
) -> Result<String, WindowsError> {
    loop {
        match drained.recv_timeout(OUTPUT_LOOK) {
            Ok(text) => return Ok(text),
            Err(RecvTimeoutError::Timeout) => should_continue()?,
            // The thread broke down, and with it what the program said.
            Err(RecvTimeoutError::Disconnected) => return Ok(String::new()),
        }
    }
}
