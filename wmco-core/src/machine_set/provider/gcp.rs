//! GCP.

use serde_json::{Value, json};

use super::super::draft::Draft;
use super::super::options::{MachineSetOptions, Setting};
use crate::names::machine_api::{GCP_CREDENTIALS_SECRET, GCP_PROVIDER, PROVIDER_VERSION};

/// Four processors and 15 GB of memory, as in the sample.
const MACHINE_TYPE: &str = "n1-standard-4";

pub(super) fn usual(infrastructure: &str, options: &MachineSetOptions) -> Value {
    let of = |part: &str| format!("{infrastructure}-{part}");
    let project = options.project.as_deref().unwrap_or_default();
    json!({
        "apiVersion": PROVIDER_VERSION,
        "canIPForward": false,
        "credentialsSecret": {"name": GCP_CREDENTIALS_SECRET},
        "deletionProtection": false,
        "disks": [{"boot": true, "type": "pd-ssd"}],
        "kind": GCP_PROVIDER,
        "machineType": MACHINE_TYPE,
        "networkInterfaces": [{"network": of("network"), "subnetwork": of("worker-subnet")}],
        "serviceAccounts": [{
            "email": format!("{infrastructure}-w@{project}.iam.gserviceaccount.com"),
            "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        }],
        "tags": [of("worker")],
    })
}

pub(super) fn for_windows(draft: &mut Draft<'_>) {
    let before = draft.value.get("region").cloned();
    draft.ask(Setting::Project, "/projectID");
    draft.ask(Setting::Region, "/region");
    draft.ask(Setting::Zone, "/zone");
    draft.ask(Setting::InstanceType, "/machineType");
    draft.ask(Setting::Network, "/networkInterfaces/0/network");
    draft.ask(Setting::Subnet, "/networkInterfaces/0/subnetwork");
    // A subnet belongs to one region.
    if draft.taken && before.as_ref() != draft.value.get("region") {
        draft.miss_unless_given(&[Setting::Subnet]);
    }
    // Confidential machines are for Linux alone.
    draft.leave_out("confidentialCompute");
    draft.leave_out_further("disks", "further disks");
    let disks = draft.value.get("disks").and_then(Value::as_array);
    let boots = |disk: &&Value| disk.get("boot").and_then(Value::as_bool) == Some(true);
    let disk = disks.and_then(|disks| disks.iter().find(boots).or(disks.first())).cloned();
    draft.put("/disks", json!([disk]));
    draft.put("/disks/0/autoDelete", true);
    draft.put("/disks/0/boot", true);
    if let Some(image) = draft.image() {
        draft.put("/disks/0/image", image);
    }
    draft.disk("/disks/0/sizeGb");
}
