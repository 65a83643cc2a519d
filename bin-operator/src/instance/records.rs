//! The one writer of the ConfigMap of host keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use wmco_core::host_record::{RecordChange, RecordRefused, Records};
use wmco_core::names::objects;

use super::error::{StepError, api};
use crate::leader::Leadership;

/// How often a write is tried anew when somebody else has written meanwhile.
const TURNS: usize = 5;

/// Changes keys and records of hosts. A change is made to what is there at that moment, so a writer that
/// looked at a cache undoes nothing. Who asks while a write is on its way is served by the next one
/// together with all others. Cheap to clone.
#[derive(Clone)]
pub struct HostRecords {
    keys: Api<ConfigMap>,
    leadership: Leadership,
    queue: Arc<Mutex<Vec<Batch>>>,
    /// The object as we wrote it last; held by who writes.
    last: Arc<tokio::sync::Mutex<Option<ConfigMap>>>,
}

/// One change of the ConfigMap.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Of what is kept of the host listed as this address.
    Host(String, RecordChange),
    /// Keys go.
    Forget(BTreeSet<String>),
}

/// What one caller asked for.
struct Batch {
    edits: Arc<[Edit]>,
    answer: oneshot::Sender<Result<(), RecordRefused>>,
}

impl HostRecords {
    /// The records in `namespace`.
    pub fn new(client: Client, namespace: &str, leadership: Leadership) -> Self {
        let keys = Api::namespaced(client, namespace);
        Self { keys, leadership, queue: Arc::default(), last: Arc::default() }
    }

