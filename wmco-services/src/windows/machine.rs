//! The machine as a whole.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::protocol::{FeatureState, RebootReason};
use wmco_core::winpath::WindowsPath;

use super::WindowsError;

/// An IPv4 default route.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DefaultRoute {
    /// Metric of the route plus that of its interface; the lowest is preferred.
    pub metric: u32,
    /// IPv4 addresses of the interface, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
}

/// An IPv4 route.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Destination network.
    pub destination: Ipv4Addr,
    /// Length of the network's prefix in bits; 0 for a default route, 32 for a single host.
    pub prefix: u8,
    /// Next hop; unspecified for a directly connected network.
    pub gateway: Ipv4Addr,
    /// Index of the interface, valid until the host restarts.
    pub interface: u32,
    /// Metric of the route plus that of its interface; the lowest is preferred.
    pub metric: u32,
}

/// A network interface.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Interface {
    /// Name of the interface, which people see and may change, for example `vEthernet (nat)`.
    pub name: String,
    /// Kind of adapter, as its driver describes it.
    pub description: String,
    /// IPv4 addresses, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
    /// IPv6 addresses that no other host was found to have, in the system's order.
    pub ipv6: Vec<Ipv6Addr>,
    /// Whether a default route uses it.
    pub leads_out: bool,
}

/// An HTTP request without a body.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// Method, for example `GET`.
    pub method: &'a str,
    /// Address of the server.
    pub address: SocketAddr,
    /// Path, from the first slash on.
    pub path: &'a str,
    /// Header names and values. May be secret.
    pub headers: &'a [(&'a str, &'a str)],
}

impl fmt::Debug for HttpRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} http://{}{}", self.method, self.address, self.path)
    }
}

/// The response to an HTTP request.
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

/// Facts about a machine, and changes of the machine as a whole.
pub trait Machine: Send + Sync {
    /// Returns the host name with its domain, if it has one.
    fn host_name(&self) -> Result<String, WindowsError>;

    /// Returns the Windows build, for example `10.0.20348`.
    fn os_build(&self) -> Result<String, WindowsError>;

    /// Returns all network interfaces, in the system's order.
    fn interfaces(&self) -> Result<Vec<Interface>, WindowsError>;

    /// Returns the IPv4 addresses of all interfaces except loopback, in the system's order.
    fn addresses(&self) -> Result<Vec<Ipv4Addr>, WindowsError> {
        let all = self.interfaces()?.into_iter().flat_map(|interface| interface.addresses);
        Ok(all.filter(|address| !address.is_loopback()).collect())
    }

    /// Returns the IPv6 addresses of all interfaces by which other hosts may reach this host, in the system's order.
    fn ipv6(&self) -> Result<Vec<Ipv6Addr>, WindowsError> {
        let is_of_others = |address: &Ipv6Addr| {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local())
        };
        let all = self.interfaces()?.into_iter().flat_map(|interface| interface.ipv6);
        Ok(all.filter(is_of_others).collect())
    }

    /// Returns the makers that the firmware names: of the machine and of the firmware itself, with its version.
    fn firmware(&self) -> Result<String, WindowsError>;

    /// Returns all IPv4 default routes.
    fn default_routes(&self) -> Result<Vec<DefaultRoute>, WindowsError>;

    /// Returns the free bytes, within quotas, on the disk of `folder`.
    fn free_bytes(&self, folder: &WindowsPath) -> Result<u64, WindowsError>;

    /// Kind of the installation: `Server`, `Server Core`, or `Client` for a desktop release such as Windows 11, whose builds
    /// may have the numbers of a server's.
    fn installation(&self) -> Result<String, WindowsError>;

    /// Whether this program has the rights of an administrator.
    fn is_administrator(&self) -> Result<bool, WindowsError>;

    /// Whether a program listens on the TCP port, on any address.
    fn is_listening(&self, port: u16) -> Result<bool, WindowsError>;

    /// Returns all IPv4 routes, in the system's order.
    fn routes(&self) -> Result<Vec<Route>, WindowsError>;

    /// Adds a route to one address with the interface, gateway and metric of `via`, until the host restarts. An
    /// existing route to that address stays as it is.
    fn add_host_route(&self, to: Ipv4Addr, via: &Route) -> Result<(), WindowsError>;

    /// Returns the state of the containers feature.
    fn containers(&self) -> Result<FeatureState, WindowsError>;

    /// Enables the containers feature; may take minutes.
    fn enable_containers(&self) -> Result<(), WindowsError>;

    /// Renames the computer from the next start of the host on.
    fn rename(&self, name: &str) -> Result<(), WindowsError>;

    /// Orders a restart and returns.
    fn restart(&self) -> Result<(), WindowsError>;

    /// Returns an identity that changes with every start of the host.
    fn boot_id(&self) -> Result<String, WindowsError>;

    /// Returns why Windows itself needs a restart: features and the computer's name.
    fn pending_reboot(&self) -> Result<BTreeSet<RebootReason>, WindowsError>;

    /// Returns the names of all HNS networks.
    fn networks(&self) -> Result<BTreeSet<String>, WindowsError>;

    /// Removes an HNS network with its endpoints; returns whether it existed.
    fn remove_network(&self, name: &str) -> Result<bool, WindowsError>;

    /// Ends every process that runs one of `programs`, with its children; returns their number. The calling process is
    /// never ended.
    fn end_processes(&self, programs: &BTreeSet<WindowsPath>) -> Result<usize, WindowsError>;

    /// Sends an HTTP request, without a proxy and without following redirects; `None` when there is no HTTP response
    /// within `limit`.
    fn http(
        &self,
        request: &HttpRequest<'_>,
        limit: SignedDuration,
    ) -> Result<Option<HttpAnswer>, WindowsError>;

    /// Returns the running program's own file; `None` when no [`WindowsPath`] can hold its path, for example below the
    /// folder of a user whose name contains a blank. Our folders are not such paths.
    fn executable(&self) -> Result<Option<WindowsPath>, WindowsError>;

    /// Opens the running program's own file for reading.
    fn open_executable(&self) -> Result<Box<dyn Read + Send>, WindowsError>;
}
