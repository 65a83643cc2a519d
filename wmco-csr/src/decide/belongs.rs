//! Checks that each alternative name belongs to the host and to no other host.
//!
//! The Node has all of them in its status, but the requester writes that status. So each name needs another proof:
//! the list of instances, the Machine API, the DNS, or the host itself when the operator asked it. And nothing else
//! may have the name: no other entry, Node or Machine, and no service of the cluster.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use super::{Asked, Exam, after};
use crate::pkcs10::GeneralName;
use crate::rule::Rule;
use crate::trace::Detail::Fixed;
use crate::trace::Foreign;
use crate::view::{Against, Instance, NodeIdentity, Owner, fold};

/// An objection to a name.
enum Objection<'e> {
    /// A fact contradicts it.
    Against(Against<'e>),
    /// Only the Node itself claims the name.
    Unproven,
    /// The proof is not available yet.
    Unknown(&'static str),
}

impl<'e> Exam<'e, '_> {
    /// Checks the alternative names that the Node has.
    pub(super) fn belongs(
        &mut self,
        asked: &Asked<'_>,
        node: &NodeIdentity,
        instance: &'e Instance,
    ) {
        let Some(names) = asked.parsed.extensions().alternative_names() else { return };
        let mut unknown = None;
        for name in names.iter() {
            let objection = match name {
                GeneralName::Dns(name) => self.name(asked, instance, name),
                GeneralName::Ip(address) => self.address(asked, instance, address),
                // Another rule refuses these.
                GeneralName::Email(_) | GeneralName::Other(_) | GeneralName::Uri(_) => None,
            };
            match objection {
                None => {}
                Some(Objection::Unknown(what)) => drop(unknown.get_or_insert((name, what))),
                Some(Objection::Against(against)) => {
                    self.blocked_by = against.node();
                    let detail = format_args!("{}: {against}", Shown(name));
                    return self.fail(Rule::Belongs, detail);
                }
                Some(Objection::Unproven) => {
                    let detail = format_args!(
                        "{}: only the node itself says that it is its own, neither the list of \
                         instances nor its Machine nor the DNS nor its host does",
                        Shown(name)
                    );
                    return self.fail(Rule::Belongs, detail);
                }
            }
        }
        let Some((name, what)) = unknown else {
            let detail = if self.policy.believe_nodes {
                "nobody else has them"
            } else {
                "known to be its own, and nobody else has them"
            };
            return self.trace.pass(Rule::Belongs, Fixed(detail));
        };
        let limits = &self.policy.limits;
        let asked_for = after(self.request.created, limits.name_wait);
        let deadline = asked_for.max(after(node.created, limits.address_wait));
        self.fail_after(deadline, Rule::Belongs, format_args!("{}: {what}", Shown(name)));
    }

    fn name(&self, asked: &Asked<'_>, instance: &'e Instance, name: &str) -> Option<Objection<'e>> {
        let view = self.view;
        let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) || name.ends_with('.') {
            Cow::Owned(fold(name))
        } else {
            Cow::Borrowed(name)
        };
        if let Some(what) = view.cluster.reserves_name(&name) {
            return Some(Objection::Against(Against::Owner(Owner::Reserved(what))));
        }
        if let Some(against) = view.against_name(&name, instance, asked.node) {
            return Some(Objection::Against(against));
        }
        let is_listed = || instance.is_called(&name);
        let is_pointer = || instance.pointers.iter().any(|pointer| *pointer == *name);
        let reported = instance.host_name.as_deref();
        let is_short = || {
            let short = reported.filter(|full| view.cluster.node_names.shortens(full));
            let label = short.and_then(|full| full.split('.').next());
            label == Some(&*name)
        };
        let is_proven = *name == *asked.node
            || is_listed()
            || reported == Some(&*name)
            || is_pointer()
            || is_short()
            || self.policy.believe_nodes;
        match reported {
            _ if is_proven => None,
            None => Some(Objection::Unknown("the host was not asked for its name yet")),
            Some(_) => Some(Objection::Unproven),
        }
    }

    fn address(
        &self,
        asked: &Asked<'_>,
        instance: &'e Instance,
        address: IpAddr,
    ) -> Option<Objection<'e>> {
        let view = self.view;
        if let Some(what) = view.cluster.reserves_address(address) {
            return Some(Objection::Against(Against::Owner(Owner::Reserved(what))));
        }
        if let Some(owner) = view.other_owner_of_address(address, instance, asked.node) {
            return Some(Objection::Against(Against::Owner(owner)));
        }
        if view.cluster.addresses.services.is_none() {
            return Some(Objection::Unknown("the cluster's service network is not known yet"));
        }
        let is_proven = instance.has(address) || self.policy.believe_nodes;
        match &instance.addresses {
            _ if is_proven => None,
            None => Some(Objection::Unknown("the host was not asked for its addresses yet")),
            Some(_) => Some(Objection::Unproven),
        }
    }
}

/// A name as messages show it.
struct Shown<'a>(GeneralName<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            GeneralName::Dns(name) | GeneralName::Email(name) | GeneralName::Uri(name) => {
                Foreign(name).fmt(f)
            }
            GeneralName::Ip(address) => address.fmt(f),
            GeneralName::Other(_) => f.write_str("a name of another kind"),
        }
    }
}
