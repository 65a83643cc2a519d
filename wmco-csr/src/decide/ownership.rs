//! Finds the owner of a request. A broken rule here ends the checks, because later rules would make no sense.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use wmco_core::names::OS_WINDOWS;

use super::{Asked, End, Exam, after};
use crate::pkcs10::{Attribute, CertificationRequest};
use crate::rule::{Kind, Outcome, Rule};
use crate::trace::Detail::{self, Fixed};
use crate::trace::{Foreign, ForeignList, Place};
use crate::view::{Found, Instance, MachineFacts, NodeIdentity, Source};

/// Why further names of an entry do not count yet.
pub(super) const NOT_MET: &str = "the operator has not been on the host to which the DNS leads its entry, so `names=` of \
                                  the entry does not count yet";

/// The Node and the instance of a request that is known to be ours.
#[derive(Clone, Copy)]
pub(super) struct Owned<'e> {
    /// The Node, if it exists.
    pub(super) node: Option<&'e NodeIdentity>,
    /// The instance, for kubelets.
    pub(super) instance: Option<&'e Instance>,
}

impl<'e> Exam<'e, '_> {
    /// Reads the node name from the request.
    pub(super) fn asked<'p>(
        &mut self,
        kind: Kind,
        der: &'p [u8],
        parsed: &'p CertificationRequest<'p>,
    ) -> Result<Asked<'p>, End> {
        let prefix = kind.prefix();
        let common_names = || {
            parsed.subject().attributes().filter_map(|attribute| match attribute {
                Attribute::CommonName(name) => Some(name),
                Attribute::Organization(_) | Attribute::Other(_) => None,
            })
        };
        let node_of = |name: &'p str| name.strip_prefix(prefix).filter(|node| !node.is_empty());
        let only = parsed.subject().common_name();
        let Some((common_name, node)) = only.and_then(|name| Some((name, node_of(name)?))) else {
            let ours = common_names().any(|name| node_of(name).is_some());
            let names = ForeignList(common_names().collect::<Vec<_>>());
            return Err(if ours {
                self.refuse(Rule::Subject, format_args!("common names {names}, not one"))
            } else {
                self.ignore(Rule::CommonName, format_args!("{names} is not {prefix}<node>"))
            });
        };
        if !is_subdomain(node) {
            let detail = format_args!(
                "node name {} does not comply with naming rules defined in RFC1123: \
                 Requirements for internet hosts",
                Foreign(node)
            );
            return Err(self.refuse(Rule::NodeName, detail));
        }
        let stands = |part: &str| Detail::Stands(Place::of(part.as_bytes(), der));
        self.trace.pass(Rule::CommonName, stands(common_name));
        self.trace.pass(Rule::NodeName, stands(node));
        Ok(Asked { kind, der, parsed, common_name, node })
    }

    /// Checks that this operator is in charge of the node.
    pub(super) fn owned(&mut self, asked: &Asked<'_>) -> Result<Owned<'e>, End> {
        let node = self.view.node(asked.node);
        let instance = match asked.kind {
            Kind::Wicd => None,
            Kind::KubeletClient | Kind::KubeletServing => Some(self.instance(asked, node)?),
        };
        Ok(Owned { node, instance })
    }

    fn instance(
        &mut self,
        asked: &Asked<'_>,
        node: Option<&NodeIdentity>,
    ) -> Result<&'e Instance, End> {
        // A request for an existing Node is about the host that the Node runs on.
        let runs = node.filter(|_| asked.kind == Kind::KubeletServing);
        let found = self.view.find(asked.node, runs);
        self.not_of_another_machine(asked, &found)?;
        if asked.kind == Kind::KubeletClient {
            if self.request.username == asked.common_name {
                let detail = format_args!("left to the cluster's own approver of renewals");
                return Err(self.ignore(Rule::Renewal, detail));
            }
            self.trace.pass(Rule::Renewal, Fixed("no"));
        }
        if let Some(facts) = node {
            match facts.os.as_deref() {
                Some(OS_WINDOWS) => self.trace.pass(Rule::NodeOs, Fixed(OS_WINDOWS)),
                Some(os) => return Err(self.ignore(Rule::NodeOs, format_args!("{}", Foreign(os)))),
                None => return Err(self.ignore(Rule::NodeOs, format_args!("not known"))),
            }
        }
        let (instance, source) = match found {
            Found::One(instance, source) => (instance, source),
            Found::Disputed(conflict) => {
                self.blocked_by = conflict.against().node();
                self.remedy = Some((Rule::Instance, conflict.advice()));
                let detail = format_args!("{}", conflict.of(asked.node));
                return Err(self.refuse(Rule::Instance, detail));
            }
            Found::None { unnamed } => return Err(self.no_instance(asked, unnamed)),
        };
        if source == Source::Names && !instance.is_met() {
            let deadline = after(self.request.created, self.policy.limits.name_wait);
            let detail = format_args!("{}: {NOT_MET}", instance.title());
            return Err(match deadline.filter(|deadline| self.now < *deadline) {
                Some(deadline) => {
                    self.trace.add(Rule::Instance, Outcome::Pending, detail);
                    End::Wait(Rule::Instance, deadline)
                }
                None => self.refuse(Rule::Instance, detail),
            });
        }
        self.trace.pass_all(Rule::Instance, [&*instance.title(), source.how()]);
        if asked.kind == Kind::KubeletClient {
            if node.is_some() {
                let detail = format_args!("node {} exists, delete it if it is stale", asked.node);
                return Err(self.ignore(Rule::NodeAbsent, detail));
            }
            self.trace.pass(Rule::NodeAbsent, Fixed("no such node"));
            self.machine_has_no_node(instance)?;
            // With each further name, who has the bootstrap token could make one more Node of a host.
            let other = self.view.other_node_at(instance, asked.node);
            if let (Source::Names, Some(other)) = (source, other) {
                let detail = format_args!(
                    "the host of {} has node {} already, delete it if it is stale",
                    instance.title(),
                    Foreign(other)
                );
                return Err(self.ignore(Rule::NodeAbsent, detail));
            }
        }
        Ok(instance)
    }

    /// Checks that the Machine has no Node yet. A Machine has one Node; while it exists, its host already has a
    /// client certificate.
    fn machine_has_no_node(&mut self, instance: &'e Instance) -> Result<(), End> {
        let Some(machine) = &instance.machine else { return Ok(()) };
        if let Some(node) = machine.node.as_ref().and_then(|node| self.view.referred(node)) {
            self.blocked_by = Some(node);
            let detail = format_args!("{} has node {node} already", machine.title());
            return Err(self.ignore(Rule::MachineNode, detail));
        }
        self.trace.pass(Rule::MachineNode, Fixed("the Machine has none"));
        Ok(())
    }

    /// Checks that no other Machine has the name or the address. Kubelets of Machines without Windows are left to
    /// cluster-machine-approver; those of Windows Machines wait until the Machine has a host.
    /// Source: `docs/contract/certificate-requests.md`, CSR18 and CSR47.
    fn not_of_another_machine(&mut self, asked: &Asked<'_>, found: &Found<'_>) -> Result<(), End> {
        let (view, left) = (self.view, self.policy.machine_approver);
        let instance = match found {
            Found::One(instance, _) => Some(*instance),
            Found::Disputed(_) | Found::None { .. } => None,
        };
        let of_machine = instance.and_then(|instance| instance.machine.as_ref());
        // While the owner of the name is undecided, hosts of Machines are candidates too.
        let is_open = matches!(found, Found::Disputed(_) | Found::None { unnamed: 1.. });
        let keeps_name = |machine: &&Arc<MachineFacts>| match (&machine.host, instance) {
            (None, Some(instance)) if view.yields(machine, asked.node, instance) => false,
            (None, _) => left || of_machine.is_some(),
            (Some(Ok(_)), _) if is_open => false,
            (Some(_), None) => true,
            (Some(_), Some(instance)) => view.keeps(machine, asked.node, instance),
        };
        // An entry with this address means the Machine's host, so an administrator has to choose between them.
        let keeps_address = |machine: &&Arc<MachineFacts>| match (&machine.host, of_machine) {
            (None, own) => left || own.is_some(),
            (Some(_), Some(own)) => !Arc::ptr_eq(own, machine),
            (Some(_), None) => !machine.is_ignored(),
        };
        if let Some(machine) = view.machines.with_name(asked.node).find(keeps_name) {
            let detail = Having { machine, kind: "name", what: &asked.node };
            return Err(self.ignore(Rule::Machine, format_args!("{detail}")));
        }
        if let Some(Instance { ipv4: Some(ipv4), .. }) = instance {
            let address = IpAddr::V4(*ipv4);
            if let Some(machine) = view.machines.with_address(address).find(keeps_address) {
                let detail = Having { machine, kind: "address", what: &address };
                return Err(self.ignore(Rule::Machine, format_args!("{detail}")));
            }
            if let Some(entry) = of_machine.and_then(|_| view.listed_by(address)) {
                let detail = format_args!("the host is listed as {}, too", entry.title());
                return Err(self.ignore(Rule::Machine, detail));
            }
        }
        let none = if of_machine.is_some() { "no other" } else { "none" };
        self.trace.pass(Rule::Machine, Fixed(none));
        Ok(())
    }

    /// Answers for a name that no known instance has; an instance without a known host name may still have it.
    fn no_instance(&mut self, asked: &Asked<'_>, unnamed: usize) -> End {
        let node = asked.node;
        let deadline = after(self.request.created, self.policy.limits.name_wait);
        if let Some(deadline) = deadline.filter(|deadline| unnamed > 0 && self.now < *deadline) {
            let detail = format_args!("{unnamed} instances have no known host name yet");
            self.trace.add(Rule::Instance, Outcome::Pending, detail);
            return End::Wait(Rule::Instance, deadline);
        }
        if let Some(what) = self.view.cluster.reserves_name(node) {
            self.remedy =
                Some((Rule::Instance, "give the host another name, no host may have this one"));
            let detail = format_args!("no instance has the name {node}, which is {what}");
            return self.ignore(Rule::Instance, detail);
        }
        if let Some((_, instance)) = self.view.instances.claims(node).next() {
            self.remedy = Some((
                Rule::Instance,
                "write this very name in `names=` of the entry, or see why the host asks for it: on this \
                 platform a first label is no node's name",
            ));
            let detail = format_args!(
                "no instance has the name {node}, only a longer one of {} starts with it",
                instance.title()
            );
            return self.ignore(Rule::Instance, detail);
        }
        let near = self.view.instance_of_node(node).map(Near).map(|near| near.to_string());
        let near = near.unwrap_or_default();
        self.ignore(Rule::Instance, format_args!("no instance has the name {node}{near}"))
    }
}

