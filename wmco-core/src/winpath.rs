//! Absolute Windows paths that are safe to put on a command line.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An absolute path such as `C:\k\kubelet.conf`.
///
/// It has a drive letter, backslashes, no empty, `.` or `..` part, and only characters without a special meaning
/// for `cmd` and PowerShell. Equality and order ignore case, as Windows does.
///
/// ```
/// use wmco_core::winpath::WindowsPath;
///
/// let path: WindowsPath = r"C:\k\kubelet.conf".parse()?;
/// assert_eq!(path.sftp(), "/C:/k/kubelet.conf");
/// assert_eq!(path.parent().unwrap().as_str(), r"C:\k");
/// assert!(r"C:\k\..\Windows".parse::<WindowsPath>().is_err());
/// Ok::<(), wmco_core::winpath::BadPath>(())
/// ```
#[derive(Clone)]
pub struct WindowsPath(String);

/// Why a text is not a [`WindowsPath`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is no usable windows path: {problem}")]
pub struct BadPath {
    text: String,
    problem: &'static str,
}

/// Allowed punctuation in parts of a path, besides letters and digits. Registry host names need no more.
const PUNCTUATION: &str = "._-+=~";

impl WindowsPath {
    /// The path as text, with backslashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form that OpenSSH's SFTP server on Windows expects, for example `/C:/k/kubelet.conf`.
    pub fn sftp(&self) -> String {
        format!("/{}", self.0.replace('\\', "/"))
    }

    /// Reads the form that [`Self::sftp`] writes; a missing leading slash is accepted.
    ///
    /// # Errors
    /// [`BadPath`] as in parsing.
    pub fn from_sftp(text: &str) -> Result<Self, BadPath> {
        text.strip_prefix('/').unwrap_or(text).replace('/', "\\").parse()
    }

    /// The parent folder; `None` for a drive such as `C:`.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('\\').map(|(parent, _)| Self(parent.to_owned()))
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('\\').map_or(self.0.as_str(), |(_, name)| name)
    }

    /// The path of `name` in this folder.
    ///
    /// # Errors
    /// [`BadPath`] if `name` is not a usable part.
    pub fn join(&self, name: &str) -> Result<Self, BadPath> {
        format!("{}\\{name}", self.0).parse()
    }

    /// Whether this path is `folder` or below it.
    pub fn is_within(&self, folder: &Self) -> bool {
        let (path, folder) = (self.0.as_bytes(), folder.0.as_bytes());
        path.split_at_checked(folder.len()).is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(folder) && matches!(rest.first(), None | Some(b'\\'))
        })
    }
}

impl FromStr for WindowsPath {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let bad = |problem| Err(BadPath { text: text.to_owned(), problem });
        let trimmed = text.strip_suffix('\\').unwrap_or(text);
        let mut parts = trimmed.split('\\');
        match parts.next().map(str::as_bytes) {
            Some([letter, b':']) if letter.is_ascii_alphabetic() => {}
            _ => return bad("start it with a drive, for example C:\\"),
        }
        for part in parts {
            if part.is_empty() || part.chars().all(|c| c == '.') {
                return bad("leave out empty parts, `.` and `..`");
            }
            if part.ends_with('.') {
                return bad("windows drops a dot at the end of a name, leave it out");
            }
            if !part.chars().all(|c| c.is_ascii_alphanumeric() || PUNCTUATION.contains(c)) {
                return bad("use letters, digits and ._-+=~ only");
            }
        }
        Ok(Self(trimmed.to_owned()))
    }
}

impl PartialEq for WindowsPath {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for WindowsPath {}

impl Ord for WindowsPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Called for every entry of every map of a probe, so it allocates no text.
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        for (a, b) in a.iter().zip(b) {
            let order = a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
            if order.is_ne() {
                return order;
            }
        }
        a.len().cmp(&b.len())
    }
}

impl PartialOrd for WindowsPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for WindowsPath {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_ascii_lowercase().hash(state);
    }
}

impl fmt::Display for WindowsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WindowsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for WindowsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WindowsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for WindowsPath {
    fn schema_name() -> Cow<'static, str> {
        "WindowsPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^[A-Za-z]:(\\[A-Za-z0-9._+=~-]+)*\\?$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> WindowsPath {
        text.parse().unwrap()
    }

    #[test]
    fn case_does_not_matter() {
        assert_eq!(path(r"C:\K\Kubelet.conf"), path(r"c:\k\kubelet.CONF"));
    }

    #[test]
    fn order_ignores_case_too() {
        let mut paths = [r"C:\k\b", r"c:\K", r"C:\K\A", r"C:\k\a\x"].map(path);
        paths.sort();
        assert_eq!(paths, [r"C:\k", r"C:\k\a", r"C:\k\a\x", r"C:\k\b"].map(path));
    }

    #[test]
    fn siblings_are_not_within() {
        assert!(path(r"C:\k\cni").is_within(&path(r"c:\K")));
        assert!(path(r"C:\k").is_within(&path(r"C:\k")));
        assert!(!path(r"C:\kube").is_within(&path(r"C:\k")));
    }

    #[test]
    fn what_a_shell_would_read_is_refused() {
        for text in [
            "",
            "C:",
            r"k\x",
            r"\\server\share",
            r"C:\a b",
            r"C:\a;b",
            r"C:\a'b",
            r"C:\%TEMP%",
            r"C:\a$b",
            r"C:\..",
            r"C:\a\.\b",
            r"C:\a\\b",
            r"C:\a/b",
            r"C:\a:b",
            r"C:\a.",
            "C:\\a\nb",
        ] {
            assert!(text.parse::<WindowsPath>().is_err() || text == "C:", "{text}");
        }
    }

    #[test]
    fn every_known_path_is_one() {
        use crate::names::host;
        let known = host::DIRECTORIES.into_iter().chain([host::AGENT, host::STATE_FILE]);
        for text in known {
            assert_eq!(path(text).as_str(), text);
        }
    }
}
