//! The daemon's log files: bounded in size and number, with a pointer to the one in use.
//!
//! A file is named `<program>.<host>.<user>.log.INFO.<date>-<time>.<process>`, and the pointer
//! `<program>.INFO`, as the Go daemon names them, so that people and tools find them. One file holds
//! all severities.
//!
//! Source: `docs/contract/wicd.md`, WICD30.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::{Timestamp, Zoned};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use wmco_services::limits;
use wmco_services::logs::Bounds;

/// The daemon's program, whatever its file is called now.
const PROGRAM: &str = "windows-instance-config-daemon.exe";

/// Severities of the Go daemon, which has files of each.
const SEVERITIES: [&str; 4] = ["INFO", "WARNING", "ERROR", "FATAL"];

/// How much is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// What people should know.
    Usual,
    /// More, for troubleshooting.
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
    bounds: Bounds,
    file: File,
    written_bytes: u64,
}

/// Logs to standard error.
pub fn to_console(detail: Detail) {
    let errors = layer().with_writer(io::stderr).with_ansi(false).with_filter(detail.filter());
    // A second logger in one process, as in tests, is refused; the first stays in use.
    let _ = tracing_subscriber::registry().with(errors).try_init();
}

/// Logs to files in `folder`, errors to standard error too.
///
/// # Errors
/// The folder or the first file cannot be made.
pub fn to_files(folder: &Path, bounds: Bounds, detail: Detail) -> io::Result<()> {
    let file = RollingFile::open(folder, bounds)?;
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
    /// Begins a file in `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn open(folder: &Path, bounds: Bounds) -> io::Result<Self> {
        Self::open_with(folder, &file_start(), bounds)
    }

    fn open_with(folder: &Path, start: &str, bounds: Bounds) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = begin(folder, start, bounds)?;
        Ok(Self {
            folder: folder.to_owned(),
            start: start.to_owned(),
            bounds,
            file,
            written_bytes: 0,
        })
    }
}

