//! Host keys: where they are kept, and how they are reported.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use wmco_core::facts::NodeFacts;
use wmco_core::host_key::HostKey;
use wmco_core::host_record::RecordChange;
use wmco_core::names::{self, objects};
use wmco_core::node::{Outcome, host_key_condition};
use wmco_core::protocol::RootAccess;
use wmco_core::reach::Reach;
use wmco_ssh::{HostAgent as _, HostKeyVerdict, SshHost};

use super::error::{StepError, api};
use super::executor::{Executor, Turn};
use super::records::Edit;
use crate::announce::News;

impl Executor {
    /// Keeps the keys of a new connection that are not kept yet, and tells people of those that
    /// nobody had pinned.
    pub(super) async fn pin_keys(
        &self,
        reach: &Reach,
        host: &SshHost,
        turn: &Turn<'_>,
    ) -> Result<(), StepError> {
        let address = turn.address();
        let seen = host.host_key();
        // A connection from the pool may be older than the pin that its key became.
        let unpinned = reach.host_key.is_none();
        let first_use = unpinned && seen.verdict == HostKeyVerdict::FirstUse;
        let jump = reach.via.as_ref().filter(|via| via.to_keep).zip(host.jump_key());
        // Told before it is kept: nobody would tell of a kept key again, should this process end in between.
        let tell = |name: &str, key: &HostKey| {
            let news = News::KeyPinned { name: name.to_owned(), key: key.clone() };
            self.announcer.tell(&turn.inputs.instance, &news);
        };
        if first_use {
            tell(address, &seen.key);
        }
        if let Some((via, seen)) = jump.filter(|(via, _)| via.host_key.is_none()) {
            tell(&via.key_name, &seen.key);
        }
        if first_use || reach.to_keep {
            // A name that was told before the key is on record would go on record as this host's.
            self.host_reports.forget(address);
        }
        if first_use || reach.to_keep || jump.is_some() {
            let jump = jump.map(|(via, seen)| (via.key_name.clone(), seen.key.clone()));
            let pinned = RecordChange::Pinned { key: seen.key.clone(), jump };
            self.change_record(address, pinned).await?;
        }
        self.tell_host_key(turn.node(), None).await;
        Ok(())
    }

    /// Sets or takes back the condition of the Node; `mismatch` says why the key is refused. A
    /// condition that does not get through changes nothing: the Event and the log have it too.
    pub(super) async fn tell_host_key(&self, node: Option<&NodeFacts>, mismatch: Option<&str>) {
        let Some(node) = node else { return };
        let Some(condition) = host_key_condition(node, mismatch, Timestamp::now()) else {
            return;
        };
        if self.leadership.check().is_err() {
            return;
        }
        // Conditions are merged by their type, so the kubelet's stay.
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = &node.name;
        if let Err(error) = nodes.patch_status(name, &PatchParams::default(), &patch).await {
            tracing::debug!(%error, node = %name, "condition not set");
        }
    }

    /// Changes the records of hosts, by address as listed, and removes keys that nobody needs.
    ///
    /// # Errors
    /// [`StepError::Api`]; [`StepError::Record`] if a change was refused, the others were made then.
    pub async fn change_records(
        &self,
        changes: BTreeMap<String, RecordChange>,
        forgotten: BTreeSet<String>,
    ) -> Result<(), StepError> {
        let changes = changes.into_iter().map(|(address, change)| Edit::Host(address, change));
        let forget = (!forgotten.is_empty()).then_some(Edit::Forget(forgotten));
        self.records.edit(changes.chain(forget).collect()).await
    }

    pub(super) async fn change_record(
        &self,
        address: &str,
        change: RecordChange,
    ) -> Result<(), StepError> {
        self.records.edit(vec![Edit::Host(address.to_owned(), change)]).await
    }

    /// Keeps in the host's record who may write below its root. It counts for the key that the host
    /// shows on the connection over which its agent told.
    pub(super) async fn record_root(
        &self,
        root: RootAccess,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, StepError> {
        let address = turn.address();
        let key = self.host(turn).await?.host_key().key.clone();
        let host_name = self.host_reports.host_name(address);
        self.change_record(address, RecordChange::Seen { key, host_name, root }).await?;
        Ok(Outcome::RootRecorded(root))
    }

    /// Takes the confirmation of removals off the list of instances.
    ///
    /// # Errors
    /// [`StepError::Api`].
    pub async fn use_up_confirmation(&self) -> Result<(), StepError> {
        self.leadership.check()?;
        let annotations = json!({ names::CONFIRM_REMOVAL_ANNOTATION: null });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let lists: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams::default();
        match lists.patch(objects::INSTANCES_CONFIG_MAP, &params, &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(api("take the confirmation off")(error)),
        }
    }
}
