//! `render user-data`: the Secret with what a new cloud machine runs when it starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::names::objects;
use wmco_core::render;

use super::platform::platform;
use super::{Answer, Output, no};
use crate::input::{self, Reader};

/// Arguments of `render user-data`.
#[derive(Args, Debug)]
pub struct UserData {
    /// Platform of the machines: AWS, Azure, GCP, VSphere, Nutanix or None.
    #[arg(long, value_name = "PLATFORM", value_parser = platform)]
    platform: &'static str,
    /// File with the operator's public key, `-` is standard input; twice during a key rotation, first the
    /// key in use.
    #[arg(long = "public-key", value_name = "FILE", required = true)]
    public_keys: Vec<PathBuf>,
    /// Namespace of the Secret; default: that of the Machine API.
    #[arg(long, value_name = "NAMESPACE", default_value = objects::MACHINE_API_NAMESPACE)]
    namespace: String,
    #[command(flatten)]
    output: Output,
}

impl UserData {
    /// Prints the Secret.
    ///
    /// # Errors
    /// A file cannot be read, there are more than two, or the output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let (first, second) = match self.public_keys.as_slice() {
            [first] => (first, None),
            [first, second] => (first, Some(second)),
            _ => anyhow::bail!("give --public-key once, or twice while the key is exchanged"),
        };
        let mut reader = Reader::new(std::io::stdin());
        let key = match public_key(first, &reader.lossy_text(first)?) {
            Ok(key) => key,
            Err(wrong) => return Ok(no(wrong)),
        };
        let mut next = None;
        if let Some(second) = second {
            match public_key(second, &reader.lossy_text(second)?) {
                Ok(other) if other == key => {
                    let (first, second) = (input::name(first), input::name(second));
                    let same =
                        anyhow::anyhow!("{first} and {second} hold the same key, leave one out");
                    return Ok(no(same));
                }
                Ok(other) => next = Some(other),
                Err(wrong) => return Ok(no(wrong)),
            }
        }
        let text = render::user_data(self.platform, &key, next.as_ref());
        let data = ByteString(text.clone().into_bytes());
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(objects::USER_DATA_SECRET.to_owned()),
                namespace: Some(self.namespace),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(objects::USER_DATA_KEY.to_owned(), data)])),
            ..Secret::default()
        };
        self.output.print(&secret, || text)?;
        Ok(Answer::Yes)
    }
}

/// The key in `text`, the content of `file`. An error repeats nothing of it: it may be a private key.
fn public_key(file: &Path, text: &str) -> anyhow::Result<AuthorizedKey> {
    text.parse().with_context(|| format!("cannot use {} as a public key", input::name(file)))
}
