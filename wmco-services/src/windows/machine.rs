//! The machine itself.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};

use jiff::SignedDuration;
use wmco_core::protocol::{FeatureState, RebootReason};
use wmco_core::winpath::WindowsPath;

use super::WindowsError;

/// A way out of the networks that a machine belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DefaultRoute {
    /// Of the route and its interface together; the least is taken.
    pub metric: u32,
    /// IPv4 addresses of the interface, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
}

/// A network interface.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Interface {
    /// Name that people see and may change, for example `vEthernet (nat)`.
    pub name: String,
    /// What kind of adapter it is, in the driver's words.
    pub description: String,
    /// IPv4 addresses, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
    /// Whether a default route goes through it.
    pub leads_out: bool,
}

/// A request without a body.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// For example `GET`.
    pub method: &'a str,
    /// Who is asked.
    pub address: SocketAddr,
    /// From the first slash on.
    pub path: &'a str,
    /// Names and values. May be secret.
    pub headers: &'a [(&'a str, &'a str)],
}

impl fmt::Debug for HttpRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} http://{}{}", self.method, self.address, self.path)
    }
}

/// What was answered.
#[derive(Clone, Eq, PartialEq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The start of the body, at most [`HTTP_BYTES`](crate::limits::HTTP_BYTES). May be secret.
    pub body: String,
}

impl fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Facts about a machine, and the few things that are done to it as a whole.
pub trait Machine: Send + Sync {
    /// Host name with its domain, if it has one.
    fn host_name(&self) -> Result<String, WindowsError>;

    /// Windows build, for example `10.0.20348`.
    fn os_build(&self) -> Result<String, WindowsError>;

    /// All network interfaces, in the system's order.
    fn interfaces(&self) -> Result<Vec<Interface>, WindowsError>;

    /// IPv4 addresses of all interfaces but loopback, in the system's order.
    fn addresses(&self) -> Result<Vec<Ipv4Addr>, WindowsError> {
        let all = self.interfaces()?.into_iter().flat_map(|interface| interface.addresses);
        Ok(all.filter(|address| !address.is_loopback()).collect())
    }

    /// All IPv4 default routes.
    fn default_routes(&self) -> Result<Vec<DefaultRoute>, WindowsError>;

    /// State of the containers feature.
    fn containers(&self) -> Result<FeatureState, WindowsError>;

    /// Switches the containers feature on; may take minutes.
    fn enable_containers(&self) -> Result<(), WindowsError>;

    /// Gives the computer another name, in force after the next start.
    fn rename(&self, name: &str) -> Result<(), WindowsError>;

    /// Orders a restart and returns.
    fn restart(&self) -> Result<(), WindowsError>;

    /// Changes with every start of the host.
    fn boot_id(&self) -> Result<String, WindowsError>;

    /// Why Windows itself wants a restart: features and the computer's name.
    fn pending_reboot(&self) -> Result<BTreeSet<RebootReason>, WindowsError>;

    /// Names of all HNS networks.
    fn networks(&self) -> Result<BTreeSet<String>, WindowsError>;

    /// Removes an HNS network with its endpoints; tells whether it was there.
    fn remove_network(&self, name: &str) -> Result<bool, WindowsError>;

    /// Ends every process that runs one of `programs`, with its children; tells how many. The calling
    /// process is never ended.
    fn end_processes(&self, programs: &BTreeSet<WindowsPath>) -> Result<usize, WindowsError>;

    /// The answer to a request over HTTP, without a proxy and without following it elsewhere; `None`
    /// when nobody there speaks HTTP within `limit`.
    fn http(
        &self,
        request: &HttpRequest<'_>,
        limit: SignedDuration,
    ) -> Result<Option<HttpAnswer>, WindowsError>;

    /// The running program's own file; `None` when no [`WindowsPath`] holds its place, as below the
    /// folder of a user whose name has a blank in it. Our folders are no such place.
    fn executable(&self) -> Result<Option<WindowsPath>, WindowsError>;

    /// Opens the running program's own file for reading.
    fn open_executable(&self) -> Result<Box<dyn Read + Send>, WindowsError>;
}
