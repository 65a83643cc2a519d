//! Checks that each alternative name belongs to the host and to no other host.
//!
//! The Node has all of them in its status, but the requester writes that status. So each name needs another proof:
//! the list of instances, the Machine API, the DNS, or the host itself when the operator asked it. And nothing else
//! may have the name: no other entry, Node or Machine, and no service of the cluster.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use wmco_core::instances::AlsoNamed;
use wmco_core::reserved::behind;

use super::ownership::NOT_MET;
use super::{Asked, Exam, after};
use crate::pkcs10::{GeneralName, GeneralNames};
use crate::rule::Rule;
use crate::trace::Detail::Fixed;
use crate::trace::Foreign;
use crate::view::{Against, Instance, NodeIdentity, Owner, fold};

/// The most names, and the most addresses, of one request that the DNS is asked for.
const NAMES: usize = 16;

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
        let full_names = FullNames::of(asked, instance, names);
        for name in names.iter() {
            let objection = match name {
                GeneralName::Dns(name) => match fold(name).parse::<IpAddr>() {
                    Ok(address) => self.address(asked, instance, address.to_canonical()),
                    Err(_) => self.name(asked, instance, name, &full_names),
                },
                GeneralName::Ip(address) => self.address(asked, instance, address),
                // Another rule refuses these.
                GeneralName::Email(_) | GeneralName::Other(_) | GeneralName::Uri(_) => None,
            };
            match objection {
                None => {}
                Some(Objection::Unknown(what)) => drop(unknown.get_or_insert((name, what))),
                Some(Objection::Against(against)) => {
                    self.blocked_by = against.node();
                    let ways_out = against.ways_out(instance);
                    self.remedy = Some((Rule::Belongs, ways_out));
                    return match against {
                        Against::Dns(..) => {
                            let detail = format_args!("{}: {against}; {ways_out}", Shown(name));
                            self.fail(Rule::Belongs, detail);
                        }
                        Against::Claim(..) | Against::Owner(_) => {
                            self.fail(Rule::Belongs, format_args!("{}: {against}", Shown(name)));
                        }
                    };
                }
                Some(Objection::Unproven) => {
                    let unproven = Unproven { name: Shown(name), instance };
                    self.remedy = Some((Rule::Belongs, unproven.ways_out()));
                    // The DNS may say so yet.
                    self.is_open = true;
                    return self.fail(Rule::Belongs, format_args!("{unproven}"));
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

    fn name(
        &mut self,
        asked: &Asked<'_>,
        instance: &'e Instance,
        name: &str,
        full_names: &FullNames,
    ) -> Option<Objection<'e>> {
        let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) || name.ends_with('.') {
            Cow::Owned(fold(name))
        } else {
            Cow::Borrowed(name)
        };
        if let Some(against) = self.against(asked, instance, &name) {
            return Some(Objection::Against(against));
        }
        let is_known = Self::is_full_name(asked, instance, &name)
            || self.is_first_label(asked, instance, full_names.of_label(&name))
            || self.policy.believe_nodes;
        if is_known {
            return None;
        }
        let mut is_open = self.asks_for(&name);
        for full in full_names.of_label(&name) {
            is_open |= self.asks_for(full);
        }
        match &instance.host_names[..] {
            _ if self.view.is_led_to(&name, instance, asked.node) => None,
            _ if instance.is_promised(&AlsoNamed::Name(name.to_string())) => {
                Some(Objection::Unknown(NOT_MET))
            }
            _ if is_open => Some(Objection::Unknown("the DNS was not asked for it yet")),
            [] => Some(Objection::Unknown("the host was not asked for its name yet")),
            [_, ..] => Some(Objection::Unproven),
        }
    }

    /// Notes that the DNS has to answer for `name`; returns whether the answer is still to come.
    fn asks_for(&mut self, name: &str) -> bool {
        let names = &mut self.questions.names;
        let is_asked = name.contains('.') && (names.len() < NAMES || names.contains(name));
        if is_asked {
            names.insert(name.to_owned());
        }
        is_asked && self.policy.asks_dns && !self.view.is_answered(name)
    }

    /// The same for `address` in reverse DNS, and for the names that it has there.
    fn asks_for_address(&mut self, instance: &Instance, address: IpAddr) -> bool {
        let addresses = &mut self.questions.addresses;
        let is_asked = addresses.len() < NAMES || addresses.contains(&address);
        if is_asked {
            addresses.insert(address);
        }
        let names: Vec<String> = self.view.pointers(address).collect();
        let mut is_open = is_asked && self.policy.asks_dns && !self.view.is_pointed(address);
        for name in names.iter().filter(|name| !instance.is_called(name)) {
            is_open |= self.asks_for(name);
        }
        is_open
    }

    /// The fact that contradicts giving `name` (lower case) to the host.
    fn against(
        &self,
        asked: &Asked<'_>,
        instance: &'e Instance,
        name: &str,
    ) -> Option<Against<'e>> {
        let reserved = self.view.cluster.reserves_name(name);
        let reserved = reserved.map(|what| Against::Owner(Owner::Reserved(what)));
        reserved.or_else(|| self.view.against_name(name, instance, asked.node))
    }

    /// Whether `name` as a whole is known to be the host's: by the rules about its Node, the list, the Machine API,
    /// the host itself or reverse DNS.
    fn is_full_name(asked: &Asked<'_>, instance: &Instance, name: &str) -> bool {
        name == asked.node
            || instance.is_called(name)
            || instance.host_names.iter().any(|told| told == name)
            || instance.pointers.iter().any(|pointer| pointer == name)
    }

    /// Whether one of `full_names`, which begin with a label, is known to be the host's.
    /// Source: `docs/contract/certificate-requests.md`, CSR43.
    fn is_first_label(
        &self,
        asked: &Asked<'_>,
        instance: &'e Instance,
        full_names: &[String],
    ) -> bool {
        full_names.iter().any(|full| {
            let is_led = || self.view.is_led_to(full, instance, asked.node);
            (Self::is_full_name(asked, instance, full) || is_led())
                && self.against(asked, instance, full).is_none()
        })
    }

    /// Whether reverse DNS gives `address` a name that is the host's by the list, the Machine API or forward DNS.
    fn is_pointed_from(&self, asked: &Asked<'_>, instance: &'e Instance, address: IpAddr) -> bool {
        self.view.pointers(address).any(|name| {
            (instance.is_called(&name) || self.view.is_led_to(&name, instance, asked.node))
                && self.against(asked, instance, &name).is_none()
        })
    }

    fn address(
        &mut self,
        asked: &Asked<'_>,
        instance: &'e Instance,
        address: IpAddr,
    ) -> Option<Objection<'e>> {
        let view = self.view;
        if let Some(what) = view.cluster.reserves_address(address) {
            return Some(Objection::Against(Against::Owner(Owner::Reserved(what))));
        }
        // Who has the address that answers there has that form of it, too.
        let other = [address, behind(address)]
            .into_iter()
            .find_map(|address| view.other_owner_of_address(address, instance, asked.node));
        if let Some(owner) = other {
            return Some(Objection::Against(Against::Owner(owner)));
        }
        if view.cluster.addresses.services.is_none() {
            return Some(Objection::Unknown("the cluster's service network is not known yet"));
        }
        if instance.has(address) || self.policy.believe_nodes {
            return None;
        }
        let is_open = self.asks_for_address(instance, address);
        match &instance.addresses {
            _ if self.is_pointed_from(asked, instance, address) => None,
            _ if instance.is_promised(&AlsoNamed::Address(address)) => {
                Some(Objection::Unknown(NOT_MET))
            }
            _ if is_open => Some(Objection::Unknown("the DNS was not asked for it yet")),
            None => Some(Objection::Unknown("the host was not asked for its addresses yet")),
            Some(_) => Some(Objection::Unproven),
        }
    }
}

