//! Streams that end as a whole: a session's socket, and channels that carry a protocol.
//!
//! The SSH library runs each connection in its own task, which outlives its handle while it waits for the peer. Ending
//! the stream below it ends that task in any state. A writer to a channel waits for room in the channel's window, and
//! is not notified when the connection ends.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
