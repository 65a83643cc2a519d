//! Stand-ins for what a release brings: keys, certificates, and a payload that is none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use wmco_core::content::Digests;
use wmco_core::digest::Sha256;
use wmco_core::payload;
use wmco_core::secret::Secret;
use wmco_sim::host::SimHost;
use wmco_ssh::Blob;

use crate::payload::Payload;

/// Bytes of a stand-in for a program: enough that progress can be seen.
const PROGRAM_BYTES: usize = 256 * 1024;

/// A fresh SSH key in PEM.
///
/// # Errors
/// When none can be made.
pub fn private_key() -> anyhow::Result<Secret> {
    let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519)?;
    Ok(Secret::new(key.to_openssh(LineEnding::LF)?.as_bytes()))
}

/// A self-signed certificate and its key in PEM.
pub(super) fn serving_certificate() -> anyhow::Result<(String, String)> {
    let names = vec!["windows-exporter.svc".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

/// A payload whose agent the simulated hosts can run; the other files only look like programs.
pub(super) fn payload(version: &str) -> anyhow::Result<Payload> {
    let mut contents = BTreeMap::new();
    let mut list = String::new();
    for file in payload::all() {
        let bytes = if file.name == payload::AGENT.name {
            SimHost::agent_binary(version)
        } else {
            stand_in_program(file.name)
        };
        let digest = Sha256::of(&bytes);
        if !file.generated {
            writeln!(list, "{digest}  {}", file.image_path())?;
        }
        contents.insert(digest, Blob::from_bytes(bytes));
    }
    let blob = |_: &payload::PayloadFile, digest: Sha256| {
        contents.get(&digest).cloned().unwrap_or_else(|| Blob::from_bytes(Vec::new()))
    };
    Ok(Payload::from_digests(Digests::parse(&list)?, blob)?)
}

/// Bytes that do not compress and that differ by name.
fn stand_in_program(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PROGRAM_BYTES);
    let mut block = Sha256::of(name.as_bytes());
    while bytes.len() < PROGRAM_BYTES {
        bytes.extend_from_slice(block.as_bytes());
        block = Sha256::of(block.as_bytes());
    }
    bytes
}
