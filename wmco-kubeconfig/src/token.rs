//! Tokens in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;

use super::FieldError;

/// How long a token counts as read. The kubelet replaces the tokens of pods well before they end.
const REREAD: Duration = Duration::from_secs(60);

/// The token in a file that others replace while this runs.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// It cannot be read, or holds no token.
    pub(super) fn open(path: &Path, now: Instant) -> Result<Self, FieldError> {
        Ok(Self { path: path.to_owned(), last: Mutex::new((read(path)?, now)) })
    }

    /// The header with the token. If the file cannot be read again, the last token stays.
    pub(super) fn header(&self, now: Instant) -> HeaderValue {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(last.1) >= REREAD {
            *last = (read(&self.path).unwrap_or_else(|_| last.0.clone()), now);
        }
        last.0.clone()
    }
}

/// Editors end a file with a line end, which is not part of the token.
fn read(path: &Path) -> Result<HeaderValue, FieldError> {
    let text = fs::read_to_string(path)
        .map_err(|source| FieldError::Read { path: path.display().to_string(), source })?;
    header(text.trim())
}

/// The header of HTTP with a token.
pub(super) fn header(token: &str) -> Result<HeaderValue, FieldError> {
    if token.is_empty() {
        return Err(FieldError::Missing);
    }
    let mut header =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| FieldError::Character)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_read_again_and_its_line_end_is_no_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, start) = (folder.path().join("token"), Instant::now());
        let later = |minutes| start + REREAD * minutes;
        fs::write(&path, "one\r\n").unwrap();
        let token = TokenFile::open(&path, start).unwrap();
        for (text, at, expected) in [
            ("two\n", start, "Bearer one"),
            ("two\n", later(1), "Bearer two"),
            ("\n", later(2), "Bearer two"),
            ("thr\nee", later(3), "Bearer two"),
            ("three", later(4), "Bearer three"),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(token.header(at), expected);
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(token.header(later(9)), "Bearer three");
        assert!(matches!(TokenFile::open(&path, start), Err(FieldError::Read { .. })));
        fs::write(&path, "\n").unwrap();
        assert!(matches!(TokenFile::open(&path, start), Err(FieldError::Missing)));
    }
}
