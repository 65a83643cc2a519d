//! Windows hosts that the Machine API creates.
//!
//! [`Machines::read`] turns Machines into [`Instance`]s, like those from the list. Source:
//! `docs/contract/machines.md`, MACH1 to MACH8.
//!
//! # Guarantees
//! - A Machine without the Windows label, or with the ignore label, is no instance.
//! - Every other Machine gives an instance or the reason why not; an invalid Machine does not affect the others.
//! - Data of a Machine's host has a key that no entry and no jump host has.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::{MachineFacts, MachineSetFacts};
use crate::instances::{Instance, OfMachine};
use crate::limits::{COMPUTER_NAME_BYTES, SSH_PORT};
use crate::names::{host, objects::MACHINE_KEY_SUFFIX, platforms};

/// All Windows Machines and all MachineSets of a cluster.
///
/// ```
/// use serde_json::json;
/// use wmco_core::facts::MachineFacts;
/// use wmco_core::machines::{Machines, key};
/// use wmco_core::names::platforms;
///
/// let machine = MachineFacts::of(&json!({
///     "metadata": {"name": "win-x7k2p", "uid": "u-1",
///         "labels": {"machine.openshift.io/os-id": "Windows"}},
///     "status": {"phase": "Provisioned",
///         "addresses": [{"type": "InternalIP", "address": "10.0.128.1"}]},
/// }));
/// let machines = Machines::read([machine], [], platforms::VSPHERE);
/// let instance = machines.get("win-x7k2p").unwrap().instance.as_ref().unwrap();
/// assert_eq!(instance.address, key("win-x7k2p"));
/// assert_eq!(instance.username, "Administrator");
/// assert_eq!(instance.machine.as_ref().unwrap().host_name.as_deref(), Some("win-x7k2p"));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Machines {
    machines: BTreeMap<String, Machine>,
    sets: BTreeMap<String, MachineSetFacts>,
}

/// A Windows Machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Machine {
    /// The Machine's fields.
    pub facts: MachineFacts,
    /// Its host, or why the host is not usable.
    pub instance: Result<Instance, Unfit>,
}

/// Why a Machine is no instance.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Unfit {
    /// It has the ignore label.
    #[error("people asked to leave it alone")]
    Ignored,
    /// It is being deleted.
    #[error("it is being deleted")]
    Deleted,
    /// It is not provisioned.
    #[error("it is in phase {0}")]
    Phase(String),
    /// It has no phase yet.
    #[error("it is in no phase yet")]
    NoPhase,
    /// It has no internal IPv4 address.
    #[error("it has no internal ipv4 address")]
    NoAddress,
    /// Its host is to get its name, which is too long for Windows.
    #[error(
        "its computer cannot have its name, of which windows keeps {COMPUTER_NAME_BYTES} characters as the netbios name"
    )]
    LongName,
}

/// The key of data about a Machine's host, and the identifier of its instance.
///
/// ```
/// use wmco_core::machines::{key, name_in};
///
/// assert_eq!(key("win-x7k2p"), "win-x7k2p_machine");
/// assert_eq!(name_in("win-x7k2p_machine"), Some("win-x7k2p"));
/// assert_eq!(name_in("10.0.0.5"), None);
/// ```
pub fn key(machine: &str) -> String {
    format!("{machine}{MACHINE_KEY_SUFFIX}")
}

/// The name of the Machine with this [`key`]; `None` for other keys.
pub fn name_in(key: &str) -> Option<&str> {
    key.strip_suffix(MACHINE_KEY_SUFFIX)
}

impl Machines {
    /// A cluster without Machines.
    pub(crate) const fn none() -> Self {
        Self { machines: BTreeMap::new(), sets: BTreeMap::new() }
    }

    /// Reads Machines and MachineSets of a cluster on `platform`, one of [`platforms`]. Ignores Machines without
    /// the Windows label.
    pub fn read(
        machines: impl IntoIterator<Item = MachineFacts>,
        sets: impl IntoIterator<Item = MachineSetFacts>,
        platform: &str,
    ) -> Self {
        let windows = machines.into_iter().filter(|machine| machine.is_windows);
        let machine = |facts: MachineFacts| {
            let instance = instance(&facts, platform);
            (facts.name.clone(), Machine { facts, instance })
        };
        let sets = sets.into_iter().map(|set| (set.name.clone(), set));
        Self { machines: windows.map(machine).collect(), sets: sets.collect() }
    }

    /// All Machines, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.machines.values()
    }

    /// The Machine with this name.
    pub fn get(&self, name: &str) -> Option<&Machine> {
        self.machines.get(name)
    }

    /// The Machine with this [`key`].
    pub fn with_key(&self, key: &str) -> Option<&Machine> {
        self.get(name_in(key)?)
    }

    /// The Machines' instances.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.iter().filter_map(|machine| machine.instance.as_ref().ok())
    }

    /// Whether hosts come from user data of ours: there are Machines, or a MachineSet that would make some.
    pub fn may_come(&self) -> bool {
        let makes_ours = |set: &MachineSetFacts| !set.is_deleted && set.mistake().is_none();
        !self.machines.is_empty() || self.sets.values().any(makes_ours)
    }

    /// The MachineSet with this name.
    pub fn set(&self, name: &str) -> Option<&MachineSetFacts> {
        self.sets.get(name)
    }
}

/// SSH user of the machines of a platform. Source: `docs/contract/ssh.md`, SSH17.
pub fn username(platform: &str) -> &'static str {
    if platform == platforms::AZURE { host::AZURE_USER } else { host::ADMINISTRATOR }
}

