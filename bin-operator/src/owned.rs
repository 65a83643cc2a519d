//! The controller of the operator's own objects: services ConfigMap, WICD's token and bindings, trusted CAs,
//! user data, ServiceMonitor.

mod contention;
mod failures;
mod look;
mod monitoring;
mod user_data;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::{self, Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use wmco_core::cluster::user_data::DesiredUserData;
use wmco_core::cluster::{self, Action, Plan, Revision, rbac};
use wmco_core::names::{self, objects};
use wmco_core::protocol::ServicesData;

use crate::announce::Announcer;
use crate::config::Config;
use crate::leader::Leadership;
use crate::snapshot;
use crate::sources::Sources;
use contention::Contention;
use failures::{Attempt, Failures};
use look::Look;
pub(crate) use look::named;

/// Everything that the controller needs.
pub struct Owned {
    /// Kubernetes.
    pub client: Client,
    /// Configuration of the operator.
    pub config: Arc<Config>,
    /// Caches.
    pub sources: Sources,
    /// Whether we may write.
    pub leadership: Leadership,
    /// Events for people.
    pub announcer: Announcer,
    /// How often the objects are looked at in the API server itself.
    pub resync: Duration,
}

impl Owned {
    /// Keeps the objects as they should be until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.sources.changes.clone();
        let mut resync = time::interval_at(Instant::now() + self.resync, self.resync);
        resync.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut look, mut failures) = (Look::Cached, Failures::default());
        let mut contention = Contention::new();
        let mut monitored = false;
        loop {
            changes.mark_unchanged();
            contention.begin_pass();
            // What one of them lacks does not hold up the other.
            let services = self.services(look).await;
            self.carry_out("services", services, &mut failures, &mut contention).await;
            let user_data = self.user_data(look).await;
            self.carry_out("user data", user_data, &mut failures, &mut contention).await;
            let monitoring = monitoring::plan(&self, look, &mut monitored, &mut failures).await;
            self.carry_out("monitoring", monitoring, &mut failures, &mut contention).await;
            contention.problems().for_each(|problem| failures.found(problem.clone()));
            for problem in failures.end_pass(Instant::now()) {
                tracing::warn!(problem = problem.text, "{}", problem.about.consequence());
                self.announcer.told(&problem);
            }
            look = tokio::select! {
                () = stop.cancelled() => return,
                _ = resync.tick() => Look::Fresh,
                _ = changes.changed() => Look::Cached,
                // What failed may have been seen by a fresh look only.
                () = sleep_until(failures.next().into_iter().chain(contention.next()).min()) => {
                    Look::Fresh
                }
            };
        }
    }

    /// What the daemon on the nodes needs.
    async fn services(&self, look: Look) -> anyhow::Result<Plan> {
        let manifest = crate::manifest::generate(&self.sources, &self.config)?;
        let platform = manifest.platform.as_str();
        let desired = cluster::Desired {
            version: &self.config.version,
            services: &manifest.data,
            platform,
            proxy: manifest.proxy,
        };
        let namespace = &self.config.namespace;
        let observed = look::observe(look, &self.client, &self.sources, namespace).await?;
        Ok(cluster::reconcile(&desired, &observed, namespace))
    }

    /// What new machines start with.
    async fn user_data(&self, look: Look) -> anyhow::Result<Plan> {
        let Some(keys) = user_data::keys(&self.sources, &self.config.namespace)? else {
            return Ok(Plan::default());
        };
        let infrastructure = snapshot::infrastructure(&self.sources)?;
        let platform = infrastructure.platform_status.unwrap_or_default().type_;
        let desired =
            DesiredUserData { platform: &platform, key: &keys.key, next: keys.next.as_ref() };
        let observed = user_data::observe(look, &self.client, &self.sources).await?;
        Ok(cluster::user_data::reconcile(&desired, &observed))
    }

    /// Takes the steps that are due. A step that has just failed rests, and holds up no other, and so does one about an
    /// object that another writer changes again and again.
    async fn carry_out(
        &self,
        what: &str,
        plan: anyhow::Result<Plan>,
        failures: &mut Failures,
        contention: &mut Contention,
    ) {
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return failures.no_plan(what, &error, Instant::now()),
        };
        for step in plan.steps {
            let object = step.action.object(&self.config.namespace);
            if failures.rests(&step, Instant::now()) || contention.rests(&object) {
                continue;
            }
            let wanted = step.action.is_final().then(|| step.action.wanted());
            let writer = contention.writer(&object, &self.client).await;
            tracing::info!(%step, "own objects");
            let attempt = Attempt::of(&step, &self.config.namespace);
            let taken = match self.leadership.check() {
                Ok(()) => self.execute(step.action).await,
                Err(error) => Err(error.into()),
            };
            match taken {
                // What was seen is another one by now.
                Ok(false) => {}
                Ok(true) => {
                    if let Some(wanted) = wanted {
                        contention.corrected(&object, wanted, writer.as_deref());
                    }
                    if attempt.puts_right {
                        let note = format!("Own object put right: {}", attempt.text);
                        self.announcer.put_right(&attempt.object, &note);
                    }
                }
                Err(error) => failures.failed(&attempt, &error, Instant::now()),
            }
        }
    }

    /// Returns whether it was done; if not, the object is not what was seen, and the next pass looks at it.
    async fn execute(&self, action: Action) -> anyhow::Result<bool> {
        let namespace = &self.config.namespace;
        let config_maps: Api<ConfigMap> = self.namespaced();
        let secrets: Api<Secret> = self.namespaced();
        let role_bindings: Api<RoleBinding> = self.namespaced();
        let cluster_role_bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let done = match action {
            Action::CreateServices { name, data } => {
                create(&config_maps, &services_map(name, data)).await
            }
            Action::ReplaceServices { name, found, data } => {
                let map = services_map(name.clone(), data);
                let may_write = || Ok(self.leadership.check()?);
                let make = create(&config_maps, &map);
                return replace(&config_maps, &name, found, may_write, make).await;
            }
            Action::DeleteServices { name } => delete(&config_maps, &name).await,
            Action::CreateToken => {
                let account =
                    (objects::SERVICE_ACCOUNT_ANNOTATION.to_owned(), objects::WICD.to_owned());
                let secret = Secret {
                    metadata: ObjectMeta {
                        name: Some(objects::WICD.to_owned()),
                        annotations: Some([account].into()),
                        ..ObjectMeta::default()
                    },
                    type_: Some(objects::SERVICE_ACCOUNT_TOKEN_TYPE.to_owned()),
                    ..Secret::default()
                };
                create(&secrets, &secret).await
            }
            Action::CreateTrustedCa => create(&config_maps, &trusted_ca()).await,
            Action::LabelTrustedCa => label_trusted_ca(&config_maps).await,
            Action::DeleteToken => delete(&secrets, objects::WICD).await,
            Action::CreateBinding(rbac::BindingKind::RoleBinding) => {
                create(&role_bindings, &rbac::role_binding(namespace)).await
            }
            Action::CreateBinding(rbac::BindingKind::ClusterRoleBinding) => {
                create(&cluster_role_bindings, &rbac::cluster_role_binding(namespace)).await
            }
            Action::CreateBinding(rbac::BindingKind::CloudNodeManager) => {
                create(&cluster_role_bindings, &rbac::cloud_node_manager_binding(namespace)).await
            }
            Action::DeleteBinding { kind, found } => match kind {
                rbac::BindingKind::RoleBinding => {
                    delete_found(&role_bindings, kind.name(), found).await
                }
                rbac::BindingKind::ClusterRoleBinding | rbac::BindingKind::CloudNodeManager => {
                    delete_found(&cluster_role_bindings, kind.name(), found).await
                }
            },
            Action::CreateServiceMonitor => {
                return monitoring::create(&self.client, namespace).await;
            }
            Action::ChangeServiceMonitor { found } => {
                return monitoring::change(&self.client, namespace, found).await;
            }
            Action::CreateUserData { namespace, text } => {
                user_data::create(&self.secrets_in(&namespace), &user_data::with_text(&text)).await
            }
            Action::ChangeUserData { namespace, found, text } => {
                user_data::change(&self.secrets_in(&namespace), found, &text).await
            }
            Action::ReplaceUserData { namespace, found, data } => {
                let (api, secret) = (self.secrets_in(&namespace), user_data::with_data(&data));
                let may_write = || Ok(self.leadership.check()?);
                let make = user_data::create(&api, &secret);
                return replace(&api, objects::USER_DATA_SECRET, found, may_write, make).await;
            }
        };
        Ok(done?)
    }

    fn secrets_in(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn namespaced<K>(&self) -> Api<K>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.config.namespace)
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn services_map(name: String, data: ServicesData) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        immutable: Some(true),
        data: Some(data.0),
        ..ConfigMap::default()
    }
}

