//! Access for tests: clients, kubeconfigs, and objects without HTTP.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kube::{Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{ApiError, Result, Subject};
use super::identity::User;
use super::resources::StorageKey;
use super::{CertificateError, CertifiedKey, TestServer, kubeconfig, preload};

/// # Clients
impl TestServer {
    /// A client with administrator rights.
    ///
    /// # Errors
    /// Like [`client_as`](Self::client_as).
    pub fn client(&self) -> kube::Result<Client> {
        self.client_as(User::admin())
    }

    /// A client of `user`, with the rights that RBAC grants. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// With the feature `tls`, `kube` needs a TLS stack: its feature `rustls-tls` or `openssl-tls`.
    pub fn client_as(&self, user: User) -> kube::Result<Client> {
        Client::try_from(self.config(user)?)
    }

    /// The configuration for [`client_as`](Self::client_as), to change timeouts, retries or the default namespace.
    /// The user authenticates with a token that is valid as long as the server runs.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn config(&self, user: User) -> kube::Result<Config> {
        let failed = |error| kube::Error::Service(Box::new(error));
        let token = self.shared.pki.tokens().admit(user).map_err(failed)?;
        let url = self.url().parse().map_err(|error: axum::http::uri::InvalidUri| {
            kube::Error::HttpError(axum::http::Error::from(error))
        })?;
        let mut config = Config::new(url);
        config.auth_info.token = Some(token.into());
        #[cfg(feature = "tls")]
        {
            config.root_cert = Some(vec![self.shared.pki.authority.der().to_vec()]);
        }
        Ok(config)
    }

    /// The certificate of the CA that signed the server's and all clients' certificates, in PEM.
    pub fn ca_pem(&self) -> &str {
        self.shared.pki.ca_pem()
    }

    /// A certificate that authenticates as `user` in `groups`; `system:masters` may do everything. Without the
    /// feature `tls` no client can present it.
    ///
    /// # Errors
    /// A name is not valid in a certificate.
    pub fn client_certificate(
        &self,
        user: &str,
        groups: &[&str],
    ) -> Result<CertifiedKey, CertificateError> {
        self.shared.pki.authority.client(user, groups)
    }

    /// A kubeconfig (JSON, which is YAML) for `user` in `groups`, for kubectl and other programs.
    /// It holds a private key, without the feature `tls` a token.
    ///
    /// # Errors
    /// A name is not valid in a certificate.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<String, CertificateError> {
        #[cfg(feature = "tls")]
        return self.shared.pki.authority.kubeconfig(&self.url(), user, groups);
        #[cfg(not(feature = "tls"))]
        {
            let known = groups.iter().fold(User::new(user), |user, group| user.group(*group));
            let token = self.shared.pki.tokens().admit(known);
            let token = token.map_err(|_| CertificateError::no_randomness())?;
            Ok(kubeconfig::with_token(&self.url(), user, &token))
        }
    }

    /// Writes [`TestServer::kubeconfig`] to a file, on Unix readable only by its owner.
    ///
    /// # Errors
    /// The file cannot be written, or a name is not valid in a certificate.
    pub fn write_kubeconfig(&self, path: &Path, user: &str, groups: &[&str]) -> io::Result<()> {
        let text = self.kubeconfig(user, groups).map_err(io::Error::other)?;
        kubeconfig::write(path, &text)
    }
}

/// # Objects
///
/// With administrator rights and without HTTP, so no request is recorded and no fault is injected. Use `put`, `get`
/// and `list` for typed objects; `object` and `objects` return stored objects as JSON.
impl TestServer {
    /// Creates an object, typed or JSON, or replaces an existing one. Defaults, validation and controllers run as
    /// for any request. Returns the stored object. An object without a namespace goes to `default`.
    ///
    /// # Errors
    /// The API's error.
    pub fn put<T: Serialize + DeserializeOwned>(&self, object: &T) -> Result<T> {
        let object = serde_json::to_value(object).map_err(|error| unreadable(&error))?;
        let stored = preload::put(&self.shared, &object)?;
        T::deserialize(&*stored).map_err(|error| unreadable(&error))
    }

    /// Reads an object without a namespace, for example `get::<Node>("w1")`.
    ///
    /// # Errors
    /// 404 if the object does not exist or its kind is not served, 500 if it does not fit its type.
    pub fn get<K>(&self, name: &str) -> Result<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.get_namespaced("", name)
    }

    /// Reads an object in a namespace.
    ///
    /// # Errors
    /// Like [`get`](Self::get).
    pub fn get_namespaced<K>(&self, namespace: &str, name: &str) -> Result<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let (group, plural) = (K::group(&()), K::plural(&()));
        let state = self.shared.lock();
        let resource = state.registry.find(&group, &K::version(&()), &plural);
        let resource = resource.ok_or_else(ApiError::no_such_resource)?;
        let missing = || ApiError::not_found(Subject::new(&group, &plural, name));
        let stored = state.store.get(&resource.storage(), namespace, name).ok_or_else(missing)?;
        K::deserialize(resource.present(stored)).map_err(|error| unreadable(&error))
    }

    /// All objects of a kind, in list order.
    ///
    /// # Errors
    /// Like [`get`](Self::get).
    pub fn list<K>(&self) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.list_namespaced("")
    }

    /// The objects of a kind in a namespace, in list order.
    ///
    /// # Errors
    /// Like [`get`](Self::get).
    pub fn list_namespaced<K>(&self, namespace: &str) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let state = self.shared.lock();
        let resource = state.registry.find(&K::group(&()), &K::version(&()), &K::plural(&()));
        let resource = resource.ok_or_else(ApiError::no_such_resource)?;
        let stored = state.store.list(&resource.storage(), namespace);
        let typed = stored.map(|stored| K::deserialize(resource.present(stored)));
        typed.collect::<Result<_, _>>().map_err(|error| unreadable(&error))
    }

    /// The stored object as JSON, for example of `("", "nodes", "", "w1")`.
    pub fn object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        let place = StorageKey::new(group, plural);
        self.shared.lock().store.get(&place, namespace, name).cloned()
    }

    /// The stored objects of a namespace (of all namespaces if empty) as JSON, in list order.
    pub fn objects(&self, group: &str, plural: &str, namespace: &str) -> Vec<Arc<Value>> {
        let place = StorageKey::new(group, plural);
        self.shared.lock().store.list(&place, namespace).cloned().collect()
    }
}

fn unreadable(error: &serde_json::Error) -> ApiError {
    ApiError::internal(&error.to_string())
}
