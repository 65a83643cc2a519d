//! Servers that try to block us.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use wmco_core::secret::Secret;
use wmco_ssh::{
    ByteStream, ConnectError, Credentials, Dialer, Options, PrivateKey, Retry, Route, Session,
    Target, TcpDialer, Timeouts,
};

/// Waits until no socket is open; if a task never ends, the test's own time-out fails it.
pub(crate) async fn all_closed(options: &Options) {
    while options.counters.snapshot().open > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// More than all our buffers, less than a server could send within the time-outs.
const PEAK_KIB: u64 = 256 * 1024;

pub(crate) fn check_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < PEAK_KIB, "{peak} KiB");
}

pub(crate) fn credentials() -> Credentials {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    crate::sshd::keygen(&file, &["-t", "ed25519"]);
    let key = PrivateKey::parse(&Secret::new(std::fs::read(file).unwrap())).unwrap();
    Credentials::new("Administrator", key)
}

/// Where a time-out is what is tested.
const SHORT: Duration = Duration::from_millis(400);

/// Where another error is.
const LONG: Duration = Duration::from_secs(120);

fn options(limit: Duration) -> Options {
    Options {
        timeouts: Timeouts { connect: limit, authenticate: limit, ..Timeouts::default() },
        ..Options::default()
    }
}

async fn against<F: Future<Output = ()> + Send + 'static>(
    limit: Duration,
    server: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> ConnectError {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        server(socket).await;
    });
    let options = options(limit);
    let error = connect(address, &options).await.unwrap_err();
    all_closed(&options).await;
    server.abort();
    check_memory();
    error
}

async fn connect(address: SocketAddr, options: &Options) -> Result<Session, ConnectError> {
    let target = Target { address: address.ip().to_string(), port: address.port() };
    let route = Route::new(target, credentials());
    let connecting = Session::connect(&route, &TcpDialer, options);
    tokio::time::timeout(2 * LONG, connecting).await.expect("every wait has an end")
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = connect(address, &options(LONG)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Helps);
}

#[tokio::test]
async fn an_unknown_name_is_unreachable() {
    /// As the system's resolver answers; what it would be asked is the machine's own DNS.
    struct NoSuchName;
    #[async_trait]
    impl Dialer for NoSuchName {
        async fn dial(&self, _: &str, _: u16) -> io::Result<ByteStream> {
            Err(io::Error::other("failed to lookup address information: Name or service not known"))
        }
    }
    let route = Route::new(Target::new("host.invalid"), credentials());
    let refused = Session::connect(&route, &NoSuchName, &options(LONG)).await;
    assert_eq!(refused.unwrap_err().verb(), "unreachable");
}

