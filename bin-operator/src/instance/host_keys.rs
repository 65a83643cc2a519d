//! Host keys: where they are kept, and what people are told of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wmco_core::host_record::HostRecord;
use wmco_core::names::{self, objects};
use wmco_core::node::host_key_condition;
use wmco_core::protocol::RootAccess;
use wmco_ssh::{HostAgent as _, HostKeyPolicy, HostKeyVerdict, Route, SshHost};

use super::error::StepError;
use super::executor::{Executor, Seen, api};
use super::inputs::InstanceInputs;
use super::link::Link;

impl Executor {
    /// Keeps the keys of a new connection that are not kept yet, and tells people of those that
    /// nobody had pinned.
    pub(super) async fn pin_keys(
        &self,
        inputs: &InstanceInputs,
        route: &Route,
        host: &SshHost,
    ) -> Result<(), StepError> {
        let address = &inputs.assignment.address;
        let seen = host.host_key();
        // A connection from the pool may be older than the pin that its key became.
        let unpinned = route.host_key == HostKeyPolicy::TrustOnFirstUse;
        let first_use = unpinned && seen.verdict == HostKeyVerdict::FirstUse;
        let jump = inputs.jump_key_name.as_ref().zip(host.jump_key());
        if first_use || inputs.key_to_keep || jump.is_some() {
            let mut values = BTreeMap::from([(address.clone(), seen.key.to_string())]);
            values.extend(jump.map(|(name, seen)| (name.clone(), seen.key.to_string())));
            let mut record = inputs.record.clone().unwrap_or_default();
            record.pinned = Some(seen.key.fingerprint());
            if let Some((name, seen)) = jump {
                record.jump_pinned = Some((name.clone(), seen.key.fingerprint()));
            }
            values.extend([on_record(address, &record)?]);
            self.keep(values).await?;
        }
        if first_use {
            self.announcer.pinned(&inputs.assignment, address, &seen.key).await;
        }
        if let Some((name, seen)) = jump.filter(|_| inputs.jump_pin.is_none()) {
            self.announcer.pinned(&inputs.assignment, name, &seen.key).await;
        }
        self.tell_host_key(inputs, None).await;
        Ok(())
    }

    /// Sets or takes back the condition of the Node; `mismatch` says what is wrong with the key. A
    /// condition that does not get through changes nothing: the Event and the log have it too.
    pub(super) async fn tell_host_key(&self, inputs: &InstanceInputs, mismatch: Option<&str>) {
        let Some(node) = &inputs.node else { return };
        let Some(condition) = host_key_condition(&node.facts, mismatch, Timestamp::now()) else {
            return;
        };
        if self.leadership.check().is_err() {
            return;
        }
        // Conditions are merged by their type, so the kubelet's stay.
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = &node.facts.name;
        if let Err(error) = nodes.patch_status(name, &PatchParams::default(), &patch).await {
            tracing::debug!(%error, node = %name, "condition not set");
        }
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Keeps the records of hosts, by address as listed.
    ///
    /// # Errors
    /// [`StepError::Api`].
    pub async fn put_on_record(
        &self,
        records: &BTreeMap<String, HostRecord>,
    ) -> Result<(), StepError> {
        let values = records.iter().map(|(address, record)| on_record(address, record));
        self.keep(values.collect::<Result<_, _>>()?).await
    }

    /// Keeps in the host's record who may write below its root. It counts for the key that the host
    /// shows on the connection over which its agent told.
    pub(super) async fn record_root(
        &self,
        root: RootAccess,
        inputs: &InstanceInputs,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        let mut record = inputs.record.clone().unwrap_or_default();
        record.closed_for = match root {
            RootAccess::Closed => {
                let host = self.host(inputs, link).await?;
                let fingerprint = host.host_key().key.fingerprint();
                // It may have been pinned only by this connection.
                record.pinned = Some(fingerprint.clone());
                Some(fingerprint)
            }
            RootAccess::Open => None,
        };
        self.keep([on_record(&inputs.assignment.address, &record)?].into()).await?;
        Ok(Seen::Recorded(root))
    }

    /// Sets keys of the ConfigMap of host keys, which is made if it is not there.
    async fn keep(&self, values: BTreeMap<String, String>) -> Result<(), StepError> {
        self.leadership.check()?;
        let data = json!({ "data": values });
        let keys = self.config_maps();
        let object = objects::HOST_KEYS_CONFIG_MAP;
        let (params, body) = (PatchParams::default(), Patch::Merge(&data));
        let patch = || keys.patch(object, &params, &body);
        match patch().await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(api("keep the host key")(error)),
        }
        let labels = [(objects::MANAGED_BY_LABEL.to_owned(), objects::OPERATOR.to_owned())];
        let created = ConfigMap {
            metadata: ObjectMeta {
                name: Some(object.to_owned()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            data: Some(values.clone()),
            ..ConfigMap::default()
        };
        match keys.create(&PostParams::default(), &created).await {
            Ok(_) => Ok(()),
            // Another worker was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                patch().await.map(drop).map_err(api("keep the host key"))
            }
            Err(error) => Err(api("keep the host key")(error)),
        }
    }

    /// Removes keys of the ConfigMap of host keys.
    ///
    /// # Errors
    /// [`StepError::Api`].
    pub async fn forget(&self, names: &BTreeSet<String>) -> Result<(), StepError> {
        self.leadership.check()?;
        let data: serde_json::Map<String, Value> =
            names.iter().map(|name| (name.clone(), Value::Null)).collect();
        let patch = Patch::Merge(json!({ "data": data }));
        self.patch_if_there(objects::HOST_KEYS_CONFIG_MAP, &patch, "forget the host").await
    }

    /// Takes the confirmation of removals off the list of instances.
    ///
    /// # Errors
    /// [`StepError::Api`].
    pub async fn use_up_confirmation(&self) -> Result<(), StepError> {
        self.leadership.check()?;
        let annotations = json!({ names::CONFIRM_REMOVAL_ANNOTATION: null });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let doing = "take the confirmation off";
        self.patch_if_there(objects::INSTANCES_CONFIG_MAP, &patch, doing).await
    }

    async fn patch_if_there(
        &self,
        name: &str,
        patch: &Patch<Value>,
        doing: &'static str,
    ) -> Result<(), StepError> {
        match self.config_maps().patch(name, &PatchParams::default(), patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(api(doing)(error)),
        }
    }
}

/// A record as a value of the ConfigMap, under its key.
fn on_record(address: &str, record: &HostRecord) -> Result<(String, String), StepError> {
    let json = serde_json::to_string(record).map_err(|source| StepError::Record { source })?;
    Ok((HostRecord::key_name(address), json))
}
