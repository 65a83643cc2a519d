//! An image without layers, small enough to be served from memory.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Response, StatusCode, header};
use serde_json::json;
use wmco_core::digest::Sha256;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// The content of a registry under a name.
pub(super) struct Image {
    manifest: String,
    config: String,
}

impl Image {
    /// Creates a unique image, since containerd does not fetch content that it has.
    pub(super) fn new(number: usize) -> Self {
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "author": number.to_string(),
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": []},
        })
        .to_string();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest(&config), "size": config.len()},
            "layers": [],
        })
        .to_string();
        Self { manifest, config }
    }

    /// Returns the digest that a pull by tag requests first.
    pub(super) fn manifest_digest(&self) -> String {
        digest(&self.manifest)
    }

    /// Returns the folder and digest of all content, in the order of the requests.
    pub(super) fn content(&self) -> [(&'static str, String); 2] {
        [("manifests", self.manifest_digest()), ("blobs", digest(&self.config))]
    }

    /// Returns the answer of a registry that has this image under every name and tag.
    pub(super) fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (rest, version) = path.rsplit_once('/').unwrap();
        let is_manifest = rest.ends_with("/manifests");
        let body = [&self.manifest, &self.config].into_iter().find(|body| digest(body) == version);
        let body = body.or_else(|| (!version.contains(':')).then_some(&self.manifest));
        let Some(body) = body.filter(|body| is_manifest == (*body == &self.manifest)) else {
            return Response::builder()
                .status(StatusCode::NOT_FOUND)
                .body(Full::default())
                .unwrap();
        };
        let sent = if method == Method::HEAD { String::new() } else { body.clone() };
        Response::builder()
            .header(header::CONTENT_TYPE, if is_manifest { MANIFEST } else { CONFIG })
            .header(header::CONTENT_LENGTH, body.len())
            .header("Docker-Content-Digest", digest(body))
            .body(Full::from(sent))
            .unwrap()
    }
}

fn digest(text: &str) -> String {
    format!("sha256:{}", Sha256::of(text.as_bytes()))
}
