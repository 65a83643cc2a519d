//! Authenticates users by certificates and tokens.

use axum::http::HeaderMap;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::{ApiError, Result};
use crate::hex::hex;
use crate::identity::User;
use crate::store::Store;
use crate::tokens::{AUDIENCE, TokenIssuer};

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The credentials of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credentials<'a> {
    /// The client certificate in DER, already verified against our CA.
    pub certificate: Option<&'a [u8]>,
    /// The time by which the certificate is judged.
    pub certificate_time: Timestamp,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// All headers, for impersonation.
    pub headers: &'a HeaderMap,
}

/// Authenticates a request: by certificate, else by token, else as anonymous.
///
/// # Errors
/// 401 for an invalid token, or a certificate that is not valid now.
pub(crate) fn identify(
    store: &Store,
    issuer: &TokenIssuer,
    credentials: Credentials<'_>,
    now: Timestamp,
) -> Result<User> {
    let certificate = credentials.certificate.and_then(|der| X509Certificate::from_der(der).ok());
    if let Some((_, certificate)) = certificate {
        if !is_valid(&certificate, credentials.certificate_time) {
            return Err(ApiError::unauthorized());
        }
        if let Some(user) = certified(&certificate) {
            return Ok(user);
        }
    }
    let header = credentials.authorization.unwrap_or("").trim();
    let Some((scheme, token)) = header.split_once(' ') else { return Ok(User::anonymous()) };
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Ok(User::anonymous());
    }
    issuer
        .authenticate(store, token, &[AUDIENCE.to_owned()], now)
        .map(|found| found.user)
        .ok_or_else(ApiError::unauthorized)
}

/// Whether it is within the certificate's lifetime. The handshake has checked that too, but a connection may last
/// longer.
fn is_valid(certificate: &X509Certificate<'_>, now: Timestamp) -> bool {
    let validity = certificate.validity();
    (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now.as_second())
}

/// The user of a certificate: the common name is the user, the organizations are the groups.
fn certified(certificate: &X509Certificate<'_>) -> Option<User> {
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<String> = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok().map(ToOwned::to_owned))
        .collect();
    let fingerprint = hex(digest(&SHA256, certificate.as_raw()).as_ref());
    let mut user = User::authenticated(name, &groups);
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={fingerprint}")]);
    Some(user)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[track_caller]
    fn by_header(header: Option<&str>) -> Result<User> {
        let headers = HeaderMap::new();
        let now = Timestamp::UNIX_EPOCH;
        let given = Credentials {
            certificate: None,
            certificate_time: now,
            authorization: header,
            headers: &headers,
        };
        let issuer = TokenIssuer::generate().unwrap();
        identify(&Store::default(), &issuer, given, now)
    }

    #[test]
    fn without_credentials_one_is_anonymous() {
        assert_eq!(by_header(None).unwrap(), User::anonymous());
        assert_eq!(by_header(Some("Basic YTpi")).unwrap(), User::anonymous());
    }

    #[test]
    fn a_bad_token_is_refused() {
        assert_eq!(by_header(Some("Bearer nonsense")).unwrap_err().code, 401);
    }

    #[test]
    fn a_certificate_names_user_and_groups() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "system:node:n");
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let (_, certificate) = X509Certificate::from_der(der.der()).unwrap();
        let user = certified(&certificate).unwrap();
        assert_eq!(user.name, "system:node:n");
        assert_eq!(user.groups, ["system:nodes", "system:authenticated"]);
        assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    }
}
