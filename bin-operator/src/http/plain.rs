//! Clients that speak HTTP without TLS.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// First byte of a TLS handshake. Source: RFC 8446, section 5.1.
const HANDSHAKE: u8 = 22;

/// What such a client gets.
const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n\
    Client sent an HTTP request to an HTTPS server.\n";

/// Whether a client begins like a request and not like a handshake; waits for its first byte.
pub(super) async fn is_http(stream: &TcpStream) -> bool {
    let mut first = [0; 1];
    let seen = stream.peek(&mut first).await;
    matches!(seen, Ok(1)) && first != [HANDSHAKE]
}

/// Tells the client.
pub(super) async fn refuse(stream: &mut TcpStream) {
    // It may be gone.
    let _ = stream.write_all(ANSWER).await;
    let _ = stream.shutdown().await;
}
