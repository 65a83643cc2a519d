//! Checks that the Node and the instance match the request.

use std::net::IpAddr;

use wmco_core::names::OS_WINDOWS;

use super::ownership::Owned;
use super::{Asked, Exam, after};
use crate::pkcs10::GeneralName;
use crate::rule::{Kind, Rule};
use crate::trace::Detail::{self, Fixed};
use crate::trace::{Foreign, Place};
use crate::view::{Instance, MachineFacts, NodeIdentity, fold, is_another};

impl<'e> Exam<'e, '_> {
    /// Makes all checks, so that a refusal names all faults.
    pub(super) fn placement(&mut self, asked: &Asked<'_>, owned: Owned<'e>) {
        if asked.kind == Kind::KubeletClient {
            return;
        }
        let Some(node) = owned.node else {
            let deadline = after(self.request.created, self.policy.limits.node_wait);
            let detail = format_args!("node {} does not exist", asked.node);
            return self.fail_after(deadline, Rule::Node, detail);
        };
        let stands = Place::of(asked.node.as_bytes(), asked.der);
        self.trace.pass(Rule::Node, Detail::Stands(stands));
        match (asked.kind, owned.instance) {
            (Kind::KubeletServing, Some(instance)) => {
                if let Some(machine) = &instance.machine {
                    self.machine_node(asked, node, machine);
                }
                self.node_address(node, instance);
                if self.addresses(asked, node) {
                    self.belongs(asked, node, instance);
                } else {
                    self.trace.skip(Rule::Belongs);
                }
            }
            (Kind::Wicd, _) => self.runs_windows(node),
            (Kind::KubeletClient | Kind::KubeletServing, _) => {}
        }
    }

    /// WICD runs on Windows nodes only, so a request for any other node is refused.
    fn runs_windows(&mut self, node: &NodeIdentity) {
        match node.os.as_deref() {
            Some(OS_WINDOWS) => self.trace.pass(Rule::NodeOs, Fixed(OS_WINDOWS)),
            other => {
                let os = Foreign(other.unwrap_or_default());
                self.fail(Rule::NodeOs, format_args!("{os}, not {OS_WINDOWS}"));
            }
        }
    }

    /// Ties the Node to the Machine by the Machine's `nodeRef`, which may be set a little later.
    fn machine_node(&mut self, asked: &Asked<'_>, node: &NodeIdentity, machine: &'e MachineFacts) {
        let limits = &self.policy.limits;
        let asked_for = after(self.request.created, limits.name_wait);
        let deadline = asked_for.max(after(node.created, limits.address_wait));
        let title = machine.title();
        let Some(reference) = &machine.node else {
            let detail = format_args!("{title} names no node yet");
            return self.fail_after(deadline, Rule::MachineNode, detail);
        };
        let is_former = node.uid.as_ref().is_some_and(|uid| is_another(uid, &reference.uid));
        if reference.name == asked.node && !is_former {
            return self.trace.pass(Rule::MachineNode, Fixed("the one that the Machine names"));
        }
        if let Some(other) = self.view.referred(reference)
            && reference.name != asked.node
        {
            self.blocked_by = Some(other);
            let detail = format_args!("{title} has node {other}");
            return self.fail(Rule::MachineNode, detail);
        }
        let detail =
            format_args!("{title} names a node that is gone, {}", Foreign(&reference.name));
        self.fail_after(deadline, Rule::MachineNode, detail);
    }

    /// Ties the Node to the instance by an address. The instance's name alone is no proof.
    ///
    /// Source: `docs/contract/certificate-requests.md`, CSR35.
    fn node_address(&mut self, node: &NodeIdentity, instance: &Instance) {
        if let Some(machine) = &instance.machine
            && let Some(address) = machine.addresses.iter().find(|a| node.addresses.contains(a))
        {
            return match address {
                IpAddr::V4(ipv4) => self.trace.pass(Rule::NodeAddress, Detail::Address(*ipv4)),
                IpAddr::V6(_) => self.trace.pass_all(Rule::NodeAddress, [&*address.to_string()]),
            };
        }
        let address = &instance.address;
        let is_named = || node.names.iter().any(|name| *name == fold(address));
        // Of further names the Node may show any; only the host itself tells that it is this one.
        let has_common = || node.addresses.iter().any(|address| instance.reports(*address));
        match instance.ipv4 {
            Some(ipv4) if node.addresses.contains(&IpAddr::V4(ipv4)) => {
                self.trace.pass(Rule::NodeAddress, Detail::Address(ipv4));
            }
            // The name leads to another address, as with NAT in front of the host's network.
            Some(_) if is_named() && (self.policy.believe_nodes || has_common()) => {
                self.trace.pass_all(Rule::NodeAddress, [address.as_str()]);
            }
            // A name that does not resolve at the moment proves nothing against the Node.
            None => {
                let detail = Fixed("the instance's address is not known");
                self.trace.pass(Rule::NodeAddress, detail);
            }
            Some(ipv4) => {
                let deadline = after(node.created, self.policy.limits.address_wait);
                let detail = format_args!("the node does not have the instance's address {ipv4}");
                self.fail_after(deadline, Rule::NodeAddress, detail);
            }
        }
    }

    /// Allows the Node's own addresses only: the kubelet never asks for other addresses of the instance. Another
    /// rule checks who owns them. Returns whether the rule is kept.
    ///
    /// Source: `docs/contract/certificate-requests.md`, CSR36.
    fn addresses(&mut self, asked: &Asked<'_>, node: &NodeIdentity) -> bool {
        // Other rules require the names and restrict their kinds.
        let Some(names) = asked.parsed.extensions().alternative_names() else { return true };
        let deadline = after(node.created, self.policy.limits.address_wait);
        let outside = "is no address of the node";
        let is_known = |name: &[u8]| {
            let name = without_last_dots(name);
            node.names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        };
        let has = |address: IpAddr| node.addresses.contains(&address);
        if names.all(is_known, has) {
            let place = Place::of(names.content(), asked.der);
            self.trace.pass(Rule::Addresses, Detail::Names(place));
            return true;
        }
        for name in names.iter() {
            match name {
                GeneralName::Dns(name) if !is_known(name.as_bytes()) => {
                    let detail = format_args!("{} {outside}", Foreign(name));
                    self.fail_after(deadline, Rule::Addresses, detail);
                    return false;
                }
                GeneralName::Ip(ip) if !has(ip) => {
                    let detail = format_args!("{ip} {outside}");
                    self.fail_after(deadline, Rule::Addresses, detail);
                    return false;
                }
                GeneralName::Dns(_)
                | GeneralName::Email(_)
                | GeneralName::Ip(_)
                | GeneralName::Other(_)
                | GeneralName::Uri(_) => {}
            }
        }
        true
    }
}

/// `name` without the dots at its end, which mean nothing.
fn without_last_dots(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
    name.get(..end).unwrap_or_default()
}
