//! One test for each thing that can be wrong with a MachineSet.

use serde_json::{Value, json};
use wmco_core::machine_set::{Finding, Inspection, Platform, inspect};

use super::{fine, found, worker};

/// Checks that after `change` one problem or warning is reported, which has these words.
#[track_caller]
fn told(
    platform: Platform,
    change: impl FnOnce(&mut Value),
    of: fn(&Inspection) -> &[Finding],
    at: &str,
    words: &[&str],
) {
    let mut set = fine(platform);
    change(&mut set);
    let found = found(&set);
    assert_eq!(found.problems.len() + found.warnings.len(), 1, "{found:?}");
    let [finding] = of(&found) else { panic!("of the other kind: {found:?}") };
    assert_eq!(finding.at, at);
    for word in words {
        assert!(finding.text.contains(word), "{word} is not in {finding}");
    }
}

fn problem(found: &Inspection) -> &[Finding] {
    &found.problems
}

fn warning(found: &Inspection) -> &[Finding] {
    &found.warnings
}

const LABELS: &str = "/spec/template/metadata/labels";
const PROVIDER: &str = "/spec/template/spec/providerSpec/value";
const OS: &str = "machine.openshift.io/os-id";
const OS_FIELD: &str = "spec.template.metadata.labels[machine.openshift.io/os-id]";

fn at<'a>(set: &'a mut Value, at: &str) -> &'a mut Value {
    set.pointer_mut(at).unwrap()
}

fn without(set: &mut Value, place: &str, member: &str) -> Value {
    at(set, place).as_object_mut().unwrap().remove(member).unwrap()
}

#[test]
fn a_missing_system_label() {
    let change = |set: &mut Value| {
        without(set, LABELS, OS);
    };
    told(Platform::Aws, change, problem, OS_FIELD, &["is missing,", "write \"Windows\" here"]);
}

#[test]
fn a_system_label_in_another_place() {
    let change = |set: &mut Value| {
        let os = without(set, LABELS, OS);
        at(set, "/spec/template/spec/metadata/labels")[OS] = os;
    };
    let words = ["it stands in spec.template.spec.metadata.labels"];
    told(Platform::Aws, change, problem, OS_FIELD, &words);
    let change = |set: &mut Value| {
        let os = without(set, LABELS, OS);
        at(set, "/metadata/labels")[OS] = os;
    };
    told(Platform::Aws, change, problem, OS_FIELD, &["it stands in metadata.labels"]);
}

#[test]
fn a_system_label_in_another_case() {
    let change = |set: &mut Value| at(set, LABELS)[OS] = "windows".into();
    told(Platform::Gcp, change, problem, OS_FIELD, &["is \"windows\"", "in this case"]);
    let change = |set: &mut Value| at(set, LABELS)[OS] = 1.into();
    told(Platform::Gcp, change, problem, OS_FIELD, &["is no text"]);
}

#[test]
fn a_label_that_keeps_the_operator_away() {
    let label = wmco_core::names::IGNORE_LABEL;
    let change = |set: &mut Value| at(set, LABELS)[label] = "true".into();
    let field = format!("spec.template.metadata.labels[{label}]");
    told(Platform::Aws, change, problem, &field, &["take the label off"]);
    let mut set = fine(Platform::Aws);
    at(&mut set, LABELS)[label] = "false".into();
    assert_eq!(found(&set).problems, []);
}

#[test]
fn user_data_of_linux() {
    let change = |set: &mut Value| {
        at(set, PROVIDER)["userDataSecret"]["name"] = "worker-user-data".into();
    };
    let field = "spec.template.spec.providerSpec.value.userDataSecret.name";
    let words = ["cannot log in", "write \"windows-user-data\""];
    told(Platform::Nutanix, change, problem, field, &words);
}

#[test]
fn user_data_of_another_namespace() {
    let change = |set: &mut Value| {
        at(set, PROVIDER)["userDataSecret"]["namespace"] = "default".into();
    };
    let field = "spec.template.spec.providerSpec.value.userDataSecret.namespace";
    told(Platform::Azure, change, problem, field, &["the Secret is in openshift-machine-api"]);
}

/// Gives the MachineSet another name, also in its labels.
fn renamed(set: &mut Value, name: &str) {
    set["metadata"]["name"] = name.into();
    for labels in [LABELS, "/spec/selector/matchLabels"] {
        at(set, labels)["machine.openshift.io/cluster-api-machineset"] = name.into();
    }
}

