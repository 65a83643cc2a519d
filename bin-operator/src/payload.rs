//! The operator's payload: digests and contents of everything that goes to hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wmco_core::content::{DIGESTS, Digests, PayloadError};
use wmco_core::digest::Sha256;
use wmco_core::payload;
use wmco_ssh::Blob;

/// Contents by digest, and the digests by name.
#[derive(Clone, Debug)]
pub struct Payload {
    /// Digests by file name.
    pub digests: Digests,
    /// Our agent.
    pub agent: Blob,
    /// Everything else.
    pub contents: BTreeMap<Sha256, Blob>,
}

/// Why there is no payload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The list of digests cannot be read.
    #[error("{} cannot be read, point --payload at the payload folder", .path.display())]
    Read {
        /// The list.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The list is wrong or lacks a file.
    #[error(transparent)]
    List(#[from] PayloadError),
}

impl Payload {
    /// Reads the list of digests in `folder`; files are opened when they are first needed, and their
    /// compressed form is kept in `cache`.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(folder: &Path, cache: &Path) -> Result<Self, LoadError> {
        let list = folder.join(DIGESTS);
        let text = std::fs::read_to_string(&list)
            .map_err(|source| LoadError::Read { path: list, source })?;
        let blob = |file: &payload::PayloadFile, digest| {
            Blob::from_file(folder.join(file.image_path()), digest, cache)
        };
        Self::from_digests(Digests::parse(&text)?, blob)
    }

    /// A payload whose files `blob` provides.
    ///
    /// # Errors
    /// [`LoadError::List`] if a digest is missing.
    pub fn from_digests(
        digests: Digests,
        blob: impl Fn(&payload::PayloadFile, Sha256) -> Blob,
    ) -> Result<Self, LoadError> {
        digests.check()?;
        let mut contents = BTreeMap::new();
        for file in payload::all() {
            let Some(digest) = digests.get(file.name) else { continue };
            contents.insert(digest, blob(file, digest));
        }
        let missing = || PayloadError::Missing { names: vec![payload::AGENT.name] };
        let agent = digests.get(payload::AGENT.name).ok_or_else(missing)?;
        let agent = blob(&payload::AGENT, agent);
        Ok(Self { digests, agent, contents })
    }
}
