//! Azure.

use serde_json::{Value, json};

use super::super::draft::Draft;
use super::super::error::MachineSetError;
use super::super::options::Setting;
use super::super::platform::Platform;
use super::super::spelling::{starts_with_subscription, without_subscription};
use crate::names::machine_api::{AZURE_CREDENTIALS_SECRET, AZURE_PROVIDER, PROVIDER_VERSION};
use crate::names::objects::MACHINE_API_NAMESPACE;

/// Two processors and 8 GiB of memory, as in the sample.
const VM_SIZE: &str = "Standard_D2s_v3";

pub(super) fn usual(infrastructure: &str) -> Value {
    let of = |part: &str| format!("{infrastructure}-{part}");
    json!({
        "apiVersion": PROVIDER_VERSION,
        "credentialsSecret": {
            "name": AZURE_CREDENTIALS_SECRET,
            "namespace": MACHINE_API_NAMESPACE,
        },
        "kind": AZURE_PROVIDER,
        "managedIdentity": of("identity"),
        "osDisk": {"managedDisk": {"storageAccountType": "Premium_LRS"}},
        "publicIP": false,
        "resourceGroup": of("rg"),
        "subnet": of("worker-subnet"),
        "vmSize": VM_SIZE,
        "vnet": of("vnet"),
    })
}

pub(super) fn for_windows(draft: &mut Draft<'_>) -> Result<(), MachineSetError> {
    let before = draft.value.get("location").cloned();
    draft.ask(Setting::Region, "/location");
    // Not every region has zones.
    draft.may(Setting::Zone, "/zone");
    draft.ask(Setting::InstanceType, "/vmSize");
    draft.ask(Setting::ResourceGroup, "/resourceGroup");
    draft.ask(Setting::Network, "/vnet");
    draft.ask(Setting::Subnet, "/subnet");
    // A network belongs to one region.
    if draft.taken && before.as_ref() != draft.value.get("location") {
        draft.miss_unless_given(&[Setting::Network, Setting::Subnet]);
    }
    if !draft.has("/networkResourceGroup") {
        let group = draft.value.get("resourceGroup").cloned();
        draft.put("/networkResourceGroup", group);
    }
    if let Some(image) = draft.image() {
        if starts_with_subscription(&image) {
            let note = "image.resourceID: the subscription was left out, which the Machine API puts before it; it has to \
                        be the cluster's";
            draft.notes.push(note.to_owned());
        }
        let source = source(&image).ok_or_else(|| {
            let expected = "PUBLISHER:OFFER:SKU:VERSION or an ID that begins with /";
            super::no_image(Platform::Azure, image, expected)
        })?;
        draft.put("/image", source);
    }
    draft.put("/osDisk/osType", "Windows");
    draft.disk("/osDisk/diskSizeGB");
    let kind = draft.value.pointer("/securityProfile/settings/securityType");
    // Sizes for confidential machines take no others.
    if kind.and_then(Value::as_str) == Some("ConfidentialVM") {
        draft.miss_unless_given(&[Setting::InstanceType]);
    }
    // Generation, secure boot and encryption are settings of the Linux image.
    draft.leave_out("securityProfile");
    draft.leave_out_below("/osDisk/managedDisk", "securityProfile");
    // Other disks hold data for Linux.
    draft.leave_out("dataDisks");
    Ok(())
}

/// An image of the marketplace or a private image.
fn source(image: &str) -> Option<Value> {
    let of = |resource: &str, [publisher, offer, sku, version]: [&str; 4]| {
        json!({
            "offer": offer, "publisher": publisher, "resourceID": resource, "sku": sku,
            "version": version,
        })
    };
    if image.starts_with('/') {
        return Some(of(without_subscription(image), [""; 4]));
    }
    let parts: [&str; 4] = image.split(':').collect::<Vec<_>>().try_into().ok()?;
    parts.iter().all(|part| !part.is_empty()).then(|| of("", parts))
}
