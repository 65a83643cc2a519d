//! Checks the content of a request, with the request and the policy only.

use jiff::SignedDuration;

use super::{Asked, Exam};
use crate::names;
use crate::pkcs10::{Attribute, GeneralName, Oid};
use crate::rule::{Kind, Outcome, Rule};
use crate::trace::Detail::{self, Fixed};
use crate::trace::{Foreign, ForeignList};

/// The shortest lifetime that the API server accepts, in seconds.
const LEAST_LIFETIME_SECONDS: i32 = 600;

impl Exam<'_, '_> {
    /// Makes all checks, so that a refusal names all faults.
    pub(super) fn content(&mut self, asked: &Asked<'_>) {
        self.requester(asked);
        self.subject(asked);
        self.usages(asked.kind);
        self.name_kinds(asked);
        self.lifetime(asked.kind);
        self.key(asked);
    }

    fn requester(&mut self, asked: &Asked<'_>) {
        let (username, policy) = (self.request.username, self.policy);
        let proven = match asked.kind {
            Kind::KubeletClient => username == policy.bootstrapper.username,
            Kind::KubeletServing => username == asked.common_name,
            Kind::Wicd => username == policy.wicd || username == asked.common_name,
        };
        if proven {
            self.trace.pass(Rule::Requester, Fixed(username));
        } else {
            let username = Foreign(username);
            let detail = format_args!("{username} may not ask for {}", asked.common_name);
            self.fail(Rule::Requester, detail);
        }
        match asked.kind {
            Kind::KubeletClient => self.groups(policy.bootstrapper.groups.iter()),
            Kind::KubeletServing => {
                self.groups([names::NODES_GROUP, names::AUTHENTICATED_GROUP].iter());
            }
            Kind::Wicd => self.token_node(asked.node),
        }
    }

    fn groups<'g, S: AsRef<str> + 'g>(&mut self, mut needed: impl Iterator<Item = &'g S>) {
        let groups = self.request.groups;
        match needed.find(|group| !has(groups, group.as_ref())) {
            Some(group) => {
                self.fail(Rule::Groups, format_args!("{} is missing", group.as_ref()));
            }
            None => self.trace.pass(Rule::Groups, Detail::List(groups)),
        }
    }

    /// Source: `docs/contract/certificate-requests.md`, CSR27.
    fn token_node(&mut self, node: &str) {
        match self.request.token_node {
            None => self.trace.pass(Rule::TokenNode, Fixed("bound to no node")),
            Some([bound]) if bound == node => self.trace.pass(Rule::TokenNode, Fixed(bound)),
            Some(bound) => {
                let bound = ForeignList(bound.iter().map(String::as_str));
                self.fail(Rule::TokenNode, format_args!("bound to {bound}, not to {node}"));
            }
        }
    }

    fn subject(&mut self, asked: &Asked<'_>) {
        let (subject, needed) = (asked.parsed.subject(), asked.kind.organization());
        match subject.other().map(Oid) {
            Some(other) => self.fail(Rule::Subject, format_args!("holds {other}")),
            None => self.trace.pass(Rule::Subject, Fixed("common name and organizations only")),
        }
        if subject.organization() == Some(needed) {
            return self.trace.pass(Rule::Organization, Fixed(needed));
        }
        let organizations = subject.attributes().filter_map(|attribute| match attribute {
            Attribute::Organization(name) => Some(name),
            Attribute::CommonName(_) | Attribute::Other(_) => None,
        });
        let found = ForeignList(organizations.collect::<Vec<_>>());
        self.fail(Rule::Organization, format_args!("{found}, not {needed} alone"));
    }

    /// Checks that the usages are exactly the essential usage and signatures, with or without key encipherment.
    fn usages(&mut self, kind: Kind) {
        let (usages, essential) = (self.request.usages, kind.essential_usage());
        let signs = has(usages, names::USAGE_DIGITAL_SIGNATURE);
        let enciphers = has(usages, names::USAGE_KEY_ENCIPHERMENT);
        // All members are known and their number fits: nothing else, nothing twice.
        if signs && has(usages, essential) && usages.len() == 2 + usize::from(enciphers) {
            return self.trace.pass(Rule::Usages, Detail::List(usages));
        }
        let found = ForeignList(usages.iter().map(String::as_str));
        let detail = format_args!(
            "{found}, not {} and {essential} with or without {}",
            names::USAGE_DIGITAL_SIGNATURE,
            names::USAGE_KEY_ENCIPHERMENT,
        );
        self.fail(Rule::Usages, detail);
    }

