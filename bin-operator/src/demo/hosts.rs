//! The simulated Windows hosts of the demo, one per entry.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Context as _;
use wmco_core::instances::{self, Resolutions};
use wmco_core::secret::Secret;
use wmco_sim::host::{HostCounts, SimHost};
use wmco_ssh::PrivateKey;

use super::options::Options;

/// All hosts by IPv4 address.
pub(super) struct Hosts(BTreeMap<String, SimHost>);

impl Hosts {
    /// Starts one host per entry; `options` says what is wrong with the first.
    pub(super) async fn start(
        listed: &BTreeMap<String, String>,
        key: &Secret,
        options: &Options,
    ) -> anyhow::Result<Self> {
        let public = PrivateKey::parse(key)?.public().authorized_key();
        let public = russh::keys::PublicKey::from_openssh(&public)?;
        let entries = instances::parse(listed, &Resolutions::default());
        let mut hosts = BTreeMap::new();
        for (number, instance) in entries.instances().enumerate() {
            let mut builder = SimHost::builder()
                .host_name(format!("win-{}", number + 1))
                .address(instance.ipv4)
                .user(&instance.username)
                .authorized_key(public.clone())
                .latency(options.latency);
            if number == 0 {
                for fault in &options.faults {
                    builder = builder.fault(*fault);
                }
            }
            let host = builder.start().await.context("a simulated host does not start")?;
            hosts.insert(instance.ipv4.to_string(), host);
        }
        Ok(Self(hosts))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many are to become nodes: a host with a fault may not.
    pub(super) fn expected(&self, options: &Options) -> usize {
        self.0.len() - usize::from(!options.faults.is_empty())
    }

    /// Address to where it really listens.
    pub(super) fn addresses(&self) -> BTreeMap<String, SocketAddr> {
        self.0.iter().map(|(ip, host)| (ip.clone(), host.ssh_address())).collect()
    }

    /// What the hosts counted, in the order of their addresses.
    pub(super) fn counts(&self) -> Vec<HostCounts> {
        self.0.values().map(SimHost::counts).collect()
    }

    pub(super) fn reset_counts(&self) {
        self.0.values().for_each(SimHost::reset_counts);
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) async fn shutdown(self) {
        for host in self.0.into_values() {
            host.shutdown().await;
        }
    }
}
