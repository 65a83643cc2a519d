//! Names of images, as containerd reads them.

use std::fmt;
use std::str::FromStr;

use super::location::{ImageLocation, is_host};
use crate::limits;
use crate::names::registries::{DOCKER_HUB, DOCKER_HUB_INDEX, DOCKER_HUB_LIBRARY};

/// The complete name of an image: `busybox` becomes `docker.io/library/busybox:latest`, and a tag beside a digest
/// is dropped.
///
/// Source: the reference grammar of the Distribution project, and containerd's CRI plugin, which completes
/// names in this way.
///
/// ```
/// use wmco_core::registries::ImageReference;
///
/// let image: ImageReference = "busybox".parse()?;
/// assert_eq!(image.to_string(), "docker.io/library/busybox:latest");
/// Ok::<(), wmco_core::registries::BadReference>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageReference {
    host: String,
    repository: String,
    version: Version,
}

/// Tag or digest of an image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Version {
    Digest(String),
    Tag(String),
}

/// Why a text is not an [`ImageReference`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadReference {
    /// The text after `@`.
    #[error("write the digest as `@sha256:` and 64 lower-case hexadecimal digits")]
    Digest,
    /// The registry and the repository.
    #[error("write the name as REGISTRY/REPOSITORY, the repository in lower case")]
    Name,
    /// The text after `:`.
    #[error("write a tag of letters, digits, `.`, `_` and `-` after the colon")]
    Tag,
}

impl ImageReference {
    /// The registry in the name, with its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The name in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub(super) const fn version(&self) -> &Version {
        &self.version
    }

    pub(super) fn registry(&self) -> ImageLocation {
        ImageLocation::of_registry(&self.host)
    }

    /// Where it lies.
    pub(super) fn location(&self) -> ImageLocation {
        ImageLocation::of_repository(&self.host, &self.repository)
    }
}

impl FromStr for ImageReference {
    type Err = BadReference;

    fn from_str(text: &str) -> Result<Self, BadReference> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            // Before a slash it is a port.
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        if !tag.is_none_or(is_tag) {
            return Err(BadReference::Tag);
        }
        let version = match digest {
            Some(digest) if is_digest(digest) => Version::Digest(digest.to_owned()),
            Some(_) => return Err(BadReference::Digest),
            None => Version::Tag(tag.unwrap_or("latest").to_owned()),
        };
        let (host, repository) = split(name);
        let repository = if host == DOCKER_HUB && !repository.contains('/') {
            format!("{DOCKER_HUB_LIBRARY}/{repository}")
        } else {
            repository.to_owned()
        };
        let short = host.len() + repository.len() < limits::IMAGE_NAME_BYTES;
        let right = short && is_host(host) && repository.split('/').all(is_component);
        let image = Self { host: host.to_owned(), repository, version };
        if right { Ok(image) } else { Err(BadReference::Name) }
    }
}

/// Registry and repository of a name without tag and digest.
fn split(name: &str) -> (&str, &str) {
    let is_registry = |first: &str| {
        first == "localhost"
            || first.contains(['.', ':'])
            || first.chars().any(|c| c.is_ascii_uppercase())
    };
    match name.split_once('/') {
        Some((DOCKER_HUB_INDEX, rest)) => (DOCKER_HUB, rest),
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => (DOCKER_HUB, name),
    }
}

/// Lower-case letters and digits, with separators between them.
fn is_component(part: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut separators = part.split(is_inner).filter(|separator| !separator.is_empty());
    part.starts_with(is_inner)
        && part.ends_with(is_inner)
        && separators.all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.chars().all(|c| c == '-')
        })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= limits::IMAGE_TAG_BYTES
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    let hex = |text: &str| text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    digest.split_once(':').is_some_and(|(algorithm, digits)| match algorithm {
        "sha256" => digits.len() == 64 && hex(digits),
        "sha384" => digits.len() == 96 && hex(digits),
        "sha512" => digits.len() == 128 && hex(digits),
        _ => false,
    })
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        match &self.version {
            Version::Digest(digest) => write!(f, "@{digest}"),
            Version::Tag(tag) => write!(f, ":{tag}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, expected: &str) {
        assert_eq!(
            text.parse::<ImageReference>().map(|image| image.to_string()),
            Ok(expected.into())
        );
    }

    #[test]
    fn names_are_completed_as_containerd_does() {
        is("busybox", "docker.io/library/busybox:latest");
        is("team/app:1", "docker.io/team/app:1");
        is("index.docker.io/busybox", "docker.io/library/busybox:latest");
        is("localhost/x", "localhost/x:latest");
        is("a.test:5000/x/y__z:v-1.0", "a.test:5000/x/y__z:v-1.0");
        is("[::1]:5000/x", "[::1]:5000/x:latest");
        let digest = format!("sha256:{}", "a1".repeat(32));
        is(&format!("a.test/x:1@{digest}"), &format!("a.test/x@{digest}"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for (text, error) in [
            ("", BadReference::Name),
            ("a.test/", BadReference::Name),
            ("a.test/X", BadReference::Name),
            ("a.test/x//y", BadReference::Name),
            ("a.test/x..y", BadReference::Name),
            ("a.test/x_", BadReference::Name),
            ("https://a.test/x", BadReference::Name),
            ("a.test/x:", BadReference::Tag),
            ("a.test/x:.1", BadReference::Tag),
            ("a.test/x@sha256:12", BadReference::Digest),
            ("a.test/x@md5:12", BadReference::Digest),
        ] {
            assert_eq!(text.parse::<ImageReference>(), Err(error), "{text}");
        }
    }
}
