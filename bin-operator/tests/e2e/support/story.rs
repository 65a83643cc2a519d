//! What happens: hosts are listed and become nodes, the operator is upgraded and upgrades them one by one,
//! they are listed no longer and leave.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bin_operator::demo::{Hosts, Launcher, Running, network, seed, stand_in};
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api as KubeApi;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wmco_core::names::host;
use wmco_core::names::{objects as names, platforms};
use wmco_services::fake::Snapshot;
use wmco_sim::host::SimHost;

use super::nodes::Observer;
use super::objects::Objects;
use super::own_api::OwnApi;
use super::{Api, HOST_PREFIX, condition, controllers, leftovers, trouble};

/// Addresses of the hosts; the last part counts up. They are kept for documentation, so no machine has them.
const NETWORK: [u8; 3] = [192, 0, 2];

/// How long a phase may take, and how much longer for each host.
const PATIENCE: Duration = Duration::from_secs(120);
const PATIENCE_PER_HOST: Duration = Duration::from_secs(20);

/// What is to happen.
pub(crate) struct Story {
    /// How many hosts are listed.
    pub(crate) hosts: u8,
    /// Ends it early.
    pub(crate) stop: CancellationToken,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Kinds that the cluster lacked.
    pub(crate) installed: Vec<String>,
    /// Objects that were there before.
    pub(crate) left_alone: Vec<String>,
    /// Most nodes that were disrupted at once during the upgrade.
    pub(crate) most_disrupted: usize,
    /// What could not be removed in the end.
    pub(crate) not_removed: Vec<String>,
}

/// Lets it happen. `own`: the API server has no controllers beside it, so they are stood in for; in any other
/// cluster everything that was made is removed again, whatever happened.
///
/// # Errors
/// What did not happen as it should, with how the nodes stood and what the operator told.
pub(crate) async fn run(
    api: &Api,
    own: Option<&OwnApi>,
    story: &Story,
    say: &dyn Fn(&str),
) -> anyhow::Result<Findings> {
    if own.is_none() {
        leftovers::remove_of_earlier_run(&api.client).await?;
    }
    let mut objects = Objects::new(&api.client);
    let mut findings = Findings::default();
    let scene = Scene { api, own, hosts: story.hosts, say };
    let happened = tokio::select! {
        happened = Box::pin(scene.play(&mut objects, &mut findings)) => happened,
        () = story.stop.cancelled() => Err(anyhow::anyhow!("stopped")),
    };
    let happened = match happened {
        Ok(()) => Ok(()),
        Err(error) => {
            let trouble = trouble::told(&api.client).await;
            Err(anyhow::anyhow!("{}; {trouble}", bin_operator::chain(error.as_ref())))
        }
    };
    findings.left_alone = objects.left_alone().to_vec();
    if own.is_none() {
        let made = |namespace: &str| objects.has_made(&format!("namespaces {namespace}"));
        findings.not_removed = leftovers::remove(&api.client, made).await;
        findings.not_removed.extend(objects.remove().await);
        match findings.not_removed.as_slice() {
            [] => say("everything that was made is removed"),
            left => say(&format!("could not be removed: {}", left.join(", "))),
        }
    }
    happened.map(|()| findings)
}

struct Scene<'a> {
    api: &'a Api,
    own: Option<&'a OwnApi>,
    hosts: u8,
    say: &'a dyn Fn(&str),
}

