//! Whether the cluster is reached through a proxy, and which.
//!
//! Source: [what Go's programs, and so kubectl, do](https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config).

use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;
use wmco_core::ip_network::IpNetwork;
use wmco_core::names::host::{HTTP_PROXY, HTTPS_PROXY, NO_PROXY};
use wmco_core::url;

use super::{FieldError, KubeconfigError};

/// Port of a proxy of SOCKS that names none.
const SOCKS_PORT: &str = "1080";

/// The proxy that an environment names for `server`; none if the server is on this host, or NO_PROXY lists it.
///
/// # Errors
/// A proxy is named that cannot be used.
pub(super) fn of_environment(
    server: &Uri,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, KubeconfigError> {
    let value = |name: &str| {
        let spellings = [name.to_owned(), name.to_ascii_lowercase()];
        let mut values = spellings.iter().filter_map(|name| environment(name));
        values.find(|value| !value.trim().is_empty()).unwrap_or_default()
    };
    let (name, port) =
        if server.scheme_str() == Some("http") { (HTTP_PROXY, 80) } else { (HTTPS_PROXY, 443) };
    let (proxy, no_proxy) = (value(name), value(NO_PROXY));
    let port = server.port_u16().unwrap_or(port);
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    if proxy.is_empty() || is_this_host(&host) || is_listed(&no_proxy, &host, port) {
        return Ok(None);
    }
    let proxy = proxy.trim();
    let full = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    parse(&full).map(Some).map_err(|source| KubeconfigError::Variable { name, source })
}

/// A proxy in the form in which kube reads all of it: user and password always as two, without an `@` in them.
///
/// # Errors
/// It is no URL of a proxy.
pub(super) fn parse(text: &str) -> Result<Uri, FieldError> {
    let url = url::parse(text, &["http", "https", "socks5", "socks5h"])?;
    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let scheme = url.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let text = match (scheme.starts_with("socks"), user) {
        (true, Some(_)) => return Err(FieldError::SocksUser),
        (true, None) if url.port().is_none() => format!("socks5://{host}:{SOCKS_PORT}"),
        (true, None) => format!("socks5://{host}"),
        (false, None) => format!("{scheme}://{host}"),
        (false, Some(user)) => {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let user = format!("{name}:{password}").replace('@', "%40");
            format!("{scheme}://{user}@{host}")
        }
    };
    Ok(url::parse(&text, &["http", "https", "socks5"])?)
}

fn is_this_host(host: &str) -> bool {
    let address = host.parse().map(|address: IpAddr| address.to_canonical());
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn is_listed(no_proxy: &str, host: &str, port: u16) -> bool {
    no_proxy.split(',').map(str::trim).any(|entry| covers(&entry.to_ascii_lowercase(), host, port))
}

/// Whether an entry of NO_PROXY is about a server: all (`*`), a network, an address, a name with all below it, or
/// only those below it (`.example.com`, `*.example.com`); the last three with or without a port.
fn covers(entry: &str, host: &str, port: u16) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    if entry == "*" {
        return true;
    }
    if let Ok(network) = entry.parse::<IpNetwork>() {
        return address.is_some_and(|address| network.contains(address));
    }
    let (name, only) = match entry.rsplit_once(':') {
        Some((name, only)) if !name.contains(':') || name.ends_with(']') => (name, only),
        Some(_) | None => (entry, ""),
    };
    if !only.is_empty() && only != port.to_string() {
        return false;
    }
    let name = name.trim_matches(['[', ']']);
    if let Ok(listed) = name.parse::<IpAddr>() {
        return address.is_some_and(|address| address.to_canonical() == listed.to_canonical());
    }
    let name = if name.starts_with("*.") { name.trim_start_matches('*') } else { name };
    match host.strip_suffix(name).filter(|_| !name.is_empty()) {
        Some(before) => before.is_empty() || before.ends_with('.') || name.starts_with('.'),
        None => false,
    }
}

#[cfg(test)]
mod tests;
