//! What a server says before its handshake: lines of text, then its version.
//!
//! The SSH library gives up after 20 lines and tells nothing of them. Here they are passed over, within limits, and the
//! first one and the version are kept for errors.
//!
//! Source: RFC 4253, section 4.2; `docs/contract/ssh.md`, SSH52.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::error::printable;

/// Lines before the version, and their length. The RFC has no limit; these are those of OpenSSH's client.
const LINES: usize = 1024;
const LINE_BYTES: usize = 8192;

/// Bytes that are read at once.
const READ_BYTES: usize = 512;

/// Characters of a line that are kept.
const SAID: usize = 200;

const VERSION: &[u8] = b"SSH-";
const SUPPORTED: [&[u8]; 2] = [b"SSH-2.0-", b"SSH-1.99-"];

/// Lines of OpenSSH's server that ends a connection before its version, because of its limits.
const BUSY: [&str; 2] = ["Exceeded MaxStartups", "Not allowed at this time"];

/// What came before the handshake.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Said {
    /// The first line of text.
    pub(crate) line: Option<String>,
    /// The version, if it has come.
    pub(crate) version: Option<String>,
    /// Why no version is awaited any more.
    pub(crate) given_up: Option<&'static str>,
}

impl Said {
    /// Whether text came, and no version.
    pub(crate) const fn is_text_only(&self) -> bool {
        self.version.is_none() && self.line.is_some()
    }

    /// Whether the only line is one with which OpenSSH's server turns a client away for some time.
    pub(crate) fn is_busy(&self) -> bool {
        self.version.is_none()
            && self
                .line
                .as_deref()
                .is_some_and(|line| BUSY.iter().any(|busy| line.starts_with(busy)))
    }
}

/// Shares what came with the owner of the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Mutex<Said>>);

