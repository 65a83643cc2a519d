//! In what two manifests differ. Source: `spec/services.md`, section 3.7.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Manifest, Service};
use crate::windows::ServiceName;

/// One difference between a desired and an observed manifest. Values of variables are not in it.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase", tag = "differs")]
pub enum Difference {
    /// A service is missing, is too much, or reads otherwise.
    #[serde(rename_all = "camelCase")]
    Service {
        /// The service.
        name: String,
        /// How it differs.
        how: How,
    },
    /// A file is missing, is too much, or has another checksum.
    #[serde(rename_all = "camelCase")]
    File {
        /// The file.
        path: String,
        /// How it differs.
        how: How,
    },
    /// A variable is missing, is too much, or has another value.
    #[serde(rename_all = "camelCase")]
    Variable {
        /// The variable.
        name: String,
        /// How it differs.
        how: How,
    },
    /// A name is missing among the watched ones, or is too much.
    #[serde(rename_all = "camelCase")]
    Watched {
        /// The variable.
        name: String,
        /// How it differs.
        how: How,
    },
}

/// How something differs.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It is desired and not there.
    Missing,
    /// It is there and not desired.
    Extra,
    /// It is there, but otherwise.
    Changed,
}

pub(super) fn differences(desired: &Manifest, observed: &Manifest) -> Vec<Difference> {
    let services = |manifest: &Manifest| -> BTreeMap<ServiceName, Service> {
        manifest.services.iter().map(|s| (s.name.clone(), normal(s))).collect()
    };
    let files = |manifest: &Manifest| -> BTreeMap<String, String> {
        manifest.files.iter().map(|file| (file.path.clone(), file.checksum.clone())).collect()
    };
    // Only the names count here; the value is the same for all.
    let watched = |manifest: &Manifest| -> BTreeMap<String, bool> {
        manifest.watched.iter().map(|name| (name.to_uppercase(), true)).collect()
    };
    let mut all = Vec::new();
    each(&services(desired), &services(observed), |name, how| {
        all.push(Difference::Service { name: name.to_string(), how });
    });
    each(&files(desired), &files(observed), |path, how| {
        all.push(Difference::File { path: path.clone(), how });
    });
    each(&desired.environment, &observed.environment, |name, how| {
        all.push(Difference::Variable { name: name.clone(), how });
    });
    each(&watched(desired), &watched(observed), |name, how| {
        all.push(Difference::Watched { name: name.clone(), how });
    });
    all
}

/// The service with its dependencies as the set that they are.
fn normal(service: &Service) -> Service {
    let mut service = service.clone();
    service.dependencies.sort();
    service.dependencies.dedup();
    service
}

fn each<K: Clone + Ord, V: PartialEq>(
    desired: &BTreeMap<K, V>,
    observed: &BTreeMap<K, V>,
    mut differ: impl FnMut(&K, How),
) {
    let keys: BTreeSet<&K> = desired.keys().chain(observed.keys()).collect();
    for key in keys {
        match (desired.get(key), observed.get(key)) {
            (Some(_), None) => differ(key, How::Missing),
            (None, Some(_)) => differ(key, How::Extra),
            (Some(a), Some(b)) if a != b => differ(key, How::Changed),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name, how) = match self {
            Self::Service { name, how } => ("service", name, how),
            Self::File { path, how } => ("file", path, how),
            Self::Variable { name, how } => ("variable", name, how),
            Self::Watched { name, how } => ("watched variable", name, how),
        };
        let how = match how {
            How::Missing => "is missing",
            How::Extra => "is too much",
            How::Changed => "differs",
        };
        write!(f, "{what} {name} {how}")
    }
}
