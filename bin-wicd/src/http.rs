//! A question to an HTTP server on this host or beside it.

use std::io::Read as _;

use jiff::SignedDuration;
use ureq::Agent;
use ureq::http::{self, Request};
use wmco_services::limits;
use wmco_services::windows::{HttpAnswer, HttpRequest};

/// The answer; `None` when nobody there speaks HTTP within `limit`.
///
/// # Errors
/// [`http::Error`] when no such request can be sent; nobody was asked.
pub fn ask(
    request: &HttpRequest<'_>,
    limit: SignedDuration,
) -> Result<Option<HttpAnswer>, http::Error> {
    let url = format!("http://{}{}", request.address, request.path);
    let mut builder = Request::builder().method(request.method).uri(url);
    for (name, value) in request.headers {
        builder = builder.header(*name, *value);
    }
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        // The variables of the host's proxy are in force for this process, too.
        .proxy(None)
        .timeout_global(Some(limit.unsigned_abs()))
        .build();
    let Ok(mut response) = Agent::new_with_config(config).run(builder.body(())?) else {
        return Ok(None);
    };
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let read = response.body_mut().as_reader().take(limits::HTTP_BYTES).read_to_end(&mut body);
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(read.is_ok().then_some(HttpAnswer { status, body }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    const LIMIT: SignedDuration = SignedDuration::from_secs(5);

    fn request(address: SocketAddr) -> HttpRequest<'static> {
        HttpRequest { method: "GET", address, path: "/healthz", headers: &[("x-token", "abc")] }
    }

    /// A server that gives one answer, and what is seen of it.
    fn seen(answer: &'static str) -> Option<HttpAnswer> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            // What is not read would end the connection before the answer is read.
            let head: Vec<_> =
                lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            assert_eq!(head[0], "GET /healthz HTTP/1.1");
            assert!(head.contains(&"x-token: abc".to_owned()), "{head:?}");
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let answer = ask(&request(address), LIMIT).unwrap();
        server.join().unwrap();
        answer
    }

    fn answer(status: u16, body: &str) -> HttpAnswer {
        HttpAnswer { status, body: body.to_owned() }
    }

    #[test]
    fn status_and_body_are_read() {
        assert_eq!(seen("HTTP/1.1 200 OK\r\n\r\nok"), Some(answer(200, "ok")));
        assert_eq!(seen("HTTP/1.1 500 Internal Server Error\r\n\r\n"), Some(answer(500, "")));
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay";
        assert_eq!(seen(length), Some(answer(200, "ok")));
    }

    #[test]
    fn another_place_is_not_asked() {
        let moved = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n";
        assert_eq!(seen(moved), Some(answer(302, "")));
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
        assert_eq!(ask(&request(address), LIMIT).unwrap(), None);
    }

    #[test]
    fn a_header_that_ends_the_line_is_refused() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let headers = [("x-token", "a\r\nx-other: b")];
        assert!(ask(&HttpRequest { headers: &headers, ..request(address) }, LIMIT).is_err());
    }
}
