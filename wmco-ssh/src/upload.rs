//! Uploads: content-addressed, pipelined, resumed after an interruption.
//!
//! A file is written under a name that also holds the digest of its bytes, and gets its final name when it is complete.
//! So a file with a final name is always complete, and a part under the other name can be continued, also by another
//! process.
//!
//! Name and length do not prove a file's content: the agent reports the digests of the staged contents, and all others
//! are sent. An agent is always sent completely, to a new file.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::future::{BoxFuture, OptionFuture, join};
use futures::stream::{self, FuturesUnordered, StreamExt as _};
use tokio::sync::{Mutex, MutexGuard, Semaphore};
use wmco_core::limits::UPLOAD_BLOCK_BYTES as BLOCK;
use wmco_core::winpath::WindowsPath;

use crate::blob::Payload;
use crate::error::HostError;
use crate::session::{Opening, Session, Sftp};

/// Files of a host that are open at the same time; the Windows server permits some more.
const FILES_AT_ONCE: usize = 64;

/// Digits of the content's digest in the name of a part.
const PART_DIGITS: usize = 16;

/// The progress of an upload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UploadProgress {
    /// Bytes on the host, including those of earlier attempts.
    pub done: u64,
    /// Bytes of all files.
    pub total: u64,
}

/// A payload and its destination.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) path: WindowsPath,
    pub(crate) payload: Payload,
}

/// Called after each progress.
pub(crate) type OnProgress<'a> = &'a (dyn Fn(UploadProgress) + Send + Sync);

impl Session {
    /// Uploads all `items` to the host, replacing files of these names. Dropping the future closes the connection,
    /// since the state of unacknowledged writes is unknown.
    pub(crate) async fn upload(
        &self,
        items: &[Item],
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        self.guarded(self.upload_all(items, on_progress)).await
    }

    /// Creates `folder` and uploads a whole payload to `path` in it; neither may exist yet.
    pub(crate) async fn upload_new(
        &self,
        folder: &str,
        path: &str,
        payload: &Payload,
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        let sending = async {
            let sftp = self.sftp().await?;
            let made = sftp.make_new_folder(folder);
            let (made, opened) = join(made, sftp.open_file(path, Opening::New)).await;
            if let (Err(_), Ok(handle)) = (&made, &opened) {
                // Nothing is written to a folder that existed before, so nothing in it is run.
                sftp.close_file(handle, path).await?;
            }
            made?;
            let file = Opened { handle: opened?, path, offset: 0, check: Check::Length };
            let _uploading = self.options().counters.uploading();
            let upload = Upload::new(self, &sftp, payload.length(), on_progress);
            upload.fill(&file, payload, upload.lane.lock().await).await
        };
        self.guarded(sending).await
    }

    async fn guarded(
        &self,
        work: impl Future<Output = Result<(), HostError>> + Send,
    ) -> Result<(), HostError> {
        let mut guard = EndUnlessDone { session: self, done: false };
        let result = Box::pin(work).await;
        guard.done = is_usable(&result);
        result
    }

    async fn upload_all(
        &self,
        items: &[Item],
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        if items.is_empty() {
            return Ok(());
        }
        let sftp = self.sftp().await?;
        let _uploading = self.options().counters.uploading();
        let total = items.iter().map(|item| item.payload.length()).sum();
        let upload = Upload::new(self, &sftp, total, on_progress);
        let files: Vec<_> = items.iter().map(|item| upload.file(item)).collect();
        // Waits for all, so that no file is left open on the host.
        let results: Vec<_> = stream::iter(files).buffer_unordered(FILES_AT_ONCE).collect().await;
        results.into_iter().collect()
    }
}

/// Closes the connection of an abandoned upload.
struct EndUnlessDone<'a> {
    session: &'a Session,
    done: bool,
}

impl Drop for EndUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.session.end_now();
        }
    }
}

/// A file on the host that is open for writing.
struct Opened<'a> {
    handle: String,
    path: &'a str,
    /// Bytes that are not sent again.
    offset: u64,
    check: Check,
}

/// The proof that a file is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Check {
    /// The response to its only write.
    Answer,
    /// Its length as well.
    Length,
}

/// Unacknowledged writes.
type InFlight<'a> = FuturesUnordered<BoxFuture<'a, Result<u64, HostError>>>;

/// The upload of several files.
///
/// All files are opened at once. Then one after the other queues its blocks, as the window permits, the closing of the
/// file, and a request of its length; the next file does not wait for the responses. Each file gets its final name when
/// its own blocks are written.
struct Upload<'a> {
    session: &'a Session,
    sftp: &'a Sftp,
    /// Held by the file that queues its blocks.
    lane: Mutex<()>,
    /// Permits for unacknowledged blocks of this host.
    window: Semaphore,
    /// Permits for further blocks that may be sent again after a disconnect: for each file without a final name as many
    /// as it has, up to a window.
    nameless: Semaphore,
    /// Whether the connection is unusable.
    broken: AtomicBool,
    done: AtomicU64,
    total: u64,
    on_progress: OnProgress<'a>,
}

impl<'a> Upload<'a> {
    fn new(session: &'a Session, sftp: &'a Sftp, total: u64, on_progress: OnProgress<'a>) -> Self {
        let options = session.options();
        Self {
            session,
            sftp,
            lane: Mutex::new(()),
            window: Semaphore::new(options.blocks_in_flight()),
            nameless: Semaphore::new(options.nameless_blocks()),
            broken: AtomicBool::new(false),
            done: AtomicU64::new(0),
            total,
            on_progress,
        }
    }

