//! Requests for client certificates.

use std::net::IpAddr;

use base64::Engine as _;
use jiff::SignedDuration;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use wmco_core::names;
use wmco_core::secret::Secret;

/// The content of a certificate request.
#[derive(Clone, Debug)]
pub struct RequestContent {
    /// The signer, for example `kubernetes.io/kube-apiserver-client`.
    pub signer: &'static str,
    /// Common name: the user.
    pub user: String,
    /// Organization: the user's group.
    pub group: &'static str,
    /// Alternative DNS names.
    pub dns_names: Vec<String>,
    /// Alternative IP addresses.
    pub addresses: Vec<IpAddr>,
    /// Key usages, as the API spells them.
    pub usages: &'static [&'static str],
    /// Requested lifetime; `None` leaves it to the signer.
    pub lifetime: Option<SignedDuration>,
}

impl RequestContent {
    /// Returns the content of the request by the daemon on `node`. Source: `docs/contract/wicd.md`, WICD41.
    pub fn daemon(node: &str, lifetime: SignedDuration) -> Self {
        Self {
            signer: "kubernetes.io/kube-apiserver-client",
            user: format!("{}{node}", names::WICD_USER_PREFIX),
            group: names::WICD_NODES_GROUP,
            dns_names: Vec::new(),
            addresses: Vec::new(),
            usages: &["digital signature", "client auth", "key encipherment"],
            lifetime: Some(lifetime),
        }
    }
}

/// A request with its private key.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// The private key, PEM.
    pub key: Secret,
    /// The CertificateSigningRequest to create.
    pub object: Value,
}

/// A key or request could not be generated.
#[derive(Debug, thiserror::Error)]
#[error("no certificate request could be made for {user}, check its name")]
pub struct RequestError {
    user: String,
    source: rcgen::Error,
}

/// Generates a new P-256 key and a request for it.
///
/// # Errors
/// [`RequestError`] when a name is not valid in a certificate.
pub fn request(wanted: &RequestContent) -> Result<NewRequest, RequestError> {
    make(wanted).map_err(|source| RequestError { user: wanted.user.clone(), source })
}

fn make(wanted: &RequestContent) -> Result<NewRequest, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(wanted.dns_names.clone())?;
    let addresses = wanted.addresses.iter().copied().map(SanType::IpAddress);
    params.subject_alt_names.extend(addresses);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, wanted.group);
    params.distinguished_name.push(DnType::CommonName, wanted.user.as_str());
    let pem = params.serialize_request(&key)?.pem()?;
    let mut object = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64::engine::general_purpose::STANDARD.encode(pem),
            "signerName": wanted.signer,
            "usages": wanted.usages,
        },
    });
    if let (Some(lifetime), Some(spec)) = (wanted.lifetime, object.pointer_mut("/spec"))
        && let Some(spec) = spec.as_object_mut()
    {
        spec.insert("expirationSeconds".to_owned(), json!(lifetime.as_secs()));
    }
    Ok(NewRequest { key: Secret::new(key.serialize_pem()), object })
}

impl NewRequest {
    /// Returns the text to store: the issued certificate chain, then the key.
    pub fn with_chain(&self, chain: &[u8]) -> Secret {
        let mut text = chain.trim_ascii_end().to_vec();
        text.push(b'\n');
        text.extend_from_slice(self.key.expose());
        Secret::new(text)
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer as _, ParsedExtension, X509CertificationRequest};

    use super::*;

    /// Calls `look` with the parsed request.
    fn read(object: &Value, look: impl FnOnce(&X509CertificationRequest<'_>)) {
        let text = object.pointer("/spec/request").and_then(Value::as_str).unwrap();
        let pem = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).unwrap();
        request.verify_signature().unwrap();
        look(&request);
    }

    #[test]
    fn the_daemons_request_is_what_the_operator_approves() {
        let wanted = RequestContent::daemon("win-1", SignedDuration::from_hours(1));
        let made = request(&wanted).unwrap();
        let spec = &made.object["spec"];
        assert_eq!(spec["expirationSeconds"], 3600);
        assert_eq!(spec["signerName"], "kubernetes.io/kube-apiserver-client");
        assert_eq!(spec["usages"], json!(["digital signature", "client auth", "key encipherment"]));
        assert_eq!(made.object["metadata"], json!({"generateName": "csr-"}));
        read(&made.object, |request| {
            let info = &request.certification_request_info;
            let subject = info.subject.to_string();
            assert_eq!(subject, "O=system:wicd-nodes, CN=system:wicd-node:win-1");
            assert_eq!(request.requested_extensions().map(Iterator::count).unwrap_or_default(), 0);
        });
    }

    #[test]
    fn names_and_addresses_are_asked_for() {
        let wanted = RequestContent {
            dns_names: vec!["winhost".to_owned()],
            addresses: vec![IpAddr::from([10, 0, 0, 10])],
            lifetime: None,
            ..RequestContent::daemon("win-1", SignedDuration::ZERO)
        };
        let made = request(&wanted).unwrap();
        assert!(made.object["spec"].get("expirationSeconds").is_none());
        read(&made.object, |request| {
            let names: Vec<String> = request
                .requested_extensions()
                .unwrap()
                .filter_map(|extension| match extension {
                    ParsedExtension::SubjectAlternativeName(san) => Some(&san.general_names),
                    _ => None,
                })
                .flatten()
                .map(ToString::to_string)
                .collect();
            assert_eq!(names, ["DNSName(winhost)", "IPAddress(0a:00:00:0a)"]);
        });
    }

    #[test]
    fn every_request_has_a_key_of_its_own_that_is_never_shown() {
        let wanted = RequestContent::daemon("win-1", SignedDuration::from_hours(1));
        let (one, two) = (request(&wanted).unwrap(), request(&wanted).unwrap());
        assert_ne!(one.key, two.key);
        assert!(!format!("{one:?}").contains("PRIVATE KEY"));
    }
}
