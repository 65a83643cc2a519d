//! Watches a cluster from the first change to the last, and checks the safety rules at each of them.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube_testserver::Request;
use serde_json::Value;
use tokio::task::JoinHandle;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::names::{host, machine_api, objects};
use wmco_core::secret::Secret;
use wmco_sim::host::SimHost;
use wmco_sim::machines::MachineApi;
use wmco_ssh::PrivateKey;

use super::safety::{self, Change, Findings, Kind, Write, resource_version};
use crate::live::scenery::{admin, until};

/// Sees everything from its start on.
pub(in crate::live) struct Observer {
    seen: Arc<Mutex<Seen>>,
    watches: Vec<JoinHandle<()>>,
    budget: usize,
    version: String,
}

#[derive(Default)]
struct Seen {
    changes: Vec<Change>,
    writes: Vec<Write>,
    /// The key that the operator uses.
    key: Option<AuthorizedKey>,
}

impl Observer {
    /// Begins to watch a stage whose Machine API runs.
    pub(in crate::live) async fn start(stage: &Stage, budget: usize) -> Self {
        let client = admin(stage).await;
        let seen = Arc::<Mutex<Seen>>::default();
        let (group, version, machine) = objects::MACHINE;
        let watches = [
            (Kind::Node, GroupVersionKind::gvk("", "v1", "Node")),
            (Kind::Machine, GroupVersionKind::gvk(group, version, machine)),
            (
                Kind::MachineSet,
                GroupVersionKind::gvk(group, version, machine_api::MACHINE_SET_KIND),
            ),
        ]
        .map(|(kind, gvk)| {
            let seen = Arc::clone(&seen);
            tokio::spawn(follow(client.clone(), gvk, move |object, is_gone| {
                let change = Change { seen: Instant::now(), kind, object, is_gone };
                seen.lock().unwrap().changes.push(change);
            }))
        });
        let (keys, namespace) = (Arc::clone(&seen), stage.namespace());
        let secrets =
            follow(client, GroupVersionKind::gvk("", "v1", "Secret"), move |secret, _| {
                let metadata = &secret["metadata"];
                if metadata["name"] == objects::PRIVATE_KEY_SECRET
                    && metadata["namespace"] == namespace
                {
                    keys.lock().unwrap().key = key_in(&secret);
                }
            });
        let watches = watches.into_iter().chain([tokio::spawn(secrets)]).collect();
        let user = format!("system:serviceaccount:{namespace}:{}", objects::OPERATOR);
        let (writes, machines) = (Arc::clone(&seen), stage.weak_machines());
        stage.cluster.inject_faults(move |request| {
            if request.user == user {
                note(request, &machines, &mut writes.lock().unwrap());
            }
            None
        });
        Self { seen, watches, budget, version: bin_operator::VERSION.to_owned() }
    }

    /// Whether the operator has asked to delete a Machine with this name.
    pub(in crate::live) fn has_deleted(&self, machine: &str) -> bool {
        let seen = self.seen.lock().unwrap();
        seen.writes.iter().any(|write| write.verb == "delete" && write.name == machine)
    }

    /// Ends and tells what was seen; panics if a rule was ever broken. No operator may run any more.
    pub(in crate::live) async fn finish(self, stage: &Stage) -> Findings {
        let current = || {
            let machines = stage.cluster.objects(objects::MACHINE.0, "machines", "");
            let all = machines.into_iter().chain(stage.cluster.objects("", "nodes", ""));
            all.map(|object| resource_version(&object)).max().unwrap_or_default()
        };
        until(|| {
            let seen = self.seen.lock().unwrap();
            let latest = seen.changes.iter().map(|change| resource_version(&change.object)).max();
            (latest >= Some(current())).then_some(())
        })
        .await;
        self.watches.iter().for_each(JoinHandle::abort);
        stage.cluster.clear_faults();
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        assert!(!seen.writes.is_empty(), "nobody was watched");
        let findings = safety::check(seen.changes, &seen.writes, self.budget, &self.version);
        assert!(findings.violations.is_empty(), "{:#?}", findings.violations);
        findings
    }
}

/// Gives `see` each object as it changes, and whether it is gone.
async fn follow(client: Client, gvk: GroupVersionKind, see: impl Fn(Value, bool)) {
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&gvk));
    let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let (object, is_gone) = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
            Ok(Event::Delete(object)) => (object, true),
            Ok(Event::Init | Event::InitDone) | Err(_) => continue,
        };
        see(serde_json::to_value(object).unwrap(), is_gone);
    }
}

fn key_in(secret: &Value) -> Option<AuthorizedKey> {
    let pem = secret["data"][objects::PRIVATE_KEY_KEY].as_str()?;
    public_key(&BASE64_STANDARD.decode(pem).ok()?)
}

/// The public half of a key.
pub(in crate::live) fn public_key(pem: &[u8]) -> Option<AuthorizedKey> {
    PrivateKey::parse(&Secret::new(pem)).ok()?.public().authorized_key().parse().ok()
}

/// Whether the file of a host has the line of this key.
pub(in crate::live) fn has_line(host: &SimHost, key: &AuthorizedKey) -> bool {
    let file = host.model().file(&host::AUTHORIZED_KEYS.parse().unwrap());
    let text = file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    text.lines().any(|line| line.parse().ok().as_ref() == Some(key))
}

/// Remembers what the operator wants to write.
fn note(request: &Request, machines: &Weak<OnceLock<MachineApi>>, seen: &mut Seen) {
    let kind = match request.resource.split('/').next() {
        Some("machines") => Kind::Machine,
        Some("machinesets") => Kind::MachineSet,
        Some("nodes") => Kind::Node,
        _ => return,
    };
    if matches!(request.verb.as_str(), "get" | "list" | "watch") {
        return;
    }
    let is_deletion = kind == Kind::Machine && request.verb == "delete";
    let machines = machines.upgrade().filter(|_| is_deletion);
    let host = machines.as_ref().and_then(|machines| machines.get()?.host(&request.name));
    let lets_in = host.zip(seen.key.as_ref());
    let lets_in = lets_in.is_some_and(|(host, key)| host.model().is_up() && has_line(&host, key));
    seen.writes.push(Write {
        asked: Instant::now(),
        verb: request.verb.clone(),
        kind,
        name: request.name.clone(),
        lets_in,
    });
}
