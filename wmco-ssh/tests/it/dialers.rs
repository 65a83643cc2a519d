//! Connections with faults.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wmco_ssh::{ByteStream, Dialer, TcpDialer};

/// Discards everything written after this many bytes, like a network that has failed.
pub(crate) struct Silent(pub(crate) Arc<AtomicU64>);

#[async_trait]
impl Dialer for Silent {
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream> {
        let inner = TcpDialer.dial(address, port).await?;
        Ok(Box::new(Swallow { inner, left: Arc::clone(&self.0) }))
    }
}

struct Swallow {
    inner: ByteStream,
    left: Arc<AtomicU64>,
}

impl AsyncRead for Swallow {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Swallow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let left = self.left.load(Ordering::Relaxed);
        if left < buf.len() as u64 {
            self.left.store(0, Ordering::Relaxed);
            return Poll::Ready(Ok(buf.len()));
        }
        let written = std::task::ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.left.fetch_sub(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Connects every address to the same real host.
pub(crate) struct Everywhere(pub(crate) wmco_ssh::Target);

#[async_trait]
impl Dialer for Everywhere {
    async fn dial(&self, _: &str, _: u16) -> io::Result<ByteStream> {
        TcpDialer.dial(&self.0.address, self.0.port).await
    }
}
