//! One place that containerd may ask, and why.

use std::fmt;

use serde::Serialize;

use super::finding::ClusterObject;
use super::location::ImageLocation;
use super::pull_secret::PullCredentials;

/// What containerd may ask an endpoint for. Nodes never push.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Ability {
    /// Nothing that a node does.
    Nothing,
    /// Content whose digest is known.
    Pull,
    /// What a tag stands for, too.
    PullAndResolve,
}

/// How to speak to an endpoint.
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
    /// All registries of the image are closed.
    Closed,
    /// It is the first mirror once more, in place of the source.
    InPlaceOfSource,
    /// An entry names it as a mirror.
    Mirror {
        /// The object.
        object: ClusterObject,
        /// The first field that names it.
        field: String,
    },
    /// Nothing is said of the image's registry.
    NoSettings,
    /// It is the image's own registry.
    Source,
}

/// One place that containerd may ask.
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
            // An empty list stands for all of them.
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
            Self::NoSettings => f.write_str("no object says anything of its registry"),
            Self::Source => f.write_str("the source itself"),
        }
    }
}
