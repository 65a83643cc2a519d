//! When the certificates end that nodes were given, as requests in the cluster show.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::runtime::watcher::{self, Event};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use wmco_core::names;
use x509_parser::parse_x509_certificate;

/// Most nodes that are remembered before their Nodes are known.
const MOST: usize = 4096;

/// The last certificate of each kind by node; cheap to clone. The cluster deletes requests after an hour, so a
/// process that has just started knows those of the last hour only.
#[derive(Clone, Debug, Default)]
pub struct Issued(Arc<Mutex<BTreeMap<String, BTreeMap<&'static str, Validity>>>>);

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// It begins.
    pub from: i64,
    /// It ends.
    pub until: i64,
}

impl Issued {
    /// Takes in what the watch of requests shows.
    pub(super) fn see(&self, event: &watcher::Result<Event<CertificateSigningRequest>>) {
        if let Ok(Event::Apply(request) | Event::InitApply(request)) = event
            && let Some((node, kind, validity)) = certificate_in(request)
        {
            let mut all = self.lock();
            if all.len() < MOST || all.contains_key(&node) {
                let of_node = all.entry(node).or_default();
                let last = of_node.entry(kind).or_insert(validity);
                if validity.from >= last.from {
                    *last = validity;
                }
            }
        }
    }

    /// Those of the nodes that are `known`. Others are forgotten unless they were begun `after` that time: a
    /// node has its first certificate before its Node.
    pub fn of_nodes(
        &self,
        known: impl Fn(&str) -> bool,
        after: i64,
    ) -> Vec<(String, &'static str, Validity)> {
        let mut all = self.lock();
        all.retain(|node, kinds| known(node) || kinds.values().any(|it| it.from >= after));
        let shown = all.iter().filter(|(node, _)| known(node));
        shown
            .flat_map(|(node, kinds)| kinds.iter().map(|(kind, it)| (node.clone(), *kind, *it)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<&'static str, Validity>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Validity {
    /// Of a certificate in PEM, with the name that it is for.
    pub fn of_pem(pem: &[u8]) -> Option<(Self, String)> {
        let der = CertificateDer::from_pem_slice(pem).ok()?;
        let (_, certificate) = parse_x509_certificate(&der).ok()?;
        let name = certificate.subject().iter_common_name().next();
        let name = name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned();
        let validity = certificate.validity();
        let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        (from < until).then_some((Self { from, until }, name))
    }
}

/// The node's name, what the certificate is for, and how long.
fn certificate_in(request: &CertificateSigningRequest) -> Option<(String, &'static str, Validity)> {
    let pem = request.status.as_ref()?.certificate.as_ref()?;
    let (validity, name) = Validity::of_pem(&pem.0)?;
    let node = |prefix: &str| name.strip_prefix(prefix).map(str::to_owned);
    let (kind, node) = match request.spec.signer_name.as_str() {
        "kubernetes.io/kubelet-serving" => ("kubelet-serving", node(names::NODE_USER_PREFIX)?),
        "kubernetes.io/kube-apiserver-client-kubelet" => {
            ("kubelet-client", node(names::NODE_USER_PREFIX)?)
        }
        "kubernetes.io/kube-apiserver-client" => ("wicd", node(names::WICD_USER_PREFIX)?),
        _ => return None,
    };
    Some((node, kind, validity))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn request(signer: &str, name: &str, year: i32) -> Event<CertificateSigningRequest> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(year, 1, 1);
        params.not_after = date_time_ymd(year + 1, 1, 1);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let mut request = CertificateSigningRequest::default();
        signer.clone_into(&mut request.spec.signer_name);
        let status = request.status.get_or_insert_default();
        status.certificate = Some(ByteString(certificate.pem().into_bytes()));
        Event::Apply(request)
    }

    /// Kinds and years in which they end, after these requests.
    fn known(
        requests: &[(&str, &str, i32)],
        is_node: bool,
        after: i64,
    ) -> Vec<(&'static str, i64)> {
        let issued = Issued::default();
        for (signer, name, year) in requests {
            issued.see(&Ok(request(&format!("kubernetes.io/{signer}"), name, *year)));
        }
        let year = |it: Validity| {
            let end = Timestamp::from_second(it.until).unwrap();
            end.strftime("%Y").to_string().parse().unwrap()
        };
        issued.of_nodes(|_| false, after);
        let all = issued.of_nodes(|node| is_node && node == "win-1", i64::MAX);
        all.into_iter().map(|(_, kind, it)| (kind, year(it))).collect()
    }

    #[test]
    fn the_last_certificate_of_each_kind_counts() {
        let requests = [
            ("kubelet-serving", "system:node:win-1", 2031),
            ("kubelet-serving", "system:node:win-1", 2030),
            ("kube-apiserver-client-kubelet", "system:node:win-1", 2030),
            ("kube-apiserver-client", "system:wicd-node:win-1", 2033),
        ];
        let expected = [("kubelet-client", 2031), ("kubelet-serving", 2032), ("wicd", 2034)];
        assert_eq!(known(&requests, true, 0), expected);
    }

    #[test]
    fn others_are_not_ours() {
        let requests = [
            ("kube-apiserver-client", "system:node:win-1", 2030),
            ("kubelet-serving", "win-1", 2030),
            ("etcd", "system:node:win-1", 2030),
        ];
        assert_eq!(known(&requests, true, 0), []);
    }

    #[test]
    fn those_of_nodes_that_are_gone_are_forgotten() {
        let requests = [("kubelet-serving", "system:node:win-1", 2030)];
        assert_eq!(known(&requests, false, 0), []);
        assert_eq!(known(&requests, true, i64::MAX), []);
    }
}
