//! Checks a bundle against the rules of the Operator Lifecycle Manager and its catalogs.
//!
//! Each rule has a name and the page that publishes it. Wording and code are our own; a release is also checked
//! with `opm` and `operator-sdk bundle validate`.

mod metadata;
mod objects;
pub(super) mod range;
mod service_version;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::MANIFESTS;

/// Kind of the object that describes the operator.
const SERVICE_VERSION: &str = "ClusterServiceVersion";

/// Most bytes of a bundle's compressed objects: they have to fit into a ConfigMap.
const COMPRESSED_BYTES: usize = 1 << 20;

/// A rule for bundles.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// Severity of a violation.
    pub level: Level,
    /// The page that publishes the rule.
    pub source: &'static str,
}

/// Severity of a broken rule.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The bundle is refused.
    Error,
    /// The bundle can be installed, but users may miss something.
    Warning,
}

/// A broken rule.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// The rule.
    #[serde(flatten)]
    pub rule: &'static Rule,
    /// Path of the file.
    pub file: String,
    /// The problem, and the next step.
    pub text: String,
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Rule", 3)?;
        fields.serialize_field("rule", self.name)?;
        fields.serialize_field("level", &self.level)?;
        fields.serialize_field("source", self.source)?;
        fields.end()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.file, self.text, self.rule.name)
    }
}

/// The format of bundles.
const FORMAT: &str = "https://github.com/operator-framework/operator-registry/blob/master/docs/design/operator-bundle.md";
/// What other bundles a bundle may need.
const NEEDS: &str =
    "https://olm.operatorframework.io/docs/concepts/olm-architecture/dependency-resolution/";
/// Limits of objects that concern the whole cluster.
const CLUSTER_WIDE: &str = "https://olm.operatorframework.io/docs/advanced-tasks/";
/// Rules of roles.
const ROLES: &str = "https://kubernetes.io/docs/reference/access-authn-authz/rbac/";
/// Kinds of objects that a bundle may hold.
const KINDS: &str = "https://olm.operatorframework.io/docs/tasks/creating-operator-manifests/#packaging-additional-objects-alongside-an-operator";
/// Checks that apply to every bundle.
const VALIDATION: &str = "https://pkg.go.dev/github.com/operator-framework/api/pkg/validation";
/// Fields of a ClusterServiceVersion.
const MANIFEST: &str = "https://olm.operatorframework.io/docs/tasks/creating-operator-manifests/";
/// Best practices.
const PRACTICES: &str = "https://sdk.operatorframework.io/docs/best-practices/";
/// Names of channels.
const CHANNEL_NAMES: &str = "https://olm.operatorframework.io/docs/best-practices/channel-naming/";
/// OpenShift's additional requirements.
const OPENSHIFT: &str = "https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/operators/developing-operators";

const fn error(name: &'static str, source: &'static str) -> Rule {
    Rule { name, level: Level::Error, source }
}

const fn warning(name: &'static str, source: &'static str) -> Rule {
    Rule { name, level: Level::Warning, source }
}

macro_rules! rules {
    ($($constant:ident = $rule:expr;)*) => {
        $(const $constant: &Rule = &$rule;)*
        /// All rules.
        pub const RULES: &[&Rule] = &[$($constant),*];
    };
}

