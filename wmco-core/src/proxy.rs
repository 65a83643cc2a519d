//! The proxy that Windows nodes use.
//!
//! It can come from two places: the operator's own environment, into which OLM writes the cluster's proxy, and the
//! Proxy object itself. [`ProxySettings::in_force`] decides: the environment as a whole if it has a proxy, else the
//! object. As a whole, because an old variable combined with a new one is a setting that nobody made; the
//! environment first, because administrators can set it for the operator alone. OLM copies the object, so when OLM
//! follows a change of the object, nodes see no second change.
//!
//! Source: `docs/contract/proxy-and-trust.md`, TRUST2 to TRUST5; OpenShift's API reference,
//! "Proxy [config.openshift.io/v1]".

use std::collections::BTreeMap;
use std::fmt;

use crate::names::host;
use crate::names::objects::CLUSTER;
use crate::url::{self, UrlError};

/// Proxy variables with their values, which can hold passwords: `Debug` shows names only.
///
/// ```
/// use wmco_core::proxy::{ClusterProxy, ProxySettings};
///
/// let olm = ProxySettings::from_environment(|_| None);
/// let cluster = ClusterProxy { https: "http://proxy.test:3128", no: ".svc, .svc,10.0.0.0/8", ..ClusterProxy::default() };
/// let settings = ProxySettings::in_force(&olm, Some(cluster))?;
/// assert!(settings.is_enabled());
/// assert_eq!(settings.variables()["NO_PROXY"], ".svc,10.0.0.0/8");
/// Ok::<(), wmco_core::proxy::ProxyError>(())
/// ```
#[derive(Clone, Default, Eq, PartialEq)]
pub struct ProxySettings(BTreeMap<String, String>);

/// The `status` of the cluster's Proxy: the effective proxy. Its `spec` is the requested one.
#[derive(Clone, Copy, Default)]
pub struct ClusterProxy<'a> {
    /// `status.httpProxy`.
    pub http: &'a str,
    /// `status.httpsProxy`.
    pub https: &'a str,
    /// `status.noProxy`.
    pub no: &'a str,
}

/// Why the proxy is unknown. Shows no value, because values can hold passwords.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// A field is not the URL of a proxy.
    #[error(
        "proxy {CLUSTER}, field `status.{field}` is no URL of a proxy because it has {problem}, so nodes keep the one \
         that they have; correct `spec.{field}`, such as http://HOST:PORT"
    )]
    NoUrl {
        /// The field.
        field: &'static str,
        /// What is wrong with its value.
        problem: UrlError,
    },
    /// A variable of the operator's environment is not the URL of a proxy.
    #[error(
        "variable {name} of the operator's environment is no URL of a proxy because it has {problem}, so nodes keep \
         the one that they have; write it such as http://HOST:PORT"
    )]
    NoUrlInEnvironment {
        /// The variable.
        name: &'static str,
        /// What is wrong with its value.
        problem: UrlError,
    },
    /// The effective proxy is not known.
    #[error(
        "the `status` of proxy {CLUSTER} does not say which proxy is in force, so nodes keep the one that they have; \
         wait for the cluster network operator, or correct the object"
    )]
    NoStatus,
}