impl Heard {
    pub(crate) fn said(&self) -> Said {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Finds the version among the first lines.
#[derive(Debug, Default)]
struct Search {
    lines: usize,
    line: Vec<u8>,
}

impl Search {
    /// Returns the bytes from the version's line on, once that is complete.
    fn feed(&mut self, bytes: &[u8], heard: &Heard) -> Result<Option<Vec<u8>>, &'static str> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            self.line.extend_from_slice(line);
            let line = std::mem::take(&mut self.line);
            let text = printable(String::from_utf8_lossy(&line).trim_end(), SAID);
            if line.starts_with(VERSION) {
                if !SUPPORTED.iter().any(|version| line.starts_with(version)) {
                    heard.change(|said| said.line = Some(text));
                    return Err("the server speaks an old version of ssh only");
                }
                heard.change(|said| said.version = Some(text));
                return Ok(Some([&line, rest].concat()));
            }
            self.lines += 1;
            heard.change(|said| {
                said.line.get_or_insert(text);
            });
            if self.lines > LINES {
                return Err("more than 1024 lines came before the version of an ssh server");
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > LINE_BYTES {
            let text = printable(&String::from_utf8_lossy(&self.line), SAID);
            heard.change(|said| {
                said.line.get_or_insert(text);
            });
            return Err(
                "a line of more than 8192 bytes came instead of the version of an ssh server",
            );
        }
        Ok(None)
    }
}

/// Reads a stream so that its input begins with the server's version; lines before it are passed over.
pub(crate) struct Greeting {
    heard: Heard,
    search: Option<Search>,
    /// Bytes that were read with the version.
    ready: Vec<u8>,
    at: usize,
}

impl Greeting {
    pub(crate) fn new(heard: Heard) -> Self {
        Self { heard, search: Some(Search::default()), ready: Vec::new(), at: 0 }
    }

    /// Hands out what was read with the version; whether there was anything.
    fn take_ready(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let left = self.ready.get(self.at..).unwrap_or_default();
        let part = left.get(..left.len().min(buf.remaining())).unwrap_or_default();
        let taken = part.len();
        buf.put_slice(part);
        self.at += taken;
        if self.at >= self.ready.len() {
            (self.ready, self.at) = (Vec::new(), 0);
        }
        taken > 0
    }

    /// Reads from `inner`, which is always the same stream.
    pub(crate) fn poll_read(
        &mut self,
        inner: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(search) = &mut self.search {
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            let ended = match ready!(Pin::new(&mut *inner).poll_read(cx, &mut read)) {
                Ok(()) if read.filled().is_empty() => Some(Ok(())),
                Ok(()) => None,
                Err(error) => Some(Err(error)),
            };
            if let Some(ended) = ended {
                // A line without an end is the last that some servers say.
                let rest = std::mem::take(&mut search.line);
                let text = printable(String::from_utf8_lossy(&rest).trim_end(), SAID);
                if !text.is_empty() {
                    self.heard.change(|said| {
                        said.line.get_or_insert(text);
                    });
                }
                self.search = None;
                return Poll::Ready(ended);
            }
            match search.feed(read.filled(), &self.heard) {
                Ok(None) => {}
                Ok(Some(ready)) => (self.search, self.ready) = (None, ready),
                Err(why) => {
                    self.heard.change(|said| said.given_up = Some(why));
                    self.search = None;
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
            }
        }
        if self.take_ready(buf) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(inner).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use proptest::prelude::*;

    use super::*;

    /// Feeds `pieces` one after the other.
    fn fed(pieces: &[&[u8]]) -> (Result<Option<Vec<u8>>, &'static str>, Said) {
        let heard = Heard::default();
        let mut search = Search::default();
        let mut found = Ok(None);
        for piece in pieces {
            found = search.feed(piece, &heard);
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        (found, heard.said())
    }

    #[test]
    fn lines_before_the_version_are_passed_over() {
        let (found, said) =
            fed(&[b"Authorized", b" use only\r\n\r\nSSH-2.0-Open", b"SSH_9.2\r\nrest"]);
        assert_eq!(found.unwrap().unwrap(), b"SSH-2.0-OpenSSH_9.2\r\nrest");
        assert_eq!(said.line.as_deref(), Some("Authorized use only"));
        assert_eq!(said.version.as_deref(), Some("SSH-2.0-OpenSSH_9.2"));
    }

    #[test]
    fn as_many_lines_as_the_client_of_openssh_reads() {
        let text = |lines| format!("{}SSH-2.0-x\n", "hello\n".repeat(lines)).into_bytes();
        assert!(fed(&[&text(LINES)]).0.unwrap().is_some());
        assert!(fed(&[&text(LINES + 1)]).0.unwrap_err().contains("1024 lines"));
        assert!(fed(&[&[b'x'; LINE_BYTES + 1]]).0.unwrap_err().contains("8192 bytes"));
    }

    #[test]
    fn old_versions_are_named() {
        let (found, said) = fed(&[b"SSH-1.5-Cisco\n"]);
        assert!(found.unwrap_err().contains("old version"));
        assert_eq!(said.line.as_deref(), Some("SSH-1.5-Cisco"));
    }

    #[test]
    fn a_server_that_is_busy_is_an_ssh_server() {
        assert!(fed(&[b"Exceeded MaxStartups\r\n"]).1.is_busy());
        assert!(fed(&[b"Not allowed at this time\r\n"]).1.is_busy());
        assert!(!fed(&[b"HTTP/1.1 400 Bad Request\r\n"]).1.is_busy());
        assert!(!fed(&[b"Not allowed at this time\r\nSSH-2.0-x\r\n"]).1.is_busy());
    }

    proptest! {
        /// However the bytes arrive and are read, they are the same from the version on.
        #[test]
        fn nothing_after_the_lines_is_lost(
            lines in prop::collection::vec("[a-z]{0,9}\r?\n", 0..4),
            rest in prop::collection::vec(any::<u8>(), 0..900),
            room in 1..600_usize,
        ) {
            let tail = [b"SSH-2.0-x\r\n".as_slice(), &rest].concat();
            let all = [lines.concat().into_bytes(), tail.clone()].concat();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(async {
                let mut stream = io::Cursor::new(all);
                let mut greeting = Greeting::new(Heard::default());
                let (mut found, mut part) = (Vec::new(), vec![0; room]);
                loop {
                    let mut buf = ReadBuf::new(&mut part);
                    let read = |cx: &mut Context<'_>| greeting.poll_read(&mut stream, cx, &mut buf);
                    poll_fn(read).await.unwrap();
                    if buf.filled().is_empty() {
                        break found;
                    }
                    found.extend_from_slice(buf.filled());
                }
            });
            prop_assert_eq!(read, tail);
        }
    }
}