#[test]
fn a_name_that_computers_cannot_have() {
    for platform in [Platform::Azure, Platform::Nutanix, Platform::VSphere] {
        let change = |set: &mut Value| renamed(set, "winworkers");
        let why = match platform {
            Platform::Azure => "Azure makes no computer with Windows",
            _ => "the DNS name may be longer",
        };
        let words = ["has 10 characters and may have 9", "NetBIOS name", why, "`winworker`"];
        told(platform, change, problem, "metadata.name", &words);
    }
    for platform in [Platform::Aws, Platform::Gcp] {
        let mut set = fine(platform);
        renamed(&mut set, &"w".repeat(63));
        assert_eq!(found(&set).problems, []);
        let change = |set: &mut Value| renamed(set, &"w".repeat(64));
        told(platform, change, problem, "metadata.name", &["may have 63"]);
    }
}

#[test]
fn names_that_break_rfc_1123() {
    for name in ["Win", "win_1", "-win", "win-", "", "wín"] {
        let change = |set: &mut Value| renamed(set, name);
        told(Platform::Aws, change, problem, "metadata.name", &["breaks RFC 1123"]);
    }
    let mut set = fine(Platform::Aws);
    renamed(&mut set, "win.1");
    assert_eq!(found(&set).problems, [], "instances of AWS have names of their own");
    for platform in [Platform::Azure, Platform::Gcp, Platform::Nutanix, Platform::VSphere] {
        let change = |set: &mut Value| renamed(set, "win.1");
        told(platform, change, problem, "metadata.name", &["`win-1`"]);
    }
    let change = |set: &mut Value| renamed(set, "1-win");
    told(Platform::Gcp, change, problem, "metadata.name", &["a letter first", "`win`"]);
}

#[test]
fn an_image_of_linux() {
    let change = |set: &mut Value| at(set, PROVIDER)["template"] = "shop-x7k2p-rhcos".into();
    let field = "spec.template.spec.providerSpec.value.template";
    told(Platform::VSphere, change, problem, field, &["is an image of Linux"]);
    let image = "projects/rhcos-cloud/global/images/rhcos-9";
    let change = |set: &mut Value| at(set, PROVIDER)["disks"][0]["image"] = image.into();
    let field = "spec.template.spec.providerSpec.value.disks[0].image";
    told(Platform::Gcp, change, problem, field, &["is an image of Linux"]);
}

#[test]
fn an_image_that_says_nothing() {
    let change = |set: &mut Value| at(set, PROVIDER)["template"] = "golden-7".into();
    let field = "spec.template.spec.providerSpec.value.template";
    told(Platform::VSphere, change, warning, field, &["does not say"]);
    let image = "projects/linux-team/global/images/golden";
    let change = |set: &mut Value| at(set, PROVIDER)["disks"][0]["image"] = image.into();
    let field = "spec.template.spec.providerSpec.value.disks[0].image";
    told(Platform::Gcp, change, warning, field, &["does not say"]);
}

/// Takes a member out, given by its path in the provider specification.
fn lacking(path: &'static str) -> impl FnOnce(&mut Value) {
    move |set| {
        let (place, member) = path.rsplit_once('/').unwrap();
        without(set, &format!("{PROVIDER}{place}"), member);
    }
}

#[test]
fn members_without_which_there_is_no_machine() {
    for (platform, path, field) in [
        (Platform::Azure, "/location", "location"),
        (Platform::Azure, "/osDisk/diskSizeGB", "osDisk.diskSizeGB"),
        (Platform::Azure, "/subnet", "subnet"),
        (Platform::Azure, "/vnet", "vnet"),
        (Platform::Gcp, "/networkInterfaces/0/network", "networkInterfaces[0].network"),
        (Platform::Gcp, "/networkInterfaces/0/subnetwork", "networkInterfaces[0].subnetwork"),
        (Platform::Gcp, "/region", "region"),
        (Platform::Gcp, "/zone", "zone"),
        (Platform::Nutanix, "/cluster", "cluster"),
        (Platform::Nutanix, "/subnets", "subnets"),
        (Platform::VSphere, "/network/devices/0/networkName", "network.devices[0].networkName"),
        (Platform::VSphere, "/workspace/server", "workspace.server"),
    ] {
        let field = format!("spec.template.spec.providerSpec.value.{field}");
        told(platform, lacking(path), problem, &field, &["is missing", "makes no machine"]);
    }
}

