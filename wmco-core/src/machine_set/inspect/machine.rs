//! Checks the provider specification: user data, image, disk.

use serde_json::Value;

use super::super::architecture::arm;
use super::super::hints::Hint;
use super::super::platform::Platform;
use super::super::spelling::{mistyped, starts_with_subscription};
use super::super::static_addresses::static_addresses;
use super::{Inspection, PROVIDER, Set, field, missing, placeholders};
use crate::facts::UserDataRef;
use crate::limits::{SMALL_WINDOWS_DISK_GIB, WINDOWS_DISK_GIB};
use crate::names::OS_ID_WINDOWS;
use crate::names::machine_api::MACHINE_SET_KIND;
use crate::units::Quantity;

/// Where the size of disks comes from.
const SAMPLES: &str = "OpenShift's samples";

/// Path of the disk's operating system on Azure.
pub(super) const AZURE_SYSTEM: &str = "/osDisk/osType";

/// Its value for Linux.
pub(super) const AZURE_LINUX: &str = "Linux";

/// Path of a private image's ID on Azure.
const AZURE_IMAGE: &str = "/image/resourceID";

/// Paths of image names on all platforms.
const IMAGES: [&str; 10] = [
    "/ami/filters/0/values/0",
    "/ami/id",
    "/disks/0/image",
    "/image/name",
    "/image/offer",
    AZURE_IMAGE,
    "/image/sku",
    "/image/urn",
    "/image/uuid",
    "/template",
];

/// Names of the image, without where it is kept.
pub(super) fn image_names(set: Set<'_>) -> impl Iterator<Item = &str> {
    let texts = IMAGES.into_iter().map(move |at| set.provider_text(at));
    texts.filter(|text| !text.is_empty()).map(own)
}

pub(super) fn check(set: Set<'_>, found: &mut Inspection) {
    if set.0.pointer(PROVIDER).is_none_or(|value| !value.is_object()) {
        let text = format!("is missing, copy it from a {MACHINE_SET_KIND} of the cluster");
        found.problem("spec.template.spec.providerSpec.value", text);
        return;
    }
    let kind = set.provider_text("/kind");
    if found.platform.is_none() {
        let known = Platform::ALL.map(Platform::provider_kind).join(", ");
        let text = format!("is {kind:?}, so name and image are not checked as with {known}");
        found.warning(field("/kind"), text);
    }
    user_data(set, found);
    image(set, found);
    let Some(platform) = found.platform else { return };
    types(set, platform, found);
    missing::check(set, platform, found);
    let provider = set.0.pointer(PROVIDER);
    if let Some((at, instance_type)) = provider.and_then(|provider| arm(platform, provider)) {
        let text = format!("{instance_type:?} has ARM processors, write one with those of amd64");
        found.problem(field(at), text);
    }
    disk(set, platform, found);
    match platform {
        Platform::Azure => azure(set, found),
        Platform::VSphere => {
            cores(set, found);
            addresses(set, found);
        }
        Platform::Aws | Platform::Gcp | Platform::Nutanix => {}
    }
}

fn types(set: Set<'_>, platform: Platform, found: &mut Inspection) {
    let Some(provider) = set.0.pointer(PROVIDER) else { return };
    for (at, text, _) in mistyped(platform, provider) {
        found.problem(field(at), text);
    }
}

/// Checks that the sockets of a virtual machine are alike.
fn cores(set: Set<'_>, found: &mut Inspection) {
    let number = |at| set.provider(at).and_then(Value::as_u64);
    let (cpus, cores) = (number("/numCPUs"), number("/numCoresPerSocket"));
    if let (Some(cpus), Some(cores)) = (cpus, cores)
        && cores > 0
        && cpus % cores != 0
    {
        let text = format!("is {cores}, of which numCPUs, {cpus}, is no multiple; write 1");
        found.problem(field("/numCoresPerSocket"), text);
    }
}

/// Checks that addresses come from DHCP: what is written here reaches the first start of Linux alone.
fn addresses(set: Set<'_>, found: &mut Inspection) {
    let Some(provider) = set.0.pointer(PROVIDER) else { return };
    for (device, member) in static_addresses(provider) {
        let text =
            "is not read by Windows, which asks DHCP; leave it out, and choose a network with DHCP";
        found.problem(field(&format!("/network/devices[{device}]/{member}")), text);
    }
}