    fn name_kinds(&mut self, asked: &Asked<'_>) {
        let extensions = asked.parsed.extensions();
        let names = extensions.alternative_names();
        match (asked.kind, names) {
            (Kind::KubeletClient | Kind::Wicd, None) => {
                self.trace.pass(Rule::NameKinds, Fixed("none"));
            }
            (Kind::KubeletClient | Kind::Wicd, Some(_)) => {
                let detail = format_args!("client certificates have no alternative names");
                self.fail(Rule::NameKinds, detail);
            }
            (Kind::KubeletServing, None) => {
                self.fail(Rule::NameKinds, format_args!("none, at least one is needed"));
            }
            (Kind::KubeletServing, Some(names)) if names.are_hosts() => {
                self.trace.pass(Rule::NameKinds, Fixed("host names and addresses only"));
            }
            (Kind::KubeletServing, Some(names)) => {
                let foreign = names.iter().find_map(|name| match name {
                    GeneralName::Email(name) | GeneralName::Uri(name) => Some(Foreign(name)),
                    GeneralName::Other(_) | GeneralName::Dns(_) | GeneralName::Ip(_) => None,
                });
                if let Some(name) = foreign {
                    self.fail(Rule::NameKinds, format_args!("{name} is no host or address"));
                } else {
                    self.fail(
                        Rule::NameKinds,
                        format_args!("a name that is no host and no address"),
                    );
                }
            }
        }
        match extensions.unknown().map(Oid) {
            None => {
                let detail = Fixed("alternative names and key usages at most");
                self.trace.pass(Rule::Extensions, detail);
            }
            Some(oid) => self.fail(Rule::Extensions, format_args!("asks for {oid}")),
        }
    }

    /// Source: `docs/contract/certificate-requests.md`, CSR32.
    fn lifetime(&mut self, kind: Kind) {
        let limits = &self.policy.limits;
        let most = match kind {
            Kind::KubeletClient | Kind::KubeletServing => limits.kubelet_lifetime,
            Kind::Wicd => limits.wicd_lifetime,
        };
        let Some(seconds) = self.request.expiration_seconds else {
            return match kind {
                Kind::KubeletClient | Kind::KubeletServing => {
                    self.trace.pass(Rule::Lifetime, Fixed("the signer's default"));
                }
                // The default is a year, and the token that asks lies on every node.
                Kind::Wicd => {
                    let most = most.as_secs();
                    let detail = format_args!("none, not {LEAST_LIFETIME_SECONDS} s to {most} s");
                    self.fail(Rule::Lifetime, detail);
                }
            };
        };
        let lifetime = SignedDuration::from_secs(i64::from(seconds));
        if seconds >= LEAST_LIFETIME_SECONDS && lifetime <= most {
            return self.trace.pass(Rule::Lifetime, Detail::Seconds(seconds));
        }
        let most = most.as_secs();
        let detail = format_args!("{seconds} s, not {LEAST_LIFETIME_SECONDS} s to {most} s");
        self.fail(Rule::Lifetime, detail);
    }

    fn key(&mut self, asked: &Asked<'_>) {
        let (key, algorithm) = (asked.parsed.key(), asked.parsed.algorithm());
        if !key.is_strong() {
            let detail = format_args!("{key}, not RSA-2048 to RSA-8192, P-256, P-384 or Ed25519");
            return self.fail(Rule::Key, detail);
        }
        match key.usual_name() {
            Some(name) => self.trace.pass(Rule::Key, Fixed(name)),
            None => self.trace.add(Rule::Key, Outcome::Pass, format_args!("{key}")),
        }
        if let Some(name) = algorithm.name().filter(|_| algorithm.fits(&key)) {
            self.trace.pass(Rule::Algorithm, Fixed(name));
        } else {
            let detail = format_args!("{algorithm} is not accepted for {key}");
            self.fail(Rule::Algorithm, detail);
        }
    }
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|member| member == value)
}
