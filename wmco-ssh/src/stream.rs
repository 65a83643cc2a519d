//! The socket of a session, which can be ended from outside.
//!
//! The SSH library runs each connection in a task of its own that outlives its handle while it
//! waits for the peer. Ending the stream below it ends that task, whatever it waits for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::dial::ByteStream;
use crate::metrics::Open;

/// A counted stream that fails as soon as its token is cancelled.
pub(crate) struct Guarded {
    inner: ByteStream,
    open: Open,
    reads_end: Pin<Box<WaitForCancellationFutureOwned>>,
    writes_end: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Guarded {
    pub(crate) fn new(inner: ByteStream, open: Open, token: &CancellationToken) -> Self {
        Self {
            inner,
            open,
            reads_end: Box::pin(token.clone().cancelled_owned()),
            writes_end: Box::pin(token.clone().cancelled_owned()),
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the session was closed on this side")
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
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.writes_end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ended()));
        }
        let written = std::task::ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.open.counters().written(written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writes_end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writes_end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
