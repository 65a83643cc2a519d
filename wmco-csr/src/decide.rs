//! Decides about one request.
//!
//! [`decide`] checks a request against every [`Rule`] and returns the verdict with all checks.
//!
//! # Guarantees
//! - Pure: no clock, no I/O, no randomness. Equal arguments give equal decisions.
//! - Safe: approves only if every rule is kept, and nothing else can make an [`Approval`].
//! - Cheap first: a request that is wrong or not ours never costs a signature verification, and the
//!   cost does not depend on the size of the cluster.
//!
//! # Not here
//! Reading and writing objects, Events and metrics. The caller does that, with [`Decision::warning`].

mod advice;
mod approval;
mod belongs;
mod content;
mod decision;
mod ownership;
mod placement;

use jiff::Timestamp;

use crate::names;
use crate::pem;
use crate::pkcs10::CertificationRequest;
use crate::policy::Policy;
use crate::request::Request;
use crate::rule::{Kind, Outcome, Rule};
use crate::trace::Detail::{self, Fixed};
use crate::trace::{Foreign, Trace};
use crate::view::{Newer, View};

pub use approval::{Approval, Denial};
pub use decision::{Decision, Questions, Report, Verdict, Warning};

/// Decides about `request`. Checks the rules in their order; the first broken rule decides. The cheap rules after
/// it are checked as well, so that a refusal names all faults.
///
/// Source: `docs/contract/certificate-requests.md`, CSR10 to CSR40.
pub fn decide<'r>(
    request: &Request<'r>,
    policy: &Policy,
    view: &View,
    now: Timestamp,
) -> Decision<'r> {
    let mut exam = Exam {
        request,
        policy,
        view,
        now,
        trace: Trace::new(),
        kind: None,
        worst: None,
        blocked_by: None,
        remedy: None,
        is_open: false,
        questions: Questions::default(),
    };
    let mut der = Vec::new();
    let end = exam.run(&mut der);
    let waits = match end {
        Err(End::Wait(_, deadline)) => Some(deadline),
        Ok(_) | Err(End::Ignore(_) | End::Refuse(_)) => None,
    };
    let (verdict, rule) = match end {
        Ok((kind, node)) => (Verdict::Approve(Approval::new(request, kind, node)), None),
        Err(End::Ignore(rule)) => (Verdict::Ignore, Some(rule)),
        Err(End::Refuse(rule)) => {
            // May become valid later: the name is still disputed, or the Machine API or the DNS is slow.
            let in_doubt = matches!(rule, Rule::Instance | Rule::MachineNode)
                || (rule == Rule::Belongs && exam.is_open);
            let denies = policy.deny && !in_doubt;
            let denial = denies.then(|| Denial::new(request, rule));
            (Verdict::Refuse(denial), Some(rule))
        }
        Err(End::Wait(rule, deadline)) => (Verdict::Wait { deadline }, Some(rule)),
    };
    // A wait is told when it has lasted for long, and ends at its deadline.
    let patient = after(request.created, policy.limits.wait_patience).filter(|until| now < *until);
    let again = waits.map(|deadline| patient.map_or(deadline, |until| until.min(deadline)));
    let remedy = exam.remedy.filter(|(of, _)| Some(*of) == rule).map(|(_, remedy)| remedy);
    let blocked_by = exam.blocked_by.map(str::to_owned);
    let questions = exam.questions;
    Decision {
        name: request.name,
        kind: exam.kind,
        verdict,
        rule,
        blocked_by,
        remedy,
        again,
        is_overdue: waits.is_some() && patient.is_none(),
        questions,
        trace: exam.trace,
        der,
    }
}

/// Why a request is not approved.
#[derive(Clone, Copy, Debug)]
enum End {
    Ignore(Rule),
    Refuse(Rule),
    Wait(Rule, Timestamp),
}

/// A request under examination.
struct Exam<'e, 'r> {
    request: &'e Request<'r>,
    policy: &'e Policy,
    view: &'e View,
    now: Timestamp,
    trace: Trace<'r>,
    kind: Option<Kind>,
    /// The worst finding so far: the first broken rule, else the first rule to wait for.
    worst: Option<End>,
    /// The Node of another host that blocks the request.
    blocked_by: Option<&'e str>,
    /// The next step for a person about a rule, where the rule alone does not tell.
    remedy: Option<(Rule, &'static str)>,
    /// Whether an answer of the DNS could still prove the name that is refused.
    is_open: bool,
    /// What the DNS has to answer for this decision.
    questions: Questions,
}

/// The content of a request, once its form is known to be valid.
#[derive(Clone, Copy)]
struct Asked<'p> {
    kind: Kind,
    /// The bytes that were parsed.
    der: &'p [u8],
    parsed: &'p CertificationRequest<'p>,
    common_name: &'p str,
    node: &'p str,
}

impl Exam<'_, '_> {
    /// Makes all checks; sets `der` to the DER bytes of the request.
    fn run(&mut self, der: &mut Vec<u8>) -> Result<(Kind, String), End> {
        let kind = self.kind()?;
        *der = self.der(kind)?;
        let parsed = self.parsed(kind, der)?;
        let asked = self.asked(kind, der, &parsed)?;
        let owned = self.owned(&asked)?;
        self.content(&asked);
        self.placement(&asked, owned);
        let unspoiled = self.worst.map_or_else(|| self.limits(&asked), Err);
        if let Err(end) = unspoiled {
            self.trace.skip(Rule::Signature);
            return Err(end);
        }
        match parsed.verify() {
            Ok(()) => self.trace.pass(Rule::Signature, Fixed("made by the requested key")),
            Err(error) => return Err(self.refuse(Rule::Signature, format_args!("{error}"))),
        }
        Ok((kind, asked.node.to_owned()))
    }