impl Scene<'_> {
    async fn play(&self, objects: &mut Objects, findings: &mut Findings) -> anyhow::Result<()> {
        let key = stand_in::private_key()?;
        let listed = listed(self.hosts);
        findings.installed = self.prepare(objects, &key).await?;
        let _stand_ins = self.stand_ins(objects);

        let hosts = Hosts::start(&listed, &key, |number, host| {
            host.host_name(format!("{HOST_PREFIX}{}", number + 1))
        });
        let hosts = hosts.await?;
        let before: Vec<_> = hosts.iter().map(|(_, host)| state(host)).collect();
        let mut launcher = Launcher::new(&hosts)?;
        let mut observer = Observer::start(&self.api.client);
        let count = usize::from(self.hosts);
        let patience = PATIENCE + PATIENCE_PER_HOST * u32::from(self.hosts);

        let begun = Instant::now();
        let running = self.launch(&launcher).await?;
        objects.make(&seed::instances(&listed)).await?;
        let version = bin_operator::VERSION;
        observer.until(patience, |seen| seen.are_finished(count, version)).await?;
        self.tell(begun, &format!("{count} hosts are nodes of version {version}"));
        condition::upgradeable(&self.api.client, patience).await?;
        (self.say)("          the OperatorCondition says that an upgrade is safe");
        running.stop().await.context("the operator ended badly")?;

        let begun = Instant::now();
        let next = format!("{version}-e2e");
        launcher.upgrade(&next)?;
        observer.count_disrupted();
        let running = self.launch(&launcher).await?;
        observer.until(patience, |seen| seen.are_finished(count, &next)).await?;
        findings.most_disrupted = observer.most_disrupted();
        let most = findings.most_disrupted;
        self.tell(
            begun,
            &format!("{count} nodes are upgraded to {next}, {most} disrupted at most"),
        );
        anyhow::ensure!(most == 1, "{most} nodes were disrupted at once, not one");

        let begun = Instant::now();
        objects.make(&seed::instances(&BTreeMap::new())).await?;
        observer.until(patience, |seen| seen.nodes.is_empty()).await?;
        self.forgotten(patience).await?;
        running.stop().await.context("the operator ended badly")?;
        for ((address, host), before) in hosts.iter().zip(before) {
            anyhow::ensure!(state(host) == before, "host {address} is not as it was before");
        }
        self.tell(begun, &format!("{count} nodes have left, and their hosts are as before"));
        hosts.shutdown().await;
        self.nothing_was_refused()
    }

    /// Where the API server is ours, it wrote down what it answered to the operator.
    fn nothing_was_refused(&self) -> anyhow::Result<()> {
        let Some(own) = self.own else { return Ok(()) };
        let (namespace, account) = (names::DEFAULT_NAMESPACE, names::OPERATOR);
        let refused = own.refused(&format!("system:serviceaccount:{namespace}:{account}"))?;
        anyhow::ensure!(refused.is_empty(), "the operator lacks rights: {}", refused.join(", "));
        (self.say)("          no request of the operator was refused for lack of a right");
        Ok(())
    }

    /// Makes what a cluster needs and what is installed with the operator; returns the kinds that it lacked.
    async fn prepare(
        &self,
        objects: &mut Objects,
        key: &wmco_core::secret::Secret,
    ) -> anyhow::Result<Vec<String>> {
        for namespace in seed::namespaces() {
            objects.make(&namespace).await?;
        }
        let installed = objects.install_kinds().await?;
        (self.say)(&match installed.as_slice() {
            [] => "the cluster has all kinds of OpenShift".to_owned(),
            kinds => format!("kinds that it lacked, so open ones stand in: {}", kinds.join(", ")),
        });
        let endpoint = seed::Endpoint { url: &self.api.url, ca_pem: &self.api.ca_pem };
        let openshift = seed::openshift(endpoint, platforms::NONE)?;
        for object in openshift.iter().chain(&seed::installation(key, &BTreeMap::new())) {
            objects.make(object).await?;
        }
        (self.say)(&match objects.left_alone() {
            [] => "it had no object that OpenShift would bring, so all are stood in for".to_owned(),
            objects => {
                format!("it had these objects, which are left alone: {}", objects.join(", "))
            }
        });
        Ok(installed)
    }

    /// Does what controllers of a cluster would do, until it is dropped.
    fn stand_ins(&self, objects: &Objects) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if objects.has_made(&format!("networks.operator.openshift.io {}", names::CLUSTER)) {
            (self.say)(
                "stands in for the cluster network operator, which gives nodes their subnets",
            );
            tasks.spawn(network::assign_subnets(self.api.client.clone()));
        }
        if let Some(own) = self.own {
            (self.say)(
                "stands in for kube-controller-manager: signs certificates, fills token Secrets",
            );
            tasks.spawn(controllers::run(self.api.client.clone(), own.authority.clone()));
        }
        tasks
    }

    /// An operator with its own account and rights.
    async fn launch(&self, launcher: &Launcher) -> anyhow::Result<Running> {
        let kubeconfig = self.api.kubeconfig_of(names::DEFAULT_NAMESPACE, names::OPERATOR).await?;
        launcher.launch(kubeconfig, Progress::new())
    }

    /// Waits until the operator keeps nothing of any host.
    async fn forgotten(&self, patience: Duration) -> anyhow::Result<()> {
        let maps: KubeApi<ConfigMap> =
            KubeApi::namespaced(self.api.client.clone(), names::DEFAULT_NAMESPACE);
        let end = Instant::now() + patience;
        loop {
            let map = maps.get_opt(names::HOST_KEYS_CONFIG_MAP).await?;
            let kept = map.and_then(|map| map.data).unwrap_or_default();
            if kept.is_empty() {
                return Ok(());
            }
            let keys: Vec<_> = kept.into_keys().collect();
            anyhow::ensure!(Instant::now() < end, "still kept of hosts: {}", keys.join(", "));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn tell(&self, begun: Instant, what: &str) {
        (self.say)(&format!("{:>6.1} s  {what}", begun.elapsed().as_secs_f64()));
    }
}

fn listed(hosts: u8) -> BTreeMap<String, String> {
    let [a, b, c] = NETWORK;
    let address = |number| Ipv4Addr::new(a, b, c, number).to_string();
    (1..=hosts).map(|number| (address(number), "username=Administrator".to_owned())).collect()
}

/// A host without its logs, which stay for people.
fn state(host: &SimHost) -> Snapshot {
    let mut snapshot = host.model().snapshot();
    let is_log = |path: &str| path.starts_with(host::LOGS) || host::LOGS.starts_with(path);
    snapshot.files.retain(|path, _| !is_log(path.as_str()));
    snapshot
}
