//! Verifies content while it is written.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256 as Hasher};
use wmco_core::digest::Sha256;

/// Passes bytes on; fails at the end if their digest is not the expected one.
pub(super) struct Verified<R> {
    inner: R,
    hasher: Hasher,
    sha256: Sha256,
}

impl<R: Read> Verified<R> {
    pub(super) fn new(inner: R, sha256: Sha256) -> Self {
        Self { inner, hasher: Hasher::new(), sha256 }
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            let found = Sha256::from_bytes(self.hasher.clone().finalize().into());
            if found != self.sha256 {
                let text = format!("its digest is {found}, not {}", self.sha256);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
