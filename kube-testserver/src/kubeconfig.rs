//! Kubeconfig files.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The text of a kubeconfig for a user with a certificate. Certificate, key and `ca` are PEM.
pub(super) fn with_certificate(
    url: &str,
    ca: &str,
    user: &str,
    (certificate, key): (&str, &str),
) -> String {
    let cluster = json!({"server": url, "certificate-authority-data": STANDARD.encode(ca)});
    let credentials = json!({
        "client-certificate-data": STANDARD.encode(certificate),
        "client-key-data": STANDARD.encode(key),
    });
    kubeconfig(&cluster, user, &credentials)
}

/// The text of a kubeconfig for a user with a token, over plain HTTP.
#[cfg(not(feature = "tls"))]
pub(super) fn with_token(url: &str, user: &str, token: &str) -> String {
    kubeconfig(&json!({"server": url}), user, &json!({"token": token}))
}

/// A kubeconfig with one cluster, user and context.
fn kubeconfig(cluster: &Value, user: &str, credentials: &Value) -> String {
    const CLUSTER: &str = "simulated";
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": user}}],
        "current-context": CLUSTER,
    })
    .to_string()
}

/// Writes a file that only its owner can read.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