/// Says that an entry leads to the Node's address, and what its host calls itself.
struct Near<'a>(&'a Instance);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "; the node is at the address of entry {}", self.0.title())?;
        for (count, name) in self.0.host_names.iter().enumerate() {
            let before = if count == 0 { ", whose host calls itself" } else { " and" };
            write!(f, "{before} {}", Foreign(name))?;
        }
        Ok(())
    }
}

/// Says which name or address a Machine has, and why its host is not usable, if that is known.
struct Having<'a> {
    machine: &'a MachineFacts,
    kind: &'static str,
    what: &'a dyn fmt::Display,
}

impl fmt::Display for Having<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, kind, what } = self;
        write!(f, "{} has the {kind} {what}", machine.title())?;
        match &machine.host {
            Some(Err(unfit)) => write!(f, ", and {unfit}"),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

/// Whether `name` is a lower-case RFC 1123 subdomain, as Kubernetes requires for Node names.
fn is_subdomain(name: &str) -> bool {
    let mut before = b'.';
    let fits = name.bytes().all(|byte| {
        // A label neither starts nor ends with a hyphen, and is not empty.
        let fits = match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' => before != b'.',
            b'.' => before != b'.' && before != b'-',
            _ => false,
        };
        before = byte;
        fits
    });
    fits && name.len() <= 253 && before != b'.' && before != b'-'
}