impl ProxySettings {
    /// Reads the proxy variables of an environment, including empty ones.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set =
            |name: &str| variable(name).map(|value| (name.to_owned(), canonical(name, &value)));
        Self(host::PROXY_VARIABLES.into_iter().filter_map(set).collect())
    }

    /// The effective proxy for nodes: `environment` if it has a proxy, else that of `cluster`; none without the
    /// object.
    ///
    /// # Errors
    /// The one that is used has an invalid proxy URL. Nodes then keep their present setting.
    pub fn in_force(
        environment: &Self,
        cluster: Option<ClusterProxy<'_>>,
    ) -> Result<Self, ProxyError> {
        if environment.is_enabled() {
            for name in [host::HTTP_PROXY, host::HTTPS_PROXY] {
                let url = environment.0.get(name).map(String::as_str).unwrap_or_default();
                check(url).map_err(|problem| ProxyError::NoUrlInEnvironment { name, problem })?;
            }
            return Ok(environment.clone());
        }
        let settings = cluster.map(Self::of_cluster).transpose()?.unwrap_or_default();
        Ok(if settings.is_enabled() { settings } else { environment.clone() })
    }

    fn of_cluster(cluster: ClusterProxy<'_>) -> Result<Self, ProxyError> {
        let ClusterProxy { http, https, no } = cluster;
        for (field, url) in [("httpProxy", http), ("httpsProxy", https)] {
            check(url).map_err(|problem| ProxyError::NoUrl { field, problem })?;
        }
        let set = host::PROXY_VARIABLES.into_iter().zip([http, https, no]);
        let set = set.map(|(name, value)| (name.to_owned(), canonical(name, value)));
        Ok(Self(set.filter(|(_, value)| !value.is_empty()).collect()))
    }

    /// Whether there is a proxy: `HTTP_PROXY` or `HTTPS_PROXY` is set and not empty.
    pub fn is_enabled(&self) -> bool {
        let names = |name: &&str| self.0.get(*name).is_some_and(|value| !value.trim().is_empty());
        [host::HTTP_PROXY, host::HTTPS_PROXY].iter().any(names)
    }

    /// Names and values, including passwords.
    pub const fn variables(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Normalizes a value: without surrounding blanks; for the list also without blanks around its parts, and without
/// empty and repeated parts. A comma in a URL is part of a password.
fn canonical(name: &str, value: &str) -> String {
    if name != host::NO_PROXY {
        return value.trim().to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(",")
}

/// Whether `url` is blank or the URL of a proxy.
fn check(url: &str) -> Result<(), UrlError> {
    if url.trim().is_empty() {
        return Ok(());
    }
    url::parse(url.trim(), &["http", "https"]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hush";

    fn environment(set: &[(&str, &str)]) -> ProxySettings {
        let value = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        ProxySettings::from_environment(value)
    }

    fn cluster(https: &str) -> ClusterProxy<'_> {
        ClusterProxy { https, no: ".svc", ..ClusterProxy::default() }
    }

    #[track_caller]
    fn check(set: &[(&str, &str)], object: Option<ClusterProxy<'_>>, expected: &[(&str, &str)]) {
        assert_eq!(
            ProxySettings::in_force(&environment(set), object),
            Ok(environment(expected)),
            "{set:?}"
        );
    }

    #[test]
    fn without_any_there_is_none() {
        check(&[], None, &[]);
        check(&[], Some(cluster("")), &[]);
    }

    #[test]
    fn the_object_counts_where_the_environment_names_no_proxy() {
        let object = [("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", ".svc")];
        check(&[], Some(cluster("http://p:1")), &object);
        check(&[("HTTPS_PROXY", " "), ("NO_PROXY", "a")], Some(cluster(" http://p:1 ")), &object);
    }

    #[test]
    fn the_environment_wins_as_a_whole() {
        let olm = [("HTTP_PROXY", "http://olm:1")];
        check(&olm, Some(cluster("http://p:1")), &olm);
        check(&olm, Some(cluster("no url")), &olm);
    }

    #[test]
    fn an_environment_without_a_proxy_stays_as_it_is_without_an_object() {
        let set = [("HTTP_PROXY", ""), ("NO_PROXY", "a")];
        check(&set, None, &set);
        assert_eq!(environment(&set).variables().len(), 2);
    }

    /// Otherwise every node would restart after OLM has copied the object.
    #[test]
    fn what_olm_copies_from_the_object_is_the_same() {
        let no = "b.test, a.test,,b.test ,10.0.0.0/8";
        let object = ClusterProxy { http: "http://p:1 ", https: "", no };
        let olm = environment(&[("HTTP_PROXY", "http://p:1 "), ("NO_PROXY", no)]);
        let cluster = ProxySettings::in_force(&ProxySettings::default(), Some(object)).unwrap();
        assert_eq!(ProxySettings::in_force(&olm, Some(object)), Ok(cluster.clone()));
        assert_eq!(cluster.variables()["NO_PROXY"], "b.test,a.test,10.0.0.0/8");
    }

    #[test]
    fn what_is_no_url_is_told_without_its_value() {
        for (url, problem) in [
            ("proxy.test:3128", UrlError::Form),
            ("socks5://hush:hush@p:1", UrlError::Scheme),
            ("http://", UrlError::Form),
            ("hush", UrlError::Form),
            ("http://hush hush", UrlError::Form),
            ("http://u:hush%zz@p:1", UrlError::Escape),
            ("http://u:hush%@p:1", UrlError::Escape),
            ("http://u:hu/hush@p:1", UrlError::Password),
            ("http://u:hu#hush@p:1", UrlError::Password),
        ] {
            let error =
                ProxySettings::in_force(&ProxySettings::default(), Some(cluster(url))).unwrap_err();
            assert_eq!(error, ProxyError::NoUrl { field: "httpsProxy", problem }, "{url}");
            assert!(!error.to_string().contains(SECRET), "{error}");
        }
        for url in [
            "http://u:p%40w@proxy.test:3128",
            "http://u:a,,b,a@proxy.test:3128",
            "https://[fd00::1]:3128/",
            "HTTP://10.0.0.1",
        ] {
            check(&[], Some(cluster(url)), &[("HTTPS_PROXY", url), ("NO_PROXY", ".svc")]);
        }
    }

    #[test]
    fn a_port_that_no_host_has_is_no_port_of_a_proxy() {
        for port in [":99999", ":x", ":0", ":-1", ":+1", ":3128x"] {
            for host in ["p.test", "hush:hush@p.test", "[fd00::1]"] {
                let url = format!("http://{host}{port}");
                let none = ProxySettings::default();
                let error = ProxySettings::in_force(&none, Some(cluster(&url))).unwrap_err();
                let problem = UrlError::Port;
                assert_eq!(error, ProxyError::NoUrl { field: "httpsProxy", problem }, "{url}");
            }
        }
        for url in
            ["http://p.test:65535", "http://u:80@p.test", "http://[fd00::1]", "http://p.test:1/"]
        {
            check(&[], Some(cluster(url)), &[("HTTPS_PROXY", url), ("NO_PROXY", ".svc")]);
        }
    }

    #[test]
    fn what_is_no_url_in_the_environment_is_told_without_its_value() {
        for url in ["http://hush@p.test:99999", "p.test:3128", "socks5://u:hush@p:1", "hush"] {
            for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
                let error =
                    ProxySettings::in_force(&environment(&[(name, url)]), None).unwrap_err();
                let text = error.to_string();
                assert!(text.contains(name) && text.contains("http://HOST:PORT"), "{text}");
                assert!(!text.contains(SECRET), "{text}");
            }
        }
        let both = [("HTTP_PROXY", "http://p:1"), ("HTTPS_PROXY", " ")];
        check(&both, None, &both);
    }

    /// A changed password would lock nodes out of the proxy.
    #[test]
    fn a_password_with_commas_stays_as_it_is() {
        let url = "http://u:a, ,b,a@p:1";
        let olm = environment(&[("HTTPS_PROXY", url)]);
        assert_eq!(olm.variables()["HTTPS_PROXY"], url);
        let object = ClusterProxy { http: "http://u:a,,b,a@p:1", ..ClusterProxy::default() };
        let settings = ProxySettings::in_force(&ProxySettings::default(), Some(object)).unwrap();
        assert_eq!(settings.variables()["HTTP_PROXY"], "http://u:a,,b,a@p:1");
    }

    #[test]
    fn values_are_not_shown() {
        let settings = environment(&[("HTTPS_PROXY", "http://u:hush@p:1")]);
        assert_eq!(format!("{settings:?}"), r#"{"HTTPS_PROXY"}"#);
    }
}