/// The ConfigMap that asks for the certificates that the cluster trusts.
fn trusted_ca() -> ConfigMap {
    let label = (objects::INJECT_TRUSTED_CA_LABEL.to_owned(), names::TRUE.to_owned());
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(objects::TRUSTED_CA_CONFIG_MAP.to_owned()),
            labels: Some([label].into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

/// Restores the label and keeps the others. The next pass makes a ConfigMap that is gone.
async fn label_trusted_ca(api: &Api<ConfigMap>) -> kube::Result<bool> {
    let patch = Patch::Merge(json!({"metadata": {"labels": trusted_ca().metadata.labels}}));
    match api.patch(objects::TRUSTED_CA_CONFIG_MAP, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates an object, and returns whether it did; one that is there already is looked at in the next pass.
async fn create<K>(api: &Api<K>, object: &K) -> kube::Result<bool>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes what was `found`, unless it is another one by now, and has another made in its place if it still may.
/// Returns whether it was made.
async fn replace<K>(
    api: &Api<K>,
    name: &str,
    found: Revision,
    may_write: impl FnOnce() -> anyhow::Result<()>,
    make: impl Future<Output = kube::Result<bool>>,
) -> anyhow::Result<bool>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Resource,
{
    // The change that we have not seen yet starts the next pass.
    if !delete_found(api, name, found).await? {
        return Ok(false);
    }
    may_write()?;
    Ok(make.await?)
}

/// Deletes what was `found`, and tells whether nothing is there now; if not, it is another one by now, or waits for
/// somebody's finalizer.
async fn delete_found<K>(api: &Api<K>, name: &str, found: Revision) -> kube::Result<bool>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Resource,
{
    let Revision { uid, resource_version } = found;
    let preconditions = Some(Preconditions { uid, resource_version });
    match api.delete(name, &DeleteParams { preconditions, ..DeleteParams::default() }).await {
        Ok(deleted) => Ok(deleted.left().is_none_or(|left| left.finalizers().is_empty())),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes an object, and returns whether it was there.
async fn delete<K>(api: &Api<K>, name: &str) -> kube::Result<bool>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt as _;
    use kube::config::{KubeConfigOptions, Kubeconfig};
    use kube_testserver::TestServer;

    use super::*;

    const NAME: &str = "windows-services-1.0.0";

    fn revision(map: &ConfigMap) -> Revision {
        Revision { uid: map.uid(), resource_version: map.resource_version() }
    }

    fn says(map: &ConfigMap, services: &str) -> bool {
        map.data.as_ref().unwrap()[objects::SERVICES_KEY] == services
    }

    #[tokio::test]
    async fn only_the_config_map_that_was_seen_is_replaced() {
        let cluster = TestServer::builder().start().await.unwrap();
        let namespace = objects::DEFAULT_NAMESPACE;
        cluster
            .put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .unwrap();
        let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), namespace);
        let data = |services: &str| {
            ServicesData([(objects::SERVICES_KEY.to_owned(), services.to_owned())].into())
        };
        let (old, new) =
            (services_map(NAME.into(), data("old")), services_map(NAME.into(), data("new")));
        let old = ConfigMap { immutable: None, ..old };

        let first = api.create(&PostParams::default(), &old).await.unwrap();
        let patch = Patch::Merge(json!({"data": {objects::SERVICES_KEY: "a person's"}}));
        let changed = api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
        replace(&api, NAME, revision(&first), || Ok(()), create(&api, &new)).await.unwrap();
        let found = api.get(NAME).await.unwrap();
        assert_eq!(found, changed, "it was changed after it was seen");

        replace(&api, NAME, revision(&changed), || Ok(()), create(&api, &new)).await.unwrap();
        let replaced = api.get(NAME).await.unwrap();
        assert!(says(&replaced, "new") && replaced.immutable == Some(true));
        assert_ne!(replaced.uid(), changed.uid());

        // The cache does not show it yet.
        replace(&api, NAME, revision(&changed), || Ok(()), create(&api, &new)).await.unwrap();
        assert_eq!(api.get(NAME).await.unwrap(), replaced);

        // A pass ends in between, and the cache does not show it yet.
        let lost = || anyhow::bail!("another one leads");
        replace(&api, NAME, revision(&replaced), lost, create(&api, &new)).await.unwrap_err();
        assert!(api.get_opt(NAME).await.unwrap().is_none());
        replace(&api, NAME, revision(&replaced), || Ok(()), create(&api, &new)).await.unwrap();
        assert!(says(&api.get(NAME).await.unwrap(), "new"));

        // Somebody has to be told first; until then it is there, and nobody can be put in its place.
        let waits = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/mine"]}}));
        let waiting = api.patch(NAME, &PatchParams::default(), &waits).await.unwrap();
        let never = async { panic!("it is not gone") };
        replace(&api, NAME, revision(&waiting), || Ok(()), never).await.unwrap();
        assert_eq!(api.get(NAME).await.unwrap().uid(), waiting.uid());
    }
}
