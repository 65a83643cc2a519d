//! Locations of images: a registry and a path.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use crate::limits;
use crate::names::registries::{DOCKER_HUB, DOCKER_HUB_INDEX, DOCKER_HUB_SERVER};
use crate::names::{host, registries};

/// A registry, with its port if there is one, and a path in it.
///
/// A scheme and empty parts of the path are ignored, as in the Go operator.
///
/// ```
/// use wmco_core::registries::ImageLocation;
///
/// let source: ImageLocation = "quay.io/team/app".parse()?;
/// let mirror: ImageLocation = "https://cache.example:8443/proxy/team/app/".parse()?;
/// assert_eq!((mirror.host(), mirror.path()), ("cache.example:8443", "proxy/team/app"));
/// // containerd appends `team/app` itself.
/// assert_eq!(mirror.base_for(&source).unwrap().to_string(), "cache.example:8443/proxy");
/// Ok::<(), wmco_core::registries::BadLocation>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ImageLocation {
    host: String,
    path: String,
}

/// The images that a setting is for: those at one location and below, or those of all registries in a domain.
///
/// ```
/// use wmco_core::registries::ImageScope;
///
/// assert_eq!("*.corp.example".parse(), Ok(ImageScope::Domain("corp.example".into())));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ImageScope {
    /// Written `*.DOMAIN`.
    Domain(String),
    /// A registry, or a part of one.
    Location(ImageLocation),
}

/// Why a text is not an [`ImageLocation`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLocation {
    /// The part before the first slash is invalid.
    #[error("start it with a registry such as `quay.io` or `cache.example:8443`")]
    Host,
    /// A network.
    #[error("a network is no registry, name each registry")]
    Network,
    /// The path is invalid.
    #[error("use letters, digits, `.`, `_`, `-` and `/` after the registry")]
    Path,
    /// The location is longer than any image name.
    #[error("names of images have at most {} bytes", limits::IMAGE_NAME_BYTES)]
    TooLong,
}

impl ImageLocation {
    /// A location without a path.
    pub(super) fn of_registry(host: &str) -> Self {
        Self::of_repository(host, "")
    }

    /// The location of a repository of a registry.
    pub(super) fn of_repository(host: &str, path: &str) -> Self {
        Self { host: host.to_owned(), path: path.to_owned() }
    }

    /// The registry with its port, as written.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path, without leading and trailing slashes.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is at an IPv6 address.
    pub(super) fn is_ipv6(&self) -> bool {
        self.host.starts_with('[')
    }

    /// Whether its host is the name of a Service in a cluster.
    pub(super) fn is_service(&self) -> bool {
        let host = self.host_key();
        let name = host.split(':').next().unwrap_or_default();
        let in_cluster = name.strip_suffix(".cluster.local").unwrap_or(name);
        in_cluster.rsplit_once('.').is_some_and(|(_, last)| last == "svc")
    }

    /// Whether containerd treats its host as the node itself.
    pub(super) fn is_this_host(&self) -> bool {
        let host = self.host.as_str();
        let name = match host.rsplit_once(':') {
            // The colons of a bracketed address are not followed by a port, and containerd does not recognize such
            // an address without a port.
            Some((name, port)) if !port.ends_with(']') => name.trim_matches(['[', ']']),
            _ => host,
        };
        let address = name.parse::<IpAddr>();
        name == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
    }

    /// Whether it is Docker Hub, as images name it.
    pub(super) fn is_hub(&self) -> bool {
        self.host.eq_ignore_ascii_case(DOCKER_HUB)
    }

    /// Whether a port is written.
    pub(super) fn has_port(&self) -> bool {
        self.host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'))
    }

    /// Whether its host is a name of Docker Hub that images do not usually have.
    pub(super) fn is_only_a_server(&self) -> bool {
        !self.is_hub() && is_docker_hub(&self.host)
    }

    /// The host that images usually name for its registry, if that is another one.
    pub(super) fn usual_name(&self) -> Option<String> {
        let host = self.canonical().host;
        let usual = if host == DOCKER_HUB_SERVER { DOCKER_HUB.to_owned() } else { host };
        (usual != self.host_key()).then_some(usual)
    }

