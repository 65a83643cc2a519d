//! Reports findings as Events on the object itself, in limited number.

use std::collections::BTreeMap;

use super::{ClusterObject, RegistryFinding};
use crate::limits;

/// A message about an object, for an Event.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RegistryNotice {
    /// The object.
    pub object: ClusterObject,
    /// Whether a setting of the object does not apply on Windows nodes.
    pub serious: bool,
    /// One line, with the field and the next step.
    pub text: String,
}

/// Messages about `findings`: for each object the first [`limits::FINDINGS_TOLD`], serious ones first, and the
/// number of the others.
///
/// ```
/// use wmco_core::limits;
/// use wmco_core::registries::{MirrorSetFacts, RegistryInputs, configure, registry_notices};
///
/// let entry = serde_json::json!({"source": "*.example", "mirrors": ["cache.example"]});
/// let set = serde_json::json!({
///     "kind": "ImageTagMirrorSet",
///     "metadata": {"name": "many"},
///     "spec": {"imageTagMirrors": vec![entry; 10_000]},
/// });
/// let sets = [MirrorSetFacts::of(&set).unwrap()];
/// let registries = configure(&RegistryInputs { mirror_sets: &sets, ..RegistryInputs::default() });
/// let notices = registry_notices(registries.findings());
/// assert_eq!(notices.len(), limits::FINDINGS_TOLD + 1);
/// assert!(notices.iter().any(|notice| notice.text.starts_with("9992 more findings")));
/// ```
pub fn registry_notices(findings: &[RegistryFinding]) -> Vec<RegistryNotice> {
    let mut by_object: BTreeMap<&ClusterObject, Vec<&RegistryFinding>> = BTreeMap::new();
    for finding in findings {
        by_object.entry(&finding.object).or_default().push(finding);
    }
    let mut notices = Vec::new();
    for (object, mut findings) in by_object {
        findings.sort_by_key(|finding| !finding.problem.is_serious());
        let (told, more) = findings.split_at(findings.len().min(limits::FINDINGS_TOLD));
        notices.extend(told.iter().map(|finding| RegistryNotice {
            object: object.clone(),
            serious: finding.problem.is_serious(),
            text: format!("field `{}`: {}", finding.field, finding.problem),
        }));
        if let [first, ..] = more {
            notices.push(RegistryNotice {
                object: object.clone(),
                serious: first.problem.is_serious(),
                text: format!(
                    "{} more findings, see them all with `wmco-operator check registries`",
                    more.len()
                ),
            });
        }
    }
    notices
}
