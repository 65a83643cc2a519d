//! Explains which URLs containerd asks for an image.
//!
//! # Source
//! containerd's documentation of `hosts.toml` and the resolver of containerd 1.6 and later: for an image with a
//! digest all endpoints that may pull are asked, for an image with a tag first those that may resolve.

use std::fmt;

use serde::Serialize;

use super::Registries;
use super::configure::source_endpoint;
use super::endpoint::{Ability, Endpoint, EndpointReason, Transport};
use super::image::{ImageReference, Version};
use super::location::ImageLocation;
use crate::names::registries::{DEFAULT_FOLDER, DOCKER_HUB, DOCKER_HUB_SERVER, HOSTS_FILE};

/// The requests of containerd to pull one image.
///
/// ```
/// use wmco_core::registries::{Registries, RegistryInputs, configure};
///
/// let registries = configure(&RegistryInputs::default());
/// let pull = registries.explain(&"quay.io/team/app:1".parse()?);
/// assert_eq!(pull.resolve[0].url, "https://quay.io/v2/team/app/manifests/1");
/// Ok::<(), wmco_core::registries::BadReference>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    /// The complete name of the image.
    pub image: String,
    /// The file that containerd reads, below its folder of registries; `None` without a file.
    pub file: Option<String>,
    /// HEAD requests in order, until one is answered. Without any, the pull fails.
    pub resolve: Vec<PullRequest>,
    /// GET requests for each piece of content, in order, until one is answered. `DIGEST` stands for the content's
    /// digest; manifests are below `manifests` in place of `blobs`.
    pub content: Vec<PullRequest>,
}

/// A URL, with the reason for the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    /// The URL.
    pub url: String,
    /// Key of the credentials in the pull secret, without a scheme or API version; `None` if none are sent.
    pub credentials: Option<String>,
    /// Whether any certificate is accepted.
    pub any_certificate: bool,
    /// The reason for the request.
    pub because: EndpointReason,
}

impl Registries {
    /// The URLs that containerd asks for `image`.
    pub fn explain(&self, image: &ImageReference) -> Pull {
        let registry = image.registry();
        let found = folders(image.host()).into_iter().find_map(|name| self.files.get(&name));
        let endpoints: Vec<Endpoint> = match found {
            Some((_, file)) if file.server.is_some() => {
                file.endpoints.iter().chain(&file.server).cloned().collect()
            }
            _ => vec![endpoint_without_settings(&registry)],
        };
        let repository = image.repository();
        let request = |endpoint: &Endpoint, rest: &str| PullRequest {
            url: format!(
                "{}/{repository}{rest}{}",
                endpoint.url(),
                namespace(image, &endpoint.base)
            ),
            credentials: endpoint.credentials.as_ref().map(|found| found.key().to_owned()),
            any_certificate: endpoint.transport == Transport::AnyCertificate,
            because: endpoint.because.clone(),
        };
        let (needed, paths) = match image.version() {
            Version::Tag(tag) => (Ability::PullAndResolve, vec![format!("/manifests/{tag}")]),
            Version::Digest(digest) => {
                let kinds = ["manifests", "blobs"];
                (Ability::Pull, kinds.map(|kind| format!("/{kind}/{digest}")).to_vec())
            }
        };
        let able = |needed| endpoints.iter().filter(move |endpoint| endpoint.ability >= needed);
        let resolve: Vec<PullRequest> = paths
            .iter()
            .flat_map(|path| able(needed).map(|endpoint| request(endpoint, path)))
            .collect();
        let content = if resolve.is_empty() {
            Vec::new()
        } else {
            able(Ability::Pull).map(|endpoint| request(endpoint, "/blobs/DIGEST")).collect()
        };
        Pull {
            image: image.to_string(),
            file: found.map(|(folder, _)| path_of(folder)),
            resolve,
            content,
        }
    }
}

/// The registry itself, if no file has settings for it.
fn endpoint_without_settings(registry: &ImageLocation) -> Endpoint {
    let source = source_endpoint(registry);
    if registry.is_this_host() {
        Endpoint { transport: Transport::Plain, because: EndpointReason::ThisHost, ..source }
    } else {
        Endpoint { because: EndpointReason::NoSettings, ..source }
    }
}

impl Pull {
    /// Whether a mirror may be asked for the image's tag or digest, so that the source is not needed.
    pub fn has_mirror(&self) -> bool {
        let is_mirror = |request: &PullRequest| {
            matches!(
                request.because,
                EndpointReason::Mirror { .. } | EndpointReason::InPlaceOfSource
            )
        };
        self.resolve.iter().any(is_mirror)
    }
}

/// Path of the file in `folder`, below containerd's folder of registries.
pub(super) fn path_of(folder: &str) -> String {
    format!("{folder}\\{HOSTS_FILE}")
}

/// The folders in which containerd on Windows looks for the settings of `host`, in lower case.
fn folders(host: &str) -> [String; 3] {
    let own = match host.rsplit_once(':') {
        Some((name, port)) => format!("{name}_{port}_"),
        None => host.to_owned(),
    };
    [own, host.to_owned(), DEFAULT_FOLDER.to_owned()]
        .map(|name| name.replace(':', "").to_ascii_lowercase())
}

/// The query that containerd appends for mirrors, so that a cache knows the image's registry.
fn namespace(image: &ImageReference, base: &ImageLocation) -> String {
    let host = image.host();
    if host == base.host() || (host == DOCKER_HUB && base.host() == DOCKER_HUB_SERVER) {
        return String::new();
    }
    let escaped: String = host
        .chars()
        .map(|c| match c {
            ':' => "%3A".to_owned(),
            '[' => "%5B".to_owned(),
            ']' => "%5D".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!("?ns={escaped}")
}

impl fmt::Display for Pull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_deref().unwrap_or("none");
        writeln!(f, "{}\n  file: {file}", self.image)?;
        if self.resolve.is_empty() {
            return writeln!(f, "  no registry may be asked, so the pull fails");
        }
        for (label, requests) in
            [("asked in turn:", &self.resolve), ("then content by its digest:", &self.content)]
        {
            writeln!(f, "  {label}")?;
            for request in requests {
                writeln!(f, "    {request}")?;
            }
        }
        writeln!(
            f,
            "  a layer that names URLs of its own, as in base images of Windows from before the middle of 2023, is \
             fetched from there first, past every mirror; where that place cannot be reached, the pull fails"
        )
    }
}

impl fmt::Display for PullRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.credentials.as_deref();
        let credentials = key.map_or_else(
            || "without credentials".to_owned(),
            |key| format!("with the credentials for {}", key.escape_debug()),
        );
        let certificate = if self.any_certificate { ", any certificate will do" } else { "" };
        write!(f, "{}\n      {credentials}{certificate}; {}", self.url, self.because)
    }
}
