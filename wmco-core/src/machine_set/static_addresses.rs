//! Static addresses in provider specifications of vSphere.
//!
//! The Machine API hands them to the machine as kernel arguments for the first start of RHCOS, which Windows does not
//! read.

use serde_json::Value;

use super::spelling::says_something;

/// Members of a network device that tell addresses.
const MEMBERS: [&str; 4] = ["addressesFromPools", "gateway", "ipAddrs", "nameservers"];

/// Those that say something, with the number of their device.
pub(super) fn static_addresses(provider: &Value) -> impl Iterator<Item = (usize, &'static str)> {
    let devices = provider.pointer("/network/devices").and_then(Value::as_array);
    devices.into_iter().flatten().enumerate().flat_map(|(number, device)| {
        let said = |member: &&str| device.get(*member).is_some_and(says_something);
        MEMBERS.into_iter().filter(said).map(move |member| (number, member))
    })
}

/// Removes them all, and tells which there were.
pub(super) fn take_static_addresses(provider: &mut Value) -> Vec<&'static str> {
    let mut said: Vec<&str> = static_addresses(provider).map(|(_, member)| member).collect();
    said.sort_unstable();
    said.dedup();
    let devices = provider.pointer_mut("/network/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        device.retain(|member, _| !MEMBERS.contains(&member.as_str()));
    }
    said
}
