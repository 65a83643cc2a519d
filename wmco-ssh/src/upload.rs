//! Uploads: content-addressed, pipelined, resumed after a cut.
//!
//! A file is written under a name that also holds the digest of the bytes sent, and gets its final
//! name when all of it is there. So a final name always means a whole file, and whatever part is
//! found under the other name can be continued, also by another process.
//!
//! What is in a file is not known from its name and length: the agent tells which contents are staged,
//! by their digests, and all others are sent. An agent is sent whole, into a file that is new.

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

/// Files of one host that are open at the same time; Windows' server has room for some more.
const FILES_AT_ONCE: usize = 64;

/// Digits of the digest of the sent bytes in the name of a part.
const PART_DIGITS: usize = 16;

/// How far an upload has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UploadProgress {
    /// Bytes there, those of earlier attempts included.
    pub done: u64,
    /// Bytes of all files.
    pub total: u64,
}

/// A payload and where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) path: WindowsPath,
    pub(crate) payload: Payload,
}

/// Told of each step forward.
pub(crate) type OnProgress<'a> = &'a (dyn Fn(UploadProgress) + Send + Sync);

impl Session {
    /// Brings all `items` to the host, in place of whatever has their names. Dropping the future ends
    /// the connection, since nobody would know what is still on its way.
    pub(crate) async fn upload(
        &self,
        items: &[Item],
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        self.guarded(self.upload_all(items, on_progress)).await
    }

    /// Makes `folder` and sends a payload, whole, to `path` in it; neither may be there yet.
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
                // In a folder that was there nothing is written, and so nothing run.
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
        // To the end in any case, so that no file is left open on the host.
        let results: Vec<_> = stream::iter(files).buffer_unordered(FILES_AT_ONCE).collect().await;
        results.into_iter().collect()
    }
}

/// Ends the connection of an upload that was given up half-way.
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

/// A file of the host that is open for writing.
struct Opened<'a> {
    handle: String,
    path: &'a str,
    /// Bytes that need not be sent.
    offset: u64,
    check: Check,
}

/// What shows that all of a file is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Check {
    /// The answer to its only write.
    Answer,
    /// Its length as well.
    Length,
}

/// Writes that wait for their answers.
type InFlight<'a> = FuturesUnordered<BoxFuture<'a, Result<u64, HostError>>>;

/// One pass over the files.
///
/// Each is opened, and all at once. Then one after the other queues its blocks, as the window has room
/// for them, its closing, and a look at its length; the next does not wait for the answers. Each gets
/// its final name when all of its own are there.
struct Upload<'a> {
    session: &'a Session,
    sftp: &'a Sftp,
    /// Held by the file whose blocks are queued.
    lane: Mutex<()>,
    /// Room for blocks of this host on their way.
    window: Semaphore,
    /// Room for blocks that a cut may have sent again besides: of each file without a final name as
    /// many as it has, up to a window.
    nameless: Semaphore,
    /// The connection is of no use any more.
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
            let handle = self.sftp.open_file(&part, Opening::Anew).await?;
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
            // Most often the disk is full: give its space back. The first error counts.
            let _ = self.sftp.remove_file(&part).await;
        }
        filled?;
        self.sftp.rename(&part, &to).await
    }

    /// Opens a part to go on with what is there of it.
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
                (self.sftp.open_file(part, Opening::Anew).await?, 0)
            }
        };
        Ok(Opened { handle, path: part, offset, check: Check::Length })
    }

    /// Sends what `file` lacks, closes it, and sees that all of it is there.
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
            // The server does these after the writes.
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
        // The others need not go on.
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

    /// Removes a file that is not as long as what was written to it.
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

/// Whether a connection can be used after this: a refused request leaves it usable, anything else not.
fn is_usable<T>(outcome: &Result<T, HostError>) -> bool {
    matches!(outcome, Ok(_) | Err(HostError::Sftp { .. } | HostError::Blob(_)))
}