#[tokio::test]
async fn silence_times_out() {
    let error = against(SHORT, |mut socket| async move {
        let mut sink = [0; 1024];
        while socket.read(&mut sink).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    assert_eq!(error.verb(), "timed-out");
    assert_eq!(error.retry(), Retry::Helps);
    assert!(error.to_string().contains("tcp was connected, but no version"), "{error}");
}

#[tokio::test]
async fn silence_after_the_version_says_so() {
    let error = against(SHORT, |mut socket| async move {
        socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        let mut sink = [0; 1024];
        while socket.read(&mut sink).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    assert!(error.to_string().contains("said `SSH-2.0-OpenSSH_9.2`, but the keys"), "{error}");
}

/// How our connection ends when it says this.
async fn error_after(text: &'static str) -> ConnectError {
    against(LONG, move |mut socket| async move {
        // Our version is read, or the end of the connection would be a reset.
        socket.read_exact(&mut [0; 8]).await.unwrap();
        socket.write_all(text.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut sink = [0; 1024];
        while socket.read(&mut sink).await.is_ok_and(|read| read > 0) {}
    })
    .await
}

/// The kind and the cause of that.
async fn after_saying(text: &'static str) -> (&'static str, String) {
    let error = error_after(text).await;
    (error.verb(), std::error::Error::source(&error).unwrap().to_string())
}

#[tokio::test]
async fn first_line_of_another_server_is_shown() {
    for text in ["HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "HTTP/1.1 400 Bad Request"] {
        let (verb, cause) = after_saying(text).await;
        assert_eq!(verb, "protocol");
        assert_eq!(cause, "it said `HTTP/1.1 400 Bad Request`, which is no version of ssh");
    }
    let (verb, cause) = after_saying("SSH-1.5-old\r\n").await;
    assert_eq!(verb, "protocol");
    assert!(cause.contains("`SSH-1.5-old`"), "{cause}");
    let (_, cause) = after_saying("\x1b[2J\x07welcome\r\n").await;
    assert!(cause.contains("`[2Jwelcome`"), "{cause}");
}

/// A packet in clear with which a server ends the connection. Source: RFC 4253, sections 6 and 11.1.
fn disconnect(words: &str) -> Vec<u8> {
    const BLOCK: usize = 8;
    let text =
        |text: &str| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
    let payload = [&[1, 0, 0, 0, 7], &*text(words), &*text("en")].concat();
    let padding = BLOCK + (BLOCK - (5 + payload.len()) % BLOCK);
    let length = u32::try_from(1 + payload.len() + padding).unwrap();
    let mut head = length.to_be_bytes().to_vec();
    head.push(u8::try_from(padding).unwrap());
    [head, payload, vec![0; padding]].concat()
}

/// As appliances, and servers that look at addresses, say why they serve nobody.
#[tokio::test]
async fn words_of_a_server_that_ends_the_handshake_are_told() {
    for (words, told) in [
        ("Too many users\x07", "the server said: Too many users"),
        ("", "the server gave no reason"),
    ] {
        let error = against(LONG, move |mut socket| async move {
            socket.write_all(b"SSH-2.0-Appliance\r\n").await.unwrap();
            socket.read_exact(&mut [0; 64]).await.unwrap();
            socket.write_all(&disconnect(words)).await.unwrap();
            let mut sink = [0; 1024];
            while socket.read(&mut sink).await.is_ok_and(|read| read > 0) {}
        })
        .await;
        assert_eq!((error.verb(), error.retry()), ("dropped", Retry::Helps));
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, told);
        assert!(error.to_string().contains("see the log of its ssh server"), "{error}");
    }
}

/// Something that says a line, then resets the connection.
struct Resets(&'static [u8]);

impl AsyncRead for Resets {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let text = std::mem::take(&mut self.0);
        if text.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        buf.put_slice(text);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn words_before_a_reset_are_told() {
    struct Says(&'static str);
    #[async_trait]
    impl Dialer for Says {
        async fn dial(&self, _: &str, _: u16) -> io::Result<ByteStream> {
            Ok(Box::new(tokio::io::join(Resets(self.0.as_bytes()), tokio::io::sink())))
        }
    }
    let error_of = async |text| {
        let route = Route::new(Target::new("10.0.0.5"), credentials());
        Session::connect(&route, &Says(text), &options(LONG)).await.unwrap_err()
    };
    for text in ["Access from 10.0.0.9 is denied\r\n", "Access from 10.0.0.9 is denied"] {
        let error = error_of(text).await;
        assert_eq!(error.verb(), "protocol", "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "it said `Access from 10.0.0.9 is denied`, which is no version of ssh");
    }
    assert_eq!(error_of("Exceeded MaxStartups\r\n").await.verb(), "busy");
    assert_eq!(error_of("").await.verb(), "dropped");
}

/// Such servers turn clients away for some time only.
#[tokio::test]
async fn words_of_a_busy_server_are_shown_and_a_retry_helps() {
    let of_busy = [
        ("Exceeded MaxStartups\r\n", "(it said `Exceeded MaxStartups`)"),
        ("Not allowed at this time\r\n", "(it said `Not allowed at this time`)"),
    ];
    for (text, told) in of_busy {
        let error = error_after(text).await;
        assert_eq!((error.verb(), error.retry()), ("busy", Retry::Helps));
        assert!(error.host_answered());
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[tokio::test]
async fn an_endless_banner_is_cut_off() {
    let error = against(LONG, |mut socket| async move {
        while socket.write_all(b"welcome to the machine\r\n").await.is_ok() {}
    })
    .await;
    assert_eq!(error.verb(), "protocol");
}

#[tokio::test]
async fn an_endless_line_is_cut_off() {
    let error =
        against(
            LONG,
            |mut socket| async move { while socket.write_all(&[b'x'; 512]).await.is_ok() {} },
        )
        .await;
    assert_eq!(error.verb(), "protocol");
}

#[tokio::test]
async fn a_slow_banner_times_out() {
    let error = against(SHORT, |mut socket| async move {
        while socket.write_all(b"S").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(error.verb(), "timed-out");
}

#[tokio::test]
async fn garbage_after_the_banner_is_an_error() {
    let error = against(LONG, |mut socket| async move {
        socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        let _ = socket.write_all(&[0xa5; 4096]).await;
        let mut sink = [0; 1024];
        while socket.read(&mut sink).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    assert_eq!(error.verb(), "protocol");
}

#[tokio::test]
async fn a_handshake_one_byte_at_a_time_times_out() {
    let error = against(SHORT, |mut socket| async move {
        socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        // The start of a long packet, then single bytes.
        socket.write_all(&[0, 0, 0x7f, 0]).await.unwrap();
        while socket.write_all(&[0]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(error.verb(), "timed-out");
}

#[tokio::test]
async fn a_cut_during_the_handshake_is_worth_a_retry() {
    let error = against(LONG, |mut socket| async move {
        socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
    })
    .await;
    assert_eq!(error.verb(), "dropped");
    assert_eq!(error.retry(), Retry::Helps);
}

#[tokio::test]
async fn a_dropped_attempt_leaves_nothing_open() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = options(LONG);
    tokio::select! {
        _ = connect(address, &options) => panic!("nobody answers"),
        accepted = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            // The client's greeting has arrived, so the handshake has begun.
            socket.read_exact(&mut [0; 8]).await.unwrap();
            socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
            socket.read_exact(&mut [0; 64]).await.unwrap();
            socket
        } => drop(accepted),
    }
    all_closed(&options).await;
}