    /// Checks the object itself, without `spec.request`.
    fn kind(&mut self) -> Result<Kind, End> {
        if let Some(decided) = self.request.decided {
            return Err(self.ignore(Rule::Undecided, format_args!("{decided} already")));
        }
        self.trace.pass(Rule::Undecided, Fixed("pending"));
        let signer = self.request.signer;
        let Some(kind) = Kind::from_signer(signer) else {
            let detail = format_args!("{} is none of ours", Foreign(signer));
            return Err(self.ignore(Rule::Signer, detail));
        };
        self.kind = Some(kind);
        self.trace.pass(Rule::Signer, Fixed(kind.signer()));
        Ok(kind)
    }

    fn der(&mut self, kind: Kind) -> Result<Vec<u8>, End> {
        let (bytes, most) = (self.request.pem.len(), self.policy.limits.request_bytes);
        if bytes > most {
            let detail = format_args!("{bytes} bytes are more than {most}");
            return Err(self.malformed(kind, Rule::Size, detail));
        }
        self.trace.pass(Rule::Size, Detail::Bytes(bytes));
        match pem::decode(self.request.pem) {
            Ok(der) => {
                self.trace.pass(Rule::Pem, Fixed("one block"));
                Ok(der)
            }
            Err(error) => Err(self.malformed(kind, Rule::Pem, format_args!("{error}"))),
        }
    }

    fn parsed<'d>(&mut self, kind: Kind, der: &'d [u8]) -> Result<CertificationRequest<'d>, End> {
        match CertificationRequest::parse(der) {
            Ok(parsed) => {
                self.trace.pass(Rule::Pkcs10, Fixed("canonical"));
                Ok(parsed)
            }
            Err(error) => Err(self.malformed(kind, Rule::Pkcs10, format_args!("{error}"))),
        }
    }

    /// Refuses an unreadable request. Ignores it if it came through the signer that WICD shares with all clients
    /// and the requester is not WICD: then its owner is unknown.
    fn malformed(&mut self, kind: Kind, rule: Rule, detail: std::fmt::Arguments<'_>) -> End {
        let username = self.request.username;
        let ours = match kind {
            Kind::KubeletClient | Kind::KubeletServing => true,
            Kind::Wicd => {
                username == self.policy.wicd || username.starts_with(names::WICD_USER_PREFIX)
            }
        };
        if ours { self.refuse(rule, detail) } else { self.ignore(rule, detail) }
    }

    /// Checks the limits: newer requests of the same node come first.
    fn limits(&mut self, asked: &Asked<'_>) -> Result<(), End> {
        let most = self.policy.limits.pending_per_node;
        let (request, key_info) = (self.request, asked.parsed.key_info());
        match self.view.pending.newer(request, asked.kind, asked.node, key_info, most) {
            Newer::Same(other) => {
                let detail = format_args!("{} is newer and asks for the same", Foreign(other));
                return Err(self.ignore(Rule::Duplicate, detail));
            }
            Newer::Others(count) => {
                self.trace.pass(Rule::Duplicate, Fixed("none is newer"));
                if count >= most {
                    let detail = format_args!("{most} or more newer requests are pending");
                    return Err(self.refuse(Rule::PendingLimit, detail));
                }
                let detail = if count == 0 { "none is newer" } else { "few are newer" };
                self.trace.pass(Rule::PendingLimit, Fixed(detail));
            }
        }
        Ok(())
    }

    /// Records a broken rule that ends the checks: the request is not ours.
    fn ignore(&mut self, rule: Rule, detail: std::fmt::Arguments<'_>) -> End {
        self.trace.add(rule, Outcome::Fail, detail);
        End::Ignore(rule)
    }

    /// Records a broken rule that ends the checks: the request is ours and wrong.
    fn refuse(&mut self, rule: Rule, detail: std::fmt::Arguments<'_>) -> End {
        self.trace.add(rule, Outcome::Fail, detail);
        End::Refuse(rule)
    }

    /// Records a broken rule and continues.
    fn fail(&mut self, rule: Rule, detail: std::fmt::Arguments<'_>) {
        let end = self.refuse(rule, detail);
        if !matches!(self.worst, Some(End::Refuse(_))) {
            self.worst = Some(end);
        }
    }

    /// Records a rule that is not kept yet and continues. From the deadline on, the rule counts as broken.
    fn fail_after(
        &mut self,
        deadline: Option<Timestamp>,
        rule: Rule,
        detail: std::fmt::Arguments<'_>,
    ) {
        let Some(deadline) = deadline.filter(|deadline| self.now < *deadline) else {
            return self.fail(rule, detail);
        };
        self.trace.add(rule, Outcome::Pending, detail);
        self.worst.get_or_insert(End::Wait(rule, deadline));
    }
}

/// The time `period` after `start`.
fn after(start: Option<Timestamp>, period: jiff::SignedDuration) -> Option<Timestamp> {
    start?.checked_add(period).ok()
}