fn instance(machine: &MachineFacts, platform: &str) -> Result<Instance, Unfit> {
    let ipv4 = host_address(machine)?;
    let named = [platforms::VSPHERE, platforms::NUTANIX].contains(&platform);
    let host_name = named.then(|| machine.name.clone());
    if host_name.as_ref().is_some_and(|name| name.len() > COMPUTER_NAME_BYTES) {
        return Err(Unfit::LongName);
    }
    let (name, uid) = (machine.name.clone(), machine.uid.clone());
    Ok(Instance {
        address: key(&machine.name),
        ipv4,
        port: SSH_PORT,
        username: username(platform).to_owned(),
        host_key: None,
        via: None,
        via_host_key: None,
        machine: Some(OfMachine { name, uid, host_name }),
    })
}

impl Machine {
    /// Identifies the Machine.
    pub fn identity(&self) -> OfMachine {
        let MachineFacts { name, uid, .. } = &self.facts;
        let of_host = self.instance.as_ref().ok().and_then(|instance| instance.machine.clone());
        let bare = || OfMachine { name: name.clone(), uid: uid.clone(), host_name: None };
        of_host.unwrap_or_else(bare)
    }

    /// Whether its phase says that it has become a node.
    pub fn is_running(&self) -> bool {
        self.facts.phase.as_deref() == Some(RUNNING)
    }
}

/// Returns the address of a Windows Machine's host, whatever its name.
///
/// # Errors
/// Why the host is not usable.
pub fn host_address(machine: &MachineFacts) -> Result<Ipv4Addr, Unfit> {
    if machine.is_ignored {
        return Err(Unfit::Ignored);
    }
    if machine.is_deleted {
        return Err(Unfit::Deleted);
    }
    match machine.phase.as_deref() {
        Some(PROVISIONED | RUNNING) => {}
        Some(phase) => return Err(Unfit::Phase(phase.to_owned())),
        None => return Err(Unfit::NoPhase),
    }
    internal_ipv4(machine).ok_or(Unfit::NoAddress)
}

/// Phases of Machines that have a host.
const PROVISIONED: &str = "Provisioned";
const RUNNING: &str = "Running";

/// The first internal address that is IPv4.
pub fn internal_ipv4(machine: &MachineFacts) -> Option<Ipv4Addr> {
    all_internal_ipv4(machine).next()
}

/// All internal addresses that are IPv4.
pub(crate) fn all_internal_ipv4(machine: &MachineFacts) -> impl Iterator<Item = Ipv4Addr> {
    let internal = machine.addresses.iter().filter(|address| address.kind == "InternalIP");
    internal.filter_map(|address| address.address.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::MachineAddress;

    fn machine() -> MachineFacts {
        let address = |kind: &str, address: &str| MachineAddress {
            kind: kind.to_owned(),
            address: address.to_owned(),
        };
        MachineFacts {
            name: "win-x7k2p".into(),
            uid: "u-1".into(),
            is_windows: true,
            phase: Some(RUNNING.into()),
            addresses: vec![
                address("ExternalIP", "192.0.2.1"),
                address("InternalDNS", "win"),
                address("InternalIP", "fd00::1"),
                address("InternalIP", "10.0.128.1"),
                address("InternalIP", "10.0.128.2"),
            ],
            ..MachineFacts::default()
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut MachineFacts), platform: &str, expected: Option<&Unfit>) {
        let mut facts = machine();
        change(&mut facts);
        let name = facts.name.clone();
        let machines = Machines::read([facts], [], platform);
        assert_eq!(machines.get(&name).unwrap().instance.as_ref().err(), expected);
    }

    #[test]
    fn a_machine_that_has_no_host_yet_tells_why() {
        check(|_| {}, platforms::AWS, None);
        check(|it| it.phase = Some("Provisioned".into()), platforms::AWS, None);
        check(|it| it.is_ignored = true, platforms::AWS, Some(&Unfit::Ignored));
        check(|it| it.is_deleted = true, platforms::AWS, Some(&Unfit::Deleted));
        check(|it| it.phase = None, platforms::AWS, Some(&Unfit::NoPhase));
        for phase in ["Provisioning", "Failed", "Deleting", "running"] {
            let expected = Unfit::Phase(phase.into());
            check(|it| it.phase = Some(phase.into()), platforms::AWS, Some(&expected));
        }
        check(|it| it.addresses.truncate(3), platforms::AWS, Some(&Unfit::NoAddress));
    }

    #[test]
    fn only_where_computers_are_named_as_machines_a_name_may_be_too_long() {
        let long = |it: &mut MachineFacts| it.name = "windows-00-x7k2p".into();
        check(long, platforms::VSPHERE, Some(&Unfit::LongName));
        check(long, platforms::NUTANIX, Some(&Unfit::LongName));
        check(long, platforms::AWS, None);
    }

    #[test]
    fn the_platform_tells_user_and_name() {
        for (platform, user, named) in [
            (platforms::AWS, "Administrator", false),
            (platforms::AZURE, "capi", false),
            (platforms::GCP, "Administrator", false),
            (platforms::VSPHERE, "Administrator", true),
            (platforms::NUTANIX, "Administrator", true),
        ] {
            let machines = Machines::read([machine()], [], platform);
            let instance = machines.instances().next().unwrap();
            assert_eq!(instance.ipv4, Ipv4Addr::new(10, 0, 128, 1));
            assert_eq!(instance.username, user, "{platform}");
            let host_name = &instance.machine.as_ref().unwrap().host_name;
            assert_eq!(host_name.is_some(), named, "{platform}");
        }
    }

    #[test]
    fn a_machine_without_the_label_is_none_of_ours() {
        let linux = MachineFacts { is_windows: false, ..machine() };
        assert_eq!(Machines::read([linux], [], platforms::AWS), Machines::default());
    }
}
