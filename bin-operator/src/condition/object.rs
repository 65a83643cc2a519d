//! Our OperatorCondition: an object of the Operator Lifecycle Manager, whose `spec.conditions` are ours to fill.

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use wmco_core::limits;
use wmco_core::names::events;
use wmco_core::names::monitoring::{OPERATOR_CONDITION, OPERATOR_CONDITIONS};
use wmco_core::upgradeable::{Condition, merged};

use super::RETRY;
use crate::announce::Announcer;
use crate::leader::Leadership;
use crate::problems::{About, Problem};

/// The object, and what was last heard of it.
pub struct Object {
    api: Api<DynamicObject>,
    name: String,
    leadership: Leadership,
    announcer: Announcer,
    /// What people were told last that is still so.
    told: Option<&'static str>,
    looked: Option<(Condition, Instant)>,
    retry_at: Option<Instant>,
}

/// Why it cannot be kept.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("it is not there; the Operator Lifecycle Manager makes it")]
    Absent,
    #[error(
        "the operator may not read or write it; the Operator Lifecycle Manager gives that right"
    )]
    NoRights,
    #[error("somebody else writes to it all the time")]
    Conflict,
    #[error("the api server did not take it")]
    Api(#[source] kube::Error),
    #[error("the api server does not answer")]
    Silent,
    #[error(transparent)]
    NotLeading(#[from] crate::leader::NotLeading),
}

impl Object {
    /// The one of this name in our namespace.
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        leadership: Leadership,
        announcer: Announcer,
    ) -> Self {
        let (group, version, kind) = OPERATOR_CONDITION;
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, OPERATOR_CONDITIONS);
        Self {
            api: Api::namespaced_with(client, namespace, &resource),
            name: name.to_owned(),
            leadership,
            announcer,
            told: None,
            looked: None,
            retry_at: None,
        }
    }

    /// When it is looked at again though nothing else is wanted.
    pub(super) fn next_look(&self) -> Instant {
        let looked = self.looked.as_ref().map_or_else(Instant::now, |(_, at)| *at);
        looked + limits::CONDITION_RESYNC.unsigned_abs()
    }

    /// Sees to it that the condition stands there.
    ///
    /// # Errors
    /// When it is to be tried again; people were told.
    pub(super) async fn keep(&mut self, wanted: &Condition) -> Result<(), Instant> {
        let now = Instant::now();
        if self.looked.as_ref().is_some_and(|(last, _)| last == wanted) && now < self.next_look() {
            return Ok(());
        }
        if let Some(retry_at) = self.retry_at.filter(|retry_at| now < *retry_at) {
            return Err(retry_at);
        }
        let limit = limits::REVIEW.unsigned_abs();
        let kept = timeout(limit, self.write(wanted)).await.unwrap_or(Err(Fault::Silent));
        match kept {
            Ok(()) => {
                self.looked = Some((wanted.clone(), now));
                (self.told, self.retry_at) = (None, None);
                Ok(())
            }
            Err(fault) => {
                self.tell(&fault);
                let retry_at = Instant::now() + RETRY;
                self.retry_at = Some(retry_at);
                Err(retry_at)
            }
        }
    }

    async fn write(&self, wanted: &Condition) -> Result<(), Fault> {
        for _ in 0..=limits::CSR_CONFLICTS {
            let found = self.api.get_opt(&self.name).await.map_err(fault)?;
            let found = found.ok_or(Fault::Absent)?;
            let conditions = found.data.pointer("/spec/conditions").and_then(Value::as_array);
            let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
            let Some(all) = merged(conditions, wanted, Timestamp::now()) else { return Ok(()) };
            self.leadership.check()?;
            // Refused if others wrote to it meanwhile: a list is written as a whole.
            let patch = json!({
                "metadata": {"resourceVersion": found.metadata.resource_version},
                "spec": {"conditions": all},
            });
            let patch = Patch::Merge(patch);
            match self.api.patch(&self.name, &PatchParams::default(), &patch).await {
                Ok(_) => {
                    let (status, message) = (wanted.status(), &wanted.message);
                    tracing::info!(status, message, "condition upgradeable");
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(fault(error)),
            }
        }
        Err(Fault::Conflict)
    }

    /// Tells people of a fault, once while it lasts.
    fn tell(&mut self, fault: &Fault) {
        let kind = fault.kind();
        if self.told.replace(kind) == Some(kind) {
            return;
        }
        let text = format!(
            "whether an upgrade is safe cannot be told in operatorcondition {}: {}",
            self.name,
            crate::chain(fault)
        );
        tracing::warn!(text, "condition upgradeable");
        let about = About::OperatorCondition(self.name.clone());
        let problem =
            Problem { text, reason: events::OPERATOR_CONDITION_ERROR, about, topic: None };
        self.announcer.told(&problem);
    }
}

impl Fault {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::NoRights => "no rights",
            Self::Conflict => "conflict",
            Self::Api(_) => "api",
            Self::Silent => "silent",
            Self::NotLeading(_) => "not leading",
        }
    }
}

fn fault(error: kube::Error) -> Fault {
    match &error {
        // A kind that the cluster lacks.
        kube::Error::Api(status) if status.code == 404 => Fault::Absent,
        kube::Error::Api(status) if status.code == 403 => Fault::NoRights,
        _ => Fault::Api(error),
    }
}
