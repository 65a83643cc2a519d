//! Does the cluster look as the request says? Looks at the Node and the instance.

use std::fmt;
use std::net::IpAddr;

use wmco_core::names::OS_WINDOWS;

use super::{Asked, Exam, after};
use crate::pkcs10::GeneralName;
use crate::rule::{Kind, Outcome, Rule};
use crate::trace::Foreign;
use crate::view::{Instance, NodeFacts};

impl Exam<'_> {
    /// Looks at everything, so that a refusal names all faults.
    pub(super) fn placement(&mut self, asked: &Asked<'_>, instance: Option<&Instance>) {
        if asked.kind == Kind::KubeletClient {
            return;
        }
        let view = self.view;
        let Some(node) = view.node(asked.node) else {
            let deadline = after(self.request.created, self.policy.limits.node_wait);
            let detail = format_args!("node {} does not exist", asked.node);
            return self.fail_after(deadline, Rule::Node, detail);
        };
        self.trace.pass(Rule::Node, asked.node);
        match (asked.kind, instance) {
            (Kind::KubeletServing, Some(instance)) => {
                self.node_address(node, instance);
                self.addresses(asked, node);
            }
            (Kind::Wicd, _) => self.runs_windows(node),
            (Kind::KubeletClient | Kind::KubeletServing, _) => {}
        }
    }

    /// WICD runs on Windows nodes only, so a request for another one is an attempt.
    fn runs_windows(&mut self, node: &NodeFacts) {
        match node.os.as_deref() {
            Some(OS_WINDOWS) => self.trace.pass(Rule::NodeOs, OS_WINDOWS),
            other => {
                let os = Foreign(other.unwrap_or_default());
                self.fail(Rule::NodeOs, format_args!("{os}, not {OS_WINDOWS}"));
            }
        }
    }

    /// Ties the Node to the instance. Source: `spec/csr.md`, W-7.
    fn node_address(&mut self, node: &NodeFacts, instance: &Instance) {
        let address = &instance.address;
        let listed = node.names.iter().any(|name| name.eq_ignore_ascii_case(address));
        match instance.ipv4 {
            _ if listed => self.trace.pass(Rule::NodeAddress, address),
            // That its name does not resolve at the moment proves nothing against the Node.
            None => self.trace.pass(Rule::NodeAddress, "the instance's address is not known"),
            Some(ipv4) if node.addresses.contains(&IpAddr::V4(ipv4)) => {
                self.trace.add(Rule::NodeAddress, Outcome::Pass, format_args!("{ipv4}"));
            }
            Some(ipv4) => {
                let deadline = after(node.created, self.policy.limits.address_wait);
                let detail = format_args!("the node does not have the instance's address {ipv4}");
                self.fail_after(deadline, Rule::NodeAddress, detail);
            }
        }
    }

    /// The Node's own addresses only: what else is known of the instance is no part of what its
    /// kubelet asks for. Source: `spec/csr.md`, W-7.
    fn addresses(&mut self, asked: &Asked<'_>, node: &NodeFacts) {
        let names = || asked.parsed.extensions().alternative_names();
        let all = || names().into_iter().flat_map(|names| names.iter());
        let deadline = after(node.created, self.policy.limits.address_wait);
        let outside = "is no address of the node";
        match all().find(|name| !is_known(name, node)) {
            Some(GeneralName::Dns(name)) => {
                let name = Foreign(name);
                self.fail_after(deadline, Rule::Addresses, format_args!("{name} {outside}"));
            }
            Some(GeneralName::Ip(ip)) => {
                self.fail_after(deadline, Rule::Addresses, format_args!("{ip} {outside}"));
            }
            // Other kinds are the business of another rule.
            Some(GeneralName::Email(_) | GeneralName::Other(_) | GeneralName::Uri(_)) | None => {
                self.trace.add(Rule::Addresses, Outcome::Pass, format_args!("{}", Known(all)));
            }
        }
    }
}

/// Host names and addresses that were found to be those of the node, with commas.
struct Known<F>(F);

impl<'a, I: Iterator<Item = GeneralName<'a>>, F: Fn() -> I> fmt::Display for Known<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in (self.0)() {
            match name {
                GeneralName::Dns(name) => {
                    f.write_str(separator)?;
                    f.write_str(name)?;
                }
                GeneralName::Ip(ip) => {
                    f.write_str(separator)?;
                    ip.fmt(f)?;
                }
                GeneralName::Email(_) | GeneralName::Other(_) | GeneralName::Uri(_) => continue,
            }
            separator = ", ";
        }
        Ok(())
    }
}

/// Whether an alternative name belongs to the node; those of other kinds are not looked at.
fn is_known(name: &GeneralName<'_>, node: &NodeFacts) -> bool {
    match name {
        GeneralName::Ip(ip) => node.addresses.contains(ip),
        GeneralName::Dns(name) => node.names.iter().any(|known| known.eq_ignore_ascii_case(name)),
        GeneralName::Email(_) | GeneralName::Other(_) | GeneralName::Uri(_) => true,
    }
}