#[test]
fn members_that_the_machine_api_fills_in_for_linux() {
    for (platform, path, field, words) in [
        (Platform::Aws, "/instanceType", "instanceType", "the type of Linux workers"),
        (Platform::Aws, "/placement/region", "placement.region", "the region of the cluster"),
        (Platform::Aws, "/subnet", "subnet", "do not join"),
        (Platform::Azure, "/vmSize", "vmSize", "the type of Linux workers"),
        (Platform::Gcp, "/machineType", "machineType", "the type of Linux workers"),
        (Platform::Nutanix, "/memorySize", "memorySize", "too small to start"),
        (Platform::Nutanix, "/vcpuSockets", "vcpuSockets", "too small to start"),
        (Platform::VSphere, "/memoryMiB", "memoryMiB", "too small to start"),
        (Platform::VSphere, "/numCPUs", "numCPUs", "too small to start"),
        (Platform::VSphere, "/workspace/datacenter", "workspace.datacenter", "several"),
    ] {
        let field = format!("spec.template.spec.providerSpec.value.{field}");
        told(platform, lacking(path), warning, &field, &["is missing", words]);
    }
    let change = |set: &mut Value| at(set, PROVIDER)["subnet"] = json!({"filters": []});
    let field = "spec.template.spec.providerSpec.value.subnet";
    told(Platform::Aws, change, warning, field, &["is missing"]);
}

#[test]
fn what_a_default_or_a_failure_domain_brings_is_not_missed() {
    let mut set = fine(Platform::Azure);
    lacking("/vnet")(&mut set);
    lacking("/subnet")(&mut set);
    assert_eq!(found(&set).problems, [], "the Machine API takes those of the installer");
    let mut set = fine(Platform::Gcp);
    lacking("/networkInterfaces")(&mut set);
    assert_eq!(found(&set).problems, []);
    for (platform, brought) in [
        (Platform::Nutanix, &["/cluster", "/subnets"][..]),
        (Platform::VSphere, &["/network", "/workspace"][..]),
    ] {
        let mut set = fine(platform);
        at(&mut set, PROVIDER)["failureDomain"] = json!({"name": "one"});
        for path in brought {
            lacking(path)(&mut set);
        }
        let found = found(&set);
        assert_eq!((&found.problems[..], &found.warnings[..]), (&[][..], &[][..]));
    }
}

#[test]
fn addresses_that_do_not_come_from_dhcp() {
    let pool = json!([{"group": "ipam.example.test", "resource": "pools", "name": "workers"}]);
    for (member, value) in [
        ("addressesFromPools", pool),
        ("gateway", json!("10.0.0.1")),
        ("ipAddrs", json!(["10.0.0.7/24"])),
        ("nameservers", json!(["10.0.0.2"])),
    ] {
        let change = |set: &mut Value| {
            let devices = &mut at(set, PROVIDER)["network"]["devices"];
            *devices = json!([devices[0], {"networkName": "second", member: value}]);
        };
        let field = "spec.template.spec.providerSpec.value.network.devices[1].";
        let words = ["is not read by Windows", "with DHCP"];
        told(Platform::VSphere, change, problem, &format!("{field}{member}"), &words);
    }
    let mut set = fine(Platform::VSphere);
    at(&mut set, PROVIDER)["network"]["devices"][0]["addressesFromPools"] = json!([]);
    assert_eq!(found(&set).problems, []);
}

#[test]
fn a_size_that_is_a_text_is_told_once() {
    let change = |set: &mut Value| at(set, PROVIDER)["osDisk"]["diskSizeGB"] = "128".into();
    let field = "spec.template.spec.providerSpec.value.osDisk.diskSizeGB";
    told(Platform::Azure, change, problem, field, &["is a text, write 128"]);
}

#[test]
fn no_image() {
    for (platform, member) in [(Platform::Aws, "ami"), (Platform::VSphere, "template")] {
        let change = |set: &mut Value| {
            without(set, PROVIDER, member);
        };
        let field = "spec.template.spec.providerSpec.value";
        told(platform, change, problem, field, &["names no image"]);
    }
}

