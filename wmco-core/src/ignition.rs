//! Settings in the rendered MachineConfig of Linux workers that Windows nodes use, too.
//!
//! Reads only the needed part of the Ignition format: systemd units, and files with content in the document.
//! Source: `docs/contract/node-files.md`, FILE19, and the Ignition specification 3.5.

use std::collections::BTreeMap;
use std::io::Read as _;

use data_url::DataUrl;
use serde::Deserialize;
use serde_json::Value;

use crate::ignition_unit::{NoExecStart, kubelet_options};
use crate::limits;
use crate::text::printable;

/// Cloud provider configuration of Linux workers.
pub const CLOUD_CONFIG: &str = "/etc/kubernetes/cloud.conf";

/// Image credential provider configuration of Linux workers.
pub const CREDENTIAL_PROVIDER: &str =
    "/etc/kubernetes/credential-providers/ecr-credential-provider.yaml";

/// The unit with the kubelet's command line.
const KUBELET_UNIT: &str = "kubelet.service";

/// Why the settings cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IgnitionError {
    /// A file's content is not a valid data URL.
    #[error(
        "file {path} of the rendered MachineConfig has no readable data URL, correct it in its MachineConfig"
    )]
    Content {
        /// The file's path on Linux.
        path: String,
    },
    /// Content with an unknown compression.
    #[error(
        "file {path} of the rendered MachineConfig is compressed with `{}`, use gzip or none",
        printable(.compression)
    )]
    Compression {
        /// The file's path on Linux.
        path: String,
        /// The document's value.
        compression: String,
    },
    /// The unit has no command.
    #[error(transparent)]
    ExecStart(#[from] NoExecStart),
    /// Damaged gzip data.
    #[error(
        "file {path} of the rendered MachineConfig does not unpack, correct it in its MachineConfig"
    )]
    Gzip {
        /// The file's path on Linux.
        path: String,
        /// The error of the decompression.
        source: std::io::Error,
    },
    /// A file's content is too long.
    #[error(
        "file {path} of the rendered MachineConfig is bigger than {} bytes, shorten it",
        limits::IGNITION_FILE_BYTES
    )]
    Large {
        /// The file's path on Linux.
        path: String,
    },
    /// The document has no kubelet unit, or one without contents.
    #[error("the rendered MachineConfig has no contents for {KUBELET_UNIT}, check the worker pool")]
    NoKubelet,
    /// The document does not have Ignition's structure.
    #[error("the config of MachineConfig {name} is no Ignition document, check its MachineConfigs")]
    Shape {
        /// The MachineConfig's name.
        name: String,
        /// The parse error.
        source: serde_json::Error,
    },
    /// An unsupported major version.
    #[error(
        "MachineConfig {name} has Ignition version `{}`, only 3 is understood",
        printable(.version)
    )]
    Version {
        /// The MachineConfig's name.
        name: String,
        /// The document's value.
        version: String,
    },
}

/// A readable Ignition document.
#[derive(Clone, Debug)]
pub struct Ignition(Document);

impl Ignition {
    /// Reads `spec.config` of the MachineConfig `name`.
    ///
    /// # Errors
    /// The document is not Ignition of version 3.
    pub fn read(name: &str, config: &Value) -> Result<Self, IgnitionError> {
        let document = Document::deserialize(config)
            .map_err(|source| IgnitionError::Shape { name: name.to_owned(), source })?;
        if document.ignition.version.split('.').next() != Some("3") {
            let version = document.ignition.version;
            return Err(IgnitionError::Version { name: name.to_owned(), version });
        }
        Ok(Self(document))
    }

    /// The kubelet's options that Windows uses, too; see [`kubelet_options`].
    ///
    /// # Errors
    /// The document has no kubelet unit, or the unit has no command.
    pub fn kubelet_options(&self) -> Result<BTreeMap<String, String>, IgnitionError> {
        let contents = self
            .0
            .systemd
            .units
            .iter()
            .find(|unit| unit.name == KUBELET_UNIT)
            .and_then(|unit| unit.contents.as_deref())
            .filter(|contents| !contents.is_empty())
            .ok_or(IgnitionError::NoKubelet)?;
        Ok(kubelet_options(contents)?)
    }

