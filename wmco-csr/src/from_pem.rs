//! A request without the object around it, as in a file that OpenSSL wrote.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};

use crate::names;
use crate::pem;
use crate::pkcs10::CertificationRequest;
use crate::policy::Policy;
use crate::rule::Kind;

/// Makes a CertificateSigningRequest from the PEM text `request`. Signer, usages and identity are those of the kind
/// of certificate that its subject and names ask for.
///
/// A request that cannot be read, or that fits no kind, becomes a kubelet's first request. Its decision shows the
/// fault in the text; the checks of `spec` mean nothing in that case.
///
/// ```
/// use wmco_csr::{Kind, Policy, csr_from_pem};
///
/// let object = csr_from_pem("host.pem", b"no request".to_vec(), &Policy::new("windows-operator"));
/// assert_eq!(Kind::from_signer(&object.spec.signer_name), Some(Kind::KubeletClient));
/// ```
pub fn csr_from_pem(name: &str, request: Vec<u8>, policy: &Policy) -> CertificateSigningRequest {
    let der = pem::decode(&request).unwrap_or_default();
    let parsed = CertificationRequest::parse(&der).ok();
    let kind = parsed.as_ref().map_or(Kind::KubeletClient, Kind::of);
    let common_name = parsed.and_then(|parsed| parsed.subject().common_name());
    let own = [names::NODES_GROUP, names::AUTHENTICATED_GROUP].map(str::to_owned).to_vec();
    let (username, groups) = match kind {
        Kind::KubeletClient => {
            (policy.bootstrapper.username.clone(), policy.bootstrapper.groups.clone())
        }
        Kind::KubeletServing => (common_name.unwrap_or_default().to_owned(), own),
        Kind::Wicd => (policy.wicd.clone(), vec![names::AUTHENTICATED_GROUP.to_owned()]),
    };
    // Without one, the signer gives WICD more than it may have.
    let lifetime = match kind {
        Kind::KubeletClient | Kind::KubeletServing => None,
        Kind::Wicd => i32::try_from(policy.limits.wicd_lifetime.as_secs()).ok(),
    };
    let usages = [names::USAGE_DIGITAL_SIGNATURE, kind.essential_usage()];
    let mut object = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            expiration_seconds: lifetime,
            groups: Some(groups),
            request: ByteString(request),
            signer_name: kind.signer().to_owned(),
            usages: Some(usages.map(str::to_owned).to_vec()),
            username: Some(username),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    object.metadata.name = Some(name.to_owned());
    object
}

impl Kind {
    /// Guesses the kind of a request that has no object.
    fn of(request: &CertificationRequest<'_>) -> Self {
        let common_name = request.subject().common_name().unwrap_or_default();
        if common_name.starts_with(names::WICD_USER_PREFIX) {
            Self::Wicd
        } else if request.extensions().alternative_names().is_some() {
            Self::KubeletServing
        } else {
            Self::KubeletClient
        }
    }
}
