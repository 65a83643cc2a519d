//! The controllers, wired.

use std::net::TcpListener;
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::limits;
use wmco_kubeconfig::ClientError;
use wmco_services::generate::LogSettings;
use wmco_ssh::{Dialer, Options, Pool, PoolLimits};

use crate::announce::Announcer;
use crate::condition;
use crate::config::Config;
use crate::csr::{Approver, Issued};
use crate::fleet::Fleet;
use crate::host_reports::HostReports;
use crate::http;
use crate::instance::{Executor, HostRecords};
use crate::leader::{self, Leadership};
use crate::metrics::Metrics;
use crate::owned::Owned;
use crate::payload::Payload;
use crate::progress::Progress;
use crate::resolver::{Dns, Resolver};
use crate::sources::Sources;
use crate::work::WorkStates;

/// Everything that the controllers need from outside.
pub struct Operator {
    /// Configuration.
    pub config: Config,
    /// Kubernetes.
    pub client: Client,
    /// Kubernetes, for requests that are sent once; see [`sending_once`].
    pub once: Client,
    /// What goes to hosts.
    pub payload: Payload,
    /// How hosts are dialled.
    pub dialer: Arc<dyn Dialer>,
    /// Where names of hosts are looked up.
    pub dns: Dns,
    /// Limits and counters of connections to hosts.
    pub ssh: Options,
    /// Where metrics and health are served.
    pub http: Option<TcpListener>,
    /// Events for watchers.
    pub progress: Progress,
}

impl Operator {
    /// Runs until `stop`, or until another process leads.
    ///
    /// # Errors
    /// When the caches or the metrics listener end, or leadership is lost: the process is to end and
    /// be started again.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let config = Arc::new(self.config);
        if config.logs.is_configured() {
            tracing::info!(settings = %config.logs, "log rotation configured");
        }
        if config.logs.age_without_size() {
            tracing::warn!("{}", LogSettings::AGE_WITHOUT_SIZE);
        }
        let tasks = TaskTracker::new();
        let pool = Pool::new(self.dialer, self.ssh, PoolLimits::default());
        let metrics = Metrics::new(pool.clone());
        let (ready, is_ready) = watch::channel(false);
        let tls = http::Settings::new(&config.namespace)?;
        // Not among the tasks that the Lease waits for: clients may be in no hurry.
        let http = self.http.map(|listener| {
            let access = http::Access::new(self.once.clone());
            let served = http::Served { metrics: metrics.clone(), access, ready: is_ready };
            let serving = http::serve(listener, served, tls.served(), stop.clone());
            let stop = stop.clone();
            tokio::spawn(async move {
                if let Err(error) = serving.await {
                    tracing::error!(%error, "cannot serve metrics and health");
                    stop.cancel();
                }
            })
        });
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &config.namespace);
        let office = CancellationToken::new();
        let end_of_office = office.clone().drop_guard();
        let (mut leadership, election) =
            leader::elect(leases, config.identity.clone(), config.election, office);
        let pause_image = config.containerd.pause_image.parse().ok();
        let sources = Sources::watch(&self.client, &config.namespace, pause_image, &stop, &tasks);
        let (stopped, namespace) = (stop.clone(), config.namespace.clone());
        let following = http::follow(tls, sources.clone(), namespace);
        tasks.spawn(async move { stopped.run_until_cancelled(following).await });
        tokio::select! {
            // First, since the watches end with it, too.
            biased;
            () = stop.cancelled() => {}
            filled = sources.ready() => filled?,
            () = tell_unknown(&sources) => {}
        }
        ready.send_replace(true);
        tokio::select! {
            () = leadership.gained() => tracing::info!(identity = config.identity, "leading"),
            () = stop.cancelled() => {}
        }
        metrics.leader.set(i64::from(!stop.is_cancelled()));
        let controllers = Controllers {
            dns: self.dns,
            config,
            client: leader::guarded(&self.client, &leadership),
            once: leader::guarded(&self.once, &leadership),
            sources,
            leadership: leadership.clone(),
            metrics,
        };
        let announcer = (!stop.is_cancelled())
            .then(|| controllers.start(self.payload, pool, self.progress, &stop, &tasks));
        let lost = tokio::select! {
            () = stop.cancelled() => false,
            () = leadership.lost() => !stop.is_cancelled(),
        };
        stop.cancel();
        tasks.close();
        tasks.wait().await;
        if let Some(announcer) = announcer {
            announcer.sent(limits::EVENTS_END.unsigned_abs()).await;
        }
        drop(end_of_office);
        election.await?;
        if let Some(http) = http {
            http.await?;
        }
        anyhow::ensure!(!lost, "lost the leadership, start again");
        Ok(())
    }
}