fn user_data(set: Set<'_>, found: &mut Inspection) {
    let Some(provider) = set.0.pointer(PROVIDER) else { return };
    for (path, text) in UserDataRef::of(provider).mistakes() {
        found.problem(field(path), text);
    }
}

fn image(set: Set<'_>, found: &mut Inspection) {
    let texts: Vec<(&str, &str)> = IMAGES
        .into_iter()
        .map(|at| (at, set.provider_text(at)))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    let windows = texts.iter().any(|(_, text)| set.hint(own(text)) == Some(Hint::Windows));
    if texts.iter().any(|(_, text)| placeholders::blank(text).is_some()) {
        return;
    }
    let Some((at, text)) = texts.first() else {
        if found.platform.is_some() {
            let text = "names no image, write one of Windows";
            found.problem("spec.template.spec.providerSpec.value", text);
        }
        return;
    };
    if windows || texts.iter().all(|(_, text)| is_opaque(text)) {
        return;
    }
    if texts.iter().any(|(_, text)| set.hint(own(text)) == Some(Hint::Linux)) {
        found.problem(field(at), format!("{text:?} is an image of Linux, write one of Windows"));
    } else {
        found.warning(field(at), format!("{text:?} does not say that it is an image of Windows"));
    }
}

/// The name of an image, without the project, folder, resource group and gallery where it is kept, and without its
/// version there.
fn own(text: &str) -> &str {
    let text = text.split_once("/versions/").map_or(text, |(image, _)| image);
    text.trim_end_matches('/').rsplit('/').next().unwrap_or(text)
}

/// Whether `text` is an opaque ID.
fn is_opaque(text: &str) -> bool {
    let id = text.strip_prefix("ami-").unwrap_or(text);
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Checks the operating system on Azure, which prepares a machine by this field and not by its image.
fn azure(set: Set<'_>, found: &mut Inspection) {
    let system = set.provider_text(AZURE_SYSTEM);
    if system != OS_ID_WINDOWS {
        let text = format!("is {system:?}, write {OS_ID_WINDOWS:?}");
        found.problem(field(AZURE_SYSTEM), text);
    }
    if starts_with_subscription(set.provider_text(AZURE_IMAGE)) {
        let text = "begins with a subscription, which the Machine API puts before it; begin with /resourceGroups";
        found.problem(field(AZURE_IMAGE), text);
    }
}

/// Checks the size of the disk where one is given.
fn disk(set: Set<'_>, platform: Platform, found: &mut Inspection) {
    let (at, least, of) = match platform {
        Platform::Aws => ("/blockDevices/0/ebs/volumeSize", SMALL_WINDOWS_DISK_GIB, SAMPLES),
        Platform::Azure => ("/osDisk/diskSizeGB", WINDOWS_DISK_GIB, "most images of Windows"),
        Platform::Gcp => ("/disks/0/sizeGb", SMALL_WINDOWS_DISK_GIB, SAMPLES),
        Platform::Nutanix => ("/systemDiskSize", SMALL_WINDOWS_DISK_GIB, SAMPLES),
        Platform::VSphere => ("/diskGiB", SMALL_WINDOWS_DISK_GIB, SAMPLES),
    };
    // Nutanix takes a quantity, which may be a number of bytes; the others take a number of GiB. A text there is an
    // error already.
    let quantity = match (platform, set.provider(at)) {
        (Platform::Nutanix, Some(Value::Number(bytes))) => bytes.to_string(),
        (Platform::Nutanix, Some(Value::String(quantity))) => quantity.clone(),
        (_, Some(Value::Number(gib))) => format!("{gib}Gi"),
        _ => return,
    };
    let megabytes = |size: &str| size.parse().map(Quantity::megabytes).ok();
    let size = megabytes(&quantity).filter(|size| *size > 0);
    if size.is_some() && size < megabytes(&format!("{least}Gi")) {
        found.warning(field(at), format!("is less than {least} GiB, the size of {of}"));
    }
}
