//! AWS.

use serde_json::{Value, json};

use super::super::draft::Draft;
use super::super::error::MachineSetError;
use super::super::options::{MachineSetOptions, Setting};
use super::super::platform::Platform;
use crate::names::machine_api::{AWS_CREDENTIALS_SECRET, AWS_PROVIDER, PROVIDER_VERSION};

/// A size with 8 GiB of memory, as in the sample.
const INSTANCE_TYPE: &str = "m5a.large";

/// Installers name security groups and subnets in two ways; a filter matches the existing one.
pub(super) fn usual(infrastructure: &str, options: &MachineSetOptions) -> Value {
    let of = |part: &str| format!("{infrastructure}-{part}");
    let zone = options.zone.as_deref().unwrap_or_default();
    json!({
        "apiVersion": PROVIDER_VERSION,
        "blockDevices": [{"ebs": {"volumeType": "gp3"}}],
        "credentialsSecret": {"name": AWS_CREDENTIALS_SECRET},
        "deviceIndex": 0,
        "iamInstanceProfile": {"id": of("worker-profile")},
        "instanceType": INSTANCE_TYPE,
        "kind": AWS_PROVIDER,
        "securityGroups": [by_name_tag(&[&of("worker-sg"), &of("node"), &of("lb")])],
        "subnet": by_name_tag(
            &[&of(&format!("private-{zone}")), &of(&format!("subnet-private-{zone}"))],
        ),
        "tags": [{"name": format!("kubernetes.io/cluster/{infrastructure}"), "value": "owned"}],
    })
}

pub(super) fn for_windows(draft: &mut Draft<'_>) -> Result<(), MachineSetError> {
    let before = place_of(draft);
    draft.ask(Setting::Region, "/placement/region");
    draft.ask(Setting::Zone, "/placement/availabilityZone");
    draft.ask(Setting::InstanceType, "/instanceType");
    let moved = draft.taken && before != place_of(draft);
    match draft.text(Setting::Subnet) {
        Some(id) if id.starts_with("subnet-") => draft.put("/subnet", json!({"id": id})),
        Some(name) => draft.put("/subnet", by_name_tag(&[&name])),
        // A subnet belongs to one zone.
        None if moved || !draft.has("/subnet") => draft.missing.push(Setting::Subnet),
        None => {}
    }
    if let Some(image) = draft.image() {
        let id = image.strip_prefix("ami-").unwrap_or_default();
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(super::no_image(
                Platform::Aws,
                image,
                "an ID such as ami-0123456789abcdef0",
            ));
        }
        draft.put("/ami", json!({"id": image}));
    }
    draft.leave_out_further("blockDevices", "further blockDevices");
    // Linux uses other device names.
    let system = draft
        .value
        .get("blockDevices")
        .and_then(Value::as_array)
        .and_then(|devices| {
            devices.iter().find(|device| device.get("deviceName").is_none()).or(devices.first())
        })
        .and_then(|device| device.get("ebs"))
        .cloned()
        .unwrap_or_default();
    draft.put("/blockDevices", json!([{"ebs": system}]));
    draft.disk("/blockDevices/0/ebs/volumeSize");
    // Capacity is reserved for one operating system.
    draft.leave_out("capacityReservationId");
    // Confidential machines are for Linux alone.
    draft.leave_out("cpuOptions");
    Ok(())
}

fn place_of(draft: &Draft<'_>) -> Value {
    let placement = |member| draft.value.pointer("/placement").and_then(|all| all.get(member));
    json!([placement("region"), placement("availabilityZone")])
}

/// Filter by which AWS finds an object by its name.
fn by_name_tag(names: &[&str]) -> Value {
    json!({"filters": [{"name": "tag:Name", "values": names}]})
}
