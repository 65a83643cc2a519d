//! The SFTP requests that we need, each with its time-out and its place named in errors.
//!
//! A request is queued when its method is called; the future only waits for the answer. The server
//! answers as if each request had come when the one before was carried out. So requests that need
//! nothing of one another's answers share a round trip: call all methods first, then wait.
//!
//! Source: draft-ietf-secsh-filexfer-02, section 6.1.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::try_join_all;
use russh::ChannelMsg;
use russh::client::Handle;
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as Wrong;
use russh_sftp::protocol::{File, FileAttributes, OpenFlags, StatusCode};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wmco_core::protocol::FreshFolder;
use wmco_core::winpath::WindowsPath;

use super::handler::Handler;
use crate::error::{HostError, is_cut, printable};
use crate::options::{Options, PathStyle};
use crate::stream::Ending;

const OPENING: &str = "opening sftp";

/// The library's own limit per request counts from when the request is queued, which on a slow line
/// is long before it is sent. Ours are stricter and count progress; this one only must not come
/// first.
const LIBRARY_LIMIT_SECONDS: u64 = 3600;

/// Most letters that we keep of what a server says.
const MESSAGE_LETTERS: usize = 200;

/// Most entries of one folder that are looked at in one pass.
const LISTED_AT_MOST: usize = 10_000;

/// Files that are removed in one round trip.
const REMOVED_AT_ONCE: usize = 64;

/// The login user's own folder, where paths without a slash in front begin.
const START_FOLDER: &str = ".";

/// How to open a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Opening {
    /// With what is in it; it is made if it is not there.
    Continue,
    /// Empty; it is made if it is not there.
    Anew,
    /// Only if it is not there yet.
    New,
}

/// One SFTP session.
pub(crate) struct Sftp {
    raw: RawSftpSession,
    /// Cancelled when the server says nothing any more. The library fails the requests that wait at
    /// that moment; one that is made just then, or while its task waits for room, it would forget.
    gone: CancellationToken,
    paths: PathStyle,
    /// Longest wait for an answer while no other comes: on a slow line, requests queue behind writes.
    limit: Duration,
    /// The same for writes.
    stall: Duration,
    /// Requests that were answered.
    answers: AtomicU64,
}

impl Sftp {
    pub(super) async fn open(
        handle: &Handle<Handler>,
        options: &Options,
    ) -> Result<Self, HostError> {
        let limit = options.timeouts.request;
        let gone = CancellationToken::new();
        let opening = async {
            let mut channel = handle.channel_open_session().await.map_err(refused)?;
            channel.request_subsystem(true, "sftp").await.map_err(refused)?;
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

    /// `path` as this server writes it.
    pub(crate) fn render(&self, path: &WindowsPath) -> String {
        self.paths.render(path)
    }

    /// Makes a folder that was not there before. A path without a slash in front lies in the login
    /// user's own folder.
    ///
    /// Source: draft-ietf-secsh-filexfer-02, section 6.2.
    pub(crate) fn make_new_folder(&self, path: &str) -> impl Answer<()> {
        let doing = "making folder";
        let made = self.limited(doing, self.raw.mkdir(path, private()));
        async move { made.await?.map(drop).map_err(|wrong| failed(doing, path, wrong)) }
    }

    /// Size of what is at `path`; `None` if nothing is.
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
            Opening::Anew => flags | OpenFlags::TRUNCATE,
            Opening::New => flags | OpenFlags::EXCLUDE,
        };
        let opened = self.limited(doing, self.raw.open(path, flags, private()));
        async move {
            let opened = opened.await?;
            opened.map(|opened| opened.handle).map_err(|wrong| failed(doing, path, wrong))
        }
    }

    /// Writes one block and returns its length.
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

    /// Moves a file to its final name; what is in the way is replaced.
    ///
    /// On Windows this fails while the server process of a cut connection still has the file open.
    /// That process ends within seconds, and a later upload then finds the whole part.
    pub(crate) fn rename(&self, from: &str, to: &str) -> impl Answer<()> {
        let doing = "renaming";
        let renamed = self.limited(doing, self.raw.rename(from, to));
        async move {
            let Err(first) = renamed.await? else { return Ok(()) };
            if !matches!(first, Wrong::Status(_)) || self.size(to).await?.is_none() {
                return Err(failed(doing, from, first));
            }
            self.remove_file(to).await?;
            let renamed = self.limited(doing, self.raw.rename(from, to)).await?;
            renamed.map(drop).map_err(|wrong| failed(doing, from, wrong))
        }
    }

    /// Removes a file; one that is not there is fine.
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

    /// Removes files; those that are not there are fine.
    pub(crate) async fn remove_files(&self, files: &[WindowsPath]) -> Result<(), HostError> {
        for some in files.chunks(REMOVED_AT_ONCE) {
            let paths: Vec<_> = some.iter().map(|file| self.render(file)).collect();
            try_join_all(paths.iter().map(|path| self.remove_file(path))).await?;
        }
        Ok(())
    }

    /// Removes an empty folder; returns whether it is gone. One that is not there is fine.
    pub(crate) fn remove_folder(&self, path: &str) -> impl Answer<bool> {
        let doing = "removing";
        let removed = self.limited(doing, self.raw.rmdir(path));
        async move {
            match removed.await? {
                Ok(_) => Ok(true),
                Err(wrong) if is_absent(&wrong) => Ok(true),
                // There is no status for "not empty"; a failure of a folder that is there means it.
                Err(Wrong::Status(status)) if status.status_code == StatusCode::Failure => {
                    Ok(self.size(path).await?.is_none())
                }
                Err(wrong) => Err(failed(doing, path, wrong)),
            }
        }
    }

    /// Plain files in `folder` whose names we could have given; anything else is passed over.
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

    /// Folders in the login user's own one that agents were brought to.
    pub(crate) async fn fresh_folders(&self) -> Result<Vec<FreshFolder>, HostError> {
        self.list(START_FOLDER, |file: &File| file.filename.parse().ok()).await
    }

    /// What `ours` makes of the names in a folder, up to [`LISTED_AT_MOST`] of them.
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
        // One ahead: what follows the names of a short list is its end.
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

    /// Queues `request`. Its answer may take until no request at all was answered for as long as `limit`.
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
            // What was answered counts, although it was the last answer.
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

/// What a request leads to, some time.
pub(crate) trait Answer<T>: Future<Output = Result<T, HostError>> + Send {}

impl<T, F: Future<Output = Result<T, HostError>> + Send> Answer<T> for F {}

/// Begins `request`, which the library queues before it waits for anything.
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

/// Who may use what we make. OpenSSH on Windows makes an access list of it that is not inherited and
/// lets in the owner, administrators and the system only; so no token is readable to others, even
/// before the agent has closed the folder.
fn private() -> FileAttributes {
    FileAttributes { permissions: Some(0o700), ..FileAttributes::empty() }
}

fn refused(error: russh::Error) -> HostError {
    if is_cut(&error) {
        HostError::Dropped { doing: OPENING, source: Some(error.into()) }
    } else {
        HostError::ChannelRefused { doing: OPENING, source: Some(error.into()) }
    }
}

/// Whether the type bits say plain file. A server that sends none leaves it to the removal.
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
