//! Problems in the objects about registries.

use std::fmt;

use serde::Serialize;

use super::{BadLocation, ImageLocation, ImageReference};
use crate::limits;
use crate::text::{cut, harmless, printable, without_user};

/// A finding in an object. Displays as one printable line.
///
/// ```
/// use wmco_core::registries::{MirrorSetFacts, RegistryInputs, configure};
///
/// let set = serde_json::json!({
///     "kind": "ImageDigestMirrorSet",
///     "metadata": {"name": "ours"},
///     "spec": {"imageDigestMirrors": [{"source": "quay.io/a", "mirrors": ["cache.test/b"]}]},
/// });
/// let sets = [MirrorSetFacts::of(&set).unwrap()];
/// let found = configure(&RegistryInputs { mirror_sets: &sets, ..RegistryInputs::default() });
/// let finding = &found.findings()[0];
/// assert_eq!(finding.field, "spec.imageDigestMirrors[0].mirrors[0]");
/// assert!(finding.to_string().starts_with("ImageDigestMirrorSet ours, field `spec.image"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegistryFinding {
    /// The object.
    pub object: ClusterObject,
    /// The field, for example `spec.imageTagMirrors[0].mirrors[2]`, as printable text.
    pub field: String,
    /// The problem there.
    pub problem: RegistryProblem,
    /// The registry of the images that it is about, in its canonical form; `None` if it may be about any.
    pub(super) registry: Option<ImageLocation>,
}

impl RegistryFinding {
    /// Whether it is about images like `image`, or may be: a finding at no registry that could be read.
    pub fn is_about(&self, image: &ImageReference) -> bool {
        let registry = image.registry().canonical();
        self.registry.as_ref().is_none_or(|about| about.host_name() == registry.host_name())
    }
}

/// Kind and name of an object, for Events and messages.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ClusterObject {
    /// Its kind.
    pub kind: &'static str,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its UID, if it is known.
    #[serde(skip)]
    pub uid: Option<String>,
}

