//! What names of images and MachineSets tell about the operating system.

/// The operating system that a name speaks of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hint {
    Linux,
    Windows,
}

/// Words that begin the name of a Linux.
const LINUX: [&str; 9] =
    ["centos", "coreos", "debian", "fedora", "linux", "rhcos", "rhel", "suse", "ubuntu"];

/// Words that begin with the name of Windows.
const WINDOWS: [&str; 4] = ["windows", "winserv", "winsrv", "winwork"];

/// What `text` speaks of, apart from `infrastructure`, which people choose freely.
///
/// A word is Windows' if it is `win`, or `win` and a number, or begins as one of [`WINDOWS`]. Where both
/// are named, Windows counts.
pub(super) fn hint(text: &str, infrastructure: &str) -> Option<Hint> {
    let lower = text.to_lowercase();
    let infrastructure = infrastructure.to_lowercase();
    let own = if infrastructure.is_empty() { lower } else { lower.replace(&infrastructure, " ") };
    let words = || own.split(|letter: char| !letter.is_alphanumeric());
    let windows = |word: &str| {
        WINDOWS.iter().any(|known| word.starts_with(known))
            || word.strip_prefix("win").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    if words().any(windows) {
        Some(Hint::Windows)
    } else if words().any(|word| LINUX.iter().any(|known| word.starts_with(known))) {
        Some(Hint::Linux)
    } else {
        None
    }
}
