//! Kubeconfig files.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::pki::ClientCertificate;

/// The text of a kubeconfig with one cluster, user and context.
pub(super) fn kubeconfig(url: &str, ca: &str, user: &str, client: &ClientCertificate) -> String {
    const CLUSTER: &str = "simulated";
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": CLUSTER,
            "cluster": {"server": url, "certificate-authority-data": STANDARD.encode(ca)},
        }],
        "users": [{
            "name": user,
            "user": {
                "client-certificate-data": STANDARD.encode(&client.certificate),
                "client-key-data": STANDARD.encode(&client.key),
            },
        }],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": user}}],
        "current-context": CLUSTER,
    })
    .to_string()
}

/// Writes a file that nobody else may read.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
