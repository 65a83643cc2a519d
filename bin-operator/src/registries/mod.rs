//! Follows what the cluster says of registries: mirror sets, settings for images, the pull secret.

mod watched;

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::names::registries::{DOCKER_CONFIG_KEY, IMAGE_CONFIG_KIND, SECRET_KIND};
use wmco_core::registries::{
    ImageConfigFacts, ImageReference, MirrorSetFacts, PullSecret, PullSecretData, RegistryAdvice,
    RegistryFiles, RegistryInputs, RegistryNotice, configure, registry_notices,
};

use crate::kinds::{Kind, Kinds, KindsWatch, Seen, enter, follow};
use watched::MIRROR_SETS;

pub use watched::reference;

/// What follows for all Windows nodes, made once for each change.
#[derive(Debug)]
pub struct RegistryInventory {
    /// Configuration files of containerd.
    pub files: RegistryFiles,
    /// Notices for Events.
    pub notices: Vec<RegistryNotice>,
    /// Why no pod can run.
    pub serious: Vec<RegistryAdvice>,
}

/// What watches show of registries; cheap to clone.
pub type RegistryWatch = KindsWatch<RegistryKinds>;

/// Facts of all kinds that say something of registries.
#[derive(Debug)]
pub struct RegistryKinds {
    mirror_sets: [Kind<Option<MirrorSetFacts>>; MIRROR_SETS.len()],
    image_config: Kind<ImageConfigFacts>,
    pull_secret: Kind<PullSecret>,
    /// The image that each pod needs, if it is known.
    pause_image: Option<ImageReference>,
}

impl Default for RegistryKinds {
    fn default() -> Self {
        Self {
            // Believing too early that there are none would take the mirrors from all nodes.
            mirror_sets: std::array::from_fn(|_| Kind::of_consequence()),
            image_config: Kind::of_consequence(),
            pull_secret: Kind::default(),
            pause_image: None,
        }
    }
}

impl RegistryKinds {
    /// Kinds that have not been listed and without which nobody can tell what containerd needs.
    pub fn unlisted(&self) -> Vec<&'static str> {
        let mut unlisted = Vec::new();
        for (kind, watched) in self.mirror_sets.iter().zip(&MIRROR_SETS) {
            unlisted.extend(kind.known().is_none().then_some(watched.kind));
        }
        unlisted.extend(self.image_config.known().is_none().then_some(IMAGE_CONFIG_KIND));
        // The source of the pause image does not wait for credentials: clusters of other kinds have no pull secret and
        // no rights to look for it.
        let has_mirrors = self.mirror_sets().next().is_some();
        let lacks_secret = has_mirrors && self.pull_secret.known().is_none();
        unlisted.extend(lacks_secret.then_some(SECRET_KIND));
        unlisted
    }

    fn mirror_sets(&self) -> impl Iterator<Item = &MirrorSetFacts> {
        let kinds = self.mirror_sets.iter().filter_map(Kind::known);
        kinds.flat_map(|sets| sets.values().flatten())
    }
}

impl Kinds for RegistryKinds {
    type Inventory = RegistryInventory;

    fn is_known(&self) -> bool {
        self.unlisted().is_empty()
    }

    fn collect(&self) -> RegistryInventory {
        let sets: Vec<MirrorSetFacts> = self.mirror_sets().cloned().collect();
        let pause_image = self.pause_image.as_ref();
        let mut inputs =
            RegistryInputs { mirror_sets: &sets, pause_image, ..RegistryInputs::default() };
        if let Some(config) = self.image_config.known().and_then(|all| all.values().next()) {
            inputs.image_config = config;
        }
        if let Some(secret) = self.pull_secret.known().and_then(|all| all.values().next()) {
            inputs.pull_secret = secret;
        }
        let registries = configure(&inputs);
        let notices = registry_notices(registries.findings());
        let mut serious = pause_image.map(|it| registries.advice(it)).unwrap_or_default();
        serious.retain(RegistryAdvice::is_serious);
        RegistryInventory { files: registries.host_files(), notices, serious }
    }
}

/// Starts to follow them until `stop`, where each pod needs `pause_image`; `tell` is called after each change.
pub fn watch(
    client: &Client,
    pause_image: Option<ImageReference>,
    tell: impl Fn() + Clone + Send + 'static,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> RegistryWatch {
    let watch = RegistryWatch::unknown();
    watch.update(&|| (), |kinds| {
        kinds.pause_image = pause_image;
        true
    });
    let followers = watched::all().map(|watched| {
        let (watch, tell) = (watch.clone(), tell.clone());
        let see = move |seen| watch.update(&tell, |kinds| see(kinds, watched.kind, seen));
        follow(watched.followed(client), see)
    });
    let followers = futures::future::join_all(followers);
    let stop = stop.clone();
    tasks.spawn(async move { stop.run_until_cancelled(followers).await });
    watch
}

/// Takes in what a watch brings of a kind, and tells whether anything is another now.
fn see(kinds: &mut RegistryKinds, kind: &str, seen: Seen) -> bool {
    match kind {
        SECRET_KIND => enter(seen, &mut kinds.pull_secret, |object| {
            read_pull_secret(&serde_json::from_value(object.clone()).unwrap_or_default())
        }),
        IMAGE_CONFIG_KIND => enter(seen, &mut kinds.image_config, ImageConfigFacts::of),
        _ => {
            let mut sets = kinds.mirror_sets.iter_mut().zip(&MIRROR_SETS);
            let sets = sets.find(|(_, watched)| watched.kind == kind);
            sets.is_some_and(|(sets, _)| enter(seen, sets, |object| read_set(kind, object)))
        }
    }
}

/// What stands in `secret`; what a person wrote there as text wins, as in the API server.
pub fn read_pull_secret(secret: &Secret) -> PullSecret {
    let plain = secret.string_data.as_ref().and_then(|data| data.get(DOCKER_CONFIG_KEY));
    let stored = secret.data.as_ref().and_then(|data| data.get(DOCKER_CONFIG_KEY));
    let stored = stored.map(|bytes| bytes.0.as_slice());
    let text = plain.map(String::as_bytes).or(stored);
    let data = text.map_or(PullSecretData::NoKey, PullSecretData::Text);
    PullSecret::read(data).with_uid(secret.uid().as_deref())
}

/// The facts of a mirror set; an item of a list need not repeat its kind.
fn read_set(kind: &str, object: &Value) -> Option<MirrorSetFacts> {
    let mut object = object.clone();
    object.as_object_mut()?.insert("kind".into(), kind.into());
    MirrorSetFacts::of(&object)
}

#[cfg(test)]
mod tests;