    /// Makes all `edits`, or those that are not refused.
    ///
    /// # Errors
    /// [`StepError::Api`] and [`StepError::NotLeading`], when nothing was written;
    /// [`StepError::Record`], the first refusal.
    pub async fn edit(&self, edits: Vec<Edit>) -> Result<(), StepError> {
        let edits: Arc<[Edit]> = edits.into();
        loop {
            let mut answer = self.enqueue(&edits);
            let mut last = self.last.lock().await;
            match answer.try_recv() {
                Ok(answer) => return answer.map_err(StepError::from),
                // The caller that took it was ended before the write, or failed.
                Err(oneshot::error::TryRecvError::Closed) => continue,
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            let batches =
                std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner));
            self.write(&mut last, batches).await?;
            if let Ok(answer) = answer.try_recv() {
                return answer.map_err(StepError::from);
            }
        }
    }

    fn enqueue(&self, edits: &Arc<[Edit]>) -> oneshot::Receiver<Result<(), RecordRefused>> {
        let (answer, asked) = oneshot::channel();
        let batch = Batch { edits: Arc::clone(edits), answer };
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
        asked
    }

    async fn write(
        &self,
        last: &mut Option<ConfigMap>,
        batches: Vec<Batch>,
    ) -> Result<(), StepError> {
        let mut turn = 0;
        loop {
            self.leadership.check()?;
            let written = last.take();
            let is_fresh = written.is_none();
            let there = if is_fresh { self.get().await? } else { written };
            let before = there.as_ref().and_then(|map| map.data.clone()).unwrap_or_default();
            let mut after = Records::new(before.clone());
            let answers: Vec<_> =
                batches.iter().map(|batch| all(&batch.edits, &mut after)).collect();
            let after = after.into_data();
            let written = match (there, difference(&before, &after)) {
                // Somebody may have taken off since what was written last.
                (_, None) if !is_fresh => continue,
                (there, None) => Ok(there),
                (Some(map), Some(changes)) => self.patch(&map, changes).await.map(Some),
                (None, Some(_)) => self.create(after).await.map(Some),
            };
            turn += 1;
            let written = match written {
                Err(kube::Error::Api(status)) if matches!(status.code, 413 | 422) => {
                    // It may be one host's alone that is too much.
                    return self.write_singly(batches).await;
                }
                other => other,
            };
            match written {
                Ok(map) => {
                    *last = map;
                    for (batch, answer) in batches.into_iter().zip(answers) {
                        // Who asked may have been ended.
                        let _ = batch.answer.send(answer);
                    }
                    return Ok(());
                }
                // Somebody else wrote, made or removed it.
                Err(kube::Error::Api(status))
                    if turn < TURNS && matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(api("keep what is known of the host")(error)),
            }
        }
    }

    /// Writes each edit by itself, so that one that the API server does not take holds up no other.
    async fn write_singly(&self, batches: Vec<Batch>) -> Result<(), StepError> {
        for batch in batches {
            let mut answer = Ok(());
            for edit in batch.edits.iter() {
                answer = answer.and(self.write_one(edit).await?);
            }
            // Who asked may have been ended.
            let _ = batch.answer.send(answer);
        }
        Ok(())
    }

    async fn write_one(&self, edit: &Edit) -> Result<Result<(), RecordRefused>, StepError> {
        self.leadership.check()?;
        let there = self.get().await?;
        let before = there.as_ref().and_then(|map| map.data.clone()).unwrap_or_default();
        let mut after = Records::new(before.clone());
        let answer = all(std::slice::from_ref(edit), &mut after);
        let after = after.into_data();
        let written = match (there, difference(&before, &after)) {
            (_, None) => return Ok(answer),
            (Some(map), Some(changes)) => self.patch(&map, changes).await,
            (None, Some(_)) => self.create(after).await,
        };
        match written {
            Ok(_) => Ok(answer),
            Err(kube::Error::Api(status)) if matches!(status.code, 413 | 422) => {
                Ok(Err(RecordRefused::NotTaken))
            }
            Err(error) => Err(api("keep what is known of the host")(error)),
        }
    }

    async fn get(&self) -> Result<Option<ConfigMap>, StepError> {
        let found = self.keys.get_opt(objects::HOST_KEYS_CONFIG_MAP).await;
        found.map_err(api("tell what is known of the host"))
    }

    async fn patch(
        &self,
        there: &ConfigMap,
        changes: BTreeMap<String, Option<String>>,
    ) -> kube::Result<ConfigMap> {
        let version = there.resource_version();
        let body = json!({ "metadata": { "resourceVersion": version }, "data": changes });
        let patch: Patch<Value> = Patch::Merge(body);
        self.keys.patch(objects::HOST_KEYS_CONFIG_MAP, &PatchParams::default(), &patch).await
    }

    async fn create(&self, data: BTreeMap<String, String>) -> kube::Result<ConfigMap> {
        let labels = [(objects::MANAGED_BY_LABEL.to_owned(), objects::OPERATOR.to_owned())];
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(objects::HOST_KEYS_CONFIG_MAP.to_owned()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        self.keys.create(&PostParams::default(), &map).await
    }
}

/// Makes each edit that is not refused; tells the first refusal. Where not all fit, no host begins that is not on record
/// yet: a list that was pasted by mistake would be worked on in part.
fn all(edits: &[Edit], records: &mut Records) -> Result<(), RecordRefused> {
    let before = records.clone();
    let answer = each(edits, records, |_| true);
    if answer != Err(RecordRefused::Full) {
        return answer;
    }
    *records = before.clone();
    each(edits, records, |address| before.has(address)).and(answer)
}

/// Makes the edits of these hosts, and those that remove keys.
fn each(
    edits: &[Edit],
    records: &mut Records,
    begins: impl Fn(&str) -> bool,
) -> Result<(), RecordRefused> {
    let mut answer = Ok(());
    for edit in edits {
        match edit {
            Edit::Host(address, change) if begins(address) => {
                answer = answer.and(records.change(address, change));
            }
            Edit::Host(..) => {}
            Edit::Forget(keys) => records.forget(keys),
        }
    }
    answer
}

/// Keys that differ, with what they are to be; `None`: none do.
fn difference(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, Option<String>>> {
    let set = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let changes: BTreeMap<_, _> = set
        .map(|(key, value)| (key.clone(), Some(value.clone())))
        .chain(gone.map(|key| (key.clone(), None)))
        .collect();
    (!changes.is_empty()).then_some(changes)
}
