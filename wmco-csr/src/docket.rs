//! Keeps the open requests, their last answers, and which answers may have changed.
//!
//! A [`Docket`] follows requests and cluster from watch events. It holds one entry per undecided request, parses
//! each request once, and returns after each change the requests to decide again, so that the caller's work is in
//! proportion to the change.
//!
//! # Guarantees
//! - Pure: no clock, no I/O. Its size depends on the requests that exist in the cluster, not on how many
//!   there have been.
//! - An answer is news once: it is news again only if the verdict or the deciding rule changes, or a wait lasts.
//!
//! # Not here
//! Waiting for deadlines and writing verdicts. The caller does that.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use wmco_core::facts::Facts;
use wmco_core::instances::Entries;

use crate::cluster::ClusterFacts;
use crate::decide::{Decision, Questions, decide};
use crate::policy::Policy;
use crate::request::Request;
use crate::rule::Rule;
use crate::view::{Dispute, Index, MachineFacts, NodeIdentity, View};

/// The most names, and the most addresses, that open requests together make the operator ask the DNS for.
const QUESTIONS: usize = 256;

/// Open requests, and the cluster state that decides about them.
///
/// ```
/// use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
/// use wmco_csr::{Docket, Policy, Request};
///
/// let mut object = CertificateSigningRequest::default();
/// object.metadata.name = Some("csr-1".into());
/// object.spec.signer_name = "kubernetes.io/kubelet-serving".into();
///
/// let (mut docket, policy) = (Docket::new(), Policy::new("windows-operator"));
/// assert_eq!(docket.see(&object), ["csr-1"], "it is to be looked at");
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let answer = docket.decide(&Request::from(&object), &policy, now).expect("it is open");
/// assert!(answer.is_news && answer.decision.warning().is_some());
/// let again = docket.decide(&Request::from(&object), &policy, now).expect("still open");
/// assert!(!again.is_news, "people have been told");
/// docket.forget("csr-1");
/// assert!(docket.decide(&Request::from(&object), &policy, now).is_none(), "nothing to decide");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Docket {
    view: View,
    open: HashMap<String, Open>,
    /// Nodes that block requests of other hosts, and those requests.
    blocked: Index<String, String>,
}

/// An undecided request.
#[derive(Clone, Debug, Default)]
struct Open {
    uid: Option<String>,
    answered: Option<Answered>,
    /// The Node of another host that blocked the request.
    blocked_by: Option<String>,
    /// What the DNS has to answer for the request.
    questions: Questions,
}

/// The last answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Answered {
    verdict: &'static str,
    rule: Option<Rule>,
    is_overdue: bool,
}

/// A decision about an open request.
#[derive(Debug)]
pub struct Answer<'r> {
    /// The decision.
    pub decision: Decision<'r>,
    /// Whether the answer differs from the last one, so that it should be counted and reported.
    pub is_news: bool,
    /// Whether [`Docket::questions`] has changed.
    pub has_questions: bool,
}

impl Docket {
    /// Makes a docket without requests, for a cluster without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of open requests.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no request is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The names of open requests.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }

