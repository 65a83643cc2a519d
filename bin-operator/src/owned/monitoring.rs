//! The ServiceMonitor of the exporters on nodes: looks at it, and writes it.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use wmco_core::cluster::monitoring::{BadLabel, ServiceMonitor, is_enabled, reconcile};
use wmco_core::cluster::{Plan, Revision};
use wmco_core::monitoring::exporter_monitor;
use wmco_core::names::events;
use wmco_core::names::monitoring::{CLUSTER_MONITORING_LABEL, EXPORTER};

use super::Owned;
use super::failures::Failures;
use super::look::{Look, named};
use crate::problems::{About, Problem};
use crate::service_monitor::{api, read};
use crate::snapshot;
use crate::sources::Sources;

/// What there is.
enum Seen {
    /// The cluster has no such kind, or nobody knows yet.
    NoKind,
    Missing,
    There(ServiceMonitor),
}

/// What to do; people hear when Prometheus begins or ends to look, which `monitored` remembers.
///
/// # Errors
/// The API server does not answer.
pub(super) async fn plan(
    owned: &Owned,
    look: Look,
    monitored: &mut bool,
    failures: &mut Failures,
) -> anyhow::Result<Plan> {
    let wanted = match is_wanted(&owned.sources) {
        Ok(wanted) => wanted,
        Err(label) => {
            failures.found(problem(&label));
            return Ok(Plan::default());
        }
    };
    if std::mem::replace(monitored, wanted) != wanted {
        owned.announcer.monitoring(wanted);
    }
    if !wanted {
        return Ok(Plan::default());
    }
    let namespace = &owned.config.namespace;
    Ok(match observe(look, &owned.client, &owned.sources, namespace).await? {
        Seen::NoKind => Plan::default(),
        Seen::Missing => reconcile(None, namespace),
        Seen::There(found) => reconcile(Some(&found), namespace),
    })
}

/// Whether the operator's namespace is monitored.
///
/// # Errors
/// [`BadLabel`].
fn is_wanted(sources: &Sources) -> Result<bool, BadLabel> {
    let namespace = snapshot::only(&sources.own_namespace);
    let labels = namespace.as_ref().map(|namespace| namespace.labels());
    is_enabled(labels.and_then(|all| all.get(CLUSTER_MONITORING_LABEL)).map(String::as_str))
}

/// What people hear of a label that makes no sense.
fn problem(label: &BadLabel) -> Problem {
    let reason = events::SETTING_NOT_APPLIED;
    Problem { text: label.to_string(), reason, about: About::Namespace, topic: None }
}

/// Looks at it.
///
/// # Errors
/// The API server does not answer.
async fn observe(
    look: Look,
    client: &Client,
    sources: &Sources,
    namespace: &str,
) -> kube::Result<Seen> {
    // The watch alone tells whether there is the kind.
    if sources.service_monitor.lacks_kind() {
        return Ok(Seen::NoKind);
    }
    let found = match look {
        Look::Cached => sources.service_monitor.get(),
        Look::Fresh => {
            let found = named(&api(client, namespace), EXPORTER).await?;
            found.map(|found| read(&serde_json::to_value(&*found).unwrap_or_default()))
        }
    };
    Ok(found.map_or(Seen::Missing, Seen::There))
}

/// Makes it, and returns whether it did; one that is there already is looked at in the next pass.
pub(super) async fn create(client: &Client, namespace: &str) -> anyhow::Result<bool> {
    let object: DynamicObject = serde_json::from_value(exporter_monitor(namespace))?;
    match api(client, namespace).create(&PostParams::default(), &object).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Puts our fields right, and returns whether it did: another one is looked at in the next pass.
pub(super) async fn change(
    client: &Client,
    namespace: &str,
    found: Revision,
) -> anyhow::Result<bool> {
    let wanted = exporter_monitor(namespace);
    let patch = json!({
        "metadata": {
            "uid": found.uid,
            "resourceVersion": found.resource_version,
            "labels": wanted.pointer("/metadata/labels"),
        },
        "spec": wanted.get("spec"),
    });
    let patch = Patch::Merge(patch);
    match api(client, namespace).patch(EXPORTER, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
