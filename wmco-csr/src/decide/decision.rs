//! The answer to one request: the verdict, and every check that led to it.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::approval::{Approval, Denial};
use crate::names;
use crate::rule::{Kind, Rule};
use crate::trace::{Check, Trace};

/// What is to be done about one request, and why. Borrows from the object of the request; what is
/// to be shown of its checks is put into words when somebody asks for them.
///
/// Serializes as [`Report`]; its `Display` is what `wmco-operator explain csr` prints.
#[derive(Debug)]
#[must_use = "a decision does nothing until an executor carries it out"]
pub struct Decision<'r> {
    pub(crate) name: &'r str,
    pub(crate) kind: Option<Kind>,
    pub(crate) verdict: Verdict<'r>,
    /// The rule that decided, unless all were kept.
    pub(crate) rule: Option<Rule>,
    /// The Node of somebody else that stands in the way, if one does.
    pub(crate) blocked_by: Option<String>,
    pub(crate) trace: Trace<'r>,
    /// The bytes of the request, as far as they could be decoded.
    pub(crate) der: Vec<u8>,
}

/// What is to be done about a request.
#[derive(Debug)]
pub enum Verdict<'r> {
    /// It kept every rule: write the condition that the proof holds.
    Approve(Approval<'r>),
    /// It is not ours, or nothing is left to decide: leave it alone.
    Ignore,
    /// It is ours and wrong. Write the Denied condition if the policy asked for one, otherwise
    /// leave it pending; either way say so with [`Decision::warning`]. A retry does not help.
    Refuse(Option<Denial<'r>>),
    /// What it depends on is not there yet. Look again on an event, at the latest at `deadline`.
    Wait {
        /// From then on the answer is another one.
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

/// What a decision looks like in JSON.
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

/// What a Warning Event about a request should say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The Event's reason.
    pub reason: &'static str,
    /// The Event's message.
    pub message: String,
    /// The Node that it should be told on as well as on the request.
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

    /// What is to be done.
    pub fn verdict(&self) -> &Verdict<'r> {
        &self.verdict
    }

    /// What is to be done, to be carried out.
    pub fn into_verdict(self) -> Verdict<'r> {
        self.verdict
    }

    /// The rule that decided; `None` when all were kept.
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

    /// What the check of `rule` looked at or found, if it was made: for `common-name` and
    /// `addresses` who the certificate is for.
    pub fn detail(&self, rule: Rule) -> Option<Cow<'_, str>> {
        self.checks().find(|check| check.rule == rule).map(|check| check.detail)
    }

    /// The Warning Event that people should see, for refused requests and for a Node that stands in
    /// the way of a new instance of its name (`spec/csr.md`, W-27).
    pub fn warning(&self) -> Option<Warning> {
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

    /// The decision as data.
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
