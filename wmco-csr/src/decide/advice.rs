//! A decision as readable text, with advice about the next step.

use std::fmt;

use super::decision::{Decision, Verdict};
use crate::rule::{Kind, Rule};
use crate::trace::Check;

impl Decision<'_> {
    /// The next step for an administrator, in one line.
    pub fn advice(&self) -> &'static str {
        if let Some(remedy) = self.remedy {
            return remedy;
        }
        match (&self.verdict, self.rule) {
            (Verdict::Approve(_), _) | (_, None) => "nothing, the operator approves it",
            (Verdict::Ignore, Some(rule)) => ignored(rule),
            (Verdict::Refuse(_), Some(rule)) => refused(rule, self.kind),
            (Verdict::Wait { .. }, Some(rule)) => awaited(rule),
        }
    }
}

impl fmt::Display for Decision<'_> {
    /// A block of text: the verdict, the reason, the advice, and a line for each check. An arrow marks the check
    /// that decided.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(kind) = self.kind {
            write!(f, " ({kind})")?;
        }
        write!(f, ": {}", self.verdict.name())?;
        if let Verdict::Wait { deadline } = &self.verdict {
            write!(f, " until {deadline}")?;
        }
        write!(f, "\n  because  {}\n  to do    {}\n", self.reason(), self.advice())?;
        for Check { rule, outcome, detail } in self.checks() {
            let arrow = if Some(rule) == self.rule { "->" } else { "" };
            write!(f, "\n  {arrow:<2} {outcome:<7}  {rule:<13}")?;
            if !detail.is_empty() {
                f.write_str("  ")?;
                f.write_str(&detail)?;
            }
        }
        Ok(())
    }
}

/// Advice for an ignored request: who is in charge, or what would make it ours.
fn ignored(rule: Rule) -> &'static str {
    match rule {
        Rule::Undecided => "nothing, it is over",
        Rule::Duplicate => "nothing, the newer request is the one that counts",
        Rule::Renewal => "nothing, the cluster approves renewals of client certificates itself",
        Rule::Machine => {
            "leave it to cluster-machine-approver if the Machine does not run Windows, else see what the \
             Machine lacks, or whether it is to be left alone; or remove the entry of the host from windows-instances"
        }
        Rule::MachineNode => {
            "delete the Node of the Machine if the host was reinstalled, else find out why its host \
             asks for another name"
        }
        Rule::NodeOs => "approve or deny it by hand, nodes that do not run Windows are not ours",
        Rule::NodeAbsent => {
            "delete the Node if the host was reinstalled, else find out why a node \
             asks for its first certificate again"
        }
        Rule::Instance => {
            "list the host in windows-instances by this name if it is to be a node, or write the name in \
             `names=` of its entry, or compare its host name with the node name"
        }
        _ => "approve or deny it by hand, or leave it to its own approver",
    }
}

/// Advice for a refused request: how a new request has to differ.
fn refused(rule: Rule, kind: Option<Kind>) -> &'static str {
    match (rule, kind) {
        (Rule::Size | Rule::Pem | Rule::Pkcs10, _) => {
            "encode the request again, as one PEM block \
             of a PKCS#10 request in DER"
        }
        (Rule::Subject | Rule::CommonName | Rule::Organization, _) => {
            "make a new request whose \
             subject is one common name and the one organization of its kind"
        }
        (Rule::NodeName, _) => "give the host a lower-case name of letters, digits and hyphens",
        (Rule::Instance, _) => {
            "give each host a name of its own, and list a host by its DNS name to say whose it is"
        }
        (Rule::Requester | Rule::Groups, Some(Kind::KubeletClient)) => {
            "ask with the token of the \
             node bootstrapper, and find out who asked"
        }
        (Rule::Requester | Rule::Groups, Some(Kind::KubeletServing)) => {
            "ask with the node's own \
             client certificate, and find out who asked"
        }
        (Rule::Requester | Rule::Groups | Rule::TokenNode, _) => {
            "ask with the daemon's service \
             account or the node's own WICD certificate, and find out who asked"
        }
        (Rule::Usages, _) => "ask for exactly the usages of this kind of certificate",
        (Rule::NameKinds, Some(Kind::KubeletServing)) => {
            "ask for host names and addresses of the \
             node, at least one, and for nothing else"
        }
        (Rule::NameKinds | Rule::Extensions, _) => "make a new request without these extensions",
        (Rule::Lifetime, Some(Kind::Wicd)) => {
            "ask for a lifetime within the bounds, as the daemon does, and find out who asked"
        }
        (Rule::Lifetime, _) => "ask for a lifetime within the bounds, or for none",
        (Rule::Key | Rule::Algorithm, _) => {
            "make a new key: P-256, P-384, Ed25519 or RSA with 2048 \
             bits or more, signing with SHA-256 or better"
        }
        (Rule::Node, _) => "find out why the host is no Node; its next request will be looked at",
        (Rule::MachineNode, _) => {
            "compare the Node with status.nodeRef of the Machine, and find out who asked"
        }
        (Rule::NodeOs, _) => "find out who asked, the daemon runs on Windows nodes only",
        (Rule::NodeAddress, _) => {
            "compare the addresses of the Node with the entry of the host in \
             windows-instances"
        }
        (Rule::Addresses, _) => {
            "compare the names in the request with the addresses of the Node, \
             and find out who asked"
        }
        (Rule::Belongs, _) => {
            "remove the name from the other host that has it, or write what is the host's own in `names=` \
             of its entry in windows-instances, or find out why the node claims what is not its own"
        }
        (Rule::PendingLimit, _) => {
            "delete old pending requests of the node, and find out why it \
             asks so often"
        }
        (Rule::Signature, _) => "make a new request, signed by its own key",
        (
            Rule::Duplicate
            | Rule::Machine
            | Rule::NodeAbsent
            | Rule::Renewal
            | Rule::Signer
            | Rule::Undecided,
            _,
        ) => "make a new request",
    }
}

/// Advice for a waiting request: what has to happen first.
fn awaited(rule: Rule) -> &'static str {
    match rule {
        Rule::Instance => {
            "wait until the operator has asked each host for its name, or see why it \
             cannot reach one"
        }
        Rule::MachineNode => {
            "wait until the Machine API has found the Node of the Machine, or see why it does not"
        }
        Rule::Node => "wait for the Node, or see why the kubelet does not register it",
        Rule::Belongs => {
            "wait until the operator has asked the host and the DNS, or see why it cannot reach them, or write \
             what is the host's own in `names=` of its entry"
        }
        _ => "wait until the Node shows its addresses",
    }
}
