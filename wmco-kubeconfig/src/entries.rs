//! The cluster and the user of the current context, field by field.
//!
//! As kubectl reads them: an empty field counts as none, data come before files, a server without a scheme is reached
//! by TLS if the kubeconfig says anything of TLS, and credentials are sent by TLS only.
//! Source: <https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/>,
//! <https://pkg.go.dev/k8s.io/client-go/rest#Config>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig};
use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use secrecy::ExposeSecret as _;
use wmco_core::url::{self, UrlError};

use super::{FieldError, KubeconfigError, proxy, token};

/// A field, and what is wrong with its value.
type Wrong = (&'static str, FieldError);

/// The bytes of a field with data, or of the file that another field names, with the field that they are from.
type Loaded = Option<(&'static str, Vec<u8>)>;

/// The configuration that the current context of a kubeconfig asks for.
///
/// # Errors
/// It names no context, cluster or server, or a field has a value that cannot be used.
pub(super) fn current(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigError> {
    let Kubeconfig { current_context, contexts, clusters, auth_infos, .. } = kubeconfig;
    let absent =
        |kind: &str, name: &str| KubeconfigError::Absent { entry: format!("{kind} {name}") };
    let name = filled(current_context).ok_or(KubeconfigError::NoContext)?;
    let context = contexts.into_iter().find(|it| it.name == name).and_then(|it| it.context);
    let context = context.ok_or_else(|| absent("context", &name))?;
    let cluster = clusters.into_iter().find(|it| it.name == context.cluster);
    let cluster = cluster.and_then(|it| it.cluster);
    let cluster = cluster.ok_or_else(|| absent("cluster", &context.cluster))?;
    let user_name = context.user.unwrap_or_default();
    let user = auth_infos.into_iter().find(|it| it.name == user_name);
    if user.is_none() && !user_name.is_empty() {
        return Err(absent("user", &user_name));
    }
    let mut user = user.and_then(|it| it.auth_info).unwrap_or_default();
    let of = |kind: &str, name: &str| {
        let entry = format!("{kind} {name}");
        move |(field, source)| KubeconfigError::Field { entry, field, source }
    };
    let has_certificate = check_user(&mut user).map_err(of("user", &user_name))?;
    let mut config =
        of_cluster(cluster, user, has_certificate).map_err(of("cluster", &context.cluster))?;
    config.default_namespace = filled(context.namespace).unwrap_or(config.default_namespace);
    Ok(config)
}

fn of_cluster(
    mut cluster: Cluster,
    mut user: AuthInfo,
    has_certificate: bool,
) -> Result<Config, Wrong> {
    const SERVER: &str = "server";
    let authority = loaded(
        cluster.certificate_authority_data.take(),
        cluster.certificate_authority.take(),
        ["certificate-authority-data", "certificate-authority"],
    )?;
    let server = filled(cluster.server.take()).ok_or((SERVER, FieldError::Missing))?;
    let insecure = cluster.insecure_skip_tls_verify.unwrap_or_default();
    let scheme = if authority.is_some() || has_certificate || insecure { "https" } else { "http" };
    let full = if server.contains("://") { server } else { format!("{scheme}://{server}") };
    let wrong = |error: UrlError| (SERVER, error.into());
    let url = url::parse(&full, &["http", "https"]).map_err(wrong)?;
    if url.scheme() == Some(&Scheme::HTTP) {
        // Acting as somebody else is no credential: without it, requests would have more rights than meant.
        user = AuthInfo {
            impersonate: user.impersonate,
            impersonate_uid: user.impersonate_uid,
            impersonate_groups: user.impersonate_groups,
            impersonate_user_extra: user.impersonate_user_extra,
            ..AuthInfo::default()
        };
    }
    let url = move_user(url, &mut user).map_err(wrong)?;
    let mut config = Config::new(url);
    config.root_cert = authority.as_ref().map(certificates).transpose()?;
    cluster.server = Some(full);
    cluster.certificate_authority_data = authority.map(|(_, pem)| STANDARD.encode(pem));
    if let Some(program) = user.exec.as_mut().filter(|it| it.provide_cluster_info) {
        let told = ExecAuthCluster::try_from(&cluster);
        program.cluster = Some(told.map_err(|_| ("certificate-authority", FieldError::Base64))?);
    }
    config.auth_info = user;
    config.accept_invalid_certs = insecure;
    config.disable_compression = cluster.disable_compression.unwrap_or_default();
    config.tls_server_name = filled(cluster.tls_server_name);
    if let Some(name) = &config.tls_server_name {
        ServerName::try_from(name.as_str()).map_err(|_| ("tls-server-name", FieldError::NoName))?;
    }
    let url = filled(cluster.proxy_url).map(|url| proxy::parse(&url));
    config.proxy_url = url.transpose().map_err(|error| ("proxy-url", error))?;
    Ok(config)
}

/// User and password of a server's URL become those of the user, since the URL is in logs.
fn move_user(url: Uri, user: &mut AuthInfo) -> Result<Uri, UrlError> {
    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
    let Some((name, host)) = authority.rsplit_once('@') else { return Ok(url) };
    let (name, password) = name.split_once(':').unwrap_or((name, ""));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    user.username = Some(decoded(name));
    user.password = Some(decoded(password).into());
    let path = url.path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
    let scheme = url.scheme_str().unwrap_or_default();
    url::parse(&format!("{scheme}://{host}{path}"), &["http", "https"])
}

/// Empties what counts as none and reads the files of a user; says whether the user has a certificate.
fn check_user(user: &mut AuthInfo) -> Result<bool, Wrong> {
    const CERTIFICATE: &str = "client-certificate";
    const KEY: &str = "client-key";
    user.username = filled(user.username.take());
    user.password = user.username.as_ref().map(|_| user.password.take().unwrap_or_default());
    user.token = user.token.take().filter(|token| !token.expose_secret().is_empty());
    user.token_file = filled(user.token_file.take());
    user.impersonate = filled(user.impersonate.take());
    user.impersonate_uid = filled(user.impersonate_uid.take());
    check_headers(user)?;
    if user.exec.as_ref().is_some_and(|exec| exec.command.as_deref().is_none_or(str::is_empty)) {
        return Err(("exec.command", FieldError::Missing));
    }
    let certificate = loaded(
        user.client_certificate_data.take(),
        user.client_certificate.take(),
        ["client-certificate-data", CERTIFICATE],
    )?;
    let key = user.client_key_data.take().map(|key| key.expose_secret().to_owned());
    let key = loaded(key, user.client_key.take(), ["client-key-data", KEY])?;
    match (certificate, key) {
        (None, None) => Ok(false),
        (Some(_), None) => Err((KEY, FieldError::Missing)),
        (None, Some(_)) => Err((CERTIFICATE, FieldError::Missing)),
        (Some(certificate), Some(key)) => {
            check_identity(&certificate, &key)?;
            user.client_certificate_data = Some(STANDARD.encode(certificate.1));
            user.client_key_data = Some(STANDARD.encode(key.1).into());
            Ok(true)
        }
    }
}

/// Whether TLS can use a certificate with a key, each with its field.
fn check_identity(
    (certificate_field, certificate): &(&'static str, Vec<u8>),
    (key_field, key): &(&'static str, Vec<u8>),
) -> Result<(), Wrong> {
    let chain = CertificateDer::pem_slice_iter(certificate).filter_map(Result::ok).collect();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| (*key_field, FieldError::NoKey))?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map(drop).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => (*key_field, FieldError::OtherKey),
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            (*certificate_field, FieldError::NoCertificate)
        }
        _ => (*key_field, FieldError::NoKey),
    })
}

/// What becomes part of a header of each request.
fn check_headers(user: &AuthInfo) -> Result<(), Wrong> {
    if let Some(token) = &user.token {
        token::header(token.expose_secret()).map_err(|error| ("token", error))?;
    }
    let provided = user.auth_provider.iter().flat_map(|provider| &provider.config);
    let provided =
        provided.filter(|(name, _)| matches!(name.as_str(), "id-token" | "access-token"));
    let groups = user.impersonate_groups.iter().flatten();
    let extra = user.impersonate_user_extra.iter().flatten();
    let values = provided
        .map(|(_, value)| ("auth-provider", value))
        .chain(user.impersonate.iter().map(|value| ("as", value)))
        .chain(user.impersonate_uid.iter().map(|value| ("as-uid", value)))
        .chain(groups.map(|value| ("as-groups", value)))
        .chain(extra.flat_map(|(_, values)| values).map(|value| ("as-user-extra", value)));
    for (field, value) in values {
        HeaderValue::from_str(value).map_err(|_| (field, FieldError::Character))?;
    }
    Ok(())
}

fn loaded(
    data: Option<String>,
    file: Option<String>,
    [data_field, file_field]: [&'static str; 2],
) -> Result<Loaded, Wrong> {
    if let Some(mut text) = filled(data) {
        // Line ends in base64 mean nothing to Go.
        text.retain(|letter| !matches!(letter, '\r' | '\n'));
        let bytes = STANDARD.decode(text).map_err(|_| (data_field, FieldError::Base64))?;
        return Ok(Some((data_field, bytes)));
    }
    let Some(path) = filled(file) else { return Ok(None) };
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some((file_field, bytes))),
        Err(source) => Err((file_field, FieldError::Read { path, source })),
    }
}

/// The certificates in PEM that can be read, each in DER; at least one.
fn certificates((field, pem): &(&'static str, Vec<u8>)) -> Result<Vec<Vec<u8>>, Wrong> {
    let can_be_read = |certificate: &CertificateDer<'_>| {
        RootCertStore::empty().add(certificate.clone().into_owned()).is_ok()
    };
    let found = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).filter(can_be_read);
    let found: Vec<_> = found.map(|certificate| certificate.to_vec()).collect();
    if found.is_empty() { Err((field, FieldError::NoCertificate)) } else { Ok(found) }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