    /// Whether image names may have its host as their registry: containerd takes a first part without a dot or a port
    /// for a part of the path, but for `localhost`.
    pub(super) fn is_registry_in_names(&self) -> bool {
        self.host.contains(['.', ':']) || self.host == "localhost"
    }

    /// Whether it ends with a tag or a digest.
    pub(super) fn has_version(&self) -> bool {
        self.path.contains([':', '@'])
    }

    /// The same location with HTTPS' port where it has none, and without that port where it has it; `None` with
    /// another port.
    pub(super) fn with_other_port(&self) -> Option<Self> {
        let host = match self.host.strip_suffix(HTTPS_PORT) {
            Some(without) => without.to_owned(),
            None if self.has_port() => return None,
            None => format!("{}{HTTPS_PORT}", self.host),
        };
        Some(Self { host, path: self.path.clone() })
    }

    /// The same location, with the server of Docker Hub in place of its names in images.
    pub(super) fn at_its_server(self) -> Self {
        if is_docker_hub(&self.host) {
            Self { host: DOCKER_HUB_SERVER.to_owned(), ..self }
        } else {
            self
        }
    }

    /// The same location in the one form that all names of its registry have in common: in lower case, Docker Hub by
    /// its server, and without HTTPS' port.
    pub(super) fn canonical(&self) -> Self {
        let host = self.host_key();
        let host = host.strip_suffix(HTTPS_PORT).unwrap_or(&host);
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        let host = if is_docker_hub(name) {
            format!("{DOCKER_HUB_SERVER}{port}")
        } else {
            host.to_owned()
        };
        Self { host, path: self.path.clone() }
    }

    /// The host without its port.
    pub(super) fn host_name(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => name,
            _ => &self.host,
        }
    }

    /// Whether both are at one registry, whatever name of it each has.
    pub(super) fn is_at_the_same_registry(&self, other: &Self) -> bool {
        self.canonical().host == other.canonical().host
    }

    /// All names of its registry in names of images, its own first.
    pub(super) fn names(&self) -> Vec<Self> {
        let of = |host: &str| Self::of_registry(host);
        let with_ports = |name: Self| name.with_other_port().into_iter().chain([name]);
        let other_names = [DOCKER_HUB, DOCKER_HUB_SERVER].map(of).into_iter().flat_map(with_ports);
        // Without a port containerd reads it as the first of them.
        let index = of(DOCKER_HUB_INDEX).with_other_port();
        let other_names = other_names.chain(index);
        let others = other_names.filter(|other| other.is_at_the_same_registry(self));
        let own = of(&self.host);
        [Some(own.clone()), own.with_other_port()]
            .into_iter()
            .flatten()
            .filter(|name| name.is_at_the_same_registry(self))
            .chain(others)
            .collect()
    }

    /// The host in lower case: registries are compared without case.
    pub(super) fn host_key(&self) -> String {
        self.host.to_ascii_lowercase()
    }

    /// The location that containerd has to ask to find images of `source` here.
    ///
    /// containerd appends the whole repository of the image, so the result is `None` unless this location ends with
    /// the whole path of `source`, or if the rest contains a tag or a digest.
    pub fn base_for(&self, source: &Self) -> Option<Self> {
        let rest = self.path.strip_suffix(source.path.as_str())?;
        let base = match rest.strip_suffix('/') {
            Some(base) => base,
            None if rest.is_empty() || source.path.is_empty() => rest,
            None => return None,
        };
        let is_repository = !base.contains([':', '@']);
        is_repository.then(|| Self { host: self.host.clone(), path: base.to_owned() })
    }

    /// Name of the folder in which containerd on Windows looks for the settings of this registry.
    ///
    /// `None` if the folder cannot be created: a device name of Windows, a path that is too long, or an IPv6
    /// address.
    pub(super) fn folder(&self) -> Option<String> {
        let folder = match self.host.rsplit_once(':') {
            Some((name, port)) => format!("{name}_{port}_"),
            None => self.host.clone(),
        };
        let stem = folder.split('.').next().unwrap_or_default();
        let length =
            host::REGISTRIES.len() + folder.len() + registries::HOSTS_FILE.len() + r"\\".len();
        let usable = !folder.starts_with('[')
            && !is_device(stem)
            && length <= limits::WINDOWS_PATH_CHARACTERS;
        usable.then_some(folder)
    }
}

