//! vSphere.

use serde_json::{Value, json};

use super::super::draft::Draft;
use super::super::options::Setting;
use crate::names::machine_api::{PROVIDER_VERSION, VSPHERE_CREDENTIALS_SECRET, VSPHERE_PROVIDER};

pub(super) fn usual() -> Value {
    json!({
        "apiVersion": PROVIDER_VERSION,
        "credentialsSecret": {"name": VSPHERE_CREDENTIALS_SECRET},
        "kind": VSPHERE_PROVIDER,
        "memoryMiB": 16384,
        "numCPUs": 4,
        "numCoresPerSocket": 1,
    })
}

pub(super) fn for_windows(draft: &mut Draft<'_>) {
    draft.ask(Setting::Server, "/workspace/server");
    draft.ask(Setting::Datacenter, "/workspace/datacenter");
    draft.ask(Setting::Datastore, "/workspace/datastore");
    draft.ask(Setting::Folder, "/workspace/folder");
    draft.ask(Setting::ResourcePool, "/workspace/resourcePool");
    draft.ask(Setting::Network, "/network/devices/0/networkName");
    draft.ask(Setting::Cpus, "/numCPUs");
    draft.ask(Setting::MemoryMib, "/memoryMiB");
    if let Some(template) = draft.image() {
        draft.put("/template", template);
    }
    draft.disk("/diskGiB");
    // Clone mode and snapshot belong to the Linux template, and other disks hold data for Linux.
    for member in ["cloneMode", "dataDisks", "snapshot"] {
        draft.leave_out(member);
    }
}
