//! The daemon's log files: bounded in size and number, with a pointer to the one in use.
//!
//! A file is named `<program>.<host>.<user>.log.INFO.<date>-<time>.<process>`, and the pointer
//! `<program>.INFO`, as the Go daemon names them, so that people and tools find them. One file holds
//! all severities.
//!
//! Source: `spec/wicd.md`, sections 4 and 23.1, row 6.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Zoned;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use wmco_services::limits;

/// The daemon's program, whatever its file is called now.
const PROGRAM: &str = "windows-instance-config-daemon.exe";

/// Severities of the Go daemon, which has files of each.
const SEVERITIES: [&str; 4] = ["INFO", "WARNING", "ERROR", "FATAL"];

/// How much is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// What people should know.
    Usual,
    /// More, for whoever looks for a problem.
    More,
    /// Everything.
    Everything,
}

/// Log files of one process.
#[derive(Debug)]
pub struct RollingFile {
    folder: PathBuf,
    /// Name up to the date.
    start: String,
    /// 0: no limit.
    most_bytes: u64,
    file: File,
    written_bytes: u64,
}

/// Logs to standard error.
pub fn to_console(detail: Detail) {
    let errors = layer().with_writer(io::stderr).with_ansi(false).with_filter(detail.filter());
    // A second logger in one process, as in tests, is refused; the first one goes on.
    let _ = tracing_subscriber::registry().with(errors).try_init();
}

/// Logs to files in `folder`, errors to standard error too.
///
/// # Errors
/// The folder or the first file cannot be made.
pub fn to_files(folder: &Path, megabytes: Option<u64>, detail: Detail) -> io::Result<()> {
    let file = RollingFile::open(folder, megabytes)?;
    let all = layer().with_writer(Mutex::new(file)).with_ansi(false).with_filter(detail.filter());
    let errors = layer().with_writer(io::stderr).with_ansi(false).with_filter(LevelFilter::ERROR);
    // As above.
    let _ = tracing_subscriber::registry().with(all).with(errors).try_init();
    Ok(())
}

impl Detail {
    fn filter(self) -> LevelFilter {
        match self {
            Self::Usual => LevelFilter::INFO,
            Self::More => LevelFilter::DEBUG,
            Self::Everything => LevelFilter::TRACE,
        }
    }
}

impl RollingFile {
    /// Begins a file in `folder`, which is made if it is missing. `megabytes` of a file: 0 is no limit.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn open(folder: &Path, megabytes: Option<u64>) -> io::Result<Self> {
        let most = megabytes.map_or(limits::LOG_BYTES, |m| m.saturating_mul(1_000_000));
        Self::open_with(folder, &file_start(), most)
    }

    fn open_with(folder: &Path, start: &str, most_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = begin(folder, start)?;
        Ok(Self {
            folder: folder.to_owned(),
            start: start.to_owned(),
            most_bytes,
            file,
            written_bytes: 0,
        })
    }
}

impl Write for RollingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let after = self.written_bytes.saturating_add(bytes.len() as u64);
        if self.most_bytes > 0 && self.written_bytes > 0 && after > self.most_bytes {
            // When this fails the line is lost, and the disk stays as full as it is.
            self.file = begin(&self.folder, &self.start)?;
            self.written_bytes = 0;
        }
        let written = self.file.write(bytes)?;
        self.written_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Makes the next file, lets the pointer point to it, and removes old ones.