/// Tells again and again what is waited for before any work begins; never ends.
async fn tell_unknown(sources: &Sources) {
    loop {
        tokio::time::sleep(limits::UNKNOWN_PATIENCE.unsigned_abs()).await;
        let unknown = sources.unknown().join(", ");
        let unknown =
            if unknown.is_empty() { "machineconfigpools and controllerconfigs" } else { &unknown };
        tracing::warn!(
            "nothing is done before the api server has told of {unknown}; see whether it may be reached and \
             whether the operator's rights are whole (`kubectl auth can-i --list`)"
        );
    }
}

/// A client for requests that are not to be sent again by itself.
///
/// The usual one sends a request again, for minutes, that is answered with 429. For an eviction that
/// is no failure but the answer: a disruption budget refuses it.
///
/// # Errors
/// When no client can be made of the configuration.
pub fn sending_once(config: &kube::Config) -> Result<Client, ClientError> {
    let mut config = config.clone();
    config.default_retry = false;
    wmco_kubeconfig::client(config)
}

struct Controllers {
    dns: Dns,
    config: Arc<Config>,
    client: Client,
    once: Client,
    sources: Sources,
    leadership: Leadership,
    metrics: Metrics,
}

impl Controllers {
    fn start(
        self,
        payload: Payload,
        pool: Pool,
        progress: Progress,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Announcer {
        let announcer = Announcer::new(
            self.client.clone(),
            &self.config.namespace,
            &self.config.identity,
            self.metrics.clone(),
        );
        let host_reports = HostReports::new();
        let executor = Executor {
            client: self.client.clone(),
            once: self.once,
            namespace: self.config.namespace.clone(),
            leadership: self.leadership.clone(),
            pool,
            announcer: announcer.clone(),
            progress,
            metrics: self.metrics.clone(),
            records: HostRecords::new(
                self.client.clone(),
                &self.config.namespace,
                self.leadership.clone(),
            ),
            host_reports: host_reports.clone(),
            works: WorkStates::new(),
            nodes: self.sources.nodes.clone(),
        };
        let works = executor.works.subscribe();
        let issued = Issued::default();
        let resolver = Resolver::new(self.dns);
        let fleet = Fleet::new(
            Arc::clone(&self.config),
            payload,
            self.sources.clone(),
            resolver.clone(),
            executor,
            issued.clone(),
        );
        let approver = Approver {
            client: self.client.clone(),
            config: Arc::clone(&self.config),
            sources: self.sources.clone(),
            resolver,
            host_reports,
            leadership: self.leadership.clone(),
            announcer: announcer.clone(),
            metrics: self.metrics.clone(),
            issued,
        };
        let condition = self.config.operator_condition.as_ref().map(|name| {
            let (client, namespace) = (self.client.clone(), &self.config.namespace);
            let (leadership, announcer) = (self.leadership.clone(), announcer.clone());
            condition::Object::new(client, namespace, name, leadership, announcer)
        });
        let follower = condition::Follower::new(fleet.standings(), works, self.metrics, condition);
        let owned = Owned {
            client: self.client,
            config: self.config,
            sources: self.sources,
            leadership: self.leadership,
            announcer: announcer.clone(),
            resync: limits::OWNED_RESYNC.unsigned_abs(),
        };
        tasks.spawn(owned.run(stop.clone()));
        tasks.spawn(follower.run(stop.clone()));
        tasks.spawn(approver.run(stop.clone()));
        tasks.spawn(fleet.run(stop.clone()));
        announcer
    }
}
