//! The controller of certificate requests: keeps the view current, asks `wmco-csr`, carries out its
//! verdict.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wmco_core::instances;
use wmco_csr::{Approval, Facts, Policy, Request, Verdict, View, decide};

use crate::announce::Announcer;
use crate::config::Config;
use crate::leader::{Leadership, NotLeading};
use crate::learned::Learned;
use crate::metrics::{CsrLabels, Metrics};
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;

/// Pause after a write that did not get through.
const RETRY: Duration = Duration::from_secs(1);

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
    /// Host names that hosts reported.
    pub learned: Learned,
    /// Whether we may write.
    pub leadership: Leadership,
    /// Events for people.
    pub announcer: Announcer,
    /// What is counted.
    pub metrics: Metrics,
}

#[derive(Debug, thiserror::Error)]
enum CsrError {
    #[error("the api server did not take the decision")]
    Api(#[from] kube::Error),
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
}

struct Context {
    approver: Approver,
    policy: Policy,
    state: Mutex<State>,
    requests: Store<CertificateSigningRequest>,
}

/// The view, and which changes are in it.
#[derive(Default)]
struct State {
    view: View,
    seen: Option<(u64, u64)>,
    /// Requests in the view.
    pending: BTreeSet<String>,
    /// Warnings that people were told of, by the request's UID.
    warned: BTreeSet<String>,
}

impl Approver {
    /// Decides about every pending request until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let policy = Policy::new(&self.config.namespace);
        // A request may wait for a Node or a host name, so both start another look at all requests.
        let triggers = futures::stream::select(
            changes(self.sources.changes.clone()),
            changes(self.learned.changes()),
        );
        let controller = Controller::new(requests, watcher::Config::default());
        let store = controller.store();
        let context = Context { approver: self, policy, state: Mutex::default(), requests: store };
        controller
            .reconcile_all_on(triggers)
            .graceful_shutdown_on(stop.cancelled_owned())
            .run(reconcile, |_, error, _| retry(error), Arc::new(context))
            .for_each(|result| async move {
                if let Err(error) = result {
                    tracing::debug!(error = %crate::chain(&error), "certificate request");
                }
            })
            .await;
    }
}

fn changes(counter: watch::Receiver<u64>) -> impl futures::Stream<Item = ()> + Send {
    futures::stream::unfold(counter, |mut counter| async move {
        counter.changed().await.ok()?;
        Some(((), counter))
    })
}

fn retry(error: &CsrError) -> Action {
    tracing::warn!(error = %crate::chain(error), "certificate request not handled, trying again");
    Action::requeue(RETRY)
}

async fn reconcile(
    request: Arc<CertificateSigningRequest>,
    context: Arc<Context>,
) -> Result<Action, CsrError> {
    let now = Timestamp::now();
    let decision = {
        let mut state = context.state.lock().unwrap_or_else(PoisonError::into_inner);
        context.refresh(&mut state, now);
        decide(&Request::from(&*request), &context.policy, &state.view, now)
    };
    let warning = decision.warning();
    let labels = CsrLabels {
        kind: decision.kind().map_or("none", |kind| kind.name()).to_owned(),
        verdict: decision.verdict().name().to_owned(),
        rule: decision.rule().map(|rule| rule.name().to_owned()).unwrap_or_default(),
    };
    tracing::debug!(csr = decision.name(), verdict = labels.verdict, reason = decision.reason());
    context.approver.metrics.csrs.get_or_create(&labels).inc();
    if let Some(warning) = warning {
        context.warn(&request, warning.message).await;
    }
    match decision.into_verdict() {
        Verdict::Approve(approval) => context.approve(&request, &approval, now).await?,
        Verdict::Refuse(Some(denial)) => {
            context.write(&request, denial.condition(now)).await?;
        }
        Verdict::Ignore | Verdict::Refuse(None) => {}
        Verdict::Wait { deadline } => {
            let pause = deadline.duration_since(now);
            return Ok(Action::requeue(Duration::try_from(pause).unwrap_or(RETRY).max(RETRY)));
        }
    }
    Ok(Action::await_change())
}

impl Context {
    /// Brings the view up to date, with work only for what changed.
    fn refresh(&self, state: &mut State, now: Timestamp) {
        let approver = &self.approver;
        let seen = (*approver.sources.changes.borrow(), *approver.learned.changes().borrow());
        if state.seen != Some(seen) {
            state.seen = Some(seen);
            let mut view = View::new();
            for node in approver.sources.nodes.state() {
                view.set_node(&node);
            }
            let data = snapshot::listed(&approver.sources, &approver.config.namespace);
            let answers = approver.resolver.answers(instances::names(&data), now);
            let entries = instances::parse(&data, &answers);
            let addresses = entries.instances().map(|i| (i.address.as_str(), Some(i.ipv4)));
            let facts = Facts { hostnames: approver.learned.all(), ..Facts::default() };
            view.set_instances(addresses, &facts);
            state.view = view;
            state.pending.clear();
        }
        let mut here = BTreeSet::new();
        for request in self.requests.state() {
            let name = request.name_any();
            if !state.pending.contains(&name) {
                state.view.set_request(&*request);
            }
            here.insert(name);
        }
        for gone in state.pending.difference(&here) {
            state.view.remove_request(gone);
        }
        state.pending = here;
    }

    async fn approve(
        &self,
        request: &CertificateSigningRequest,
        approval: &Approval,
        now: Timestamp,
    ) -> Result<(), CsrError> {
        self.write(request, approval.condition(now)).await?;
        tracing::info!(csr = approval.name(), kind = approval.kind().name(), "approved");
        Ok(())
    }

    /// Appends a condition to the very version that was decided about; a conflict decides anew.
    async fn write(
        &self,
        request: &CertificateSigningRequest,
        condition: k8s_openapi::api::certificates::v1::CertificateSigningRequestCondition,
    ) -> Result<(), CsrError> {
        self.approver.leadership.check()?;
        let mut request = request.clone();
        let status = request.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(condition);
        let requests: Api<CertificateSigningRequest> = Api::all(self.approver.client.clone());
        let name = request.name_any();
        requests.replace_subresource("approval", &name, &PostParams::default(), &request).await?;
        Ok(())
    }

    /// Tells people of a refused request, once.
    async fn warn(&self, request: &CertificateSigningRequest, message: String) {
        let uid = request.uid().unwrap_or_default();
        let new = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.warned.insert(uid)
        };
        if new && self.approver.leadership.check().is_ok() {
            let reference: ObjectReference = request.object_ref(&());
            self.approver.announcer.refused(&reference, message).await;
        }
    }
}
