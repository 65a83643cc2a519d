//! The one object of each kind that tells of the cluster as a whole.

use serde_json::Value;
use wmco_core::names::objects::{CLUSTER, CLUSTER_VERSION};

use super::{InputError, Located, Objects};

/// API group of the cluster's configuration.
pub const CONFIGURATION: &str = "config.openshift.io";

/// API group of settings of the cluster's own operators.
pub const OPERATORS: &str = "operator.openshift.io";

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
    let name = if kind == "ClusterVersion" { CLUSTER_VERSION } else { CLUSTER };
    let text = |object: &'a Value, pointer| object.pointer(pointer).and_then(Value::as_str);
    let mut found = objects.others_of(kind).filter(|other| {
        let version = text(&other.object, "/apiVersion");
        version.is_none_or(|version| version.split('/').next() == Some(group))
            && text(&other.object, "/metadata/name").is_none_or(|found| found == name)
    });
    let first = found.next();
    match (first, found.next()) {
        (Some(first), Some(second)) => Err(InputError::Twice {
            what: format!("{kind} {name}"),
            first: first.at.clone(),
            second: second.at.clone(),
        }),
        _ => Ok(first),
    }
}
