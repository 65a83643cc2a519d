//! Streams that end as a whole: a session's socket, and channels that carry a protocol.
//!
//! The SSH library runs each connection in its own task, which outlives its handle while it waits for the peer. Ending
//! the stream below it ends that task in any state. A writer to a channel waits for room in the channel's window, and
//! is not notified when the connection ends. That task does not read while it writes, and what a channel was sent waits
//! in a short queue, behind which its connection stands still: a connection through a channel has to read on.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::bytes::BytesMut;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::dial::ByteStream;
use crate::greeting::{Greeting, Heard};
use crate::metrics::Open;

/// A stream whose writes fail once its token is cancelled; the end of its input and its drop cancel it. Data that has
/// arrived before can be read to the end.
pub(crate) struct Ending<S> {
    inner: S,
    gone: CancellationToken,
    writes_end: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S> Ending<S> {
    pub(crate) fn new(inner: S, gone: CancellationToken) -> Self {
        let writes_end = Box::pin(gone.clone().cancelled_owned());
        Self { inner, gone, writes_end }
    }

    fn writes_ended(&mut self, cx: &mut Context<'_>) -> bool {
        self.writes_end.as_mut().poll(cx).is_ready()
    }
}

impl<S> Drop for Ending<S> {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection has ended")
}

impl<S: AsyncRead + Unpin> AsyncRead for Ending<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.remaining();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        if read.is_err() || before > 0 && buf.remaining() == before {
            self.gone.cancel();
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ending<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.writes_ended(cx) {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writes_ended(cx) {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writes_ended(cx) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Most bytes that are read ahead; a peer that answers requests has no more to say meanwhile.
const AHEAD: usize = 4 * 1024 * 1024;

/// Bytes that are read ahead at a time.
const AHEAD_AT_ONCE: usize = 16 * 1024;

/// A stream that goes on reading while a write waits, so that two ends which both write before they read get on.
pub(crate) struct ReadsOn<S> {
    inner: S,
    ahead: BytesMut,
    /// What reading ahead came to: nothing follows what was read.
    end: Option<io::Result<()>>,
    reader: Option<Waker>,
}

impl<S: AsyncRead + Unpin> ReadsOn<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, ahead: BytesMut::new(), end: None, reader: None }
    }

    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        let mut piece = [0; AHEAD_AT_ONCE];
        while self.end.is_none() && self.ahead.len() < AHEAD {
            let mut piece = ReadBuf::new(&mut piece);
            let Poll::Ready(read) = Pin::new(&mut self.inner).poll_read(cx, &mut piece) else {
                return;
            };
            self.ahead.extend_from_slice(piece.filled());
            if read.is_err() || piece.filled().is_empty() {
                self.end = Some(read);
            }
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
    }

    /// The result of a write, for which reading goes on while it waits.
    fn meanwhile<T>(&mut self, written: Poll<T>, cx: &mut Context<'_>) -> Poll<T> {
        if written.is_pending() {
            self.read_ahead(cx);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadsOn<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            if let Some(end) = self.end.take() {
                // Told once; later reads find the end again.
                self.end = Some(Ok(()));
                return Poll::Ready(end);
            }
            // Reading ahead takes the place of this waker below.
            self.reader = Some(cx.waker().clone());
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let count = self.ahead.len().min(buf.remaining());
        let piece = self.ahead.split_to(count);
        buf.put_slice(&piece);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ReadsOn<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.meanwhile(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.meanwhile(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.meanwhile(shut, cx)
    }
}

/// A counted stream that fails once its token is cancelled; its input begins with the server's version.
pub(crate) struct Guarded {
    inner: Ending<ByteStream>,
    greeting: Greeting,
    open: Open,
    reads_end: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Guarded {
    pub(crate) fn new(
        inner: ByteStream,
        heard: Heard,
        open: Open,
        token: &CancellationToken,
    ) -> Self {
        Self {
            greeting: Greeting::new(heard),
            inner: Ending::new(inner, token.child_token()),
            open,
            reads_end: Box::pin(token.clone().cancelled_owned()),
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.reads_end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ended()));
        }
        let this = &mut *self;
        this.greeting.poll_read(&mut this.inner, cx, buf)
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.open.counters().written(written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};

    use super::*;

    /// Bytes that the other end accepts before a writer has to wait.
    const ROOM: usize = 16;

    #[tokio::test]
    async fn the_end_of_the_input_ends_a_write_that_waits() {
        let (ours, theirs) = duplex(ROOM);
        let (mut reads, mut writes) = split(Ending::new(ours, CancellationToken::new()));
        let (_kept, mut says) = split(theirs);
        let write = async { writes.write_all(&[0; 2 * ROOM]).await };
        let read = async {
            says.write_all(b"last words").await.unwrap();
            says.shutdown().await.unwrap();
            let mut text = String::new();
            reads.read_to_string(&mut text).await.unwrap();
            text
        };
        let (written, text) = tokio::join!(write, read);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(text, "last words");
    }

    /// Each end writes more than the other takes before it reads.
    #[tokio::test]
    async fn two_ends_that_write_before_they_read_get_on() {
        let (ours, mut theirs) = duplex(ROOM);
        let text: Vec<u8> = (0..=255).cycle().take(50 * ROOM).collect();
        let mut ours = ReadsOn::new(ours);
        let ours = async {
            ours.write_all(&text).await.unwrap();
            ours.shutdown().await.unwrap();
            let mut found = Vec::new();
            ours.read_to_end(&mut found).await.unwrap();
            // And its end stays.
            assert_eq!(ours.read(&mut [0]).await.unwrap(), 0);
            found
        };
        let theirs = async {
            theirs.write_all(&text).await.unwrap();
            theirs.shutdown().await.unwrap();
            let mut found = Vec::new();
            theirs.read_to_end(&mut found).await.unwrap();
            found
        };
        let both = async { tokio::join!(ours, theirs) };
        let (at_ours, at_theirs) =
            tokio::time::timeout(std::time::Duration::from_secs(60), both).await.unwrap();
        assert!(at_ours == text && at_theirs == text);
    }

    /// A reader that waits is told of what a writer read ahead.
    #[tokio::test]
    async fn what_was_read_ahead_wakes_its_reader() {
        let (ours, theirs) = duplex(ROOM);
        let (mut reads, mut writes) = split(ReadsOn::new(ours));
        let (mut hears, mut says) = split(theirs);
        let reader = tokio::spawn(async move {
            let mut text = String::new();
            reads.read_to_string(&mut text).await.unwrap();
            text
        });
        tokio::task::yield_now().await;
        let sending = tokio::spawn(async move { writes.write_all(&[0; 2 * ROOM]).await });
        tokio::task::yield_now().await;
        says.write_all(b"last words").await.unwrap();
        says.shutdown().await.unwrap();
        assert_eq!(reader.await.unwrap(), "last words");
        hears.read_exact(&mut [0; 2 * ROOM]).await.unwrap();
        sending.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_token_ends_a_write_that_waits_and_no_read() {
        let (ours, mut theirs) = duplex(ROOM);
        let gone = CancellationToken::new();
        let mut ours = Ending::new(ours, gone.clone());
        theirs.write_all(b"before").await.unwrap();
        let (written, ()) = tokio::join!(ours.write_all(&[0; 2 * ROOM]), async { gone.cancel() });
        assert!(written.is_err());
        let mut before = [0; 6];
        ours.read_exact(&mut before).await.unwrap();
        assert_eq!(&before, b"before");
    }
}