#[test]
fn disks_of_azure() {
    let change = |set: &mut Value| at(set, PROVIDER)["osDisk"]["osType"] = "Linux".into();
    let field = "spec.template.spec.providerSpec.value.osDisk.osType";
    told(Platform::Azure, change, problem, field, &["is \"Linux\", write \"Windows\""]);
    let change = |set: &mut Value| at(set, PROVIDER)["osDisk"]["diskSizeGB"] = 64.into();
    let field = "spec.template.spec.providerSpec.value.osDisk.diskSizeGB";
    told(Platform::Azure, change, warning, field, &["is less than 128 GiB"]);
}

#[test]
fn disks_that_windows_hardly_fits_on() {
    for (platform, member, small) in [
        (Platform::Gcp, "disks[0].sizeGb", json!(40)),
        (Platform::VSphere, "diskGiB", json!(119)),
        (Platform::Nutanix, "systemDiskSize", json!("40Gi")),
        (Platform::Nutanix, "systemDiskSize", json!("120G")),
        (Platform::Nutanix, "systemDiskSize", json!(64_u64 << 30)),
    ] {
        let change = |set: &mut Value| {
            let provider = at(set, PROVIDER);
            match platform {
                Platform::Gcp => provider["disks"][0]["sizeGb"] = small.clone(),
                _ => provider[member] = small.clone(),
            }
        };
        let field = format!("spec.template.spec.providerSpec.value.{member}");
        told(platform, change, warning, &field, &["is less than 120 GiB"]);
    }
}

#[test]
fn a_selector_that_finds_other_machines() {
    let label = "machine.openshift.io/cluster-api-machineset";
    let field = format!("spec.selector.matchLabels[{label}]");
    let change = |set: &mut Value| at(set, "/spec/selector/matchLabels")[label] = "other".into();
    told(Platform::Azure, change, problem, &field, &["is \"other\"", "\"winworker\""]);
    let change = |set: &mut Value| {
        without(set, LABELS, label);
    };
    told(Platform::Azure, change, problem, &field, &["the template has nothing"]);
}

#[test]
fn a_selector_that_selects_nothing() {
    let change = |set: &mut Value| set["spec"]["selector"] = json!({});
    let field = "spec.selector.matchLabels";
    told(Platform::Aws, change, problem, field, &["selects nothing"]);
}

#[test]
fn expressions_of_a_selector() {
    let with = |expression: Value| {
        move |set: &mut Value| set["spec"]["selector"]["matchExpressions"] = json!([expression])
    };
    let field = "spec.selector.matchExpressions[0]";
    for expression in [
        json!({"key": OS, "operator": "In", "values": ["Linux"]}),
        json!({"key": OS, "operator": "NotIn", "values": ["Windows"]}),
        json!({"key": OS, "operator": "DoesNotExist"}),
        json!({"key": "other", "operator": "Exists"}),
        json!({"key": OS, "operator": "Like"}),
        json!(1),
    ] {
        told(Platform::Aws, with(expression), problem, field, &["does not select"]);
    }
    for expression in [
        json!({"key": OS, "operator": "In", "values": ["Linux", "Windows"]}),
        json!({"key": OS, "operator": "NotIn", "values": ["Linux"]}),
        json!({"key": OS, "operator": "Exists"}),
        json!({"key": "other", "operator": "DoesNotExist"}),
    ] {
        let mut set = fine(Platform::Aws);
        with(expression)(&mut set);
        assert_eq!(found(&set).problems, []);
    }
}

#[test]
fn numbers_of_machines() {
    for replicas in [json!(-1), json!("1"), json!(1.5), json!(3_000_000_000_u32), json!({})] {
        let change = |set: &mut Value| set["spec"]["replicas"] = replicas;
        told(Platform::Aws, change, problem, "spec.replicas", &["is no number of Machines"]);
    }
    let change = |set: &mut Value| set["spec"]["replicas"] = 0.into();
    told(Platform::Aws, change, warning, "spec.replicas", &["until it is scaled up"]);
    let mut set = fine(Platform::Aws);
    without(&mut set, "/spec", "replicas");
    assert_eq!(found(&set).problems, [], "the API server takes one");
}

#[test]
fn another_namespace() {
    let change = |set: &mut Value| set["metadata"]["namespace"] = "default".into();
    told(Platform::Aws, change, problem, "metadata.namespace", &["openshift-machine-api only"]);
    let change = |set: &mut Value| {
        without(set, "/metadata", "namespace");
    };
    told(Platform::Aws, change, warning, "metadata.namespace", &["-n openshift-machine-api"]);
}

