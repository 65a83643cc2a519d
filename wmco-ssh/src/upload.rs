//! Uploads: content-addressed, pipelined, resumed after a cut.
//!
//! A file is written under a name that also holds the digest of the bytes sent, and gets its final
//! name when all of it is there. So a final name always means a whole file, and whatever part is
//! found under the other name can be continued, also by another process.
//!
//! What is in a file is not known from its name and length: the agent tells which contents are staged,
//! by their digests, and all others are sent. An agent is sent whole, into a file that is new.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::stream::{self, FuturesOrdered, StreamExt};
use tokio::sync::Mutex;
use tokio::time::timeout;
use wmco_core::limits::UPLOAD_BLOCK_BYTES as BLOCK;
use wmco_core::winpath::WindowsPath;

use crate::blob::Payload;
use crate::error::HostError;
use crate::session::{Opening, Session, Sftp};

/// Files of one host that are prepared or finished at the same time; one of them at a time sends.
pub(crate) const FILES_AT_ONCE: usize = 4;

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

    /// Sends a payload, whole, into a file that is not there yet.
    pub(crate) async fn upload_new(
        &self,
        path: &str,
        payload: &Payload,
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        let sending = async {
            let sftp = self.sftp().await?;
            let handle = sftp.open_file(path, Opening::New).await?;
            // A closed semaphore means no limit.
            let _permit = self.options().uploads.acquire().await.ok();
            let _uploading = self.options().counters.uploading();
            let upload = Upload::new(self, &sftp, payload.length(), on_progress);
            let sent = upload.send(payload, &handle, path, 0).await;
            if let Err(error @ HostError::Dropped { .. }) = sent {
                return Err(error);
            }
            let closed = sftp.close_file(&handle, path).await;
            sent.and(closed)?;
            upload.check_length(path, payload.length()).await
        };
        self.guarded(sending).await
    }

    async fn guarded(
        &self,
        work: impl Future<Output = Result<(), HostError>> + Send,
    ) -> Result<(), HostError> {
        let mut guard = EndUnlessDone { session: self, done: false };
        let result = Box::pin(work).await;
        // A refused request leaves the connection usable, anything else does not.
        guard.done = matches!(result, Ok(()) | Err(HostError::Sftp { .. } | HostError::Blob(_)));
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
        // A closed semaphore means no limit.
        let _permit = self.options().uploads.acquire().await.ok();
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

/// One pass over the files.
struct Upload<'a> {
    session: &'a Session,
    sftp: &'a Sftp,
    /// Held by the file that sends, which bounds memory and what a cut can cost.
    lane: Mutex<()>,
    /// The connection is of no use any more.
    broken: AtomicBool,
    done: AtomicU64,
    total: u64,
    on_progress: OnProgress<'a>,
}

impl<'a> Upload<'a> {
    fn new(session: &'a Session, sftp: &'a Sftp, total: u64, on_progress: OnProgress<'a>) -> Self {
        Self {
            session,
            sftp,
            lane: Mutex::new(()),
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
        let one_block = length <= BLOCK as u64;
        let offset = if one_block { 0 } else { self.resume_at(&part, length).await? };
        let how = if offset == 0 { Opening::Anew } else { Opening::Continue };
        let handle = self.sftp.open_file(&part, how).await?;
        let lane = self.lane.lock().await;
        if self.broken.load(Ordering::Relaxed) {
            return Err(HostError::Dropped { doing: "uploading", source: None });
        }
        self.advance(offset);
        let sent = self.send(&item.payload, &handle, &part, offset).await;
        // Until it has its final name, a cut has its last bytes sent again. Of a short file that is
        // less than waiting for it costs the others.
        let _lane = (!one_block).then_some(lane);
        let closed = match &sent {
            Ok(()) | Err(HostError::Sftp { .. } | HostError::Blob(_)) => {
                self.sftp.close_file(&handle, &part).await
            }
            Err(_) => {
                // The others need not begin.
                self.broken.store(true, Ordering::Relaxed);
                Ok(())
            }
        };
        if matches!(sent, Err(HostError::Sftp { .. })) {
            // Most often the disk is full: give its space back. The first error counts.
            let _ = self.sftp.remove_file(&part).await;
        }
        sent?;
        closed?;
        if !one_block {
            self.check_length(&part, length).await?;
        }
        self.sftp.rename(&part, &to).await
    }

    /// Where to go on with what is there of the part.
    async fn resume_at(&self, part: &str, length: u64) -> Result<u64, HostError> {
        match self.sftp.size(part).await? {
            Some(there) if there <= length => {
                Ok(there.saturating_sub(self.session.options().bytes_in_flight()))
            }
            Some(_) | None => Ok(0),
        }
    }

    async fn check_length(&self, part: &str, length: u64) -> Result<(), HostError> {
        if self.sftp.size(part).await? == Some(length) {
            return Ok(());
        }
        self.sftp.remove_file(part).await?;
        Err(HostError::Sftp {
            doing: "writing all of",
            path: part.to_owned(),
            source: "the file does not have the length that was written".into(),
        })
    }

    async fn send(
        &self,
        payload: &Payload,
        handle: &str,
        part: &str,
        offset: u64,
    ) -> Result<(), HostError> {
        let stall = self.session.options().timeouts.upload_stall;
        let mut blocks = payload.blocks(offset, BLOCK).await?;
        let mut in_flight = FuturesOrdered::new();
        let (mut more, most) = (true, self.session.options().writes_in_flight.max(1));
        loop {
            while more && in_flight.len() < most {
                match blocks.next().await? {
                    Some((offset, block)) => {
                        self.session.options().counters.uploaded(block.len() as u64);
                        in_flight.push_back(self.sftp.write(handle, part, offset, block));
                    }
                    None => more = false,
                }
            }
            match timeout(stall, in_flight.next()).await {
                Ok(Some(written)) => self.advance(written?),
                Ok(None) => return Ok(()),
                Err(_) => return Err(HostError::TimedOut { doing: "uploading", after: stall }),
            }
        }
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.on_progress)(UploadProgress { done, total: self.total });
    }
}
