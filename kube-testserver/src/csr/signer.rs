//! The signer for the three `kubernetes.io` signer names: checks an approved request again, then issues a
//! certificate.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, PublicKeyData, SanType, SignatureAlgorithm, SigningKey,
};
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;

use crate::store::rfc3339;

use super::{
    APPROVED, CLIENT_SIGNER, DENIED, FAILED, KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER,
    condition, text, usages,
};

/// Lifetime of certificates unless the request asks for less.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
const EC_KEY: &str = "1.2.840.10045.2.1";
const ED25519_KEY: &str = "1.3.101.112";
/// Allowed clock difference.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// Why a request cannot be read or signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// No PEM block of the right type.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem,
    /// Not the DER of a request.
    #[error("x509: {0}")]
    Der(X509Error),
    /// The issuer could not make a certificate from it.
    #[error("make the certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// The signature was not made with the key, or is for other data.
    #[error("{0}")]
    Signature(&'static str),
    /// The public key has an unsupported type.
    #[error("x509: unsupported public key algorithm")]
    Key,
}

/// The parts of a request that go into the certificate.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// Common name.
    pub(crate) common_name: String,
    /// Organizations.
    pub(crate) organizations: Vec<String>,
    names: Names,
    /// The key's bits and algorithm.
    key: Option<RequestKey>,
}

#[derive(Debug, Default)]
struct Names {
    dns: Vec<String>,
    ips: Vec<IpAddr>,
    emails: Vec<String>,
    uris: Vec<String>,
}

#[derive(Debug)]
struct RequestKey {
    bits: Vec<u8>,
    algorithm: &'static SignatureAlgorithm,
}

impl PublicKeyData for RequestKey {
    fn der_bytes(&self) -> &[u8] {
        &self.bits
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

/// Reads `spec.request`.
///
/// # Errors
/// The text is not a request in PEM.
pub(crate) fn parse(spec: &Value) -> Result<Parsed, RequestError> {
    let pem = STANDARD.decode(text(spec, "request")).map_err(|_| RequestError::Pem)?;
    let (_, block) = x509_parser::pem::parse_x509_pem(&pem).map_err(|_| RequestError::Pem)?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err(RequestError::Pem);
    }
    let (_, request) = X509CertificationRequest::from_der(&block.contents)
        .map_err(|error| RequestError::Der(error.into()))?;
    check_signature(&request)?;
    let info = &request.certification_request_info;
    let texts = |attributes: Vec<Option<&str>>| -> Vec<String> {
        attributes.into_iter().flatten().map(ToOwned::to_owned).collect()
    };
    let common = info.subject.iter_common_name().map(|name| name.as_str().ok()).collect();
    let organizations = info.subject.iter_organization().map(|name| name.as_str().ok()).collect();
    let mut parsed = Parsed {
        common_name: texts(common).pop().unwrap_or_default(),
        organizations: texts(organizations),
        names: Names::default(),
        key: key(&request),
    };
    for extension in request.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension {
            names.general_names.iter().for_each(|name| parsed.names.add(name));
        }
    }
    Ok(parsed)
}

/// Checks that the request was signed with its own key. Unsupported algorithms pass.
fn check_signature(request: &X509CertificationRequest<'_>) -> Result<(), RequestError> {
    match request.verify_signature() {
        Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => return Ok(()),
        Err(_) => {}
    }
    let key = &request.certification_request_info.subject_pki.algorithm.algorithm;
    Err(RequestError::Signature(match key.to_id_string().as_str() {
        EC_KEY => "x509: ECDSA verification failure",
        ED25519_KEY => "x509: Ed25519 verification failure",
        _ => "crypto/rsa: verification error",
    }))
}

fn key(request: &X509CertificationRequest<'_>) -> Option<RequestKey> {
    let key = &request.certification_request_info.subject_pki;
    let bits = key.subject_public_key.data.to_vec();
    let parameter = key.algorithm.parameters.as_ref();
    let curve = parameter.and_then(|any| any.as_oid().ok()).map(|oid| oid.to_id_string());
    let algorithm = match (key.algorithm.algorithm.to_id_string().as_str(), curve.as_deref()) {
        (EC_KEY, Some("1.2.840.10045.3.1.7")) => &rcgen::PKCS_ECDSA_P256_SHA256,
        (EC_KEY, Some("1.3.132.0.34")) => &rcgen::PKCS_ECDSA_P384_SHA384,
        ("1.2.840.113549.1.1.1", _) => &rcgen::PKCS_RSA_SHA256,
        (ED25519_KEY, _) => &rcgen::PKCS_ED25519,
        _ => return None,
    };
    Some(RequestKey { bits, algorithm })
}