/// The problem with a field, and the next step.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryProblem {
    /// Nodes are not restricted to the allowed registries.
    #[error(
        "allowed registries do not restrict Windows nodes, since containerd has no such list: block registries in \
         blockedRegistries"
    )]
    AllowedNotEnforced,
    /// Not a valid location.
    #[error("{} is no location of images: {reason}", shown(.text))]
    BadLocation {
        /// The value.
        text: String,
        /// Why the location is invalid.
        reason: BadLocation,
    },
    /// The mirror's registry is blocked.
    #[error(
        "the registry of this mirror is blocked in the settings for images, so it is not used: remove the mirror, or \
         take its registry off registrySources.blockedRegistries"
    )]
    BlockedMirror,
    /// Credentials that cannot be read. No part of them is repeated.
    #[error("the credentials cannot be read, so they are not used: {reason}")]
    BrokenCredentials {
        /// The expected form.
        reason: &'static str,
    },
    /// No mirror is usable and the source must not be asked.
    #[error(
        "no mirror can be used and the source must not be asked, so Windows nodes pull nothing from {registry}: correct \
         a mirror"
    )]
    Closed {
        /// Host of the source.
        registry: String,
    },
    /// Entries that share a mirror have different credentials for it.
    #[error(
        "the mirror {base} has other credentials in another entry, which are used for both: write them for {base} in the \
         pull secret"
    )]
    CredentialsDiffer {
        /// The location that containerd asks.
        base: String,
    },
    /// Credentials for a mirror that may be asked by HTTP.
    #[error(
        "its registry is insecure, so the credentials for {key} go to it by HTTP where HTTPS fails, and everybody \
         on the way can read them: give it a certificate that hosts trust, and take it off insecureRegistries"
    )]
    CredentialsInClear {
        /// Key of the pull secret.
        key: String,
    },
    /// Mirrors of digests for a part of a registry.
    #[error(
        "containerd knows whole registries only, so {mirror} is asked for images of all of {registry} by digest{}: \
         name {registry} alone if that is meant",
        with(.credentials.as_deref())
    )]
    AskedForAll {
        /// Host of the source.
        registry: String,
        /// The first such mirror, as it is asked.
        mirror: String,
        /// Key of the credentials that it gets.
        credentials: Option<String>,
    },
    /// Mirrors of tags for a part of a registry.
    #[error(
        "containerd knows whole registries only, so {mirror} is asked for images of all of {registry} by tag{}, and \
         whoever may push there decides what for example {registry}/other/app:1 is: write an ImageDigestMirrorSet, or \
         name {registry} alone if that is meant",
        with(.credentials.as_deref())
    )]
    DecidesAllTags {
        /// Host of the source.
        registry: String,
        /// The first such mirror, as it is asked.
        mirror: String,
        /// Key of the credentials that it gets.
        credentials: Option<String>,
    },
    /// A blocked registry without a port.
    #[error(
        "on Windows nodes this holds for images whose names have no port or 443: block {registry}:PORT, too, where it \
         serves other ports"
    )]
    BlockedAtOnePort {
        /// The registry.
        registry: String,
    },
    /// A name of Docker Hub in the list of blocked registries that images do not usually have.
    #[error(
        "this is a name of Docker Hub, all of whose names are blocked with it: write docker.io"
    )]
    BlockedHub,
    /// An insecure registry without a port.
    #[error(
        "on Windows nodes this holds for mirrors at any port, but for images only where their names have no port: list \
         {registry}:PORT, too, where it serves other ports"
    )]
    InsecureAtOnePort {
        /// The registry.
        registry: String,
    },
    /// A helper that only other programs run.
    #[error(
        "the pull secret names a credential helper for {key}, which containerd does not run, so no credentials are \
         sent: write them below `auths`"
    )]
    CredentialHelper {
        /// Its key.
        key: String,
    },
    /// A store of credentials that only other programs ask.
    #[error(
        "containerd asks no credential store, so no credentials of it are sent: write them below `auths`"
    )]
    CredentialStore,
    /// Two keys of the pull secret for one registry, with different credentials.
    #[error("another key is for {key}, too, and has other credentials: leave one of them")]
    CredentialsTwice {
        /// What both are for.
        key: String,
    },
    /// No source.
    #[error("is missing, so the entry does nothing: write the registry that its mirrors stand for")]
    NoSource,
    /// An entry without mirrors.
    #[error("there is no mirror in it, so the entry does nothing: add one, or remove the entry")]
    NoMirrors,
    /// The order of the mirrors of an entry is not kept.
    #[error(
        "another entry for {registry} wants them in another order, so the order of this one is not kept: write one \
         order in both"
    )]
    OtherOrder {
        /// Host of the source.
        registry: String,
    },
    /// An object of a version that nobody reads.
    #[error(
        "this kind is read as {right} alone, so the object does nothing: write `apiVersion: {right}`"
    )]
    OtherVersion {
        /// Group and version.
        right: String,
    },
    /// An object of a kind that does not exist.
    #[error("nobody reads this kind, so the object does nothing: write `kind: {right}`")]
    OtherKind {
        /// The kind that was probably meant.
        right: &'static str,
    },
    /// An object with a name that nobody reads.
    #[error(
        "the one that counts is called {right}, so this object does nothing: write `name: {right}`"
    )]
    OtherName {
        /// The name.
        right: &'static str,
    },
    /// The kind is deprecated.
    #[error("this kind is deprecated, write an ImageDigestMirrorSet instead")]
    Deprecated,
    /// Credentials for a part of a mirror.
    #[error(
        "the pull secret has credentials for {key} alone, but containerd sends the same to all of a mirror, so none are \
         sent: write them for {mirror}"
    )]
    CredentialsForPart {
        /// Their key.
        key: String,
        /// The mirror.
        mirror: String,
    },
    /// A setting for a whole domain.
    #[error(
        "containerd has no settings for a whole domain: this holds for registries that are named \
         elsewhere in these objects only, name each registry"
    )]
    DomainInPart,
    /// A blocked domain.
    #[error(
        "containerd has no settings for a whole domain, so registries in it are asked unless they are named \
         elsewhere in these objects: name each registry"
    )]
    DomainNotBlocked,
    /// A mirror set for a whole domain.
    #[error(
        "containerd has no mirrors for a whole domain, so Windows nodes ask the sources: name each registry"
    )]
    DomainSource,
    /// An entry without a password.
    #[error("there are no credentials in it, so none are sent: write `auth`, or remove it")]
    EmptyCredentials,
    /// A mirror with a scheme that is not kept.
    #[error(
        "`http://` is not kept, HTTPS is asked: list the registry in registrySources.insecureRegistries if it \
         serves HTTP only"
    )]
    HttpIsNotKept,
    /// An entry with a token that only Docker supports.
    #[error(
        "an identity token cannot be sent by containerd, so no credentials are sent: write `auth` with a password"
    )]
    IdentityToken,
    /// A mirror at an IPv6 address.
    #[error(
        "no form of a mirror at an IPv6 address is read by all versions of containerd, so it is not used: write \
         a name for it"
    )]
    Ipv6Mirror,
    /// A set that says nothing.
    #[error("there is no entry in it, so it does nothing: add one, or remove it")]
    NoEntries,
    /// A mirror that is the forbidden source of another entry.
    #[error(
        "another entry forbids to ask this registry with NeverContactSource, so this mirror is not used: remove it, or \
         that policy"
    )]
    ForbiddenMirror,
    /// `NeverContactSource`, and the source is a mirror.
    #[error(
        "this is the source, by one of its names, so it is asked in spite of NeverContactSource: remove this mirror or that policy"
    )]
    NeverButMirror,
    /// `NeverContactSource` for a name that images do not usually have.
    #[error(
        "images of this registry usually name {name}, NeverContactSource forbids it under all of its names, and these \
         mirrors do not serve that one: write {name} as the source"
    )]
    NeverByAnotherName {
        /// The usual name.
        name: String,
    },
    /// `NeverContactSource` for another name of the same registry.
    #[error(
        "{name} is the same registry and has NeverContactSource, so this source is not asked either: write one policy \
         for both"
    )]
    NeverByOtherName {
        /// The other name.
        name: String,
    },
    /// `NeverContactSource` for a part of a registry.
    #[error(
        "containerd knows whole registries only, so no image of {registry} is pulled from there: name {registry} alone if \
         that is meant"
    )]
    NeverIsShared {
        /// Host of the source.
        registry: String,
    },
    /// `NeverContactSource` without mirrors.
    #[error(
        "there is no mirror in this entry, so it keeps nodes from the source only if other entries of \
         the registry have one: add a mirror"
    )]
    NeverWithoutMirrors,
    /// A source that no image name has.
    #[error("no image has this registry in its name, write docker.io")]
    NeverLookedUp,
    /// A mirror with another path than the source.
    #[error(
        "it does not end with `/{path}`, the whole path of the source, which containerd appends, so it \
         is not used: mirror under the same path"
    )]
    OtherPath {
        /// Path of the source.
        path: String,
    },
    /// Credentials for the same registry, written in another way.
    #[error(
        "the pull secret has credentials for {key}, but keys count as they are written, so none are sent to {host}: write \
         them for {host}"
    )]
    OtherPort {
        /// The registry with or without its port, as in the pull secret.
        key: String,
        /// The registry as the mirror is written.
        host: String,
    },
    /// A setting for a part of a registry.
    #[error(
        "containerd knows whole registries only, so this holds for mirrors in this part, but neither for \
         sources nor for mirrors of a wider part: name the registry alone"
    )]
    PartOfRegistry,
    /// The pull secret cannot be used at all.
    #[error(
        "{reason}, so no credentials are sent to mirrors: write {{\"auths\": {{REGISTRY: {{\"auth\": ..}}}}}}"
    )]
    PullSecret {
        /// The problem.
        reason: &'static str,
    },
    /// Names without a registry, which are ignored.
    #[error(
        "containerd takes images without a registry from docker.io only, so this is passed over: write the registry in \
         front of such images"
    )]
    SearchNotDone,
    /// A mirror with the name of a Service.
    #[error(
        "hosts of Windows do not resolve names of Services, so this mirror is never reached: use the registry's route"
    )]
    ServiceName,
    /// A source without a registry.
    #[error(
        "no image has `{name}` as its registry, since images without a registry are of docker.io, so this does \
         nothing: write the registry before it"
    )]
    SourceWithoutRegistry {
        /// What stands in the place of the registry.
        name: String,
    },
    /// Credentials with characters that are probably not meant. No part of them is repeated.
    #[error(
        "the user or the password begins or ends with a blank, or holds a control character such as a line end, so the \
         registry will probably answer 401: write it again without (`printf`, not `echo`, before base64)"
    )]
    StrayCharacters,
    /// A source with a tag or a digest.
    #[error(
        "a source names a repository, so a mirror with the same tag or digest is used for all of them, and any other is \
         not used: leave the tag or digest of the source and its mirrors away"
    )]
    TaggedSource,
    /// A member that nobody reads.
    #[error("nobody reads this member, so it does nothing{}", meant(.right.as_deref()))]
    UnknownMember {
        /// The path that was probably meant.
        right: Option<String>,
    },
    /// An unknown policy.
    #[error("{} is no policy, so the source is not asked, as with NeverContactSource: write NeverContactSource or AllowContactingSource", shown(.text))]
    UnknownPolicy {
        /// The value.
        text: String,
    },
    /// The registry's folder cannot be created.
    #[error(
        "Windows cannot hold a folder for {registry}, so its source is asked: use another name of the host"
    )]
    UnusableFolder {
        /// Host of the source.
        registry: String,
    },
    /// A field of the wrong type.
    #[error("is not {expected}, so it is passed over: {}", example(.expected))]
    WrongShape {
        /// The expected type.
        expected: &'static str,
    },
}

