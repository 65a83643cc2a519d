//! Which requests are open, what was answered, and which answers may be others by now.
//!
//! A [`Docket`] follows requests and cluster from watch events. It holds one entry per undecided
//! request, reads the text of each request once, and says after each change which requests are to
//! be looked at again, so that whoever drives it does work for what changed and for nothing else.
//!
//! # Guarantees
//! - Pure: no clock, no I/O. What it holds depends on the requests in the cluster, not on how many
//!   there have been.
//! - An answer is news once: again only if another verdict or another rule decides.
//!
//! # Not here
//! Waiting for deadlines and writing verdicts: the caller's.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use wmco_core::facts::Facts;
use wmco_core::instances::Entries;

use crate::cluster::ClusterFacts;
use crate::decide::{Decision, decide};
use crate::policy::Policy;
use crate::request::Request;
use crate::rule::Rule;
use crate::view::{Dispute, Index, MachineFacts, NodeFacts, View};

/// Open requests and the cluster that they are judged by.
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
    /// Nodes that stand in the way of requests of others, and those requests.
    blocked: Index<String, String>,
}

/// An undecided request.
#[derive(Clone, Debug)]
struct Open {
    uid: Option<String>,
    answered: Option<Answered>,
    /// The Node of somebody else that stood in the way, if one did.
    blocked_by: Option<String>,
}

/// What was answered last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Answered {
    verdict: &'static str,
    rule: Option<Rule>,
}

/// A decision about an open request.
#[derive(Debug)]
pub struct Answer<'r> {
    /// The decision.
    pub decision: Decision<'r>,
    /// Whether it is another answer than the last one, worth to be counted and told.
    pub is_news: bool,
}

impl Docket {
    /// Nothing open, in a cluster without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many requests are open.
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

    /// A request was listed, made or changed. Returns the names to look at.
    pub fn see<'r>(&mut self, request: impl Into<Request<'r>>) -> Vec<String> {
        let request = request.into();
        let uid = request.uid.map(str::to_owned);
        if request.decided.is_some() {
            let again = self.close(request.name);
            // An approved one still speaks against older requests for the same.
            self.view.set_request(request);
            return again;
        }
        self.view.set_request(request);
        let known =
            self.open.get(request.name).is_some_and(|open| uid.is_some() && open.uid == uid);
        if !known {
            self.open
                .insert(request.name.to_owned(), Open { uid, answered: None, blocked_by: None });
        }
        vec![request.name.to_owned()]
    }

    /// A request is gone. Returns the names to look at again.
    pub fn forget(&mut self, name: &str) -> Vec<String> {
        let again = self.close(name);
        self.view.remove_request(name);
        again
    }

    /// All requests were listed: whatever is not among `names` is gone. Returns the names to look
    /// at again.
    pub fn retain(&mut self, names: &HashSet<String>) -> Vec<String> {
        let known = self.open.keys().map(String::as_str).chain(self.view.requests());
        let gone: HashSet<String> =
            known.filter(|name| !names.contains(*name)).map(str::to_owned).collect();
        let again: Vec<String> = gone.iter().flat_map(|name| self.forget(name)).collect();
        again.into_iter().filter(|name| names.contains(name)).collect()
    }

    /// A Node was listed, made or changed. Returns the names to look at again.
    pub fn set_node(&mut self, node: &Node) -> Vec<String> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let facts = NodeFacts::from(node);
        if self.view.node(name) == Some(&facts) {
            return Vec::new();
        }
        self.view.set_node_facts(name, facts);
        self.unsettled_by_node(name)
    }

    /// A Node is gone. Returns the names to look at again.
    pub fn remove_node(&mut self, name: &str) -> Vec<String> {
        self.view.remove_node(name);
        self.unsettled_by_node(name)
    }

    /// What the cluster says of itself changed. Returns the names to look at again.
    pub fn set_cluster(&mut self, facts: ClusterFacts) -> Vec<String> {
        if *self.view.cluster() == facts {
            return Vec::new();
        }
        self.view.set_cluster(facts);
        self.all_unsettled()
    }

    /// Names that are claimed by hosts that they do not belong to, see [`View::disputes`].
    pub fn disputes(&self) -> Vec<Dispute> {
        self.view.disputes()
    }

    /// The list of instances, or what is known of them, changed. Returns the names to look at
    /// again.
    pub fn set_entries(&mut self, entries: &Entries, facts: &Facts) -> Vec<String> {
        self.view.set_entries(entries, facts);
        self.all_unsettled()
    }

    /// The Machines changed. Returns the names to look at again.
    pub fn set_machines(
        &mut self,
        machines: impl IntoIterator<Item = MachineFacts>,
    ) -> Vec<String> {
        self.view.set_machines(machines);
        self.all_unsettled()
    }

    /// Decides about an open request; `None` if it is not open any more, or is a namesake of the
    /// one that is.
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
        let answered = Answered { verdict: decision.verdict().name(), rule: decision.rule() };
        let is_news = open.answered.replace(answered) != Some(answered);
        Some(Answer { decision, is_news })
    }

    /// As [`Self::decide`], beside a Node that was just read and that no watch has shown.
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
            Some(facts) => self.view.set_node_facts(name, facts),
            None => self.view.remove_node(name),
        }
        answer
    }

    /// Nothing is left to decide about a request. Returns the names that it stood in the way of.
    fn close(&mut self, name: &str) -> Vec<String> {
        if let Some((name, open)) = self.open.remove_entry(name) {
            self.blocked.remove(&open.blocked_by, &name);
        }
        let Some(node) = self.view.node_of_request(name) else { return Vec::new() };
        let mut again = self.unsettled(node, Rule::depends_on_requests);
        again.retain(|other| other != name);
        again
    }

    /// Open requests for `node` that were answered by such a rule.
    fn unsettled(&self, node: &str, by: impl Fn(Rule) -> bool) -> Vec<String> {
        let requests = self.view.requests_of(node);
        requests.filter(|name| self.rule_of(name).is_some_and(&by)).map(str::to_owned).collect()
    }

    /// Open requests whose answer a change of a Node may change: those for the Node itself, and those
    /// that it stands in the way of.
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
