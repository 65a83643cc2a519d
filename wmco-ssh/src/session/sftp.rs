//! The SFTP requests that uploads and clean-up need, each with a time-out and with its path in errors.
//!
//! Calling a method queues its request; the future only waits for the response. The server processes requests in order.
//! So independent requests share a round trip: call all methods first, then wait.
//!
//! Source: draft-ietf-secsh-filexfer-02, section 6.1.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::try_join_all;
use russh::client::Msg;
use russh::{Channel, ChannelMsg};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as Wrong;
use russh_sftp::protocol::{File, FileAttributes, OpenFlags, StatusCode};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wmco_core::protocol::FreshFolder;
use wmco_core::winpath::WindowsPath;

use crate::error::{HostError, printable};
use crate::options::{Options, PathStyle};
use crate::stream::Ending;

const OPENING: &str = "opening sftp";

/// The library's own limit starts when a request is queued, on a slow line long before it is sent. Our limits are
/// stricter and count progress; the library's must only not expire first.
const LIBRARY_LIMIT_SECONDS: u64 = 3600;

/// Most characters of a server's message that are kept.
const MESSAGE_LETTERS: usize = 200;

/// Most entries of a folder that are listed in one pass.
const LISTED_AT_MOST: usize = 10_000;

/// Files that are removed in one round trip.
const REMOVED_AT_ONCE: usize = 64;

/// The login user's home, where relative paths begin.
const START_FOLDER: &str = ".";

/// The mode in which a file is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Opening {
    /// Keeps the content; creates a missing file.
    Continue,
    /// Truncates the content; creates a missing file.
    Truncate,
    /// Creates the file; fails if it exists.
    New,
}

/// An SFTP session.
pub(crate) struct Sftp {
    raw: RawSftpSession,
    /// Cancelled when the server's responses end. The library then fails the waiting requests; but a request that is
    /// made at that moment, or while its task waits for room, would never complete.
    gone: CancellationToken,
    paths: PathStyle,
    /// Longest wait for a response while no other arrives: on a slow line, requests queue behind writes.
    limit: Duration,
    /// The same for writes.
    stall: Duration,
    /// Number of responses.
    answers: AtomicU64,
}

impl Sftp {
    /// Starts the subsystem in `channel`.
    pub(super) async fn open(
        mut channel: Channel<Msg>,
        options: &Options,
    ) -> Result<Self, HostError> {
        let limit = options.timeouts.request;
        let gone = CancellationToken::new();
        let opening = async {
            let requested = channel.request_subsystem(true, "sftp").await;
            requested.map_err(|error| HostError::from_channel(OPENING, error))?;
            loop {
                match channel.wait().await {
                    Some(ChannelMsg::Success) => break,
                    Some(ChannelMsg::WindowAdjusted { .. }) => {}
                    Some(_) => {
                        return Err(HostError::ChannelRefused { doing: OPENING, source: None });
                    }
                    None => return Err(HostError::Dropped { doing: OPENING, source: None }),
                }
            }
            let config = russh_sftp::client::Config {
                request_timeout_secs: LIBRARY_LIMIT_SECONDS,
                ..Default::default()
            };
            let stream = Ending::new(channel.into_stream(), gone.clone());
            let raw = RawSftpSession::new_with_config(stream, config);
            raw.init().await.map_err(|wrong| HostError::ChannelRefused {
                doing: OPENING,
                source: Some(wrong.into()),
            })?;
            Ok(raw)
        };
        let raw = timeout(limit, opening)
            .await
            .unwrap_or(Err(HostError::TimedOut { doing: OPENING, after: limit }))?;
        options.counters.sftp_opened();
        let (paths, stall) = (options.paths.clone(), options.timeouts.upload_stall);
        Ok(Self { raw, gone, paths, limit, stall, answers: AtomicU64::new(0) })
    }