impl RegistryProblem {
    /// Whether a setting does not apply on Windows nodes. Otherwise it applies, but maybe not as intended.
    pub const fn is_serious(&self) -> bool {
        match self {
            Self::AskedForAll { .. }
            | Self::CredentialsDiffer { .. }
            | Self::CredentialsInClear { .. }
            | Self::BlockedAtOnePort { .. }
            | Self::CredentialsForPart { .. }
            | Self::Deprecated
            | Self::DomainInPart
            | Self::BlockedHub
            | Self::CredentialHelper { .. }
            | Self::CredentialStore
            | Self::CredentialsTwice { .. }
            | Self::EmptyCredentials
            | Self::InsecureAtOnePort { .. }
            | Self::NoMirrors
            | Self::OtherOrder { .. }
            | Self::HttpIsNotKept
            | Self::IdentityToken
            | Self::NoEntries
            | Self::OtherPort { .. }
            | Self::NeverByOtherName { .. }
            | Self::NeverIsShared { .. }
            | Self::NeverLookedUp
            | Self::SearchNotDone
            | Self::StrayCharacters => false,
            Self::AllowedNotEnforced
            | Self::BadLocation { .. }
            | Self::BlockedMirror
            | Self::BrokenCredentials { .. }
            | Self::Closed { .. }
            | Self::DecidesAllTags { .. }
            | Self::DomainNotBlocked
            | Self::DomainSource
            | Self::ForbiddenMirror
            | Self::Ipv6Mirror
            | Self::NeverByAnotherName { .. }
            | Self::NeverButMirror
            | Self::NeverWithoutMirrors
            | Self::NoSource
            | Self::OtherKind { .. }
            | Self::OtherName { .. }
            | Self::OtherVersion { .. }
            | Self::OtherPath { .. }
            | Self::PartOfRegistry
            | Self::PullSecret { .. }
            | Self::ServiceName
            | Self::SourceWithoutRegistry { .. }
            | Self::TaggedSource
            | Self::UnknownMember { .. }
            | Self::UnknownPolicy { .. }
            | Self::UnusableFolder { .. }
            | Self::WrongShape { .. } => true,
        }
    }
}

