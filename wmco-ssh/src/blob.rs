//! Contents for upload: named by their digest, compressed once for all hosts.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256 as Hasher};
use tempfile::NamedTempFile;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use wmco_core::digest::Sha256;
use zeroize::Zeroizing;

/// Compression level. The same input always gives the same output, so a complete upload is recognised by its size, and
/// an interrupted upload can continue.
const LEVEL: i32 = 3;

/// Bytes of the chunks in which files are read and written.
const PIECE: usize = 256 * 1024;

/// Why a content is not available on our side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The file's digest differs from the expected one.
    #[error("{} has digest {found}, not {expected}, restore it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The expected digest.
        expected: Sha256,
        /// The actual digest.
        found: Sha256,
    },
    /// The file cannot be read, compressed or cached.
    #[error("{} cannot be read or compressed, check the file and the disk", .path.display())]
    Io {
        /// The file, or the folder for compressed files.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A content named by the SHA-256 of its uncompressed bytes. Clones share the compressed form.
///
/// `Debug` never shows the bytes: they may hold tokens and keys.
#[derive(Clone)]
pub struct Blob(Arc<Inner>);

struct Inner {
    digest: Sha256,
    source: Source,
    raw: OnceCell<Payload>,
    packed: OnceCell<Payload>,
}

enum Source {
    Memory(Arc<Zeroizing<Vec<u8>>>),
    File { path: PathBuf, cache: PathBuf },
}

impl Blob {
    /// Creates a content from bytes in memory, for rendered files.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Zeroizing::new(bytes.into());
        Self::new(Sha256::of(&bytes), Source::Memory(Arc::new(bytes)))
    }

    /// Creates a content from a file on our disk, for large payloads. It is read only when needed. Its compressed form
    /// is cached in the folder `cache` as `<digest>.zst` and reused after a restart.
    pub fn from_file(path: impl Into<PathBuf>, digest: Sha256, cache: impl Into<PathBuf>) -> Self {
        Self::new(digest, Source::File { path: path.into(), cache: cache.into() })
    }

    fn new(digest: Sha256, source: Source) -> Self {
        Self(Arc::new(Inner { digest, source, raw: OnceCell::new(), packed: OnceCell::new() }))
    }

    /// Returns the digest of the uncompressed bytes.
    pub fn digest(&self) -> Sha256 {
        self.0.digest
    }

    /// Returns the uncompressed bytes.
    ///
    /// # Errors
    /// [`BlobError`] if the file cannot be read or has changed.
    pub async fn raw(&self) -> Result<Payload, BlobError> {
        let payload = self.0.raw.get_or_try_init(|| async {
            let digest = self.digest();
            match &self.0.source {
                Source::Memory(bytes) => Ok(Payload::memory(digest, Arc::clone(bytes))),
                Source::File { path, .. } => {
                    let path = path.clone();
                    blocking(path.clone(), move || hash_file(&path, digest)).await
                }
            }
        });
        payload.await.cloned()
    }

    /// Returns the zstd form. The first caller compresses; others wait for it.
    ///
    /// # Errors
    /// [`BlobError`] if the file cannot be read or has changed, or the disk is full.
    pub async fn packed(&self) -> Result<Payload, BlobError> {
        let payload = self.0.packed.get_or_try_init(|| async {
            let digest = self.digest();
            match &self.0.source {
                Source::Memory(bytes) => {
                    let bytes = Arc::clone(bytes);
                    blocking(PathBuf::new(), move || pack_memory(&bytes)).await
                }
                Source::File { path, cache } => {
                    let (path, cache) = (path.clone(), cache.clone());
                    blocking(path.clone(), move || pack_file(&path, digest, &cache)).await
                }
            }
        });
        payload.await.cloned()
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Blob");
        shown.field("digest", &self.0.digest);
        if let Source::File { path, .. } = &self.0.source {
            shown.field("path", path);
        }
        shown.finish_non_exhaustive()
    }
}

/// Bytes ready for upload.
#[derive(Clone)]
pub struct Payload {
    length: u64,
    digest: Sha256,
    body: Body,
}

#[derive(Clone)]
enum Body {
    Memory(Arc<Zeroizing<Vec<u8>>>),
    File(Arc<PathBuf>),
}

impl Payload {
    fn memory(digest: Sha256, bytes: Arc<Zeroizing<Vec<u8>>>) -> Self {
        Self { length: bytes.len() as u64, digest, body: Body::Memory(bytes) }
    }

    /// Returns the number of bytes to upload.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the digest of the bytes to upload.
    pub const fn digest(&self) -> Sha256 {
        self.digest
    }