    /// Returns a token that is cancelled when the server has ended the session.
    pub(super) fn ended(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Renders `path` in this server's form.
    pub(crate) fn render(&self, path: &WindowsPath) -> String {
        self.paths.render(path)
    }

    /// Creates a folder; fails if it exists. A relative path lies in the login user's home.
    ///
    /// Source: draft-ietf-secsh-filexfer-02, section 6.2.
    pub(crate) fn make_new_folder(&self, path: &str) -> impl Answer<()> {
        let doing = "making folder";
        let made = self.limited(doing, self.raw.mkdir(path, private()));
        async move { made.await?.map(drop).map_err(|wrong| failed(doing, path, wrong)) }
    }

    /// Returns the size of the file at `path`; `None` if it does not exist.
    pub(crate) fn size(&self, path: &str) -> impl Answer<Option<u64>> {
        let doing = "looking at";
        let found = self.limited(doing, self.raw.stat(path));
        async move {
            match found.await? {
                Ok(found) => Ok(Some(found.attrs.size.unwrap_or(0))),
                Err(wrong) if is_absent(&wrong) => Ok(None),
                Err(wrong) => Err(failed(doing, path, wrong)),
            }
        }
    }

    /// Opens a file for writing and returns its handle.
    pub(crate) fn open_file(&self, path: &str, how: Opening) -> impl Answer<String> {
        let doing = "opening";
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let flags = match how {
            Opening::Continue => flags,
            Opening::Truncate => flags | OpenFlags::TRUNCATE,
            Opening::New => flags | OpenFlags::EXCLUDE,
        };
        let opened = self.limited(doing, self.raw.open(path, flags, private()));
        async move {
            let opened = opened.await?;
            opened.map(|opened| opened.handle).map_err(|wrong| failed(doing, path, wrong))
        }
    }

    /// Writes a block and returns its length.
    pub(crate) fn write(
        &self,
        handle: &str,
        path: &str,
        offset: u64,
        block: Vec<u8>,
    ) -> impl Answer<u64> {
        let length = block.len() as u64;
        let request = self.raw.write(handle, offset, block);
        let written = self.answered("uploading", self.stall, request);
        async move { written.await?.map(|_| length).map_err(|wrong| failed("writing", path, wrong)) }
    }

    pub(crate) fn close_file(&self, handle: &str, path: &str) -> impl Answer<()> {
        let doing = "closing";
        let closed = self.limited(doing, self.raw.close(handle));
        async move { closed.await?.map(drop).map_err(|wrong| failed(doing, path, wrong)) }
    }

    /// Moves a file to its final name, replacing an existing file.
    ///
    /// On Windows this fails while the server process of an interrupted connection still has the file open. That
    /// process ends within seconds, and a later upload then finds the complete part.
    pub(crate) fn rename(&self, from: &str, to: &str) -> impl Answer<()> {
        let doing = "renaming";
        let renamed = self.limited(doing, self.raw.rename(from, to));
        async move {
            let Err(first) = renamed.await? else { return Ok(()) };
            if !matches!(first, Wrong::Status(_)) || self.size(to).await?.is_none() {
                return Err(failed(doing, from, first));
            }
            if self.size(from).await?.is_none() {
                // The server process of an interrupted connection has moved it meanwhile.
                return Ok(());
            }
            self.remove_file(to).await?;
            let renamed = self.limited(doing, self.raw.rename(from, to)).await?;
            renamed.map(drop).map_err(|wrong| failed(doing, from, wrong))
        }
    }

    /// Removes a file; a missing file is no error.
    pub(crate) fn remove_file(&self, path: &str) -> impl Answer<()> {
        let doing = "removing";
        let removed = self.limited(doing, self.raw.remove(path));
        async move {
            match removed.await? {
                Ok(_) => Ok(()),
                Err(wrong) if is_absent(&wrong) => Ok(()),
                Err(wrong) => Err(failed(doing, path, wrong)),
            }
        }
    }

    /// Removes files; missing files are no error.
    pub(crate) async fn remove_files(&self, files: &[WindowsPath]) -> Result<(), HostError> {
        for some in files.chunks(REMOVED_AT_ONCE) {
            let paths: Vec<_> = some.iter().map(|file| self.render(file)).collect();
            try_join_all(paths.iter().map(|path| self.remove_file(path))).await?;
        }
        Ok(())
    }

    /// Removes an empty folder; returns whether it is gone. A missing folder is no error.
    pub(crate) fn remove_folder(&self, path: &str) -> impl Answer<bool> {
        let doing = "removing";
        let removed = self.limited(doing, self.raw.rmdir(path));
        async move {
            match removed.await? {
                Ok(_) => Ok(true),
                Err(wrong) if is_absent(&wrong) => Ok(true),
                // SFTP has no status for "not empty"; a failure for an existing folder means that.
                Err(Wrong::Status(status)) if status.status_code == StatusCode::Failure => {
                    Ok(self.size(path).await?.is_none())
                }
                Err(wrong) => Err(failed(doing, path, wrong)),
            }
        }
    }

    /// Returns plain files in `folder` with names that we could have given; ignores other entries.
    pub(crate) async fn files_in(
        &self,
        folder: &WindowsPath,
    ) -> Result<Vec<WindowsPath>, HostError> {
        let ours = |file: &File| {
            let path = folder.join(&file.filename).ok()?;
            let plain = is_plain(file.attrs.permissions);
            (plain && path.parent().as_ref() == Some(folder)).then_some(path)
        };
        self.list(&self.render(folder), ours).await
    }

    /// Returns the folders in the login user's home to which agents were uploaded.
    pub(crate) async fn fresh_folders(&self) -> Result<Vec<FreshFolder>, HostError> {
        self.list(START_FOLDER, |file: &File| file.filename.parse().ok()).await
    }

    /// Maps the entries of a folder with `ours`, up to about [`LISTED_AT_MOST`] of them.
    async fn list<T>(
        &self,
        path: &str,
        ours: impl Fn(&File) -> Option<T> + Send,
    ) -> Result<Vec<T>, HostError>
    where
        T: Send,
    {
        let doing = "listing";
        let handle = match self.limited(doing, self.raw.opendir(path)).await? {
            Ok(opened) => opened.handle,
            Err(wrong) if is_absent(&wrong) => return Ok(Vec::new()),
            Err(wrong) => return Err(failed(doing, path, wrong)),
        };
        let read = || self.limited(doing, self.raw.readdir(handle.as_str()));
        let mut found = Vec::new();
        let mut listed = 0;
        // Requests one read ahead: the end follows the names of a short list.
        let mut next = read();
        while listed < LISTED_AT_MOST {
            let names = std::mem::replace(&mut next, read());
            match names.await? {
                Ok(names) if names.files.is_empty() => break,
                Ok(names) => {
                    listed += names.files.len();
                    found.extend(names.files.iter().filter_map(&ours));
                }
                Err(Wrong::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(wrong) => return Err(failed(doing, path, wrong)),
            }
        }
        self.close_file(&handle, path).await?;
        Ok(found)
    }

    fn limited<T: Send>(
        &self,
        doing: &'static str,
        request: impl Future<Output = Result<T, Wrong>> + Send,
    ) -> impl Answer<Result<T, Wrong>> {
        self.answered(doing, self.limit, request)
    }

    /// Queues `request`. It times out when no request was answered for as long as `limit`.
    fn answered<T: Send>(
        &self,
        doing: &'static str,
        limit: Duration,
        request: impl Future<Output = Result<T, Wrong>> + Send,
    ) -> impl Answer<Result<T, Wrong>> {
        let request = queued(request);
        async move {
            let mut answer = pin!(self.unless_gone(doing, request));
            let answers = || self.answers.load(Ordering::Relaxed);
            let mut before = answers();
            loop {
                match timeout(limit, answer.as_mut()).await {
                    Ok(answer) => {
                        self.answers.fetch_add(1, Ordering::Relaxed);
                        return answer;
                    }
                    Err(_) if answers() != before => before = answers(),
                    Err(_) => return Err(HostError::TimedOut { doing, after: limit }),
                }
            }
        }
    }

    async fn unless_gone<T>(
        &self,
        doing: &'static str,
        request: impl Future<Output = Result<T, Wrong>> + Send,
    ) -> Result<Result<T, Wrong>, HostError> {
        tokio::select! {
            // A response that has arrived counts, even if it is the last one.
            biased;
            answer = request => {
                if matches!(answer, Err(ref wrong) if !matches!(wrong, Wrong::Status(_))) {
                    self.gone.cancel();
                }
                Ok(answer)
            }
            () = self.gone.cancelled() => Err(HostError::Dropped { doing, source: None }),
        }
    }
}

/// The future response to a request.
pub(crate) trait Answer<T>: Future<Output = Result<T, HostError>> + Send {}

impl<T, F: Future<Output = Result<T, HostError>> + Send> Answer<T> for F {}

/// Starts `request`, which the library queues before it waits for anything.
fn queued<T: Send>(request: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    let mut request = Box::pin(request);
    let begun = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    async move {
        match begun {
            Poll::Ready(answer) => answer,
            Poll::Pending => request.await,
        }
    }
}

/// Permissions of new files and folders. OpenSSH on Windows derives an access list from them that is not inherited and
/// admits only the owner, administrators and the system; so no token is readable to others, even before the agent has
/// closed the folder.
fn private() -> FileAttributes {
    FileAttributes { permissions: Some(0o700), ..FileAttributes::empty() }
}

/// Whether the type bits mean a plain file. Without type bits, the removal decides.
fn is_plain(permissions: Option<u32>) -> bool {
    const TYPE: u32 = 0o170_000;
    const PLAIN: u32 = 0o100_000;
    permissions.is_none_or(|bits| bits & TYPE == PLAIN || bits & TYPE == 0)
}

fn is_absent(wrong: &Wrong) -> bool {
    matches!(wrong, Wrong::Status(status) if status.status_code == StatusCode::NoSuchFile)
}

fn failed(doing: &'static str, path: &str, wrong: Wrong) -> HostError {
    match wrong {
        Wrong::Status(status) => {
            let says = printable(&status.error_message, MESSAGE_LETTERS);
            let source = format!("{}: {says}", status.status_code).into();
            HostError::Sftp { doing, path: path.to_owned(), source }
        }
        _ => HostError::Dropped { doing, source: Some(wrong.into()) },
    }
}
