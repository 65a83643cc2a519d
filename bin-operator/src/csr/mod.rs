//! The controller of certificate requests: follows the cluster, asks `wmco-csr`, carries out its
//! verdicts.
//!
//! One [`Docket`] holds all state. `follow` keeps it current from watches and says which requests to
//! look at; `reconcile` decides about one and writes what was decided.

mod follow;
mod issued;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt, channel::mpsc, stream};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wmco_core::limits;
use wmco_csr::{Answer, Docket, Kind, Policy, Request, Rule, Verdict};

pub use issued::{Issued, Validity};

use crate::announce::Announcer;
use crate::config::Config;
use crate::host_reports::HostReports;
use crate::leader::{Leadership, NotLeading};
use crate::metrics::{CsrLabels, Metrics};
use crate::resolver::Resolver;
use crate::sources::Sources;

/// Pause after a write that did not get through.
const RETRY: Duration = Duration::from_secs(1);
/// Requests that are worked on side by side; what takes time is writing to the API server.
const CONCURRENCY: u16 = 16;
/// What a line of the log about a decision says.
const ABOUT: &str = "certificate request";

/// Everything that a decision and its execution need.
pub struct Approver {
    /// Kubernetes.
    pub client: Client,
    /// Configuration of the operator.
    pub config: Arc<Config>,
    /// Caches.
    pub sources: Sources,
    /// Answers of the DNS.
    pub resolver: Resolver,
    /// What hosts reported of themselves.
    pub host_reports: HostReports,
    /// Whether we may write.
    pub leadership: Leadership,
    /// Events for people.
    pub announcer: Announcer,
    /// What is counted.
    pub metrics: Metrics,
    /// What was issued.
    pub issued: Issued,
}

#[derive(Debug, thiserror::Error)]
enum CsrError {
    #[error("the api server did not take the decision")]
    Api(#[source] kube::Error),
    #[error("the request changed while it was decided about, again and again")]
    Conflict,
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
}

struct Context {
    approver: Approver,
    policy: Policy,
    docket: Arc<Mutex<Docket>>,
    requests: Api<CertificateSigningRequest>,
    /// Told when the DNS has to be asked for other names.
    asked: Arc<Notify>,
}

impl Approver {
    /// Decides about every pending request until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let mut policy = Policy::new(&self.config.namespace);
        policy.deny = self.config.deny_requests;
        policy.asks_dns = true;
        let asked = Arc::new(Notify::new());
        let docket = Arc::new(Mutex::new(Docket::new()));
        let (again, from_cluster) = mpsc::unbounded();
        let mut cluster =
            follow::Cluster::new(&self, Arc::clone(&docket), again, Arc::clone(&asked));
        tokio::select! {
            () = cluster.fill() => {}
            () = stop.cancelled() => return,
        }
        let (store, writer) = reflector::store();
        let listed = store.clone();
        let mut list = follow::Requests::new(Arc::clone(&docket));
        let from_requests = watcher(requests.clone(), watcher::Config::default())
            .default_backoff()
            .modify(strip)
            .inspect({
                let issued = self.issued.clone();
                move |event| issued.see(event)
            })
            .reflect(writer)
            .flat_map(move |event| stream::iter(list.follow(event)));
        let queue = stream::select(from_requests, from_cluster)
            .map(|name| Ok::<_, std::convert::Infallible>(ObjectRef::new(&name)))
            .take_until(stop.clone().cancelled_owned());
        let context = Arc::new(Context { approver: self, policy, docket, requests, asked });
        let config = controller::Config::default().concurrency(CONCURRENCY);
        let reconciled = controller::applier(
            |request, context| Box::pin(reconcile(request, context)),
            |_, error, _| retry(error),
            context,
            store,
            queue,
            config,
        );
        let reconciled = reconciled.for_each(|result| async move {
            if let Err(error) = result {
                tracing::debug!(error = %crate::chain(&error), "certificate request");
            }
        });
        tokio::select! {
            // It ends with its queue, after what it has begun.
            () = reconciled => {}
            () = cluster.follow() => {}
            () = stopped_unlisted(&listed, &stop) => {}
        }
    }
}

/// Returns at `stop` if the requests have not been listed by then. The controller waits for that list
/// before anything else, and nobody reads it any more.
async fn stopped_unlisted(listed: &Store<CertificateSigningRequest>, stop: &CancellationToken) {
    tokio::select! {
        biased;
        _ = listed.wait_until_ready() => std::future::pending().await,
        () = stop.cancelled() => {}
    }
}

/// Leaves out what nobody here reads, for a cluster may hold many decided requests.
fn strip(request: &mut CertificateSigningRequest) {
    request.metadata.managed_fields = None;
}

fn retry(error: &CsrError) -> Action {
    tracing::warn!(error = %crate::chain(error), "certificate request not handled, trying again");
    Action::requeue(RETRY)
}