#[test]
fn another_api() {
    let change = |set: &mut Value| set["apiVersion"] = "cluster.x-k8s.io/v1beta2".into();
    told(Platform::Aws, change, problem, "apiVersion", &["takes machine.openshift.io/v1beta1"]);
}

#[test]
fn labels_that_are_missed_later() {
    let label = "machine.openshift.io/cluster-api-cluster";
    let change = |set: &mut Value| {
        without(set, LABELS, label);
        without(set, "/spec/selector/matchLabels", label);
    };
    let field = format!("spec.template.metadata.labels[{label}]");
    told(Platform::Aws, change, warning, &field, &["infrastructure name"]);
    let change = |set: &mut Value| {
        without(set, "/spec/template/spec/metadata/labels", "node-role.kubernetes.io/worker");
    };
    let field = "spec.template.spec.metadata.labels[node-role.kubernetes.io/worker]";
    told(Platform::Aws, change, warning, field, &["no role"]);
    for part in ["role", "type"] {
        let label = format!("machine.openshift.io/cluster-api-machine-{part}");
        let field = format!("spec.template.metadata.labels[{label}]");
        let change = |set: &mut Value| {
            without(set, LABELS, &label);
        };
        told(Platform::Aws, change, warning, &field, &["is missing", "write \"worker\""]);
        let change = |set: &mut Value| at(set, LABELS)[label.as_str()] = "master".into();
        told(Platform::Aws, change, problem, &field, &["control plane", "write \"worker\""]);
    }
}

#[test]
fn a_blank_that_is_not_filled_in() {
    let change = |set: &mut Value| {
        at(set, PROVIDER)["securityGroups"][0]["filters"][0]["values"][1] = "<infra id>-sg".into();
    };
    let value = "spec.template.spec.providerSpec.value";
    let field = format!("{value}.securityGroups[0].filters[0].values[1]");
    told(Platform::Aws, change, problem, &field, &["fill in \"infra id\""]);
    let mut set = fine(Platform::Aws);
    at(&mut set, PROVIDER)["tags"][0]["value"] = "a < b > <> <<".into();
    let found = found(&set).problems;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].text, "fill in \" b \"");
}

#[test]
fn no_provider_and_an_unknown_one() {
    let change = |set: &mut Value| set["spec"]["template"]["spec"]["providerSpec"] = json!({});
    let field = "spec.template.spec.providerSpec.value";
    told(Platform::Aws, change, problem, field, &["copy it from a MachineSet"]);
    let change = |set: &mut Value| at(set, PROVIDER)["kind"] = "OpenstackProviderSpec".into();
    let field = format!("{field}.kind");
    told(Platform::Aws, change, warning, &field, &["\"OpenstackProviderSpec\"", "not checked"]);
}

#[test]
fn workers_of_linux_are_passed_over() {
    for platform in Platform::ALL {
        assert_eq!(inspect(&worker(platform)), None, "{platform}");
    }
}

/// Something that is done to a MachineSet.
type Change = Box<dyn FnOnce(&mut Value)>;

/// Each alone shows that a MachineSet of Linux was to become one of Windows.
#[test]
fn any_trace_of_windows_counts() {
    let value = |member: &'static str, json: Value| {
        move |set: &mut Value| {
            at(set, PROVIDER)[member] = json;
        }
    };
    let changes: [(Platform, Change); 7] = [
        (Platform::Aws, Box::new(|set| at(set, "/metadata/labels")[OS] = "Windows".into())),
        (Platform::Aws, Box::new(|set| at(set, LABELS)[OS] = "WINDOWS".into())),
        (Platform::Aws, Box::new(|set| set["metadata"]["name"] = "shop-x7k2p-win-1".into())),
        (Platform::Aws, Box::new(value("userDataSecret", json!({"name": "windows-user-data"})))),
        (Platform::Azure, Box::new(value("osDisk", json!({"osType": "Windows"})))),
        (Platform::VSphere, Box::new(value("template", json!("win2022")))),
        (Platform::Nutanix, Box::new(value("image", json!({"name": "windows"})))),
    ];
    for (platform, change) in changes {
        let mut set = worker(platform);
        change(&mut set);
        let found = inspect(&set).unwrap_or_else(|| panic!("passed over: {set:#}"));
        assert!(!found.problems.is_empty());
    }
}