impl Names {
    fn add(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.emails.push((*name).to_owned()),
            GeneralName::URI(name) => self.uris.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let ip = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                self.ips.extend(ip.ok());
            }
            _ => {}
        }
    }
}

/// The signer's action for a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The request is not approved, already answered, or for another signer.
    Leave,
    /// Store this request: with a certificate, or with a condition that says why there is none.
    Update(Value),
}

/// Decides about one request.
pub(crate) fn reconcile(
    issuer: &Issuer<'_, impl SigningKey>,
    request: &Value,
    now: Timestamp,
) -> Step {
    let ours = [CLIENT_SIGNER, KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER];
    let spec = request.get("spec").unwrap_or(&Value::Null);
    let signer = text(spec, "signerName");
    let open = condition(request, APPROVED).is_some()
        && condition(request, DENIED).is_none()
        && condition(request, FAILED).is_none()
        && request.pointer("/status/certificate").is_none();
    if !open || !ours.contains(&signer) {
        return Step::Leave;
    }
    let mut update = request.clone();
    let Some(status) = update.get_mut("status").and_then(Value::as_object_mut) else {
        return Step::Leave;
    };
    let refusal = match parse(spec) {
        Err(error) => error.to_string(),
        Ok(parsed) => match unfit(signer, &parsed, &usages(request)) {
            Some(why) => why,
            None => match issue(issuer, spec, &parsed, now) {
                Ok(pem) => {
                    status.insert("certificate".to_owned(), STANDARD.encode(pem).into());
                    return Step::Update(update);
                }
                Err(error) => error.to_string(),
            },
        },
    };
    let time = rfc3339(now);
    let failed = json!({
        "type": FAILED, "status": "True", "reason": "SignerValidationFailure",
        "message": refusal, "lastUpdateTime": time, "lastTransitionTime": time,
    });
    if let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        list.push(failed);
    }
    Step::Update(update)
}

/// The reason why a signer does not sign the request; `None` if it does.
fn unfit(signer: &str, parsed: &Parsed, usages: &[&str]) -> Option<String> {
    let names = &parsed.names;
    let serving = signer == KUBELET_SERVING_SIGNER;
    let purpose = if serving { "server auth" } else { "client auth" };
    let mut known = ["digital signature", "key encipherment", purpose];
    known.sort_unstable();
    let fits = usages.contains(&purpose) && usages.iter().all(|usage| known.contains(usage));
    let why = if signer == CLIENT_SIGNER {
        None
    } else if parsed.organizations != ["system:nodes"] {
        Some("subject organization is not system:nodes")
    } else if !parsed.common_name.starts_with("system:node:") {
        Some("subject common name does not begin with system:node:")
    } else if serving && names.dns.is_empty() && names.ips.is_empty() {
        Some("DNS or IP subjectAltName is required")
    } else if !serving && !names.dns.is_empty() {
        Some("DNS subjectAltNames are not allowed")
    } else if !names.emails.is_empty() {
        Some("Email subjectAltNames are not allowed")
    } else if !serving && !names.ips.is_empty() {
        Some("IP subjectAltNames are not allowed")
    } else if !names.uris.is_empty() {
        Some("URI subjectAltNames are not allowed")
    } else if !usages.contains(&"digital signature") {
        return Some(format!("usages did not match [{}]", known.join(" ")));
    } else {
        None
    };
    match why {
        Some(why) => Some(why.to_owned()),
        None => (!fits).then(|| format!("usages did not match [{}]", known.join(" "))),
    }
}

