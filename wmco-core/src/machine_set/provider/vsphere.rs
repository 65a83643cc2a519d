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

/// Sockets are alike, so that the number of processors is a multiple of the cores of each.
fn cores(draft: &mut Draft<'_>) {
    const AT: &str = "/numCoresPerSocket";
    let number = |at| draft.value.pointer(at).and_then(Value::as_u64).filter(|number| *number > 0);
    let (Some(cpus), Some(cores)) = (number("/numCPUs"), number(AT)) else { return };
    let fit = (1..=cores.min(cpus)).rev().find(|fit| cpus % fit == 0 && cores % fit == 0);
    let fit = fit.unwrap_or(1);
    if fit != cores && cpus % cores != 0 {
        draft.notes.push(format!(
            "numCoresPerSocket: {fit} and not {cores}, of which {cpus} processors are no multiple"
        ));
        draft.put(AT, fit);
    }
}

pub(super) fn for_windows(draft: &mut Draft<'_>) {
    let by_domain = draft.has("/failureDomain");
    for (setting, at) in [
        (Setting::Server, "/workspace/server"),
        (Setting::Datacenter, "/workspace/datacenter"),
        (Setting::Datastore, "/workspace/datastore"),
        (Setting::Folder, "/workspace/folder"),
        (Setting::ResourcePool, "/workspace/resourcePool"),
        (Setting::Network, "/network/devices/0/networkName"),
    ] {
        // A failure domain brings what is not said.
        if by_domain {
            draft.may(setting, at);
        } else {
            draft.ask(setting, at);
        }
    }
    draft.ask(Setting::Cpus, "/numCPUs");
    cores(draft);
    draft.ask(Setting::MemoryMib, "/memoryMiB");
    if let Some(template) = draft.image() {
        draft.put("/template", template);
    }
    draft.disk("/diskGiB");
    // Clone mode and snapshot belong to the Linux template, and other disks hold data for Linux.
    for member in ["cloneMode", "dataDisks", "snapshot"] {
        draft.leave_out(member);
    }
    draft.leave_out_static_addresses();
}
