//! Maps the addresses of instances to the loopback ports of their stand-ins.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use wmco_sim::machines::MachineApi;
use wmco_ssh::{ByteStream, Dialer, TcpDialer};

/// Dials stand-ins.
#[derive(Debug)]
pub(super) struct MappedDialer {
    listed: BTreeMap<String, SocketAddr>,
    /// Knows the hosts of Machines, which come and go.
    machines: Arc<OnceLock<MachineApi>>,
}

impl MappedDialer {
    pub(super) fn new(
        listed: BTreeMap<String, SocketAddr>,
        machines: Arc<OnceLock<MachineApi>>,
    ) -> Self {
        Self { listed, machines }
    }

    fn listens_at(&self, address: &str) -> Option<SocketAddr> {
        let of_machine = || {
            let address: Ipv4Addr = address.parse().ok()?;
            self.machines.get()?.ssh_address(address)
        };
        self.listed.get(address).copied().or_else(of_machine)
    }
}

#[async_trait]
impl Dialer for MappedDialer {
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream> {
        let loopback = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        match self.listens_at(address) {
            Some(to) => TcpDialer.dial(&to.ip().to_string(), to.port()).await,
            // Jump hosts are listed as they are.
            None if loopback => TcpDialer.dial(address, port).await,
            None => Err(io::Error::new(io::ErrorKind::HostUnreachable, "no simulated host")),
        }
    }
}
