//! An endpoint that containerd may ask, with the reason.

use std::fmt;

use serde::Serialize;

use super::finding::ClusterObject;
use super::location::ImageLocation;
use super::pull_secret::PullCredentials;

/// Requests that containerd may send to an endpoint. Nodes never push.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Ability {
    /// None that a node sends.
    Nothing,
    /// Content with a known digest.
    Pull,
    /// Also the digest of a tag.
    PullAndResolve,
}

/// Transport to an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Transport {
    /// HTTPS with a certificate that the host trusts.
    Trusted,
    /// HTTPS with any certificate.
    AnyCertificate,
    /// HTTP.
    Plain,
}

/// Why an endpoint is asked.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[non_exhaustive]
pub enum EndpointReason {
    /// All endpoints of the image's registry are closed.
    Closed,
    /// The first mirror again, in place of the source.
    InPlaceOfSource,
    /// A mirror in an entry.
    Mirror {
        /// The object.
        object: ClusterObject,
        /// The first field with the mirror.
        field: String,
    },
    /// The image's registry has no settings.
    NoSettings,
    /// The image's own registry.
    Source,
    /// The image's registry has no settings and is the node itself.
    ThisHost,
}

/// An endpoint that containerd may ask.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Endpoint {
    pub(super) transport: Transport,
    pub(super) base: ImageLocation,
    pub(super) ability: Ability,
    pub(super) credentials: Option<PullCredentials>,
    pub(super) because: EndpointReason,
}

impl Ability {
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            // An empty list would mean all of them.
            Self::Nothing => &["push"],
            Self::Pull => &["pull"],
            Self::PullAndResolve => &["pull", "resolve"],
        }
    }
}

impl Transport {
    const fn scheme(self) -> &'static str {
        match self {
            Self::Trusted | Self::AnyCertificate => "https",
            Self::Plain => "http",
        }
    }
}

impl Endpoint {
    /// Root of the API, for example `https://cache.example/v2/proxy`.
    pub(super) fn url(&self) -> String {
        let path = self.base.path();
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{}://{}/v2{slash}{path}", self.transport.scheme(), self.base.host())
    }
}

impl fmt::Display for EndpointReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("nothing may be pulled from its registry"),
            Self::InPlaceOfSource => {
                f.write_str("the first mirror once more, for the source must not be asked")
            }
            Self::Mirror { object, field } => write!(f, "a mirror of {object}, field `{field}`"),
            Self::NoSettings => f.write_str("no object that can be used says anything of its registry"),
            Self::Source => f.write_str("the source itself"),
            Self::ThisHost => f.write_str(
                "its registry is the node itself, where no object says anything else; containerd 1.7 tries \
                 HTTPS with any certificate before HTTP",
            ),
        }
    }
}
