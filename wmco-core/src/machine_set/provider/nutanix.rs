//! Nutanix.

use serde_json::{Value, json};

use super::super::draft::Draft;
use super::super::options::Setting;
use crate::limits::WINDOWS_DISK_GIB;
use crate::names::machine_api::{
    NUTANIX_CREDENTIALS_SECRET, NUTANIX_PROVIDER, NUTANIX_PROVIDER_VERSION,
};
use crate::units::Quantity;

pub(super) fn usual() -> Value {
    json!({
        "apiVersion": NUTANIX_PROVIDER_VERSION,
        "credentialsSecret": {"name": NUTANIX_CREDENTIALS_SECRET},
        "kind": NUTANIX_PROVIDER,
        "memorySize": "16Gi",
        "vcpuSockets": 4,
        "vcpusPerSocket": 1,
    })
}

pub(super) fn for_windows(draft: &mut Draft<'_>) {
    let (cluster, subnet) = (draft.text(Setting::Cluster), draft.text(Setting::Subnet));
    // A failure domain brings both, and they may not contradict it.
    if cluster.is_some() || subnet.is_some() {
        draft.replace_failure_domain();
    }
    let by_domain = draft.has("/failureDomain");
    if let Some(cluster) = cluster {
        draft.put("/cluster", by_uuid_or_name(&cluster));
    } else if !by_domain && !draft.has("/cluster") {
        draft.missing.push(Setting::Cluster);
    }
    if let Some(subnet) = subnet {
        draft.put("/subnets", json!([by_uuid_or_name(&subnet)]));
    } else if !by_domain && !draft.has("/subnets") {
        draft.missing.push(Setting::Subnet);
    }
    draft.ask(Setting::Cpus, "/vcpuSockets");
    match draft.option(Setting::MemoryMib) {
        Some(mib) => draft.put("/memorySize", format!("{mib}Mi")),
        None if draft.has("/memorySize") => {}
        None => draft.missing.push(Setting::MemoryMib),
    }
    if let Some(image) = draft.image() {
        draft.put("/image", by_uuid_or_name(&image));
    }
    disk(draft);
    // Other disks hold data for Linux.
    draft.leave_out("dataDisks");
}

/// Sizes are texts on Nutanix, such as `120Gi`.
fn disk(draft: &mut Draft<'_>) {
    const AT: &str = "/systemDiskSize";
    let least = format!("{WINDOWS_DISK_GIB}Gi");
    let megabytes = |size: &str| size.parse().map_or(0, Quantity::megabytes);
    let there = draft.value.pointer(AT).and_then(Value::as_str).map_or(0, megabytes);
    match draft.option(Setting::DiskGib) {
        Some(gib) => draft.put(AT, format!("{gib}Gi")),
        None if there >= megabytes(&least) => {}
        None => draft.put(AT, least),
    }
}

/// Reference by which Nutanix finds an object by its UUID or name.
fn by_uuid_or_name(text: &str) -> Value {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if hexadecimal && groups == [8, 4, 4, 4, 12] {
        json!({"type": "uuid", "uuid": text})
    } else {
        json!({"type": "name", "name": text})
    }
}