/// How a host ends that names HTTPS' port.
const HTTPS_PORT: &str = ":443";

/// Whether `host` is a name of Docker Hub.
pub(super) fn is_docker_hub(host: &str) -> bool {
    let names = [DOCKER_HUB, DOCKER_HUB_INDEX, DOCKER_HUB_SERVER];
    names.iter().any(|name| host.eq_ignore_ascii_case(name))
}

/// Whether `stem` is a device name on Windows, with any extension. Source: Microsoft, "Naming files, paths, and
/// namespaces".
fn is_device(stem: &str) -> bool {
    let stem = stem.to_ascii_lowercase();
    let numbered = |name: &str| {
        let digit = stem.strip_prefix(name).map(str::as_bytes);
        matches!(digit, Some([b'0'..=b'9']))
    };
    ["con", "prn", "aux", "nul"].contains(&stem.as_str()) || numbered("com") || numbered("lpt")
}

impl FromStr for ImageLocation {
    type Err = BadLocation;

    fn from_str(text: &str) -> Result<Self, BadLocation> {
        let text = without_scheme(text);
        let (host, path) = text.split_once('/').unwrap_or((text, ""));
        if !is_host(host) {
            return Err(BadLocation::Host);
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let last = parts.len().saturating_sub(1);
        if !parts.iter().enumerate().all(|(at, part)| is_part(part, at == last)) {
            return Err(BadLocation::Path);
        }
        let path = parts.join("/");
        let is_prefix = || path.parse::<u8>().is_ok_and(|length| length <= 32);
        if host.parse::<Ipv4Addr>().is_ok() && is_prefix() {
            return Err(BadLocation::Network);
        }
        if host.len() + path.len() > limits::IMAGE_NAME_BYTES {
            return Err(BadLocation::TooLong);
        }
        Ok(Self { host: host.to_owned(), path })
    }
}

impl FromStr for ImageScope {
    type Err = BadLocation;

    fn from_str(text: &str) -> Result<Self, BadLocation> {
        match without_scheme(text).strip_prefix("*.") {
            Some(domain) if is_name(domain) => Ok(Self::Domain(domain.to_ascii_lowercase())),
            Some(_) => Err(BadLocation::Host),
            None => text.parse().map(Self::Location),
        }
    }
}

impl fmt::Display for ImageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

/// Removes `SCHEME://` from `text`.
pub(super) fn without_scheme(text: &str) -> &str {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).map_or(text, |(_, rest)| rest)
}

/// Whether the text is a host name or an address, with or without a port.
pub(super) fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // The colons of a bracketed address are not followed by a port.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| {
        !port.starts_with(['0', '+']) && port.parse::<u16>().is_ok_and(|number| number > 0)
    };
    let bracketed = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let named = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_name(name),
    };
    named && port.is_none_or(is_port)
}

fn is_name(name: &str) -> bool {
    name.split('.').all(|label| {
        let inner = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    })
}

