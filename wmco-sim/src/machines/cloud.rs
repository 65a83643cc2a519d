//! The instances of a cloud, which run the Machines.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::NodeAddress;
use tokio::time::Instant;
use wmco_core::names::platforms;

use super::boot::Booted;
use crate::host::SimHost;

/// Longest computer name on Windows. Azure derives the computer's name from the Machine's.
const LONGEST_COMPUTER_NAME: usize = 15;

/// Number of addresses in a subnet of [`address`].
const SUBNET: u32 = 250;

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// The Machine's name.
    pub(super) machine: String,
    pub(super) address: Ipv4Addr,
    pub(super) provider_id: String,
    pub(super) computer_name: String,
    /// Name in the cloud's DNS and metadata service.
    pub(super) cloud_name: String,
    pub(super) booted: Booted,
    /// Time at which its user data has run.
    pub(super) ready_at: Instant,
    pub(super) host: Option<Arc<SimHost>>,
}

/// All instances, by the UIDs of their Machines.
#[derive(Debug, Default)]
pub(super) struct Cloud {
    pub(super) instances: BTreeMap<String, Instance>,
    made: u32,
}

/// Why a cloud refuses to create an instance.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{name}` is longer than a computer name of {LONGEST_COMPUTER_NAME} characters, call the MachineSet something shorter"
)]
pub(super) struct BadName {
    name: String,
}

impl Cloud {
    /// Creates an instance that has not booted yet.
    pub(super) fn create(
        &mut self,
        platform: &str,
        machine: &str,
        uid: &str,
        booted: Booted,
        reuse: bool,
        ready_at: Instant,
    ) -> Result<(), BadName> {
        let address = if reuse { self.lowest_free() } else { address(self.made) };
        self.made += 1;
        let short = uid.split('-').next().unwrap_or_default();
        let computer_name = match platform {
            platforms::AWS => format!("EC2AMAZ-{}", short.get(..7).unwrap_or(short).to_uppercase()),
            platforms::AZURE if machine.len() > LONGEST_COMPUTER_NAME => {
                return Err(BadName { name: machine.to_owned() });
            }
            platforms::AZURE => machine.to_owned(),
            _ => format!("WIN-{}", short.to_uppercase()),
        };
        let cloud_name = if platform == platforms::AWS {
            format!("ip-{}.ec2.internal", address.to_string().replace('.', "-"))
        } else {
            machine.to_owned()
        };
        let instance = Instance {
            machine: machine.to_owned(),
            address,
            provider_id: format!("{}:///sim-zone/i-{uid}", platform.to_lowercase()),
            computer_name,
            cloud_name,
            booted,
            ready_at,
            host: None,
        };
        self.instances.insert(uid.to_owned(), instance);
        Ok(())
    }

    /// Returns the real SSH address of the host with this address.
    pub(super) fn ssh_address(&self, address: Ipv4Addr) -> Option<SocketAddr> {
        let instance = self.instances.values().find(|instance| instance.address == address)?;
        Some(instance.host.as_ref()?.ssh_address())
    }

    fn lowest_free(&self) -> Ipv4Addr {
        let is_free = |address: &Ipv4Addr| self.instances.values().all(|i| i.address != *address);
        // At least one of these is free.
        (0..=self.made).map(address).find(is_free).unwrap_or(Ipv4Addr::UNSPECIFIED)
    }
}

impl Instance {
    /// Returns the addresses that the Machine reports for a host at `address`.
    pub(super) fn addresses(&self, address: Ipv4Addr) -> Vec<NodeAddress> {
        let entry = |type_: &str, address: String| NodeAddress { address, type_: type_.to_owned() };
        vec![
            entry("InternalIP", address.to_string()),
            entry("InternalDNS", self.cloud_name.clone()),
            entry("Hostname", self.cloud_name.clone()),
        ]
    }
}

/// Powers off instances without a Machine.
pub(super) fn switch_off(gone: impl IntoIterator<Item = Instance>) {
    for host in gone.into_iter().filter_map(|instance| instance.host) {
        host.power_off();
    }
}

/// Returns the address with this number.
fn address(number: u32) -> Ipv4Addr {
    // Starts at 10.0.128.1.
    Ipv4Addr::from_bits(0x0a00_8000 + (number / SUBNET) * 256 + number % SUBNET + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b2c3d-0000-4000-8000-00000000000";

    fn made(cloud: &mut Cloud, platform: &str, machine: &str, uid: &str, reuse: bool) -> Instance {
        let booted = Booted::with(platform, "");
        cloud.create(platform, machine, uid, booted, reuse, Instant::now()).unwrap();
        cloud.instances.get(uid).cloned().unwrap()
    }

    #[test]
    fn names_are_those_of_the_platform() {
        for (platform, computer, cloud) in [
            (platforms::AWS, "EC2AMAZ-0A1B2C3", "ip-10-0-128-1.ec2.internal"),
            (platforms::AZURE, "win-abcde", "win-abcde"),
            (platforms::VSPHERE, "WIN-0A1B2C3D", "win-abcde"),
        ] {
            let instance = made(&mut Cloud::default(), platform, "win-abcde", UID, false);
            assert_eq!(instance.computer_name, computer);
            assert!(instance.computer_name.len() <= LONGEST_COMPUTER_NAME);
            assert_eq!(instance.cloud_name, cloud);
        }
    }

    #[test]
    fn azure_makes_no_machine_of_a_long_name() {
        let mut cloud = Cloud::default();
        let name = "a-name-of-sixteen";
        let booted = Booted::with(platforms::AZURE, "");
        let refused =
            cloud.create(platforms::AZURE, name, UID, booted, false, Instant::now()).unwrap_err();
        assert_eq!(refused, BadName { name: name.to_owned() });
        assert!(cloud.instances.is_empty());
    }

    #[test]
    fn addresses_differ_and_are_given_again_only_if_asked() {
        for reuse in [false, true] {
            let mut cloud = Cloud::default();
            let uids = ["a", "b"].map(|end| format!("{UID}{end}"));
            let [a, b] =
                uids.each_ref().map(|uid| made(&mut cloud, platforms::GCP, "m", uid, reuse));
            assert_ne!(a.address, b.address);
            assert_ne!(a.provider_id, b.provider_id);
            cloud.instances.remove(&uids[0]);
            let next = made(&mut cloud, platforms::GCP, "m", UID, reuse);
            assert_eq!(next.address == a.address, reuse);
            assert_ne!(next.address, b.address);
        }
    }

    #[test]
    fn no_address_ends_with_0_or_255() {
        let ends: Vec<u8> = (0..2000).map(|n| address(n).octets()[3]).collect();
        assert!(ends.iter().all(|end| (1..=250).contains(end)));
        assert_eq!(address(2000), Ipv4Addr::new(10, 0, 136, 1));
    }
}
