//! Members of a provider specification as the Machine API reads them: in any case, and of one type each.

use serde_json::{Number, Value};

use super::platform::Platform;
use crate::units::Quantity;

/// Members that the Machine API knows and this module looks at, as they are usually spelled.
const KNOWN: [&str; 79] = [
    "addressesFromPools",
    "ami",
    "autoDelete",
    "availabilityZone",
    "blockDevices",
    "boot",
    "canIPForward",
    "capacityReservationId",
    "cloneMode",
    "cluster",
    "confidentialCompute",
    "cpuOptions",
    "credentialsSecret",
    "dataDisks",
    "datacenter",
    "datastore",
    "deletionProtection",
    "deviceIndex",
    "deviceName",
    "devices",
    "diskGiB",
    "diskSizeGB",
    "disks",
    "ebs",
    "failureDomain",
    "filters",
    "folder",
    "gateway",
    "iamInstanceProfile",
    "id",
    "image",
    "instanceType",
    "ipAddrs",
    "kind",
    "location",
    "machineType",
    "managedDisk",
    "managedIdentity",
    "memoryMiB",
    "memorySize",
    "name",
    "nameservers",
    "namespace",
    "network",
    "networkInterfaces",
    "networkName",
    "networkResourceGroup",
    "numCPUs",
    "numCoresPerSocket",
    "offer",
    "osDisk",
    "osType",
    "placement",
    "projectID",
    "publicIP",
    "publisher",
    "region",
    "resourceGroup",
    "resourceID",
    "resourcePool",
    "securityProfile",
    "server",
    "settings",
    "sizeGb",
    "sku",
    "snapshot",
    "subnet",
    "subnets",
    "subnetwork",
    "systemDiskSize",
    "template",
    "userDataSecret",
    "vcpuSockets",
    "vcpusPerSocket",
    "vmSize",
    "vnet",
    "volumeSize",
    "workspace",
    "zone",
];

/// Members whose own members people name.
const NAMED_BY_PEOPLE: [&str; 2] = ["labels", "tags"];

/// The same specification with known members spelled as usual. The Machine API reads members in any case.
pub(super) fn usual(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(usual).collect(),
        Value::Object(members) => {
            let usually =
                |member: &str| KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(member));
            let spelled = members.iter().map(|(member, value)| {
                let name = usually(member).filter(|name| !members.contains_key(*name));
                let keep = NAMED_BY_PEOPLE.iter().any(|it| it.eq_ignore_ascii_case(member));
                let value = if keep { value.clone() } else { usual(value) };
                (name.unwrap_or(member).to_owned(), value)
            });
            let doubled = |member: &str| {
                usually(member).is_some_and(|name| name != member && members.contains_key(name))
            };
            spelled.filter(|(member, _)| !doubled(member)).collect()
        }
        other => other.clone(),
    }
}

/// The type of a member.
#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Quantity,
    Text,
}

/// Types of members, by JSON pointer. Source: OpenShift API, `machine.openshift.io`.
fn kinds(platform: Platform) -> &'static [(&'static str, Kind)] {
    use Kind::{Integer, Quantity, Text};
    match platform {
        Platform::Aws => &[
            ("/ami/id", Text),
            ("/blockDevices/0/ebs/volumeSize", Integer),
            ("/deviceIndex", Integer),
            ("/instanceType", Text),
            ("/placement/availabilityZone", Text),
            ("/placement/region", Text),
            ("/subnet/id", Text),
        ],
        Platform::Azure => &[
            ("/image/offer", Text),
            ("/image/publisher", Text),
            ("/image/resourceID", Text),
            ("/image/sku", Text),
            ("/image/version", Text),
            ("/location", Text),
            ("/networkResourceGroup", Text),
            ("/osDisk/diskSizeGB", Integer),
            ("/osDisk/osType", Text),
            ("/resourceGroup", Text),
            ("/subnet", Text),
            ("/vmSize", Text),
            ("/vnet", Text),
            ("/zone", Text),
        ],
        Platform::Gcp => &[
            ("/disks/0/image", Text),
            ("/disks/0/sizeGb", Integer),
            ("/machineType", Text),
            ("/networkInterfaces/0/network", Text),
            ("/networkInterfaces/0/subnetwork", Text),
            ("/projectID", Text),
            ("/region", Text),
            ("/zone", Text),
        ],
        Platform::Nutanix => &[
            ("/image/name", Text),
            ("/image/uuid", Text),
            ("/memorySize", Quantity),
            ("/systemDiskSize", Quantity),
            ("/vcpuSockets", Integer),
            ("/vcpusPerSocket", Integer),
        ],
        Platform::VSphere => &[
            ("/diskGiB", Integer),
            ("/memoryMiB", Integer),
            ("/network/devices/0/networkName", Text),
            ("/numCPUs", Integer),
            ("/numCoresPerSocket", Integer),
            ("/template", Text),
            ("/workspace/datacenter", Text),
            ("/workspace/datastore", Text),
            ("/workspace/folder", Text),
            ("/workspace/resourcePool", Text),
            ("/workspace/server", Text),
        ],
    }
}