impl Write for RollingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let after = self.written_bytes.saturating_add(bytes.len() as u64);
        let full = self.bounds.file_bytes.is_some_and(|most| after > most);
        if full && self.written_bytes > 0 {
            // When this fails the line is lost, and the disk stays as full as it is.
            self.file = begin(&self.folder, &self.start, self.bounds)?;
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
fn begin(folder: &Path, start: &str, bounds: Bounds) -> io::Result<File> {
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
    let _ = prune(folder, &path, bounds);
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

/// A file that is not in use any more.
struct OldFile {
    severity: &'static str,
    /// The rest of its name, which sorts by age.
    stamp: String,
    path: PathBuf,
    bytes: u64,
    modified: Timestamp,
}

/// Removes the oldest files of each severity, of this process and those before, and more of them until all
/// together take no more bytes than a log may; never `in_use`.
fn prune(folder: &Path, in_use: &Path, bounds: Bounds) -> io::Result<()> {
    const MOST: usize = limits::LOG_FILES - 1;
    let mut files: Vec<OldFile> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let name = path.file_name().and_then(OsStr::to_str);
        let Some((severity, stamp)) = name.and_then(age) else { continue };
        let metadata = entry.metadata()?;
        if path == in_use || !metadata.is_file() {
            continue;
        }
        let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        let (bytes, modified) = (metadata.len(), modified.unwrap_or(Timestamp::UNIX_EPOCH));
        files.push(OldFile { severity, stamp: stamp.to_owned(), path, bytes, modified });
    }
    files.sort_by(|a, b| a.stamp.cmp(&b.stamp));
    for severity in SEVERITIES {
        let of_it = files.iter().filter(|file| file.severity == severity);
        let old = of_it.clone().count().saturating_sub(MOST);
        for file in of_it.take(old) {
            // Somebody may have it open; the next file tries again.
            let _ = fs::remove_file(&file.path);
        }
    }
    // The Go daemon's files are as large as 1.8 GB each.
    let most_bytes = bounds.file_bytes.unwrap_or_default().saturating_mul(MOST as u64);
    let facts = |file: &OldFile| (file.bytes, file.modified);
    for (file, _) in bounds.surplus(&files, facts, (usize::MAX, most_bytes), Timestamp::now()) {
        let _ = fs::remove_file(&file.path);
    }
    Ok(())
}

/// Severity of a log file, from its name, and date, time and process, which sort by age; `None`: another file.
fn age(name: &str) -> Option<(&'static str, &str)> {
    let (_, age) = name.strip_prefix(PROGRAM)?.strip_prefix('.')?.split_once(".log.")?;
    let (severity, stamp) = age.split_once('.')?;
    Some((SEVERITIES.into_iter().find(|known| *known == severity)?, stamp))
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
    use jiff::SignedDuration;

    use super::*;

    const POINTER: &str = "windows-instance-config-daemon.exe.INFO";

    fn of(bytes: u64) -> Bounds {
        Bounds { file_bytes: Some(bytes), age: None }
    }

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
        let mut file = RollingFile::open_with(folder.path(), &start_of("h", "u"), of(100)).unwrap();
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
        let mut file =
            RollingFile::open_with(folder.path(), &start_of("h", "u"), of(1000)).unwrap();
        for _ in 0..1000 {
            file.write_all(&[b'x'; 99]).unwrap();
            assert!(size(folder.path()) <= 1000 * limits::LOG_FILES as u64);
        }
        assert_eq!(names(folder.path()).len(), limits::LOG_FILES + 1);
    }

    #[test]
    fn a_line_that_is_longer_than_a_file_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RollingFile::open_with(folder.path(), &start_of("h", "u"), of(10)).unwrap();
        file.write_all(&[b'x'; 50]).unwrap();
        file.write_all(&[b'y'; 50]).unwrap();
        assert_eq!(fs::read(folder.path().join(POINTER)).unwrap(), [b'y'; 50]);
    }

    #[test]
    fn no_limit_means_one_file_of_each_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RollingFile::open(folder.path(), Bounds::new(Some(0), None)).unwrap();
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
        drop(RollingFile::open(folder.path(), Bounds::default()).unwrap());
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
    fn big_files_of_earlier_daemons_go_until_the_rest_is_small_enough() {
        let folder = tempfile::tempdir().unwrap();
        for (severity, hour, bytes) in
            [("INFO", 10, 300), ("ERROR", 11, 300), ("INFO", 12, 10), ("FATAL", 13, 80)]
        {
            let name = format!("{PROGRAM}.winhost.WG_win.log.{severity}.20200101-{hour}0000.7");
            fs::write(folder.path().join(name), vec![b'x'; bytes]).unwrap();
        }
        drop(RollingFile::open_with(folder.path(), &start_of("h", "u"), of(100)).unwrap());
        let left = names(folder.path());
        let has = |hour: &str| left.iter().any(|name| name.contains(&format!("20200101-{hour}")));
        assert_eq!(["10", "11", "12", "13"].map(has), [false, true, true, true]);
    }

    #[test]
    fn old_files_go_when_they_have_the_age_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let old =
            folder.path().join(format!("{PROGRAM}.winhost.WG_win.log.INFO.20200101-100000.7"));
        fs::write(&old, "old").unwrap();
        let hour = std::time::Duration::from_secs(3600);
        let file = File::options().write(true).open(&old).unwrap();
        file.set_modified(std::time::SystemTime::now() - hour).unwrap();
        let open = |minutes| {
            let age = Some(SignedDuration::from_mins(minutes));
            drop(RollingFile::open(folder.path(), Bounds::new(None, age)).unwrap());
            old.exists()
        };
        assert_eq!((open(61), open(59)), (true, false));
    }

    #[test]
    fn names_are_those_of_the_go_daemon() {
        let start = start_of("winhost.example.test", r"NT AUTHORITY_SYSTEM");
        assert_eq!(start, "windows-instance-config-daemon.exe.winhost.NT_AUTHORITY_SYSTEM.log.");
        assert_eq!(
            age(&format!("{start}INFO.20260101-000000.1")),
            Some(("INFO", "20260101-000000.1"))
        );
        assert_eq!(age(POINTER), None);
    }
}