async fn reconcile(
    request: Arc<CertificateSigningRequest>,
    context: Arc<Context>,
) -> Result<Action, CsrError> {
    let mut request = request;
    for _ in 0..=limits::CSR_CONFLICTS {
        let Some(answer) = context.decide(&request, None) else {
            return Ok(Action::await_change());
        };
        let Some(answer) = context.confirm(&request, answer).await? else {
            return Ok(Action::await_change());
        };
        context.tell(&request, &answer);
        let (now, again) = (Timestamp::now(), answer.decision.again());
        let condition = match answer.decision.into_verdict() {
            Verdict::Approve(approval) => approval.condition(now),
            Verdict::Refuse(Some(denial)) => denial.condition(now),
            Verdict::Ignore | Verdict::Refuse(None) => return Ok(Action::await_change()),
            Verdict::Wait { deadline } => {
                let pause = again.unwrap_or(deadline).duration_since(now);
                return Ok(Action::requeue(Duration::try_from(pause).unwrap_or(RETRY).max(RETRY)));
            }
        };
        match context.write(&request, condition).await {
            Ok(written) => {
                context.docket().see(&written);
                return Ok(Action::await_change());
            }
            Err(CsrError::Api(kube::Error::Api(status))) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
        // What the watch shows is old, so the API server is asked, and then it is decided anew.
        let name = request.name_any();
        match context.requests.get_opt(&name).await.map_err(CsrError::Api)? {
            Some(fresh) => request = Arc::new(fresh),
            None => return Ok(Action::await_change()),
        }
        context.docket().see(&*request);
    }
    Err(CsrError::Conflict)
}

impl Context {
    fn docket(&self) -> MutexGuard<'_, Docket> {
        self.docket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide<'r>(
        &self,
        request: &'r CertificateSigningRequest,
        beside: Option<&Node>,
    ) -> Option<Answer<'r>> {
        let (begun, now) = (Instant::now(), Timestamp::now());
        let request = Request::from(request);
        let answer = match beside {
            None => self.docket().decide(&request, &self.policy, now),
            Some(node) => self.docket().decide_beside(node, &request, &self.policy, now),
        };
        self.approver.metrics.csr_decision_time.observe(begun.elapsed().as_secs_f64());
        if answer.as_ref().is_some_and(|answer| answer.has_questions) {
            self.asked.notify_one();
        }
        answer
    }

    /// What the watch shows is a moment late, but a requester that is approved as a new node must not take the
    /// name of any that exists. So that is asked before it is approved.
    async fn confirm<'r>(
        &self,
        request: &'r CertificateSigningRequest,
        answer: Answer<'r>,
    ) -> Result<Option<Answer<'r>>, CsrError> {
        let Verdict::Approve(approval) = answer.decision.verdict() else { return Ok(Some(answer)) };
        if approval.kind() != Kind::KubeletClient {
            return Ok(Some(answer));
        }
        let nodes: Api<Node> = Api::all(self.approver.client.clone());
        let found = nodes.get_opt(approval.node()).await.map_err(CsrError::Api)?;
        Ok(match found {
            None => Some(answer),
            Some(node) => self.decide(request, Some(&node)),
        })
    }

    /// Counts and tells an answer that is new.
    fn tell(&self, request: &CertificateSigningRequest, answer: &Answer<'_>) {
        if !answer.is_news {
            return;
        }
        let decision = &answer.decision;
        let (kind, rule) = (decision.kind(), decision.rule());
        let labels = CsrLabels {
            kind: kind.map_or("none", Kind::name),
            verdict: decision.verdict().name(),
            rule: rule.map_or("", Rule::name),
        };
        self.approver.metrics.csrs.get_or_create(&labels).inc();
        let (csr, verdict, reason) = (decision.name(), labels.verdict, decision.reason());
        let (kind, requester) = (labels.kind, request.spec.username.as_deref().unwrap_or_default());
        let subject = decision.detail(Rule::CommonName).unwrap_or_default();
        match decision.verdict() {
            Verdict::Approve(_) | Verdict::Refuse(_) => {
                let names = decision.detail(Rule::Addresses).unwrap_or_default();
                tracing::info!(csr, kind, verdict, requester, %subject, %names, reason, "{ABOUT}");
            }
            Verdict::Ignore | Verdict::Wait { .. } => {
                tracing::debug!(csr, kind, verdict, requester, %subject, reason, "{ABOUT}");
            }
        }
        if let Some(warning) = decision.warning()
            && self.approver.leadership.check().is_ok()
        {
            self.approver.announcer.warn_of(&request.object_ref(&()), &warning);
        }
    }

    /// Appends a condition to the very version that was decided about.
    async fn write(
        &self,
        request: &CertificateSigningRequest,
        condition: CertificateSigningRequestCondition,
    ) -> Result<CertificateSigningRequest, CsrError> {
        self.approver.leadership.check()?;
        let mut request = request.clone();
        let status = request.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(condition);
        let parameters = PostParams::default();
        let name = request.name_any();
        let written = self.requests.replace_subresource("approval", &name, &parameters, &request);
        written.await.map_err(CsrError::Api)
    }
}
