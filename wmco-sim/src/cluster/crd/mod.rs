//! CustomResourceDefinitions: their defaults and validation, and how they take effect.

mod definition;
mod reconcile;

pub(crate) use definition::{complete, validate};
pub(crate) use reconcile::{reconcile, retry};

use super::resources::Resource;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Whether objects of the resource are CustomResourceDefinitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.is(GROUP, PLURAL)
}