/// Which credentials are sent along.
fn with(credentials: Option<&str>) -> String {
    credentials.map(|key| format!(", with the credentials for {key}")).unwrap_or_default()
}

/// How a value of a type is written.
fn example(expected: &str) -> &'static str {
    match expected {
        "a list" => "write it as a list, such as `[quay.io]`",
        "a text" => "write it in quotes",
        _ => "write its members below it",
    }
}

/// What to write in place of an unknown member.
fn meant(right: Option<&str>) -> String {
    right.map_or_else(|| ": remove it".to_owned(), |right| format!(": write `{right}`"))
}

impl fmt::Display for ClusterObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, printable(&self.name))
    }
}

impl fmt::Display for RegistryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, field `{}`: {}", self.object, self.field, self.problem)
    }
}

/// Quotes `text` for a message: shortened, and without possible passwords in a URL.
pub(super) fn shown(text: &str) -> String {
    format!("\"{}\"", cut(&without_user(text), limits::FINDING_TEXT_BYTES).escape_debug())
}

/// The name of an object, which any text can be in a file.
pub(super) fn shown_name(name: &str) -> String {
    harmless(name, limits::OBJECT_NAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_short_harmless_and_no_password() {
        assert_eq!(shown("https://bob:hush@a.test"), "\"[redacted]@a.test\"");
        assert_eq!(shown("a\n\u{1b}"), r#""a\n\u{1b}""#);
        assert!(shown(&"x".repeat(9999)).len() < 200);
    }
}