    /// Returns blocks of `size` bytes from `offset` on; the last one may be shorter.
    pub(crate) async fn blocks(&self, offset: u64, size: usize) -> Result<Blocks, BlobError> {
        let source = match &self.body {
            Body::Memory(bytes) => BlockSource::Memory(Arc::clone(bytes)),
            Body::File(path) => {
                let shared = Arc::clone(path);
                let file = blocking(path.to_path_buf(), move || {
                    let mut file = File::open(&*shared).map_err(at(&shared))?;
                    file.seek(SeekFrom::Start(offset)).map_err(at(&shared))?;
                    Ok(file)
                });
                let reader = tokio::io::BufReader::with_capacity(
                    PIECE,
                    tokio::fs::File::from_std(file.await?),
                );
                BlockSource::File { path: Arc::clone(path), reader: Box::new(reader) }
            }
        };
        Ok(Blocks { source, offset, length: self.length, size })
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("length", &self.length)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// A payload split into blocks.
pub(crate) struct Blocks {
    source: BlockSource,
    offset: u64,
    length: u64,
    size: usize,
}

enum BlockSource {
    Memory(Arc<Zeroizing<Vec<u8>>>),
    File { path: Arc<PathBuf>, reader: Box<tokio::io::BufReader<tokio::fs::File>> },
}

impl Blocks {
    /// Returns the next block with its offset; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, BlobError> {
        let offset = self.offset;
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = self.size.min(left);
        if size == 0 {
            return Ok(None);
        }
        let block = match &mut self.source {
            BlockSource::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                bytes.iter().skip(start).take(size).copied().collect()
            }
            BlockSource::File { path, reader } => {
                let mut block = vec![0; size];
                tokio::io::AsyncReadExt::read_exact(reader, &mut block).await.map_err(at(path))?;
                block
            }
        };
        self.offset += size as u64;
        Ok(Some((offset, block)))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    |source| BlobError::Io { path: path.to_owned(), source }
}

async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => Err(BlobError::Io { path, source: io::Error::other(stopped) }),
    }
}

fn pack_memory(bytes: &[u8]) -> Result<Payload, BlobError> {
    let mut packed = Zeroizing::new(Vec::new());
    compress(bytes, Some(bytes.len() as u64), &mut *packed).map_err(at(Path::new("memory")))?;
    Ok(Payload::memory(Sha256::of(&packed), Arc::new(packed)))
}

fn hash_file(path: &Path, expected: Sha256) -> Result<Payload, BlobError> {
    let mut file = Hashing::new(File::open(path).map_err(at(path))?);
    let length = io::copy(&mut file, &mut io::sink()).map_err(at(path))?;
    let found = file.digest();
    if found != expected {
        return Err(BlobError::Changed { path: path.to_owned(), expected, found });
    }
    Ok(Payload { length, digest: found, body: Body::File(Arc::new(path.to_owned())) })
}

fn pack_file(path: &Path, expected: Sha256, cache: &Path) -> Result<Payload, BlobError> {
    let kept = cache.join(format!("{expected}.zst"));
    if let Some(payload) = check_kept(&kept, expected) {
        return Ok(payload);
    }
    std::fs::create_dir_all(cache).map_err(at(cache))?;
    let source = File::open(path).map_err(at(path))?;
    let length = source.metadata().map_err(at(path))?.len();
    let mut source = Hashing::new(source);
    // Written under another name first, so that a file with the final name is complete.
    let mut packed = NamedTempFile::new_in(cache).map_err(at(cache))?;
    compress(&mut source, Some(length), packed.as_file_mut()).map_err(at(path))?;
    let found = source.digest();
    if found != expected {
        return Err(BlobError::Changed { path: path.to_owned(), expected, found });
    }
    packed.persist(&kept).map_err(|error| at(&kept)(error.error))?;
    payload_of(&kept).map_err(at(&kept))
}

/// Returns the compressed file of an earlier run, if it unpacks to the right content.
fn check_kept(kept: &Path, expected: Sha256) -> Option<Payload> {
    let unpacked = zstd::Decoder::new(File::open(kept).ok()?).ok()?;
    let mut unpacked = Hashing::new(unpacked);
    io::copy(&mut unpacked, &mut io::sink()).ok()?;
    if unpacked.digest() == expected { payload_of(kept).ok() } else { None }
}

fn payload_of(path: &Path) -> io::Result<Payload> {
    let mut file = Hashing::new(File::open(path)?);
    let length = io::copy(&mut file, &mut io::sink())?;
    Ok(Payload { length, digest: file.digest(), body: Body::File(Arc::new(path.to_owned())) })
}

fn compress(mut from: impl Read, length: Option<u64>, into: impl Write) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(into, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(length)?;
    io::copy(&mut from, &mut encoder)?;
    encoder.finish()?.flush()
}

/// Hashes the bytes that are read through it.
struct Hashing<R> {
    inner: R,
    hasher: Hasher,
}

impl<R> Hashing<R> {
    fn new(inner: R) -> Self {
        Self { inner, hasher: Hasher::new() }
    }

    fn digest(self) -> Sha256 {
        Sha256::from_bytes(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
