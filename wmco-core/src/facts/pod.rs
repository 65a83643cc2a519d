//! A pod, reduced to the fields that a drain needs.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{limits, names};

/// A pod that has to be evicted before a node may be disrupted.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct PodFacts {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod; another pod of this name has another one.
    pub uid: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When its grace period ends, if it is already being deleted.
    pub leaves_by: Option<Timestamp>,
}

impl PodFacts {
    /// Whether it is already being deleted.
    pub fn is_leaving(&self) -> bool {
        self.leaves_by.is_some()
    }

    /// Whether it was created after the cordon that the operator saw at `cordoned`, so that it tolerates the cordon.
    pub fn tolerates_cordon_of(&self, cordoned: Timestamp) -> bool {
        self.created.is_some_and(|created| created > cordoned + limits::POD_CLOCK_SKEW)
    }

    /// The pod, if a drain has to evict it: not a mirror pod, not of a DaemonSet, not finished.
    ///
    /// Source: `docs/contract/lifecycle.md`, LIFE18.
    pub fn that_must_leave(pod: &api::Pod) -> Option<Self> {
        let meta = &pod.metadata;
        let mirror =
            meta.annotations.iter().flatten().any(|(k, _)| k == names::MIRROR_POD_ANNOTATION);
        let owners = meta.owner_references.as_deref().unwrap_or_default();
        let daemon = owners.iter().any(|o| o.controller == Some(true) && o.kind == "DaemonSet");
        let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
        let finished = matches!(phase, Some("Succeeded" | "Failed"));
        (!mirror && !daemon && !finished).then(|| Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|created| created.0),
            leaves_by: meta.deletion_timestamp.as_ref().map(|ends| ends.0),
        })
    }
}

impl fmt::Display for PodFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
