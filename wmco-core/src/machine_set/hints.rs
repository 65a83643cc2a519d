//! Guesses the operating system from names of images and MachineSets.

/// The operating system in a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hint {
    Linux,
    Windows,
}

/// First words of Linux names.
const LINUX: [&str; 9] =
    ["centos", "coreos", "debian", "fedora", "linux", "rhcos", "rhel", "suse", "ubuntu"];

/// Prefixes of words that mean Windows.
const WINDOWS: [&str; 4] = ["windows", "winserv", "winsrv", "winwork"];

/// Guesses the operating system from `text` without `infrastructure`, a name that users choose freely.
///
/// A word means Windows if it is `win`, or `win` and a number, or starts with one of [`WINDOWS`]. If both systems
/// are named, Windows counts.
pub(super) fn hint(text: &str, infrastructure: &str) -> Option<Hint> {
    // Names of galleries may have no `-`.
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let own = without(&plain(text), &plain(infrastructure));
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

/// Removes `name` from `text` where it is a whole word.
fn without(text: &str, name: &str) -> String {
    if name.is_empty() {
        return text.to_owned();
    }
    let mut parts = text.split(name);
    let mut left = parts.next().unwrap_or_default().to_owned();
    for right in parts {
        let inside =
            left.ends_with(char::is_alphanumeric) || right.starts_with(char::is_alphanumeric);
        left.push_str(if inside { name } else { " " });
        left.push_str(right);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_is_known_by_words() {
        for text in [
            "win",
            "winworker",
            "Windows_Server-2022",
            "golden-win2022",
            "WindowsServer",
            "rhcos-and-windows",
            "projects/windows-cloud/global/images/x",
        ] {
            assert_eq!(hint(text, ""), Some(Hint::Windows), "{text}");
        }
        for text in ["", "winter-sales", "darwin", "twin", "worker", "win\u{0661}"] {
            assert_eq!(hint(text, ""), None, "{text}");
        }
        for text in ["rhcos-9.6", "prod-rhcos", "Ubuntu", "projects/rhel-cloud/x"] {
            assert_eq!(hint(text, ""), Some(Hint::Linux), "{text}");
        }
    }

    #[test]
    fn the_name_of_the_cluster_tells_nothing() {
        assert_eq!(hint("win-x7k2p-worker-a", "win-x7k2p"), None);
        assert_eq!(hint("WIN-x7k2p-worker-a", "win-X7K2P"), None);
        assert_eq!(hint("win-x7k2p-windows", "win-x7k2p"), Some(Hint::Windows));
        assert_eq!(hint("linux-windows", "linux"), Some(Hint::Windows));
        assert_eq!(hint("windows-2022", "i"), Some(Hint::Windows), "part of a word");
        assert_eq!(hint("gallery_win_x7k2p", "win-x7k2p"), None);
    }
}
