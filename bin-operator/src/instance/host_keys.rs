//! Host keys: where they are kept, and what people are told of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wmco_core::host_key::HostKey;
use wmco_core::host_record::HostRecord;
use wmco_core::names::objects;
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
        let seen = host.host_key();
        // A connection from the pool may be older than the pin that its key became.
        let unpinned = route.host_key == HostKeyPolicy::TrustOnFirstUse;
        if unpinned && seen.verdict == HostKeyVerdict::FirstUse {
            self.keep_host_key(&inputs.key_name, &seen.key).await?;
            self.announcer.pinned(&inputs.assignment, &inputs.key_name, &seen.key).await;
        }
        if let (Some(name), Some(seen)) = (&inputs.jump_key_name, host.jump_key()) {
            self.keep_host_key(name, &seen.key).await?;
            if inputs.jump_pin.is_none() {
                self.announcer.pinned(&inputs.assignment, name, &seen.key).await;
            }
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

    fn host_keys(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn keep_host_key(&self, name: &str, key: &HostKey) -> Result<(), StepError> {
        self.keep([(name.to_owned(), key.to_string())].into()).await
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
        let mut values = BTreeMap::new();
        record.closed_for = match root {
            RootAccess::Closed => {
                let host = self.host(inputs, link).await?;
                let key = &host.host_key().key;
                // A connection may outlive the pin of its key, and the record needs one.
                if inputs.pinned_key().is_none() {
                    values.insert(inputs.key_name.clone(), key.to_string());
                }
                Some(key.fingerprint())
            }
            RootAccess::Open => None,
        };
        let name = HostRecord::key_name(&inputs.key_name);
        if record == HostRecord::default() {
            self.forget_host_keys(&[name]).await?;
        } else {
            let text =
                serde_json::to_string(&record).map_err(|source| StepError::Record { source })?;
            values.insert(name, text);
            self.keep(values).await?;
        }
        Ok(Seen::Recorded(root))
    }

    /// Sets keys of the ConfigMap of host keys, which is made if it is not there.
    async fn keep(&self, values: BTreeMap<String, String>) -> Result<(), StepError> {
        self.leadership.check()?;
        let data = json!({ "data": values });
        let keys = self.host_keys();
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

    /// Removes host keys that belong to nobody, or whose Node has them.
    ///
    /// # Errors
    /// [`StepError::Api`].
    pub async fn forget_host_keys(&self, names: &[String]) -> Result<(), StepError> {
        self.leadership.check()?;
        let data: serde_json::Map<String, Value> =
            names.iter().map(|name| (name.clone(), Value::Null)).collect();
        let patch = Patch::Merge(json!({ "data": data }));
        let name = objects::HOST_KEYS_CONFIG_MAP;
        match self.host_keys().patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(api("forget the host key")(error)),
        }
    }
}
