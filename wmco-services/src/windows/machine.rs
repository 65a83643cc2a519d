//! The machine itself.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use jiff::SignedDuration;
use wmco_core::protocol::{FeatureState, RebootReason};
use wmco_core::winpath::WindowsPath;

use super::WindowsError;

/// Facts about a machine, and the few things that are done to it as a whole.
pub trait Machine: Send + Sync {
    /// Host name with its domain, if it has one.
    fn host_name(&self) -> Result<String, WindowsError>;

    /// Windows build, for example `10.0.20348`.
    fn os_build(&self) -> Result<String, WindowsError>;

    /// IPv4 addresses of all interfaces but loopback, in the system's order.
    fn addresses(&self) -> Result<Vec<Ipv4Addr>, WindowsError>;

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

    /// Ends every process whose image is `folder\image`, with its children; tells how many. The
    /// calling process is never ended.
    fn end_processes(&self, folder: &WindowsPath, image: &str) -> Result<usize, WindowsError>;

    /// Status of the answer to `GET http://address/path`; `None` when nobody there speaks HTTP within
    /// `limit`.
    fn http_status(
        &self,
        address: SocketAddr,
        path: &str,
        limit: SignedDuration,
    ) -> Result<Option<u16>, WindowsError>;

    /// The running program's own file.
    fn executable(&self) -> Result<WindowsPath, WindowsError>;
}
