//! Maps the addresses of instances to the loopback ports of their stand-ins.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use wmco_ssh::{ByteStream, Dialer, TcpDialer};

/// Dials stand-ins.
#[derive(Debug)]
pub(super) struct MappedDialer(BTreeMap<String, SocketAddr>);

impl MappedDialer {
    pub(super) fn new(addresses: BTreeMap<String, SocketAddr>) -> Self {
        Self(addresses)
    }
}

#[async_trait]
impl Dialer for MappedDialer {
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream> {
        let loopback = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        match self.0.get(address) {
            Some(to) => TcpDialer.dial(&to.ip().to_string(), to.port()).await,
            // Jump hosts are listed as they are.
            None if loopback => TcpDialer.dial(address, port).await,
            None => Err(io::Error::new(io::ErrorKind::HostUnreachable, "no simulated host")),
        }
    }
}
