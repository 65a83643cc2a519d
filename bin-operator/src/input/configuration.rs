//! The one object of each kind that tells of the cluster as a whole.

use serde_json::Value;
use wmco_core::names::objects::{CLUSTER, CLUSTER_VERSION};

use super::{InputError, Located, Objects};

/// API group of the cluster's configuration.
pub const CONFIGURATION: &str = "config.openshift.io";

/// API group of settings of the cluster's own operators.
pub const OPERATORS: &str = "operator.openshift.io";

/// Version of the API of all these objects.
const VERSION: &str = "v1";

/// The objects that the operator looks at, by group and kind.
pub(super) const CLUSTER_KINDS: [(&str, &str); 6] = [
    (CONFIGURATION, "APIServer"),
    (CONFIGURATION, CLUSTER_VERSION_KIND),
    (CONFIGURATION, "Infrastructure"),
    (CONFIGURATION, "Network"),
    (CONFIGURATION, "Proxy"),
    (OPERATORS, "Network"),
];

const CLUSTER_VERSION_KIND: &str = "ClusterVersion";

/// Whether it is the object that tells of the cluster, of `kind` in `group`. An object without an API version is in the
/// right group, one without a name has the right one.
pub(super) fn is_of_cluster(object: &Value, group: &str, kind: &str) -> bool {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    text("/kind") == Some(kind)
        && text("/apiVersion").is_none_or(|found| found.split_once('/') == Some((group, VERSION)))
        && text("/metadata/name").is_none_or(|found| found == name_of(kind))
}

fn name_of(kind: &str) -> &'static str {
    if kind == CLUSTER_VERSION_KIND { CLUSTER_VERSION } else { CLUSTER }
}

/// The object that tells of the cluster, of `kind` in `group`. An object without an API version is in the right
/// group, one without a name has the right one; others are not looked at by anybody.
///
/// # Errors
/// It is there twice.
pub fn of_cluster<'a>(
    objects: &'a Objects,
    group: &str,
    kind: &'a str,
) -> Result<Option<&'a Located<Value>>, InputError> {
    let mut found =
        objects.others_of(kind).filter(|other| is_of_cluster(&other.object, group, kind));
    let first = found.next();
    match (first, found.next()) {
        (Some(first), Some(second)) => Err(InputError::Twice {
            what: format!("{kind} {}", name_of(kind)),
            first: first.at.clone(),
            second: second.at.clone(),
        }),
        _ => Ok(first),
    }
}
