//! The digests of the payload's files, as the image lists them.

use std::collections::BTreeMap;

use crate::digest::{NotADigest, Sha256};
use crate::payload;

/// Name of the list of digests in the payload folder, in the format of the program `sha256sum`.
pub const DIGESTS: &str = "sha256sum";

/// A problem of the payload. Each one means that the image was built wrongly.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The first word of a line is not a digest.
    #[error("line {line} of {DIGESTS} is wrong, build the image again")]
    Digest {
        /// Number of the line, from 1.
        line: usize,
        /// The problem.
        source: NotADigest,
    },
    /// Two lines for one name. Folders are ignored, because a host has one path per name.
    #[error("line {line} of {DIGESTS} names `{name}` again, build the image again")]
    Duplicate {
        /// Number of the second line, from 1.
        line: usize,
        /// The file's name.
        name: String,
    },
    /// A line without a digest and a path.
    #[error("line {line} of {DIGESTS} is no digest and path, build the image again")]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// Files without a line.
    #[error("{DIGESTS} has no line for {}, build the image again", .names.join(", "))]
    Missing {
        /// The files' names.
        names: Vec<&'static str>,
    },
}

/// Digests of the unpacked payload, by file name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Digests(BTreeMap<String, Sha256>);

impl Digests {
    /// Reads the output of the program `sha256sum`, in text or binary mode. Ignores blank lines and the folders in
    /// paths.
    ///
    /// # Errors
    /// A line is malformed, or repeats a name.
    pub fn parse(text: &str) -> Result<Self, PayloadError> {
        let mut digests = BTreeMap::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() {
                continue;
            }
            let malformed = PayloadError::Line { line: number };
            let Some((digest, path)) = line.split_once(char::is_whitespace) else {
                return Err(malformed);
            };
            let path = path.trim_start();
            let path = path.strip_prefix('*').unwrap_or(path);
            let name = path.rsplit('/').next().unwrap_or_default();
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err(malformed);
            }
            let digest =
                digest.parse().map_err(|source| PayloadError::Digest { line: number, source })?;
            if digests.insert(name.to_owned(), digest).is_some() {
                return Err(PayloadError::Duplicate { line: number, name: name.to_owned() });
            }
        }
        Ok(Self(digests))
    }

    /// Digest of the file `name`.
    pub fn get(&self, name: &str) -> Option<Sha256> {
        self.0.get(name).copied()
    }

    /// Checks at the operator's start that every payload file of every platform has a digest. Generated files need
    /// none.
    ///
    /// # Errors
    /// [`PayloadError::Missing`] with all names.
    pub fn check(&self) -> Result<(), PayloadError> {
        let names: Vec<_> = payload::all()
            .filter(|file| !file.generated)
            .map(|file| file.name)
            .filter(|name| !self.0.contains_key(*name))
            .collect();
        if names.is_empty() { Ok(()) } else { Err(PayloadError::Missing { names }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(content: &str, path: &str) -> String {
        format!("{}  {path}\n", Sha256::of(content.as_bytes()))
    }

    fn all() -> Digests {
        let lines: Vec<_> = payload::all()
            .filter(|file| !file.generated)
            .map(|file| line(file.name, &format!("/payload/{}", file.image_path())))
            .collect();
        Digests::parse(&lines.concat()).unwrap()
    }

    #[test]
    fn digests_are_kept_by_file_name() {
        let text =
            [line("a", "/very/long/path/a.exe"), "\n".into(), line("b", "./x/b.exe")].concat();
        let digests = Digests::parse(&text).unwrap();
        assert_eq!(digests.get("a.exe"), Some(Sha256::of(b"a")));
        assert_eq!(digests.get("b.exe"), Some(Sha256::of(b"b")));
        assert_eq!(digests.get("c.exe"), None);
    }

    #[test]
    fn binary_mode_and_crlf_are_read() {
        let text = format!("{} *a.exe\r\n", Sha256::of(b"a"));
        assert_eq!(Digests::parse(&text).unwrap().get("a.exe"), Some(Sha256::of(b"a")));
    }

    #[test]
    fn wrong_lines_are_told_by_number() {
        let digest = Sha256::of(b"");
        for text in [format!("{digest}"), format!("{digest}  a/"), format!("{digest}  a b")] {
            assert_eq!(Digests::parse(&format!("\n{text}")), Err(PayloadError::Line { line: 2 }));
        }
        assert!(matches!(Digests::parse("zz  a"), Err(PayloadError::Digest { line: 1, .. })));
    }

    #[test]
    fn a_name_in_two_folders_is_an_error() {
        let text = [line("a", "x/a.exe"), line("a", "y/a.exe")].concat();
        let error = PayloadError::Duplicate { line: 2, name: "a.exe".to_owned() };
        assert_eq!(Digests::parse(&text), Err(error));
    }

    #[test]
    fn the_check_wants_every_file() {
        assert_eq!(all().check(), Ok(()));
        assert!(Digests::default().check().unwrap_err().to_string().contains("kubelet.exe"));
    }
}
