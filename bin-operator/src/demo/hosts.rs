//! The simulated Windows hosts of the demo, one per entry.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Context as _;
use wmco_core::instances::{self, Resolutions};
use wmco_core::protocol::FeatureState;
use wmco_core::secret::Secret;
use wmco_sim::host::{HostCounts, SimHost, SimHostBuilder};
use wmco_ssh::PrivateKey;

/// All hosts by IPv4 address.
pub struct Hosts(BTreeMap<String, SimHost>);

impl Hosts {
    /// Starts one per entry of `listed`, which lets `key` in; `adjust` is asked about each before.
    ///
    /// # Errors
    /// When a host cannot be started.
    pub async fn start(
        listed: &BTreeMap<String, String>,
        key: &Secret,
        adjust: impl Fn(usize, SimHostBuilder) -> SimHostBuilder,
    ) -> anyhow::Result<Self> {
        let public = PrivateKey::parse(key)?.public().authorized_key();
        let public = russh::keys::PublicKey::from_openssh(&public)?;
        let entries = instances::parse(listed, &Resolutions::default());
        let mut hosts = BTreeMap::new();
        for (number, instance) in entries.instances().enumerate() {
            let builder = SimHost::builder()
                .host_name(format!("win-{}", number + 1))
                .address(instance.ipv4)
                .user(&instance.username)
                .authorized_key(public.clone());
            let host =
                adjust(number, builder).start().await.context("a simulated host does not start")?;
            // As on hosts whose image is made for containers; without, a join restarts the host.
            host.model().set_containers(FeatureState::Enabled);
            hosts.insert(instance.ipv4.to_string(), host);
        }
        Ok(Self(hosts))
    }

    /// All hosts, by address.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SimHost)> {
        self.0.iter().map(|(address, host)| (address.as_str(), host))
    }

    /// Address to where it really listens.
    pub(super) fn addresses(&self) -> BTreeMap<String, SocketAddr> {
        self.0.iter().map(|(ip, host)| (ip.clone(), host.ssh_address())).collect()
    }

    /// What the hosts counted, in the order of their addresses.
    pub fn counts(&self) -> Vec<HostCounts> {
        self.0.values().map(SimHost::counts).collect()
    }

    /// Starts counting anew.
    pub fn reset_counts(&self) {
        self.0.values().for_each(SimHost::reset_counts);
    }

    /// Ends all of them.
    pub async fn shutdown(self) {
        for host in self.0.into_values() {
            host.shutdown().await;
        }
    }
}