rules! {
    ANNOTATIONS = error("annotations", FORMAT);
    MEDIA_TYPE = error("media-type", FORMAT);
    FOLDERS = error("folders", FORMAT);
    DEFAULT_CHANNEL = error("default-channel", FORMAT);
    DOCKERFILE = error("dockerfile-labels", FORMAT);
    DEPENDENCIES = error("dependencies", NEEDS);
    CHANNELS = warning("channel-names", CHANNEL_NAMES);
    ONE_OBJECT = error("one-object-per-file", FORMAT);
    ONE_SERVICE_VERSION = error("one-service-version", FORMAT);
    SUPPORTED_KINDS = error("supported-kinds", KINDS);
    OBJECT_NAMES = error("object-names", FORMAT);
    SERVICE_ACCOUNT = error("service-account", VALIDATION);
    DEFINITIONS = error("owned-definitions", VALIDATION);
    REMOVED_APIS = error("removed-apis", VALIDATION);
    ROLE_RULES = error("role-rules", ROLES);
    DISRUPTION_BUDGET = error("pod-disruption-budget", CLUSTER_WIDE);
    PRIORITY_CLASS = error("priority-class", CLUSTER_WIDE);
    SIZE = error("size", VALIDATION);
    TYPES = error("types", MANIFEST);
    NAME = error("name", VALIDATION);
    VERSION = error("version", VALIDATION);
    REPLACES = error("replaces", VALIDATION);
    SKIP_RANGE = error("skip-range", MANIFEST);
    INSTALL_MODES = error("install-modes", VALIDATION);
    INSTALL = error("install", VALIDATION);
    WEBHOOKS = error("webhooks", VALIDATION);
    FIELDS = error("required-fields", MANIFEST);
    EXAMPLES = error("examples", VALIDATION);
    PROVIDER = error("provider", VALIDATION);
    CONTACTS = error("links-and-maintainers", VALIDATION);
    ICON = error("icon", VALIDATION);
    CAPABILITIES = error("capabilities", VALIDATION);
    CATEGORIES = error("categories", VALIDATION);
    MIN_KUBERNETES = error("min-kubernetes-version", VALIDATION);
    NO_MIN_KUBERNETES = warning("no-min-kubernetes-version", VALIDATION);
    REQUESTS = warning("resource-requests", PRACTICES);
    FEATURES = error("features", OPENSHIFT);
    SUGGESTED_NAMESPACE = error("suggested-namespace", OPENSHIFT);
    RELATED_IMAGES = error("related-images", OPENSHIFT);
    DIGESTS = warning("images-by-digest", OPENSHIFT);
}

/// Returns the violations in a bundle, in the order of its files; none for a correct bundle.
///
/// `files` maps paths in the bundle's folder to texts. Files that are no part of a bundle are ignored.
pub fn check(files: &BTreeMap<String, String>) -> Vec<Problem> {
    let mut found = Found(Vec::new());
    metadata::check(files, &mut found);
    let manifests: BTreeMap<&str, Value> = parsed(files, &mut found);
    objects::check(&manifests, &mut found);
    size(files, &mut found);
    let mut versions = manifests.iter().filter(|(_, object)| object["kind"] == SERVICE_VERSION);
    match (versions.next(), versions.next()) {
        (Some((file, version)), None) => {
            types::check(file, version, &mut found);
            service_version::check(file, version, &mut found);
            objects::check_against(version, &manifests, &mut found);
        }
        (None, _) => found.push(
            ONE_SERVICE_VERSION,
            MANIFESTS,
            "holds no ClusterServiceVersion, add the one that describes the operator",
        ),
        (Some(_), Some((second, _))) => {
            found.push(
                ONE_SERVICE_VERSION,
                second,
                "is a second ClusterServiceVersion, leave one out",
            );
        }
    }
    let mut problems = found.0;
    problems.sort_by(|a, b| a.file.cmp(&b.file));
    problems
}

/// The objects of the bundle by path.
fn parsed<'a>(files: &'a BTreeMap<String, String>, found: &mut Found) -> BTreeMap<&'a str, Value> {
    let mut manifests = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(MANIFESTS)) {
        match serde_saphyr::from_multiple::<Value>(text) {
            Ok(mut objects) if objects.len() == 1 => {
                manifests.extend(objects.pop().map(|object| (path.as_str(), object)));
            }
            Ok(objects) => {
                let text = format!("holds {} objects, write one per file", objects.len());
                found.push(ONE_OBJECT, path, text);
            }
            Err(error) => {
                found.push(ONE_OBJECT, path, format!("cannot be read as YAML: {error}"));
            }
        }
    }
    manifests
}

fn size(files: &BTreeMap<String, String>, found: &mut Found) {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    for (_, text) in files.iter().filter(|(path, _)| path.starts_with(MANIFESTS)) {
        // Writing to memory does not fail.
        let _ = compressed.write_all(text.as_bytes());
    }
    let bytes = compressed.finish().map_or(0, |bytes| bytes.len());
    if bytes > COMPRESSED_BYTES {
        let text =
            format!("is {bytes} bytes when compressed and may have {COMPRESSED_BYTES}, shorten it");
        found.push(SIZE, MANIFESTS, text);
    }
}

/// The violations found so far.
struct Found(Vec<Problem>);

impl Found {
    fn push(&mut self, rule: &'static Rule, file: &str, text: impl Into<String>) {
        self.0.push(Problem { rule, file: file.to_owned(), text: text.into() });
    }
}

/// The text at a JSON pointer; empty if there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items at a JSON pointer.
fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
