//! `check host`: whether a host is fit to become a node.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, value_parser};
use wmco_core::facts::Facts;
use wmco_core::preflight::{self, HostSeen};
use wmco_core::protocol::{PROTOCOL, Probe};

use super::check_cluster::Found;
use super::{Answer, Output};
use crate::input::{self, Reader};

/// Arguments of `check host`.
#[derive(Args, Debug)]
pub struct Host {
    /// Output of `windows-instance-config-daemon.exe probe` on the host; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: PathBuf,
    /// File with DNS answers: {"dns": {"reverse": {IP: [NAME]}}}; without it DNS is not checked.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// UDP port of the cluster's overlay, if not the default.
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    vxlan_port: Option<u16>,
    #[command(flatten)]
    output: Output,
}

impl Host {
    /// Checks and prints what was found. "No" means that the host would be left as it is.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let mut reader = Reader::new(std::io::stdin());
        let text = reader.text(&self.file)?;
        let probe: Probe = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is not what `windows-instance-config-daemon.exe probe` prints",
                input::name(&self.file)
            )
        })?;
        if probe.protocol != PROTOCOL {
            bail!(
                "{} is of an agent that speaks protocol {}, not {PROTOCOL}: run the agent of this version on the host",
                input::name(&self.file),
                probe.protocol
            );
        }
        let facts = match &self.facts {
            Some(file) => Some(reader.facts(file)?),
            None => None,
        };
        let reverse = |facts: Facts| -> Vec<String> {
            let names =
                |address: &Ipv4Addr| facts.dns.reverse.get(&IpAddr::from(*address)).cloned();
            probe.addresses.iter().filter_map(names).flatten().collect()
        };
        let names = facts.map(reverse);
        let seen = HostSeen {
            reverse_names: names.as_deref(),
            vxlan_port: self.vxlan_port,
            ..HostSeen::of(&probe)
        };
        Found::of(preflight::host(&seen)).print(self.output, "the host")
    }
}
