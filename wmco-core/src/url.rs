//! URLs of servers and proxies that people write into settings.

use http::Uri;
use http::uri::Authority;

/// Why a text is not the URL that it should be. Reads after "it has", and shows nothing of the text, which can hold a
/// password.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Invalid percent-encoding.
    #[error("a percent sign without two hexadecimal digits after it, write the sign itself as %25")]
    Escape,
    /// A part is missing, or has characters that no URL has.
    #[error("not the form SCHEME://HOST:PORT, in which a blank is written as %20")]
    Form,
    /// A password that ends the host's part of the URL too early.
    #[error("an @ after the end of its host, in a password write / as %2F, ? as %3F and # as %23")]
    Password,
    /// Not a number from 1 to 65535.
    #[error("a port that no host has")]
    Port,
    /// None of those that were asked for.
    #[error("another scheme than this setting takes")]
    Scheme,
}

/// Reads a URL with one of `schemes`, a host, and a port that hosts can have, if any.
///
/// ```
/// use wmco_core::url::{UrlError, parse};
///
/// assert_eq!(parse("http://proxy.test:3128", &["http"])?.port_u16(), Some(3128));
/// assert_eq!(parse("http://u:50%off@proxy.test", &["http"]), Err(UrlError::Escape));
/// Ok::<(), UrlError>(())
/// ```
///
/// # Errors
/// [`UrlError`].
pub fn parse(text: &str, schemes: &[&str]) -> Result<Uri, UrlError> {
    if !has_valid_escapes(text) {
        return Err(UrlError::Escape);
    }
    let url: Uri = text.parse().map_err(|_| UrlError::Form)?;
    let scheme = url.scheme_str().ok_or(UrlError::Form)?;
    if !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return Err(UrlError::Scheme);
    }
    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
    if text.matches('@').count() != authority.matches('@').count() {
        return Err(UrlError::Password);
    }
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons of an address in brackets are not followed by a port.
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let is_port = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|number| number > 0)
    };
    if !port.is_none_or(is_port) {
        return Err(UrlError::Port);
    }
    if url.host().is_none_or(str::is_empty) { Err(UrlError::Form) } else { Ok(url) }
}

fn has_valid_escapes(text: &str) -> bool {
    let mut parts = text.split('%').skip(1);
    parts.all(|part| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2)
}
