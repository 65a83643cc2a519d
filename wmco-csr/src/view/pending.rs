//! Which requests are pending for a node, newest first.

use std::collections::HashMap;

use jiff::Timestamp;

use super::View;
use crate::request::Request;
use crate::rule::Kind;
use crate::{CertificationRequest, pem};

/// Pending requests by node name.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingRequests {
    by_node: HashMap<String, Vec<Pending>>,
    node_of: HashMap<String, String>,
}

#[derive(Clone, Debug)]
struct Pending {
    kind: Kind,
    age: (Option<Timestamp>, String),
    requester: String,
    key_info: Vec<u8>,
}

/// What newer requests mean for a request.
#[derive(Debug)]
pub(crate) enum Newer<'a> {
    /// Requests for so many other keys are newer.
    Others(usize),
    /// This newer request asks for the same.
    Same(&'a str),
}

impl View {
    /// Adds a pending request or replaces what was known about it. One that is decided already, or
    /// that is none of our kinds, or that cannot be read, is forgotten.
    pub fn set_request<'r>(&mut self, request: impl Into<Request<'r>>) {
        let request = request.into();
        self.remove_request(request.name);
        let Some((node, pending)) = Pending::from_request(&request) else { return };
        self.pending.node_of.insert(request.name.to_owned(), node.clone());
        let list = self.pending.by_node.entry(node).or_default();
        let place = list.partition_point(|other| other.age > pending.age);
        list.insert(place, pending);
    }

    /// Forgets a request.
    pub fn remove_request(&mut self, name: &str) {
        let Some(node) = self.pending.node_of.remove(name) else { return };
        if let Some(list) = self.pending.by_node.get_mut(&node) {
            list.retain(|pending| pending.age.1 != name);
            if list.is_empty() {
                self.pending.by_node.remove(&node);
            }
        }
    }
}

impl Pending {
    fn from_request(request: &Request<'_>) -> Option<(String, Self)> {
        let kind = Kind::from_signer(request.signer).filter(|_| request.decided.is_none())?;
        let der = pem::decode(request.pem).ok()?;
        let parsed = CertificationRequest::parse(&der).ok()?;
        let node = parsed.subject().common_name()?.strip_prefix(kind.prefix())?;
        let pending = Self {
            kind,
            age: (request.created, request.name.to_owned()),
            requester: request.username.to_owned(),
            key_info: parsed.key_info().to_vec(),
        };
        Some((node.to_owned(), pending))
    }
}

impl PendingRequests {
    /// Looks at the pending requests of `kind` for `node`, by the same requester, that are newer
    /// than `request`. Stops counting other keys at `most`.
    pub(crate) fn newer(
        &self,
        request: &Request<'_>,
        kind: Kind,
        node: &str,
        key_info: &[u8],
        most: usize,
    ) -> Newer<'_> {
        let mut keys: Vec<&[u8]> = Vec::new();
        let all = self.by_node.get(node).into_iter().flatten();
        let newer = all.take_while(|other| {
            (other.age.0, other.age.1.as_str()) > (request.created, request.name)
        });
        // What others ask for in the node's name is refused; it must not crowd out the node's own.
        let own = |other: &&Pending| other.kind == kind && other.requester == request.username;
        for other in newer.filter(own) {
            if other.key_info == key_info {
                return Newer::Same(&other.age.1);
            }
            if !keys.contains(&other.key_info.as_slice()) {
                keys.push(&other.key_info);
            }
            if keys.len() >= most {
                break;
            }
        }
        Newer::Others(keys.len())
    }
}