fn issue(
    issuer: &Issuer<'_, impl SigningKey>,
    spec: &Value,
    parsed: &Parsed,
    now: Timestamp,
) -> Result<String, RequestError> {
    let key = parsed.key.as_ref().ok_or(RequestError::Key)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // Only one entry: rcgen keeps one value for each type of attribute.
    if let Some(organization) = parsed.organizations.first() {
        params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, parsed.common_name.as_str());
    let asked = spec.get("expirationSeconds").and_then(Value::as_i64);
    let lifetime = asked.map_or(LIFETIME, |s| LIFETIME.min(SignedDuration::from_secs(s)));
    let time =
        |time: Timestamp| ASN1Time::from_timestamp(time.as_second()).map(|t| t.to_datetime());
    params.not_before = time(now - BACKDATE).map_err(RequestError::Der)?;
    params.not_after = time(now + lifetime).map_err(RequestError::Der)?;
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    let names = &parsed.names;
    for name in &names.dns {
        params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
    }
    params.subject_alt_names.extend(names.ips.iter().copied().map(SanType::IpAddress));
    for name in &names.emails {
        params.subject_alt_names.push(SanType::Rfc822Name(name.as_str().try_into()?));
    }
    for name in &names.uris {
        params.subject_alt_names.push(SanType::URI(name.as_str().try_into()?));
    }
    let usages = spec.get("usages").and_then(Value::as_array).into_iter().flatten();
    for usage in usages.filter_map(Value::as_str) {
        match usage {
            "digital signature" | "signing" => {
                params.key_usages.push(KeyUsagePurpose::DigitalSignature);
            }
            "key encipherment" => params.key_usages.push(KeyUsagePurpose::KeyEncipherment),
            "client auth" => params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth),
            "server auth" => params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth),
            _ => {}
        }
    }
    Ok(params.signed_by(key, issuer)?.pem())
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;
    use x509_parser::prelude::X509Certificate;

    use super::*;

    fn authority() -> Issuer<'static, KeyPair> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        Issuer::new(params, KeyPair::generate().unwrap())
    }

    fn request(signer: &str, organization: &str, names: &[&str], usages: &[&str]) -> Value {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, "system:node:n");
        let key = KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        json!({
            "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": usages},
            "status": {"conditions": [{"type": "Approved", "status": "True"}]},
        })
    }

    const CLIENT: [&str; 2] = ["digital signature", "client auth"];
    const SERVING: [&str; 2] = ["digital signature", "server auth"];

    #[track_caller]
    fn refused(request: &Value, expected: &str) {
        let Step::Update(update) = reconcile(&authority(), request, Timestamp::UNIX_EPOCH) else {
            panic!()
        };
        assert_eq!(update["status"]["conditions"][1]["type"], "Failed");
        assert_eq!(update["status"]["conditions"][1]["message"], expected);
        assert_eq!(update["status"].get("certificate"), None);
    }

    #[test]
    fn a_kubelet_gets_what_it_asked_for() {
        let mut request =
            request(KUBELET_SERVING_SIGNER, "system:nodes", &["n", "10.0.0.9"], &SERVING);
        request["spec"]["expirationSeconds"] = 600.into();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let Step::Update(update) = reconcile(&authority(), &request, now) else { panic!() };
        let pem = STANDARD.decode(update["status"]["certificate"].as_str().unwrap()).unwrap();
        let (_, block) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        let (_, certificate) = X509Certificate::from_der(&block.contents).unwrap();
        assert_eq!(certificate.subject().to_string(), "O=system:nodes, CN=system:node:n");
        assert_eq!(certificate.validity().not_after.timestamp(), now.as_second() + 600);
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 2);
        assert!(certificate.extended_key_usage().unwrap().unwrap().value.server_auth);
        assert_eq!(reconcile(&authority(), &update, now), Step::Leave);
    }

    #[test]
    fn wrong_requests_are_marked_as_failed() {
        let signer = KUBELET_CLIENT_SIGNER;
        refused(
            &request(signer, "wrong", &[], &CLIENT),
            "subject organization is not system:nodes",
        );
        refused(
            &request(signer, "system:nodes", &["n"], &CLIENT),
            "DNS subjectAltNames are not allowed",
        );
        refused(
            &request(KUBELET_SERVING_SIGNER, "system:nodes", &[], &SERVING),
            "DNS or IP subjectAltName is required",
        );
        refused(
            &request(signer, "system:nodes", &[], &SERVING),
            "usages did not match [client auth digital signature key encipherment]",
        );
    }

    #[test]
    fn unapproved_and_foreign_requests_are_left() {
        let mut request = request("example.test/x", "a", &[], &CLIENT);
        assert_eq!(reconcile(&authority(), &request, Timestamp::UNIX_EPOCH), Step::Leave);
        request["spec"]["signerName"] = CLIENT_SIGNER.into();
        request["status"] = json!({});
        assert_eq!(reconcile(&authority(), &request, Timestamp::UNIX_EPOCH), Step::Leave);
    }
}
