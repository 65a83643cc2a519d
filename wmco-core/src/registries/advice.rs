//! What the configuration as a whole means for people.

use super::{ImageReference, Registries};

/// What people should know of a configuration, besides the findings about single objects.
///
/// ```
/// use wmco_core::registries::{RegistryAdvice, RegistryInputs, configure};
///
/// let registries = configure(&RegistryInputs::default());
/// let pause_image = "registry.example/pause:1".parse()?;
/// assert!(registries.advice(&pause_image).is_empty());
/// # Ok::<(), wmco_core::registries::BadReference>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryAdvice {
    /// Some layers are fetched from a source that must not be asked.
    #[error(
        "layers that name URLs of their own are fetched from there, in spite of NeverContactSource and blocked \
         registries: base images of Windows from before the middle of 2023 have them, and all built on them"
    )]
    LayersFromElsewhere,
    /// The image that each pod needs can be pulled from nowhere.
    #[error(
        "no registry may be asked for {image}, so no pod starts on any Windows node: allow its registry, mirror it, or \
         name another in CONTAINERD_PAUSE_IMAGE"
    )]
    NoPauseImage {
        /// The image.
        image: String,
    },
    /// There are mirrors, but none resolves the image that each pod needs.
    #[error(
        "no mirror resolves {image}, which each Windows node needs before any pod runs: where its registry cannot be \
         reached, mirror it in an ImageTagMirrorSet, or name another, or one by digest, in CONTAINERD_PAUSE_IMAGE"
    )]
    PauseImageWithoutMirror {
        /// The image.
        image: String,
    },
}

impl RegistryAdvice {
    /// Whether no pod can run.
    pub const fn is_serious(&self) -> bool {
        matches!(self, Self::NoPauseImage { .. })
    }
}

impl Registries {
    /// What to know of the whole, where each pod needs `pause_image`.
    pub fn advice(&self, pause_image: &ImageReference) -> Vec<RegistryAdvice> {
        let (pull, image) = (self.explain(pause_image), pause_image.to_string());
        let has_mirrors = self.files.values().any(|(_, file)| file.has_mirror());
        let pause_image = match pull.resolve.is_empty() {
            true => Some(RegistryAdvice::NoPauseImage { image }),
            false if has_mirrors && !pull.has_mirror() => {
                Some(RegistryAdvice::PauseImageWithoutMirror { image })
            }
            false => None,
        };
        let keeps = self.files.values().any(|(_, file)| file.keeps_from_source());
        pause_image
            .into_iter()
            .chain(keeps.then_some(RegistryAdvice::LayersFromElsewhere))
            .collect()
    }
}
