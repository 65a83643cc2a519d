//! Options of the demo.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use wmco_core::names::{objects, platforms};
use wmco_sim::host::Fault;

use crate::input::Reader;

/// First address of the demo's own hosts; the last part counts up.
const FIRST_ADDRESS: [u8; 4] = [10, 20, 30, 11];

/// Options of `wmco-operator demo`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of simulated Windows hosts in windows-instances
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=200))]
    pub hosts: u8,
    /// Number of simulated Windows hosts of a MachineSet
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=200))]
    pub machines: u8,
    /// Keep everything running for kubectl until Ctrl-C
    #[arg(long)]
    pub stay: bool,
    /// File with a ConfigMap windows-instances; one host is simulated per entry
    #[arg(long, value_name = "FILE")]
    pub instances: Option<PathBuf>,
    /// Added round-trip time to the hosts, for example 50ms; milliseconds without a unit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = latency)]
    pub latency: Duration,
    /// Start with a cluster that does not support Windows nodes, and repair it once its findings are reported
    #[arg(long, value_name = "KIND", value_enum)]
    pub cluster: Option<UnfitCluster>,
    /// Fault of the first host, for example black-hole or drop-upload=100000
    #[arg(long = "fault", value_name = "KIND")]
    pub faults: Vec<Fault>,
    /// Fault of the hosts of all Machines that come after the first ones, for example refuse-authentication
    #[arg(long, value_name = "KIND")]
    pub successor_fault: Option<Fault>,
}

/// Why the cluster is not fit for Windows nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum UnfitCluster {
    /// Service network with reserved addresses, and no hybrid cluster network for pods.
    BrokenNetwork,
}

fn latency(text: &str) -> Result<Duration, jiff::Error> {
    if let Ok(milliseconds) = text.parse() {
        return Ok(Duration::from_millis(milliseconds));
    }
    text.parse::<SignedDuration>()?.try_into()
}

impl Options {
    /// How many of `listed` hosts, and of those of Machines, are to become nodes: one with a fault may not.
    pub(super) fn expected(&self, listed: usize) -> usize {
        let faulty = usize::from(!self.faults.is_empty());
        listed.saturating_sub(faulty) + usize::from(self.machines)
    }

    /// The platform of the cluster: hosts that are listed need none.
    pub(super) const fn platform(&self) -> &'static str {
        if self.machines == 0 { platforms::NONE } else { platforms::AWS }
    }

    /// Data of the list of instances.
    ///
    /// # Errors
    /// When the file holds no such ConfigMap.
    pub(super) fn listed(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let Some(path) = &self.instances else {
            let [a, b, c, d] = FIRST_ADDRESS;
            let entry = |n: u8| {
                let address = std::net::Ipv4Addr::new(a, b, c, d.saturating_add(n));
                (address.to_string(), "username=Administrator".to_owned())
            };
            return Ok((0..self.hosts).map(entry).collect());
        };
        let objects = Reader::new(std::io::stdin()).objects(std::slice::from_ref(path))?;
        let name = Some(objects::INSTANCES_CONFIG_MAP);
        let map = objects
            .config_maps
            .into_iter()
            .map(|located| located.object)
            .find(|map| map.metadata.name.as_deref() == name);
        let map = map.ok_or_else(|| {
            anyhow::anyhow!(
                "{} holds no ConfigMap {}, write one with the addresses as keys",
                path.display(),
                objects::INSTANCES_CONFIG_MAP
            )
        })?;
        Ok(map.data.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Duration>) {
        assert_eq!(latency(text).ok(), expected, "{text}");
    }

    #[test]
    fn latency_has_a_unit_or_is_in_milliseconds() {
        check("50", Some(Duration::from_millis(50)));
        check("50ms", Some(Duration::from_millis(50)));
        check("1.5s", Some(Duration::from_millis(1500)));
        for wrong in ["", "-50ms", "fast", "50 apples"] {
            check(wrong, None);
        }
    }
}