/// Whether the text is a valid part of a path; the last part may contain a tag or a digest, which is cut off later.
fn is_part(part: &str, last: bool) -> bool {
    let more = if last { "._-:@" } else { "._-" };
    part.starts_with(|first: char| first.is_ascii_alphanumeric())
        && part.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: `docs/contract/registries.md`, REG6. Partial matches are cases that the Go operator shortens.
    #[track_caller]
    fn base(source: &str, mirror: &str, expected: Option<&str>) {
        let [source, mirror]: [ImageLocation; 2] =
            [source, mirror].map(|text| text.parse().unwrap());
        let base = mirror.base_for(&source).map(|base| base.to_string());
        assert_eq!(base.as_deref(), expected, "{source} at {mirror}");
    }

    #[test]
    fn a_mirror_is_cut_by_the_whole_path_of_the_source() {
        base("a.test/p/to/r", "a.test/p/to/r", Some("a.test"));
        base("a.test/p/to/r", "b.test/p/to/r", Some("b.test"));
        base("a.test/img:old", "b.test/ns/img:old", Some("b.test/ns"));
        base("a.test/w/core:1", "b.test/u/ns/w/core:1", Some("b.test/u/ns"));
        base("a.test", "b.test/ns", Some("b.test/ns"));
        base("a.test/x", "b.test/x/x", Some("b.test/x"));
    }

    #[test]
    fn a_mirror_of_another_path_cannot_be_expressed() {
        base("a.test/p/to/res/x", "a.test/p/to/resax", None);
        base("a.test/res", "b.test/xres", None);
        base("a.test/img:old", "b.test/img:9", None);
        base("n1/q/diff/n2", "n1/q/some/n2", None);
        base("n1/q/h/diff/n2", "n1/q/some/n2", None);
        base("a.test/team", "b.test/other", None);
        base("a.test/team/app", "b.test/app", None);
        base("a.test/x/x/x", "b.test/x/x", None);
        base("a.test", "b.test/ns:1", None);
    }

    #[test]
    fn a_network_is_no_registry() {
        assert_eq!("10.0.0.0/8".parse::<ImageLocation>(), Err(BadLocation::Network));
        for text in ["10.0.0.1/app", "10.0.0.1/8/app", "10.0.0.1:80/8", "10.0.0.1/33", "a.test/8"] {
            assert!(text.parse::<ImageLocation>().is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_location_is_refused() {
        let long = format!("a.test/{}", "x".repeat(limits::IMAGE_NAME_BYTES));
        for (text, error) in [
            ("", BadLocation::Host),
            ("/a", BadLocation::Host),
            ("a_b.test", BadLocation::Host),
            ("a..test", BadLocation::Host),
            ("a.test.", BadLocation::Host),
            ("-a.test", BadLocation::Host),
            ("user:pw@a.test", BadLocation::Host),
            ("a.test:", BadLocation::Host),
            ("a.test:0", BadLocation::Host),
            ("a.test:65536", BadLocation::Host),
            ("[::g]", BadLocation::Host),
            ("*.a.test", BadLocation::Host),
            ("a.test/../b", BadLocation::Path),
            ("a.test/b c", BadLocation::Path),
            ("a.test/b?c", BadLocation::Path),
            ("a.test/b:1/c", BadLocation::Path),
            ("a.test/b\\c", BadLocation::Path),
            ("a.test/b\u{e4}", BadLocation::Path),
            (long.as_str(), BadLocation::TooLong),
        ] {
            assert_eq!(text.parse::<ImageLocation>(), Err(error), "{text}");
        }
    }

    #[test]
    fn folders_are_those_that_containerd_looks_for() {
        let folder = |text: &str| text.parse::<ImageLocation>().unwrap().folder();
        assert_eq!(folder("a.test:5000/x").as_deref(), Some("a.test_5000_"));
        assert_eq!(folder("a.test/x").as_deref(), Some("a.test"));
        let long = format!("{}.test", "a".repeat(230));
        for text in ["nul.a.test", "COM1", "lpt0.test:80", "[::1]:5000", "[::1]", &long] {
            assert_eq!(folder(text), None, "{text}");
        }
        for text in ["null.test", "com.test", "com10.test", "a.nul"] {
            assert_eq!(folder(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_domain_is_no_registry() {
        let scope = |text: &str| text.parse::<ImageScope>();
        assert_eq!(scope("https://*.A.test"), Ok(ImageScope::Domain("a.test".into())));
        assert!(matches!(scope("a.test/x"), Ok(ImageScope::Location(_))));
        for text in ["*", "*.", "*.a.test/x", "*.a.test:80", "a.*.test"] {
            assert_eq!(scope(text), Err(BadLocation::Host), "{text}");
        }
    }
}
