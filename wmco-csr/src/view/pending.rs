//! Requests for each node, newest first.

use std::collections::HashMap;

use jiff::Timestamp;

use super::View;
use crate::request::Request;
use crate::rule::Kind;
use crate::{CertificationRequest, pem};

/// Requests that are pending or were approved, by node name.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingRequests {
    by_node: HashMap<String, Vec<Pending>>,
    known: HashMap<String, Known>,
}

/// A parsed request, by its name.
#[derive(Clone, Debug)]
struct Known {
    uid: Option<String>,
    /// The node of the request; `None` for other kinds or without a readable name.
    node: Option<String>,
}

#[derive(Clone, Debug)]
struct Pending {
    kind: Kind,
    age: (Option<Timestamp>, String),
    requester: String,
    key_info: Vec<u8>,
    granted: bool,
}

/// The effect of newer requests on a request.
#[derive(Debug)]
pub(crate) enum Newer<'a> {
    /// Number of newer requests for other keys.
    Others(usize),
    /// A newer request for the same key.
    Same(&'a str),
}

impl View {
    /// Adds or replaces a request. A denied or failed request is removed; an approved request makes older requests
    /// for the same superfluous.
    ///
    /// Each UID is parsed once.
    pub fn set_request<'r>(&mut self, request: impl Into<Request<'r>>) {
        let request = request.into();
        if request.decided.is_some() && !request.is_granted() {
            return self.remove_request(request.name);
        }
        match self.pending.known.get(request.name) {
            Some(known) if known.uid.is_some() && known.uid.as_deref() == request.uid => {
                let granted = request.is_granted();
                if let Some(pending) = self.pending.find(request.name) {
                    pending.granted = granted;
                }
            }
            _ => {
                self.remove_request(request.name);
                self.pending.add(&request);
            }
        }
    }

    /// Removes a request.
    pub fn remove_request(&mut self, name: &str) {
        let Some(Known { node: Some(node), .. }) = self.pending.known.remove(name) else { return };
        if let Some(list) = self.pending.by_node.get_mut(&node) {
            list.retain(|pending| pending.age.1 != name);
            if list.is_empty() {
                self.pending.by_node.remove(&node);
            }
        }
    }

    /// Names of all known requests.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &str> {
        self.pending.known.keys().map(String::as_str)
    }

    /// Names of the requests about a node.
    pub(crate) fn requests_of(&self, node: &str) -> impl Iterator<Item = &str> {
        let list = self.pending.by_node.get(node).into_iter().flatten();
        list.map(|pending| pending.age.1.as_str())
    }

    /// The node of a known request.
    pub(crate) fn node_of_request(&self, name: &str) -> Option<&str> {
        self.pending.known.get(name)?.node.as_deref()
    }
}

impl Pending {
    fn from_request(request: &Request<'_>) -> Option<(String, Self)> {
        let kind = Kind::from_signer(request.signer)?;
        let der = pem::decode(request.pem).ok()?;
        let parsed = CertificationRequest::parse(&der).ok()?;
        let node = parsed.subject().common_name()?.strip_prefix(kind.prefix())?;
        let pending = Self {
            kind,
            age: (request.created, request.name.to_owned()),
            requester: request.username.to_owned(),
            key_info: parsed.key_info().to_vec(),
            granted: request.is_granted(),
        };
        Some((node.to_owned(), pending))
    }
}

impl PendingRequests {
    fn add(&mut self, request: &Request<'_>) {
        let (node, pending) = Pending::from_request(request).unzip();
        let known = Known { uid: request.uid.map(str::to_owned), node: node.clone() };
        self.known.insert(request.name.to_owned(), known);
        if let (Some(node), Some(pending)) = (node, pending) {
            let list = self.by_node.entry(node).or_default();
            let place = list.partition_point(|other| other.age > pending.age);
            list.insert(place, pending);
        }
    }

    fn find(&mut self, name: &str) -> Option<&mut Pending> {
        let node = self.known.get(name)?.node.as_ref()?;
        self.by_node.get_mut(node)?.iter_mut().find(|pending| pending.age.1 == name)
    }

    /// Checks the newer requests of `kind` for `node` by the same requester. Stops counting other keys at `most`.
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
        // Other requesters' requests for this node are refused; they must not crowd out the node's own.
        let own = |other: &&Pending| other.kind == kind && other.requester == request.username;
        for other in newer.filter(own) {
            if other.key_info == key_info {
                return Newer::Same(&other.age.1);
            }
            // An approved request does not count against the limit.
            if !other.granted && !keys.contains(&other.key_info.as_slice()) {
                keys.push(&other.key_info);
            }
            if keys.len() >= most {
                break;
            }
        }
        Newer::Others(keys.len())
    }
}