/// The full names that may be the host's, by their first labels.
struct FullNames(HashMap<String, Vec<String>>);

impl FullNames {
    /// Of each label the first few, so that work is in proportion to the size of the request.
    fn of(asked: &Asked<'_>, instance: &Instance, names: GeneralNames<'_>) -> Self {
        let asked_for = names.iter().filter_map(|name| match name {
            GeneralName::Dns(name) => Some(fold(name)),
            GeneralName::Email(_)
            | GeneralName::Ip(_)
            | GeneralName::Other(_)
            | GeneralName::Uri(_) => None,
        });
        let mut by_label: HashMap<String, Vec<String>> = HashMap::new();
        let known = [asked.node.to_owned()].into_iter().chain(instance.full_names());
        for full in known.chain(asked_for) {
            let Some((label, _)) = full.split_once('.') else { continue };
            let of_label = by_label.entry(label.to_owned()).or_default();
            if of_label.len() < NAMES && !of_label.contains(&full) {
                of_label.push(full);
            }
        }
        Self(by_label)
    }

    fn of_label(&self, label: &str) -> &[String] {
        self.0.get(label).map_or(&[], Vec::as_slice)
    }
}

/// Says that nothing ties a name to the host, and what would.
struct Unproven<'a> {
    name: Shown<'a>,
    instance: &'a Instance,
}

impl Unproven<'_> {
    fn ways_out(&self) -> &'static str {
        match self.instance.machine {
            None => {
                "write it in `names=` of the host's entry in windows-instances if it is its own, or find out \
                 why the node claims it"
            }
            Some(_) => {
                "lead it to the Machine's address in the DNS if it is its own, or find out why the node claims \
                 it"
            }
        }
    }
}

impl fmt::Display for Unproven<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, instance } = self;
        write!(
            f,
            "{name}: only the node itself says that it is its own, neither the list of instances nor \
             its Machine nor the DNS nor its host does"
        )?;
        match instance.machine {
            None => write!(f, "; if it is, write it in `names=` of entry {}", instance.title()),
            Some(_) => Ok(()),
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