/// Members of another type than theirs: what is wrong at which JSON pointer, and the value that was meant, if that is
/// sure.
pub(super) fn mistyped(
    platform: Platform,
    provider: &Value,
) -> Vec<(&'static str, String, Option<Value>)> {
    let found = kinds(platform).iter().filter_map(|(at, kind)| {
        let value = provider.pointer(at).filter(|value| !value.is_null())?;
        let (text, meant) = mistake(*kind, value)?;
        Some((*at, text, meant))
    });
    found.collect()
}

fn mistake(kind: Kind, value: &Value) -> Option<(String, Option<Value>)> {
    let example = |text: &str| Some((format!("is no {text}"), None));
    match (kind, value) {
        (Kind::Text | Kind::Quantity, Value::String(text))
            if matches!(kind, Kind::Text)
                || text.is_empty()
                || text.parse::<Quantity>().is_ok() =>
        {
            None
        }
        (Kind::Text, Value::Number(number)) => {
            let text = number.to_string();
            Some((format!("is a number, write {text:?}"), Some(text.into())))
        }
        (Kind::Text, _) => example("text"),
        (Kind::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => None,
        (Kind::Integer, Value::String(text)) => match text.trim().parse::<u64>() {
            Ok(number) => {
                let meant = Some(Number::from(number).into());
                Some((format!("is a text, write {number}"), meant))
            }
            Err(_) => example("whole number, write for example 128"),
        },
        (Kind::Integer, _) => example("whole number, write for example 128"),
        // Bytes, as they are meant: nobody asks for so many GiB.
        (Kind::Quantity, Value::Number(number)) if number.as_u64() >= Some(1 << 30) => None,
        (Kind::Quantity, Value::Number(number)) => {
            Some((format!("is a number, so as many bytes; write for example \"{number}Gi\""), None))
        }
        (Kind::Quantity, Value::String(text)) => {
            Some((format!("is {text:?}, and no quantity; write for example \"16Gi\""), None))
        }
        (Kind::Quantity, _) => example("quantity, write for example \"16Gi\""),
    }
}

/// Whether there is anything in `value`: a reference without a name, such as `{"filters": []}`, says nothing.
pub(super) fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => members.values().any(says_something),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Whether the ID of an image begins with a subscription, as the portal shows it.
pub(super) fn starts_with_subscription(id: &str) -> bool {
    without_subscription(id) != id
}

/// The ID as a MachineSet has it: the Machine API puts the cluster's subscription before it.
pub(super) fn without_subscription(id: &str) -> &str {
    const START: &str = "/subscriptions/";
    let named = id.get(..START.len()).filter(|start| start.eq_ignore_ascii_case(START));
    let rest = named.and_then(|_| id.get(START.len()..)?.find('/').map(|end| START.len() + end));
    rest.and_then(|begin| id.get(begin..)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_read_in_any_case_and_once() {
        let given = json!({"UserDatasecret": {"NAME": "a"}, "diskgib": 1, "mine": {"Zone": 2}, "tags": {"Zone": "a"},
            "workspace": {"resourcepool": "old", "resourcePool": "new"}});
        let expected = json!({"userDataSecret": {"name": "a"}, "diskGiB": 1, "mine": {"zone": 2}, "tags": {"Zone": "a"},
            "workspace": {"resourcePool": "new"}});
        assert_eq!(usual(&given), expected);
    }

    #[track_caller]
    fn check(platform: Platform, given: &Value, expected: &[(&str, &str)]) {
        let found = mistyped(platform, given);
        let found: Vec<_> = found.iter().map(|(at, text, _)| (*at, text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_and_texts_are_told_apart() {
        let azure =
            json!({"zone": 1, "osDisk": {"diskSizeGB": "128"}, "vmSize": "Standard_D2s_v3"});
        let wrong =
            [("/osDisk/diskSizeGB", "is a text, write 128"), ("/zone", "is a number, write \"1\"")];
        check(Platform::Azure, &azure, &wrong);
        let nutanix = json!({"memorySize": "16GB", "systemDiskSize": 120, "vcpuSockets": "four"});
        check(Platform::Nutanix, &json!({"systemDiskSize": 128_849_018_880_u64}), &[]);
        let wrong = [
            ("/memorySize", "is \"16GB\", and no quantity; write for example \"16Gi\""),
            ("/systemDiskSize", "is a number, so as many bytes; write for example \"120Gi\""),
            ("/vcpuSockets", "is no whole number, write for example 128"),
        ];
        check(Platform::Nutanix, &nutanix, &wrong);
        let vsphere = json!({"numCPUs": 4, "diskGiB": null, "template": ["a"]});
        check(Platform::VSphere, &vsphere, &[("/template", "is no text")]);
    }
}