    async fn file(&self, item: &Item) -> Result<(), HostError> {
        let to = self.sftp.render(&item.path);
        let digest = item.payload.digest().to_string();
        let part = format!("{to}.{}.part", digest.get(..PART_DIGITS).unwrap_or(&digest));
        let length = item.payload.length();
        let file = if length <= BLOCK as u64 {
            let handle = self.sftp.open_file(&part, Opening::Truncate).await?;
            Opened { handle, path: &part, offset: 0, check: Check::Answer }
        } else {
            self.open_to_resume(&part, length).await?
        };
        let lane = self.lane.lock().await;
        let blocks = usize::try_from(length.div_ceil(BLOCK as u64)).unwrap_or(usize::MAX);
        let at_risk = u32::try_from(blocks.min(self.session.options().blocks_in_flight()));
        // A closed semaphore means no limit.
        let _nameless = self.nameless.acquire_many(at_risk.unwrap_or(1)).await.ok();
        let filled = self.fill(&file, &item.payload, lane).await;
        if matches!(filled, Err(HostError::Sftp { .. })) {
            // Usually the disk is full: frees the part's space. The first error is returned.
            let _ = self.sftp.remove_file(&part).await;
        }
        filled?;
        self.sftp.rename(&part, &to).await
    }

    /// Opens a part to continue after its existing content.
    async fn open_to_resume<'p>(
        &self,
        part: &'p str,
        length: u64,
    ) -> Result<Opened<'p>, HostError> {
        let opened = self.sftp.open_file(part, Opening::Continue);
        let (opened, there) = join(opened, self.sftp.size(part)).await;
        let handle = opened?;
        let (handle, offset) = match there {
            Ok(there) if there.is_none_or(|there| there <= length) => {
                let again = self.session.options().bytes_in_flight();
                (handle, there.unwrap_or(0).saturating_sub(again))
            }
            unusable => {
                self.sftp.close_file(&handle, part).await?;
                unusable?;
                (self.sftp.open_file(part, Opening::Truncate).await?, 0)
            }
        };
        Ok(Opened { handle, path: part, offset, check: Check::Length })
    }

    /// Sends the missing bytes of `file`, closes it, and checks that it is complete.
    async fn fill(
        &self,
        file: &Opened<'_>,
        payload: &Payload,
        lane: MutexGuard<'_, ()>,
    ) -> Result<(), HostError> {
        self.advance(file.offset);
        let mut in_flight = InFlight::new();
        let mut sent = self.queue(file, payload, &mut in_flight).await;
        if is_usable(&sent) {
            // The server processes these after the writes.
            let closed = self.sftp.close_file(&file.handle, file.path);
            let look = file.check == Check::Length && sent.is_ok();
            let size = look.then(|| self.sftp.size(file.path));
            drop(lane);
            while is_usable(&sent)
                && let Some(written) = in_flight.next().await
            {
                sent = sent.and(written.map(|bytes| self.advance(bytes)));
            }
            if is_usable(&sent) {
                let (closed, size) = join(closed, OptionFuture::from(size)).await;
                sent?;
                closed?;
                return match size.transpose()? {
                    Some(size) if size != Some(payload.length()) => self.reject(file.path).await,
                    Some(_) | None => Ok(()),
                };
            }
        }
        // The other files stop, too.
        self.broken.store(true, Ordering::Relaxed);
        sent
    }

    /// Queues the blocks of `payload`, each as soon as there is room for it.
    async fn queue<'f>(
        &'f self,
        file: &'f Opened<'_>,
        payload: &Payload,
        in_flight: &mut InFlight<'f>,
    ) -> Result<(), HostError> {
        let options = self.session.options();
        let mut blocks = payload.blocks(file.offset, BLOCK).await?;
        while let Some((offset, block)) = blocks.next().await? {
            // Closed semaphores mean no limit.
            let room = async { (self.window.acquire().await, options.uploads.acquire().await) };
            let mut room = pin!(room);
            let room = loop {
                tokio::select! {
                    biased;
                    Some(written) = in_flight.next(), if !in_flight.is_empty() => {
                        self.advance(written?);
                    }
                    room = &mut room => break room,
                }
            };
            if self.broken.load(Ordering::Relaxed) {
                return Err(HostError::Dropped { doing: "uploading", source: None });
            }
            options.counters.uploaded(block.len() as u64);
            let counted = options.counters.block_sent();
            let written = self.sftp.write(&file.handle, file.path, offset, block);
            in_flight.push(Box::pin(async move {
                let written = written.await;
                drop((room, counted));
                written
            }));
        }
        Ok(())
    }

    /// Removes a file whose length is not that of the bytes written.
    async fn reject(&self, path: &str) -> Result<(), HostError> {
        self.sftp.remove_file(path).await?;
        Err(HostError::Sftp {
            doing: "writing all of",
            path: path.to_owned(),
            source: "the file does not have the length that was written".into(),
        })
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.on_progress)(UploadProgress { done, total: self.total });
    }
}

/// Whether the connection is usable afterwards: after a refused request it is, after other errors not.
fn is_usable<T>(outcome: &Result<T, HostError>) -> bool {
    matches!(outcome, Ok(_) | Err(HostError::Sftp { .. } | HostError::Blob(_)))
}