fn begin(folder: &Path, start: &str) -> io::Result<File> {
    let stamp = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let process = std::process::id();
    let mut nth = 0;
    let (path, file) = loop {
        let end = if nth == 0 { String::new() } else { format!(".{nth}") };
        let path = folder.join(format!("{start}INFO.{stamp}.{process}{end}"));
        match OpenOptions::new().create_new(true).append(true).open(&path) {
            Ok(file) => break (path, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
            Err(error) => return Err(error),
        }
    };
    // People find the file without its pointer, and old files cost space only.
    let _ = point(&folder.join(format!("{PROGRAM}.INFO")), &path);
    let _ = prune(folder, &path);
    Ok(file)
}

/// Lets `pointer` point to `file`: as a link, or as another name where the system makes no links.
fn point(pointer: &Path, file: &Path) -> io::Result<()> {
    let beside = pointer.with_extension("INFO.new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let name = file.file_name().unwrap_or(file.as_os_str());
    // Wine only says that it makes symbolic links.
    symbolic_link(name, &beside)
        .and_then(|()| fs::symlink_metadata(&beside).map(drop))
        .or_else(|_| fs::hard_link(file, &beside))?;
    fs::rename(&beside, pointer)
}

#[cfg(windows)]
fn symbolic_link(target: &OsStr, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, link)
}

#[cfg(unix)]
fn symbolic_link(target: &OsStr, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Removes the oldest files of each severity, of this process and those before; never `in_use`.
fn prune(folder: &Path, in_use: &Path) -> io::Result<()> {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path != in_use
            && let Some(age) = path.file_name().and_then(OsStr::to_str).and_then(age)
        {
            files.push((age, path));
        }
    }
    files.sort();
    for severity in SEVERITIES {
        let of_it = files.iter().filter(|(age, _)| age.starts_with(severity));
        let old = of_it.clone().count().saturating_sub(limits::LOG_FILES - 1);
        for (_, path) in of_it.take(old) {
            // Somebody may have it open; the next file tries again.
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Severity, date, time and process of a log file's name, which sort by age; `None`: another file.
fn age(name: &str) -> Option<String> {
    let (_, age) = name.strip_prefix(PROGRAM)?.strip_prefix('.')?.split_once(".log.")?;
    let severity = age.split('.').next()?;
    SEVERITIES.contains(&severity).then(|| age.to_owned())
}

/// The part of a file's name that is the same for all files of a process.
fn file_start() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = variable("COMPUTERNAME").unwrap_or_else(|| "unknownhost".to_owned());
    let user = match (variable("USERDOMAIN"), variable("USERNAME")) {
        (Some(domain), Some(user)) => format!("{domain}_{user}"),
        _ => "unknownuser".to_owned(),
    };
    start_of(&host, &user)
}

fn start_of(host: &str, user: &str) -> String {
    let fit = |text: &str| text.replace(['\\', '/', ':', ' '], "_");
    let host = host.split('.').next().unwrap_or(host);
    format!("{PROGRAM}.{}.{}.log.", fit(host), fit(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTER: &str = "windows-instance-config-daemon.exe.INFO";

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn size(folder: &Path) -> u64 {
        let files = names(folder).into_iter().filter(|name| name != POINTER);
        files.map(|name| fs::metadata(folder.join(name)).unwrap().len()).sum()
    }

    #[test]
    fn the_pointer_shows_what_was_written_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RollingFile::open_with(folder.path(), &start_of("h", "u"), 100).unwrap();
        let read = || fs::read_to_string(folder.path().join(POINTER)).unwrap();
        assert_eq!(read(), "");
        for round in 0..40 {
            let line = format!("line {round} with some text\n");
            file.write_all(line.as_bytes()).unwrap();
            assert!(read().ends_with(&line), "{round}");
        }
    }

    #[test]
    fn disk_use_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RollingFile::open_with(folder.path(), &start_of("h", "u"), 1000).unwrap();
        for _ in 0..1000 {
            file.write_all(&[b'x'; 99]).unwrap();
            assert!(size(folder.path()) <= 1000 * limits::LOG_FILES as u64);
        }
        assert_eq!(names(folder.path()).len(), limits::LOG_FILES + 1);
    }

    #[test]
    fn a_line_that_is_longer_than_a_file_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RollingFile::open_with(folder.path(), &start_of("h", "u"), 10).unwrap();
        file.write_all(&[b'x'; 50]).unwrap();
        file.write_all(&[b'y'; 50]).unwrap();
        assert_eq!(fs::read(folder.path().join(POINTER)).unwrap(), [b'y'; 50]);
    }

    #[test]
    fn no_limit_means_one_file_of_each_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RollingFile::open(folder.path(), Some(0)).unwrap();
        for _ in 0..100 {
            file.write_all(&[b'x'; 1000]).unwrap();
        }
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn files_of_earlier_daemons_are_bounded_too() {
        let folder = tempfile::tempdir().unwrap();
        for severity in SEVERITIES {
            for hour in 10..20 {
                let name = format!("{PROGRAM}.winhost.WG_win.log.{severity}.20200101-{hour}0000.7");
                fs::write(folder.path().join(name), "old").unwrap();
            }
        }
        fs::write(folder.path().join("other.log.INFO.1"), "kept").unwrap();
        drop(RollingFile::open(folder.path(), None).unwrap());
        let left = names(folder.path());
        assert!(left.contains(&"other.log.INFO.1".to_owned()));
        let of = |severity: &str| {
            let hour = |name: &String| {
                name.split_once(&format!(".log.{severity}.20200101-"))
                    .map(|(_, rest)| rest.to_owned())
            };
            left.iter().filter_map(hour).collect::<Vec<_>>()
        };
        assert_eq!(of("INFO"), ["160000.7", "170000.7", "180000.7", "190000.7"]);
        assert_eq!(of("WARNING").len(), limits::LOG_FILES - 1);
    }

    #[test]
    fn names_are_those_of_the_go_daemon() {
        let start = start_of("winhost.example.test", r"NT AUTHORITY_SYSTEM");
        assert_eq!(start, "windows-instance-config-daemon.exe.winhost.NT_AUTHORITY_SYSTEM.log.");
        assert_eq!(
            age(&format!("{start}INFO.20260101-000000.1")).as_deref(),
            Some("INFO.20260101-000000.1")
        );
        assert_eq!(age(POINTER), None);
    }
}
