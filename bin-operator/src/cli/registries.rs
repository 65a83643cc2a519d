//! Reads registries from the input, for all commands about mirrors.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use wmco_core::names::registries::{
    CONFIG_GROUP, CONTENT_SOURCE_POLICY_KIND, DIGEST_MIRROR_SET_KIND, IMAGE_CONFIG_KIND,
    PULL_SECRET, PULL_SECRET_NAMESPACE, TAG_MIRROR_SET_KIND,
};
use wmco_core::registries::{
    ImageConfigFacts, ImageReference, MirrorSetFacts, PullSecret, PullSecretData, Registries,
    RegistryFinding, RegistryInputs, configure, misplaced,
};
use wmco_core::render::ContainerdSettings;

use super::{Answer, no, tell};
use crate::input::{InputError, Located, Location, Objects, Reader, once};
use crate::registries::read_pull_secret;

/// Kinds of the objects that these commands look for, for people.
pub(super) const KINDS: [&str; 4] =
    [DIGEST_MIRROR_SET_KIND, TAG_MIRROR_SET_KIND, CONTENT_SOURCE_POLICY_KIND, IMAGE_CONFIG_KIND];

/// How many of [`KINDS`] are mirror sets; they come first.
const MIRROR_SETS: usize = 3;

/// What was read.
pub(super) struct Given {
    /// Configuration of containerd.
    pub(super) registries: Registries,
    /// The image that each pod needs: the default, or that of the operator's environment.
    pub(super) pause_image: ImageReference,
    /// How many mirror sets there are.
    pub(super) mirror_sets: usize,
    /// Whether there is anything that says something of registries.
    pub(super) any: bool,
    /// Objects of these kinds that do not count.
    misplaced: Vec<RegistryFinding>,
    /// Whether the pull secret is in the input.
    has_pull_secret: bool,
}

impl Given {
    /// Reads `files`.
    ///
    /// # Errors
    /// A file cannot be read, or the environment has no right name of the pause image.
    pub(super) fn read(files: &[PathBuf]) -> anyhow::Result<Self> {
        let objects = Reader::new(std::io::stdin()).objects(files)?;
        let sets = objects.others.iter().filter_map(|other| MirrorSetFacts::of(&other.object));
        let sets: Vec<MirrorSetFacts> = sets.collect();
        let misplaced = objects.others.iter().filter_map(|other| misplaced(&other.object));
        let misplaced = misplaced.collect();
        for kind in KINDS.iter().take(MIRROR_SETS) {
            once(kind, named_sets(&objects, kind))?;
        }
        let configs = objects.others.iter().filter(|other| is_image_config(&other.object));
        let config = the_one(configs, IMAGE_CONFIG_KIND)?;
        let secret = the_one(pull_secrets(&objects), PULL_SECRET)?;
        // That it was not given says nothing of the cluster's.
        let nothing = || PullSecret::read(PullSecretData::Text(b"{}"));
        let pull_secret = secret.map_or_else(nothing, read_pull_secret);
        let image_config = config.map(ImageConfigFacts::of).unwrap_or_default();
        let settings = ContainerdSettings::from_environment(|name| std::env::var(name).ok())?;
        let pause_image = settings.pause_image.parse()?;
        let inputs = RegistryInputs {
            mirror_sets: &sets,
            image_config: &image_config,
            pull_secret: &pull_secret,
            pause_image: Some(&pause_image),
        };
        Ok(Self {
            registries: configure(&inputs),
            pause_image,
            mirror_sets: sets.len(),
            any: config.is_some() || !sets.is_empty() || secret.is_some(),
            misplaced,
            has_pull_secret: secret.is_some(),
        })
    }

    /// All that was found, objects that do not count first.
    pub(super) fn findings(&self) -> impl Iterator<Item = &RegistryFinding> {
        self.misplaced.iter().chain(self.registries.findings())
    }

    /// Writes findings to standard error. The answer is "no" if one of them is serious.
    pub(super) fn tell_findings<'a>(findings: impl Iterator<Item = &'a RegistryFinding>) -> Answer {
        let mut answer = Answer::Yes;
        for finding in findings {
            if finding.problem.is_serious() {
                answer = no(anyhow::Error::msg(finding.to_string()));
            } else {
                tell("warning", &finding.to_string());
            }
        }
        answer
    }

    /// Says so if the answer takes for granted that there are no credentials.
    pub(super) fn tell_assumption(&self) {
        if !self.has_pull_secret && self.mirror_sets > 0 {
            tell(
                "note",
                &format!(
                    "no Secret {PULL_SECRET} in the input, so no mirror gets credentials; it is in \
                     the namespace {PULL_SECRET_NAMESPACE}"
                ),
            );
        }
    }
}

fn is_image_config(object: &Value) -> bool {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let group = text("/apiVersion").and_then(|version| version.split('/').next());
    // Images of the image registry are of the same kind.
    text("/kind") == Some(IMAGE_CONFIG_KIND)
        && group.is_none_or(|group| group == CONFIG_GROUP)
        && misplaced(object).is_none()
}

/// Name and place of each mirror set of `kind` that counts.
fn named_sets<'a>(
    objects: &'a Objects,
    kind: &str,
) -> impl Iterator<Item = (&'a str, &'a Location)> {
    let sets = objects.others.iter().filter(move |other| {
        other.object.get("kind").and_then(Value::as_str) == Some(kind)
            && misplaced(&other.object).is_none()
    });
    sets.map(|set| {
        let name = set.object.pointer("/metadata/name").and_then(Value::as_str);
        (name.unwrap_or_default(), &set.at)
    })
}

fn pull_secrets(objects: &Objects) -> impl Iterator<Item = &Located<Secret>> {
    objects.secrets.iter().filter(|secret| {
        let metadata = &secret.object.metadata;
        let namespace = metadata.namespace.as_deref();
        metadata.name.as_deref() == Some(PULL_SECRET)
            && namespace.is_none_or(|namespace| namespace == PULL_SECRET_NAMESPACE)
    })
}

/// The object of which a cluster has one.
fn the_one<'a, T>(
    mut found: impl Iterator<Item = &'a Located<T>>,
    what: &str,
) -> Result<Option<&'a T>, InputError> {
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => {
            let (first, second) = (first.at.clone(), second.at.clone());
            Err(InputError::Twice { what: what.to_owned(), first, second })
        }
        (one, _) => Ok(one.map(|located| &located.object)),
    }
}
