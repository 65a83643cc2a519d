//! The operator as a bundle for the Operator Lifecycle Manager.
//!
//! [`Bundle::files`] makes a bundle, [`check()`] checks one against the published rules for bundles.
//!
//! Namespaced objects of a bundle are installed into the operator's own namespace, whatever their metadata says. So
//! rights that the operator otherwise has in other namespaces ([`manifests`]) apply to the whole cluster here,
//! restricted by object names; and the console's dashboard is one of the examples.
//!
//! Source: `docs/contract/cluster.md`, CLU30; <https://olm.operatorframework.io/docs/>.

mod check;
mod csv;
mod examples;
mod metadata;

use std::collections::BTreeMap;

pub use check::{Level, Problem, RULES, Rule, check};
use semver::Version;
use serde_json::Value;

use crate::cluster::rbac;
use crate::limits;
use crate::manifests::{self, Installation};
use crate::monitoring;
use crate::names::objects::OPERATOR;
use crate::registries::{BadReference, ImageReference};
use crate::text::{cut, is_dns_subdomain, printable};

/// Channels that the bundle is in.
pub const CHANNELS: [&str; 2] = ["preview", "stable"];

/// The default channel.
pub const DEFAULT_CHANNEL: &str = "stable";

/// Path of the annotations.
const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// Path of the Dockerfile of the bundle's image.
const DOCKERFILE: &str = "Dockerfile";

/// Folder of the objects.
const MANIFESTS: &str = "manifests/";

/// Folder of the annotations.
const METADATA: &str = "metadata/";

/// Input of a bundle.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    /// The operator's namespace, image and options.
    pub installation: Installation<'a>,
    /// Version of the operator.
    pub version: Version,
    /// Range of installed versions that upgrade to this one directly; all older versions if `None`.
    pub skip_range: Option<&'a str>,
    /// The catalogue's image, for the examples.
    pub catalog_image: &'a str,
    /// The bundle's own image, for the examples.
    pub own_image: &'a str,
}

impl Bundle<'_> {
    /// Checks that the bundle can be made.
    ///
    /// # Errors
    /// The invalid input.
    pub fn check(&self) -> Result<(), BundleError> {
        let (name, version) = (self.name(), &self.version);
        if !is_dns_subdomain(&name) || *version == Version::new(0, 0, 0) {
            return Err(BundleError::Version { version: version.clone() });
        }
        let is_range = |text: &str| {
            !text.contains(char::is_control) && check::range::is_of_older(text, version)
        };
        if let Some(text) = self.skip_range.filter(|text| !is_range(text)) {
            let text = printable(cut(text, limits::FINDING_TEXT_BYTES));
            return Err(BundleError::SkipRange { text });
        }
        for (of, text) in [("catalogue", self.catalog_image), ("bundle", self.own_image)] {
            if let Err(problem) = text.parse::<ImageReference>() {
                return Err(BundleError::Image { of, text: text.to_owned(), problem });
            }
        }
        Ok(())
    }

    /// Returns all files by path: the content of the bundle's image, its Dockerfile, and below `examples/` the
    /// objects that install it.
    ///
    /// ```
    /// use wmco_core::bundle::{Bundle, Level, check};
    /// use wmco_core::manifests::Installation;
    ///
    /// let bundle = Bundle {
    ///     installation: Installation::new("windows", "registry.example/wmco:1")?,
    ///     version: "1.2.3".parse()?,
    ///     skip_range: None,
    ///     catalog_image: "registry.example/catalog:1",
    ///     own_image: "registry.example/bundle:1",
    /// };
    /// let problems = check(&bundle.files());
    /// assert!(problems.iter().all(|problem| problem.rule.level == Level::Warning));
    /// Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::from([
            (ANNOTATIONS.to_owned(), yaml(&metadata::annotations())),
            (DOCKERFILE.to_owned(), metadata::dockerfile()),
            (format!("{MANIFESTS}{OPERATOR}.clusterserviceversion.yaml"), yaml(&self.csv())),
        ]);
        for mut object in self.objects() {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.remove("namespace");
            }
            files.insert(path(&object), yaml(&object));
        }
        files.extend(self.examples());
        files
    }

    /// The name of the bundle's ClusterServiceVersion.
    pub fn name(&self) -> String {
        format!("{OPERATOR}.v{}", self.version)
    }

    /// Objects to install beside the ClusterServiceVersion.
    fn objects(&self) -> Vec<Value> {
        let namespace = self.installation.namespace();
        let mut objects = rbac::shipped(namespace);
        objects.push(manifests::exporter_service(namespace));
        // Objects of another namespace would be put into this one.
        let shipped = monitoring::shipped(namespace).into_iter();
        objects.extend(shipped.filter(|object| lives_in(object, namespace)));
        objects
    }
}

fn lives_in(object: &Value, namespace: &str) -> bool {
    object.pointer("/metadata/namespace").and_then(Value::as_str) == Some(namespace)
}

/// Why a bundle cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Not a valid image reference.
    #[error("{of}'s image `{text}` cannot be used: {problem}")]
    Image {
        /// What the image holds.
        of: &'static str,
        /// The input.
        text: String,
        /// Why the reference is invalid.
        problem: BadReference,
    },
    /// Not a range of older versions.
    #[error(
        "skip range `{text}` cannot be used, write comparisons with versions such as `>=1.0.0 <1.2.3`, further ranges \
         after `||`, which have older versions alone"
    )]
    SkipRange {
        /// The input, shortened and printable.
        text: String,
    },
    /// Not usable in the names of the bundle.
    #[error(
        "bundle version {version} cannot be used, write for example 1.2.3 or 1.2.3-rc.1, above 0.0.0"
    )]
    Version {
        /// The input.
        version: Version,
    },
}

/// `manifests/NAME_GROUP_VERSION_KIND.yaml`, as other tools name such files.
fn path(object: &Value) -> String {
    let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = field("/apiVersion").replace('/', "_");
    let (name, kind) = (field("/metadata/name"), field("/kind").to_lowercase());
    format!("{MANIFESTS}{name}_{group}_{kind}.yaml")
}

fn yaml(object: &Value) -> String {
    // Every JSON value has a form in YAML.
    serde_saphyr::to_string(object).unwrap_or_default()
}
