//! Whether the cluster is reached through the host's proxy.

use std::net::IpAddr;

use hyper_util::client::proxy::matcher::Matcher;
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::BoxError;
use tower::util::MapErrLayer;

const HTTPS_PROXY: &str = "HTTPS_PROXY";
const NO_PROXY: &str = "NO_PROXY";

/// Nothing came back through the proxy.
#[derive(Debug, thiserror::Error)]
#[error("the cluster does not answer through the proxy {proxy}, check that it can be reached")]
struct ThroughProxy {
    /// Its host and port.
    proxy: String,
    source: BoxError,
}

/// A client that names the proxy, if there is one, when it gets no answer.
///
/// # Errors
/// Nothing can be built from `config`.
pub fn client(config: Config) -> kube::Result<Client> {
    let Some(url) = &config.proxy_url else { return Client::try_from(config) };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    // Before the host name there can be user and password.
    let proxy = format!("{}{port}", url.host().unwrap_or_default());
    tracing::info!(proxy, "the cluster is reached through a proxy");
    let name = move |source| BoxError::from(ThroughProxy { proxy: proxy.clone(), source });
    Ok(ClientBuilder::try_from(config)?.with_layer(&MapErrLayer::new(name)).build())
}

/// Goes through the proxy of an environment, or not, as its NO_PROXY says about the server; kube asks
/// whether NO_PROXY names the proxy.
pub(super) fn apply(config: &mut Config, environment: impl Fn(&str) -> Option<String>) {
    let server = &config.cluster_url;
    let set = |name: &str| {
        let spellings = [name.to_owned(), name.to_ascii_lowercase()];
        let mut values = spellings.iter().filter_map(|name| environment(name));
        values.find(|value| !value.trim().is_empty()).unwrap_or_default()
    };
    let url = set(HTTPS_PROXY);
    let direct = for_port(&set(NO_PROXY), server.port_u16().unwrap_or(443));
    let proxy = Matcher::builder().https(url.clone()).no(direct).build().intercept(server);
    // The text holds user and password, too, which a proxy without a scheme cannot have.
    let full = || url.trim().parse().ok().filter(|url: &http::Uri| url.scheme().is_some());
    let proxy = proxy.map(|proxy| full().unwrap_or_else(|| proxy.uri().clone()));
    if proxy.as_ref().is_some_and(|url| !is_spoken(url)) {
        tracing::warn!(
            "{HTTPS_PROXY} names a proxy that is none for HTTP, so the cluster is reached without it"
        );
    }
    config.proxy_url = proxy.filter(is_spoken);
}

/// Whether a proxy at `url` is one for HTTP.
pub(super) fn is_spoken(url: &http::Uri) -> bool {
    matches!(url.scheme_str(), Some("http" | "https"))
}

/// What NO_PROXY says of servers at `port`. Its parts may end in a port, of which the matcher knows nothing, and
/// to the matcher an asterisk means no addresses.
fn for_port(no_proxy: &str, port: u16) -> String {
    let parts = no_proxy.split(',').map(str::trim).filter_map(|part| {
        if part == "*" {
            return Some("*,0.0.0.0/0,::/0");
        }
        if part.parse::<IpAddr>().is_ok() || part.contains('/') {
            return Some(part);
        }
        match part.rsplit_once(':').map(|(host, text)| (host, text.parse::<u16>())) {
            Some((host, Ok(only))) => {
                (only == port).then(|| host.trim_matches(|c| matches!(c, '[' | ']')))
            }
            Some((_, Err(_))) | None => Some(part),
        }
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
