//! The answer to one request: the verdict, and every check that led to it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::approval::{Approval, Denial};
use crate::names;
use crate::rule::{Kind, Rule};
use crate::trace::{Check, Trace};

/// Names and addresses that only the DNS may tie to the host of a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Questions {
    /// Names to resolve, in lower case without a last dot.
    pub names: BTreeSet<String>,
    /// Addresses to look up in reverse DNS.
    pub addresses: BTreeSet<IpAddr>,
}

impl Questions {
    /// Adds those of `other`, up to `most` names and as many addresses.
    pub(crate) fn add(&mut self, other: &Self, most: usize) {
        let room = most.saturating_sub(self.names.len());
        self.names.extend(other.names.iter().take(room).cloned());
        let room = most.saturating_sub(self.addresses.len());
        self.addresses.extend(other.addresses.iter().take(room).copied());
    }
}

/// The verdict about a request, with all its checks. Borrows from the request's object; details of the checks are
/// formatted only when they are read.
///
/// Serializes as [`Report`]; `wmco-operator explain csr` prints its `Display` output.
#[derive(Debug)]
#[must_use = "a decision does nothing until an executor carries it out"]
pub struct Decision<'r> {
    pub(crate) name: &'r str,
    pub(crate) kind: Option<Kind>,
    pub(crate) verdict: Verdict<'r>,
    /// The rule that decided; `None` if all rules were kept.
    pub(crate) rule: Option<Rule>,
    /// The Node of another host that blocks the request.
    pub(crate) blocked_by: Option<String>,
    /// The next step for a person, where the rule alone does not tell.
    pub(crate) remedy: Option<&'static str>,
    /// While it waits: when to look again at the latest.
    pub(crate) again: Option<Timestamp>,
    /// Whether it has waited for so long that people are told.
    pub(crate) is_overdue: bool,
    /// What the DNS has to answer for this decision.
    pub(crate) questions: Questions,
    pub(crate) trace: Trace<'r>,
    /// The DER bytes of the request, as far as they could be decoded.
    pub(crate) der: Vec<u8>,
}

/// The verdict about a request.
#[derive(Debug)]
pub enum Verdict<'r> {
    /// Every rule is kept: write the condition that the proof holds.
    Approve(Approval<'r>),
    /// The request is not ours or already decided: leave it alone.
    Ignore,
    /// The request is ours and wrong. Write the Denied condition if there is one, otherwise leave the request
    /// pending. Either way report it with [`Decision::warning`]. A retry does not help.
    Refuse(Option<Denial<'r>>),
    /// An object that the request depends on does not exist yet. Decide again on an event, at the latest at
    /// `deadline`.
    Wait {
        /// From this time on the verdict is another one.
        deadline: Timestamp,
    },
}

impl Verdict<'_> {
    /// The short stable name, as in JSON and metric labels.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Approve(_) => "approve",
            Self::Ignore => "ignore",
            Self::Refuse(_) => "refuse",
            Self::Wait { .. } => "wait",
        }
    }
}

/// A decision in JSON.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(rename = "Decision")]
pub struct Report<'a> {
    /// The name of the request.
    pub name: &'a str,
    /// The kind of the request; null when its signer is none of ours.
    pub kind: Option<Kind>,
    /// `approve`, `ignore`, `refuse` or `wait`.
    #[schemars(extend("enum" = ["approve", "ignore", "refuse", "wait"]))]
    pub verdict: &'static str,
    /// The rule that decided and what it found, in one line.
    pub reason: String,
    /// With `wait`: when to look again at the latest (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Every check, in the order in which they were made.
    pub checks: Vec<Check<'a>>,
}

/// A Warning Event about a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The Event's reason.
    pub reason: &'static str,
    /// The Event's message.
    pub message: String,
    /// The Node that gets the Event as well as the request.
    pub node: Option<String>,
}

impl<'r> Decision<'r> {
    /// The name of the request.
    pub fn name(&self) -> &'r str {
        self.name
    }

    /// The kind of the request, if its signer is one of ours.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The verdict.
    pub fn verdict(&self) -> &Verdict<'r> {
        &self.verdict
    }

    /// While it waits: when to decide again at the latest, to tell people of the wait or because it ends.
    pub fn again(&self) -> Option<Timestamp> {
        self.again
    }

    /// Converts the decision into its verdict, to carry it out.
    pub fn into_verdict(self) -> Verdict<'r> {
        self.verdict
    }

    /// The rule that decided; `None` if all rules were kept.
    pub fn rule(&self) -> Option<Rule> {
        self.rule
    }

    /// Every check, in the order in which they were made.
    pub fn checks(&self) -> impl Iterator<Item = Check<'_>> {
        self.trace.checks(&self.der)
    }

    /// The rule that decided and what it found, in one line.
    pub fn reason(&self) -> String {
        let Some(rule) = self.rule else { return "every check passed".to_owned() };
        format!("{rule}: {}", self.detail(rule).unwrap_or_default())
    }

    /// The detail of the check of `rule`, if it was made. For `common-name` and `addresses` it says who the
    /// certificate is for.
    pub fn detail(&self, rule: Rule) -> Option<Cow<'_, str>> {
        self.checks().find(|check| check.rule == rule).map(|check| check.detail)
    }

    /// The Warning Event for a refused request, for a Node that blocks a new instance of its name
    /// (`docs/contract/certificate-requests.md`, CSR46), and for a wait that lasts (CSR9).
    pub fn warning(&self) -> Option<Warning> {
        if let (Verdict::Wait { deadline }, true) = (&self.verdict, self.is_overdue) {
            let (reason, advice) = (self.reason(), self.advice());
            let message = format!("{reason}; it waits until {deadline}: {advice}");
            return Some(Warning { reason: names::events::CERTIFICATE_WAITS, message, node: None });
        }
        let reason = match (&self.verdict, self.rule) {
            (Verdict::Refuse(_), Some(Rule::NodeName)) => names::events::NODE_NAME,
            (Verdict::Refuse(_), _) => names::events::CERTIFICATE_REFUSED,
            (Verdict::Ignore, Some(Rule::NodeAbsent)) => names::events::CERTIFICATE_NODE_EXISTS,
            (Verdict::Approve(_) | Verdict::Ignore | Verdict::Wait { .. }, _) => return None,
        };
        let in_the_way = self.rule == Some(Rule::NodeAbsent);
        let node = in_the_way.then(|| self.detail(Rule::NodeName)).flatten();
        Some(Warning { reason, message: self.reason(), node: node.map(Cow::into_owned) })
    }

    /// The decision as data for JSON.
    pub fn report(&self) -> Report<'_> {
        Report {
            name: self.name,
            kind: self.kind,
            verdict: self.verdict.name(),
            reason: self.reason(),
            deadline: match &self.verdict {
                Verdict::Wait { deadline } => Some(deadline.to_string()),
                Verdict::Approve(_) | Verdict::Ignore | Verdict::Refuse(_) => None,
            },
            checks: self.checks().collect(),
        }
    }
}

impl Serialize for Decision<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.report().serialize(serializer)
    }
}

impl JsonSchema for Decision<'_> {
    fn schema_name() -> Cow<'static, str> {
        Report::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Report::json_schema(generator)
    }
}