    /// Content of the file at `path`, appended parts included; `None` if it is not listed.
    ///
    /// # Errors
    /// The content is not in the document, damaged, or longer than [`limits::IGNITION_FILE_BYTES`].
    pub fn file(&self, path: &str) -> Result<Option<Vec<u8>>, IgnitionError> {
        let Some(file) = self.0.storage.files.iter().find(|file| file.path == path) else {
            return Ok(None);
        };
        let mut content = Vec::new();
        for part in std::iter::once(&file.contents).chain(&file.append) {
            content.extend(part.decode(path)?);
            if content.len() > limits::IGNITION_FILE_BYTES {
                return Err(IgnitionError::Large { path: path.to_owned() });
            }
        }
        Ok(Some(content))
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Document {
    ignition: Header,
    #[serde(default)]
    storage: Storage,
    #[serde(default)]
    systemd: Systemd,
}

#[derive(Clone, Debug, Deserialize)]
struct Header {
    version: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Storage {
    files: Vec<File>,
}

#[derive(Clone, Debug, Deserialize)]
struct File {
    path: String,
    #[serde(default)]
    contents: Content,
    #[serde(default)]
    append: Vec<Content>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    source: Option<String>,
    compression: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Systemd {
    units: Vec<Unit>,
}

#[derive(Clone, Debug, Deserialize)]
struct Unit {
    name: String,
    contents: Option<String>,
}

impl Content {
    fn decode(&self, path: &str) -> Result<Vec<u8>, IgnitionError> {
        let unreadable = || IgnitionError::Content { path: path.to_owned() };
        let source = self.source.as_deref().ok_or_else(unreadable)?;
        let url = DataUrl::process(source).map_err(|_| unreadable())?;
        let (bytes, _) = url.decode_to_vec().map_err(|_| unreadable())?;
        match self.compression.as_deref() {
            None | Some("") => Ok(bytes),
            Some("gzip") => unpack(&bytes, path),
            Some(other) => Err(IgnitionError::Compression {
                path: path.to_owned(),
                compression: other.to_owned(),
            }),
        }
    }
}

/// Unpacks at most one byte more than the limit, so that a small input cannot fill memory.
fn unpack(bytes: &[u8], path: &str) -> Result<Vec<u8>, IgnitionError> {
    let most = u64::try_from(limits::IGNITION_FILE_BYTES).unwrap_or(u64::MAX);
    let mut content = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(most.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|source| IgnitionError::Gzip { path: path.to_owned(), source })?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    use super::*;

    const NAME: &str = "rendered-worker-a";

    fn document() -> Value {
        json!({"ignition": {"version": "3.5.0"}})
    }

    fn read(document: &Value) -> Result<Ignition, IgnitionError> {
        Ignition::read(NAME, document)
    }

    fn with_file(file: &Value) -> Ignition {
        let mut document = document();
        document["storage"] = json!({"files": [file]});
        read(&document).unwrap()
    }

    fn gzip(content: &[u8]) -> String {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        format!("data:;base64,{}", BASE64_STANDARD.encode(encoder.finish().unwrap()))
    }

    #[test]
    fn the_kubelet_unit_is_read() {
        let mut config = document();
        let unit = "[Service]\nExecStart=/usr/bin/kubelet --cloud-provider=external\n";
        config["systemd"] = json!({"units": [
            {"name": "crio.service"},
            {"name": "kubelet.service", "contents": unit},
        ]});
        let options = read(&config).unwrap().kubelet_options().unwrap();
        assert_eq!(options, BTreeMap::from([("cloud-provider".into(), "external".into())]));

        config["systemd"] = json!({"units": [{"name": "kubelet.service"}]});
        let error = read(&config).unwrap().kubelet_options().unwrap_err();
        assert!(matches!(error, IgnitionError::NoKubelet));
    }

    #[test]
    fn data_urls_are_decoded() {
        for source in ["data:,%5BGlobal%5D%0A", "data:text/plain;charset=utf-8;base64,W0dsb2JhbF0K"]
        {
            let file = json!({"path": "/a", "contents": {"source": source}});
            assert_eq!(with_file(&file).file("/a").unwrap().as_deref(), Some(&b"[Global]\n"[..]));
        }
    }

    #[test]
    fn compressed_and_appended_parts_are_joined() {
        let file = json!({
            "path": "/a",
            "contents": {"source": gzip(b"one "), "compression": "gzip"},
            "append": [{"source": "data:,two", "compression": ""}],
        });
        assert_eq!(with_file(&file).file("/a").unwrap().as_deref(), Some(&b"one two"[..]));
    }

    #[test]
    fn a_file_that_is_not_listed_is_none() {
        assert!(with_file(&json!({"path": "/a"})).file("/b").unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_read_is_told_by_path() {
        let huge = gzip(&vec![0; limits::IGNITION_FILE_BYTES + 1]);
        for contents in [
            json!({}),
            json!({"source": "https://example.test/a"}),
            json!({"source": "data:;base64,%%%"}),
            json!({"source": "data:,x", "compression": "gzip"}),
            json!({"source": "data:,x", "compression": "xz"}),
            json!({"source": huge, "compression": "gzip"}),
        ] {
            let error = with_file(&json!({"path": "/a", "contents": contents})).file("/a");
            assert!(error.unwrap_err().to_string().starts_with("file /a of"));
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let config = json!({"ignition": {"version": "2.2.0"}});
        assert!(matches!(read(&config), Err(IgnitionError::Version { .. })));
        let config = json!({"ignition": {}});
        assert!(matches!(read(&config), Err(IgnitionError::Shape { .. })));
    }
}