    /// Adds a request that was listed, created or changed. Returns the names of the requests to decide.
    pub fn see<'r>(&mut self, request: impl Into<Request<'r>>) -> Vec<String> {
        let request = request.into();
        let uid = request.uid.map(str::to_owned);
        if request.decided.is_some() {
            let again = self.close(request.name);
            // An approved request still supersedes older requests for the same node.
            self.view.set_request(request);
            return again;
        }
        self.view.set_request(request);
        let known =
            self.open.get(request.name).is_some_and(|open| uid.is_some() && open.uid == uid);
        if !known {
            self.open.insert(request.name.to_owned(), Open { uid, ..Open::default() });
        }
        vec![request.name.to_owned()]
    }

    /// Removes a deleted request. Returns the names of the requests to decide again.
    pub fn forget(&mut self, name: &str) -> Vec<String> {
        let again = self.close(name);
        self.view.remove_request(name);
        again
    }

    /// Keeps only the requests in `names`, after a full list. Returns the names of the requests to decide again.
    pub fn retain(&mut self, names: &HashSet<String>) -> Vec<String> {
        let known = self.open.keys().map(String::as_str).chain(self.view.requests());
        let gone: HashSet<String> =
            known.filter(|name| !names.contains(*name)).map(str::to_owned).collect();
        let again: Vec<String> = gone.iter().flat_map(|name| self.forget(name)).collect();
        again.into_iter().filter(|name| names.contains(name)).collect()
    }

    /// Adds a Node that was listed, created or changed. Returns the names of the requests to decide again.
    pub fn set_node(&mut self, node: &Node) -> Vec<String> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let facts = NodeIdentity::from(node);
        if self.view.node(name) == Some(&facts) {
            return Vec::new();
        }
        self.view.set_node_identity(name, facts);
        self.unsettled_by_node(name)
    }

    /// Removes a deleted Node. Returns the names of the requests to decide again.
    pub fn remove_node(&mut self, name: &str) -> Vec<String> {
        self.view.remove_node(name);
        self.unsettled_by_node(name)
    }

    /// Replaces the facts about the cluster. Returns the names of the requests to decide again.
    pub fn set_cluster(&mut self, facts: ClusterFacts) -> Vec<String> {
        if *self.view.cluster() == facts {
            return Vec::new();
        }
        self.view.set_cluster(facts);
        self.all_unsettled()
    }

    /// Names that several hosts claim, or that a host claims in vain; see [`View::disputes`].
    pub fn disputes(&self) -> Vec<Dispute> {
        self.view.disputes()
    }

    /// Replaces the list of instances and the facts about their hosts. Returns the names of the requests to decide
    /// again.
    pub fn set_entries(&mut self, entries: &Entries, facts: &Facts) -> Vec<String> {
        self.view.set_entries(entries, facts);
        self.all_unsettled()
    }

    /// Replaces the Machines. Returns the names of the requests to decide again.
    pub fn set_machines(
        &mut self,
        machines: impl IntoIterator<Item = MachineFacts>,
    ) -> Vec<String> {
        self.view.set_machines(machines);
        self.all_unsettled()
    }

    /// Decides about an open request; `None` if the request is no longer open or has another UID than the open
    /// request of its name.
    pub fn decide<'r>(
        &mut self,
        request: &Request<'r>,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Answer<'r>> {
        let open = self.open.get_mut(request.name)?;
        if open.uid.as_deref() != request.uid {
            return None;
        }
        let decision = decide(request, policy, &self.view, now);
        if open.blocked_by != decision.blocked_by {
            let name = request.name.to_owned();
            self.blocked.remove(&open.blocked_by, &name);
            self.blocked.add(&decision.blocked_by, &name);
            open.blocked_by.clone_from(&decision.blocked_by);
        }
        // Others could make the operator ask for any name.
        let is_asked = matches!(decision.rule(), None | Some(Rule::Belongs));
        let questions = if is_asked { decision.questions.clone() } else { Questions::default() };
        let has_questions = open.questions != questions;
        open.questions = questions;
        let (verdict, rule) = (decision.verdict().name(), decision.rule());
        let answered = Answered { verdict, rule, is_overdue: decision.is_overdue };
        let is_news = open.answered.replace(answered) != Some(answered);
        Some(Answer { decision, is_news, has_questions })
    }

    /// What the DNS has to answer for open requests that meet all other rules, up to 256 names and as many addresses.
    /// The answers are part of the facts of [`Self::set_entries`].
    pub fn questions(&self) -> Questions {
        let mut open: Vec<_> =
            self.open.iter().filter(|(_, open)| open.questions != Questions::default()).collect();
        open.sort_unstable_by_key(|(name, _)| *name);
        let mut all = Questions::default();
        for (_, open) in open {
            all.add(&open.questions, QUESTIONS);
        }
        all
    }

    /// Like [`Self::decide`], with a Node that was just read and that no watch has shown yet.
    pub fn decide_beside<'r>(
        &mut self,
        node: &Node,
        request: &Request<'r>,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<Answer<'r>> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let before = self.view.node(name).cloned();
        self.view.set_node(node);
        let answer = self.decide(request, policy, now);
        match before {
            Some(facts) => self.view.set_node_identity(name, facts),
            None => self.view.remove_node(name),
        }
        answer
    }

    /// Closes a decided or deleted request. Returns the names of the requests that it affected.
    fn close(&mut self, name: &str) -> Vec<String> {
        if let Some((name, open)) = self.open.remove_entry(name) {
            self.blocked.remove(&open.blocked_by, &name);
        }
        let Some(node) = self.view.node_of_request(name) else { return Vec::new() };
        let mut again = self.unsettled(node, Rule::depends_on_requests);
        again.retain(|other| other != name);
        again
    }

    /// Open requests for `node` that were answered by a rule that `by` accepts.
    fn unsettled(&self, node: &str, by: impl Fn(Rule) -> bool) -> Vec<String> {
        let requests = self.view.requests_of(node);
        requests.filter(|name| self.rule_of(name).is_some_and(&by)).map(str::to_owned).collect()
    }

    /// Open requests whose answer may change with a Node: those for the Node itself, and those that it blocks.
    fn unsettled_by_node(&self, node: &str) -> Vec<String> {
        let mut names = self.unsettled(node, Rule::depends_on_cluster);
        names.extend(self.blocked.holders(node).cloned());
        names
    }

    fn all_unsettled(&self) -> Vec<String> {
        let rule = |open: &Open| open.answered.and_then(|answered| answered.rule);
        let unsettled = |open: &Open| rule(open).is_some_and(Rule::depends_on_cluster);
        let open = self.open.iter().filter(|(_, open)| unsettled(open));
        open.map(|(name, _)| name.clone()).collect()
    }

    fn rule_of(&self, name: &str) -> Option<Rule> {
        self.open.get(name)?.answered?.rule
    }
}
