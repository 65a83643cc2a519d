//! A question to an HTTP server on this host.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Most bytes of a first line.
const LINE_BYTES: u64 = 1024;

/// Status of the answer to `GET http://address/path`; `None` when nobody there speaks HTTP within
/// about `limit`.
pub fn status(address: SocketAddr, path: &str, limit: Duration) -> Option<u16> {
    ask(address, path, limit).ok().flatten()
}

fn ask(address: SocketAddr, path: &str, limit: Duration) -> io::Result<Option<u16>> {
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES)).read_line(&mut line)?;
    Ok(code(&line))
}

/// The code in the first line of an answer.
fn code(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace();
    let version = words.next()?;
    version.starts_with("HTTP/1.").then(|| words.next()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    /// A server that gives one answer, and what is seen of it.
    fn seen(answer: &'static str) -> Option<u16> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "GET /healthz HTTP/1.1");
            // What is not read would end the connection before the answer is read.
            lines.find(|line| line.as_ref().unwrap().is_empty()).unwrap().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let status = status(address, "/healthz", LIMIT);
        server.join().unwrap();
        status
    }

    #[test]
    fn the_status_is_read() {
        assert_eq!(seen("HTTP/1.1 200 OK\r\n\r\nok"), Some(200));
        assert_eq!(seen("HTTP/1.1 500 Internal Server Error\r\n\r\n"), Some(500));
    }

    #[test]
    fn what_is_no_http_is_no_answer() {
        assert_eq!(seen("SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(seen(""), None);
    }

    #[test]
    fn a_closed_port_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(status(address, "/", LIMIT), None);
    }
}
