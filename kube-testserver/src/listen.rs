//! Common parts of the listeners: start errors, and the peer of a connection.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::authority::CertificateError;
use super::error::ApiError;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Keys or certificates could not be made.
    #[error("make the cluster's certificates")]
    #[non_exhaustive]
    Certificate {
        /// The cause.
        source: CertificateError,
    },
    /// The port could not be opened.
    #[error("listen on {address}")]
    #[non_exhaustive]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// An object of [`Builder::object`](crate::Builder::object) or a definition of
    /// [`Builder::crd`](crate::Builder::crd) was refused.
    #[error("create {object}")]
    #[non_exhaustive]
    Object {
        /// Kind and name.
        object: String,
        /// The API's error.
        source: Box<ApiError>,
    },
    /// TLS refused the server's key or the CA.
    #[error("set up TLS")]
    #[non_exhaustive]
    Tls {
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StartError {
    /// Keys or certificates could not be made.
    pub(crate) fn certificate(source: CertificateError) -> Self {
        Self::Certificate { source }
    }
}

/// The client of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    /// The client's certificate in DER, verified against the cluster's CA.
    pub certificate: Option<Arc<[u8]>>,
    /// The client's address.
    pub address: SocketAddr,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = self.certificate.is_some();
        f.debug_struct("Peer").field("address", &self.address).field("certificate", &has).finish()
    }
}
