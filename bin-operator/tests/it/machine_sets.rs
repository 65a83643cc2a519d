//! `machineset` and `check machinesets`.

use serde_json::{Value, json};
use wmco_core::machine_set::Platform;

use crate::program::{Run, run};

/// Options that each platform needs without a MachineSet to take over.
fn options(platform: Platform) -> Vec<&'static str> {
    let line = match platform {
        Platform::Aws => "--region eu-central-1 --zone eu-central-1a --image ami-0123456789abcdef0",
        Platform::Azure => {
            "--region westeurope --image MicrosoftWindowsServer:WindowsServer:2022-datacenter:latest"
        }
        Platform::Gcp => {
            "--project shop --region europe-west3 --zone europe-west3-a --image projects/windows-cloud/global/images/family/windows-2022-core"
        }
        Platform::Nutanix => "--cluster pe-1 --subnet net-1 --image win2022",
        Platform::VSphere => {
            "--server vcenter.shop.example --datacenter dc1 --datastore fast --folder /dc1/vm/shop --resource-pool /dc1/host/c1/Resources --network net-1 --image windows-golden"
        }
    };
    line.split(' ').collect()
}

fn machine_set(platform: Platform, more: &[&str]) -> Run {
    let platform_option = format!("--platform={}", platform.name().to_lowercase());
    let first = ["machineset", &platform_option, "--infrastructure", "shop-x7k2p"];
    run(&[&first[..], &options(platform), more].concat(), "")
}

/// A MachineSet of Linux workers of vSphere.
fn worker(name: &str) -> Value {
    let labels = json!({
        "machine.openshift.io/cluster-api-cluster": "shop-x7k2p",
        "machine.openshift.io/cluster-api-machineset": name,
    });
    let workspace = json!({
        "server": "vcenter.shop.example", "datacenter": "dc1", "datastore": "fast",
        "folder": "/dc1/vm/shop", "resourcePool": "/dc1/host/c1/Resources",
    });
    let value = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "VSphereMachineProviderSpec",
        "credentialsSecret": {"name": "vsphere-cloud-credentials"},
        "cloneMode": "linkedClone",
        "memoryMiB": 8192,
        "network": {"devices": [{"networkName": "net-1"}]},
        "numCPUs": 8,
        "template": "shop-x7k2p-rhcos",
        "userDataSecret": {"name": "worker-user-data"},
        "workspace": workspace,
    });
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": name, "namespace": "openshift-machine-api"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"providerSpec": {"value": value}},
            },
        },
    })
}

fn infrastructure() -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": {"name": "cluster"},
        "status": {"infrastructureName": "shop-x7k2p", "platformStatus": {
            "type": "AWS", "aws": {"region": "eu-central-1"},
        }},
    })
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn what_is_printed_has_nothing_wrong() {
    for platform in Platform::ALL {
        for format in ["text", "json", "yaml"] {
            let made = machine_set(platform, &["-o", format]);
            assert_eq!((made.status, made.err.as_str()), (0, ""), "{platform}");
            let checked = run(&["check", "machinesets", "-f", "-"], &made.out);
            assert_eq!((checked.status, checked.err.as_str()), (0, ""), "{checked:?}");
            let told =
                format!("on {platform} in standard input, document 1: fine\n\n1 for Windows");
            assert!(checked.out.contains(&told), "{}", checked.out);
        }
    }
}

#[test]
fn every_setting_gets_to_its_place() {
    let set = machine_set(
        Platform::VSphere,
        &[
            "--name",
            "win-1",
            "--replicas",
            "3",
            "--cpus",
            "6",
            "--memory-mib",
            "12288",
            "--disk-gib",
            "200",
            "-o",
            "json",
        ],
    )
    .json();
    assert_eq!((&set["metadata"]["name"], &set["spec"]["replicas"]), (&json!("win-1"), &json!(3)));
    let value = &set["spec"]["template"]["spec"]["providerSpec"]["value"];
    let expected = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "credentialsSecret": {"name": "vsphere-cloud-credentials"},
        "diskGiB": 200,
        "kind": "VSphereMachineProviderSpec",
        "memoryMiB": 12288,
        "network": {"devices": [{"networkName": "net-1"}]},
        "numCPUs": 6,
        "numCoresPerSocket": 1,
        "template": "windows-golden",
        "userDataSecret": {"name": "windows-user-data"},
        "workspace": {
            "datacenter": "dc1", "datastore": "fast", "folder": "/dc1/vm/shop",
            "resourcePool": "/dc1/host/c1/Resources", "server": "vcenter.shop.example",
        },
    });
    assert_eq!(value, &expected);
    let size = machine_set(
        Platform::Azure,
        &[
            "--vm-size",
            "Standard_D8s_v5",
            "--network",
            "v",
            "--subnet",
            "s",
            "--resource-group",
            "g",
            "-o",
            "json",
        ],
    )
    .json();
    let value = &size["spec"]["template"]["spec"]["providerSpec"]["value"];
    for (member, expected) in
        [("vmSize", "Standard_D8s_v5"), ("vnet", "v"), ("subnet", "s"), ("resourceGroup", "g")]
    {
        assert_eq!(value[member], expected);
    }
}

#[test]
fn a_set_of_the_cluster_is_taken_over() {
    let input = list(&[worker("shop-x7k2p-worker")]);
    let made = run(&["machineset", "-f", "-", "--image", "win2022", "-o", "json"], &input);
    assert_eq!(made.status, 0, "{made:?}");
    assert_eq!(made.err, "note: not taken over, for it serves Linux alone: cloneMode\n");
    let value = &made.json()["spec"]["template"]["spec"]["providerSpec"]["value"];
    assert_eq!((&value["numCPUs"], &value["template"]), (&json!(8), &json!("win2022")));
    let checked = run(&["check", "machinesets", "-f", "-"], &made.out);
    assert_eq!(checked.status, 0, "{checked:?}");
}

#[test]
fn a_name_that_is_taken_is_told() {
    let image = ["machineset", "-f", "-", "--image", "win2022", "-o", "json"];
    let first = run(&image, &list(&[worker("a")]));
    assert!(!first.err.contains("--name"), "{first:?}");
    let second = run(&image, &list(&[worker("a"), first.json()]));
    assert_eq!(second.status, 0, "{second:?}");
    assert!(second.err.contains("warning: metadata.name: a MachineSet of that name"), "{second:?}");
}

#[test]
fn one_of_several_is_chosen() {
    let input = list(&[worker("a"), worker("b")]);
    let image = ["machineset", "-f", "-", "--image", "win2022"];
    run(&image, &input).is_refused(2, &["standard input, document 1, item 2", "--from: a, b"]);
    assert_eq!(run(&[&image[..], &["--from", "b"]].concat(), &input).status, 0);
    let other = run(&[&image[..], &["--from", "c"]].concat(), &input);
    other.is_refused(2, &["no MachineSet is called \"c\", there are: a, b"]);
    run(&["machineset", "--from", "a"], "").is_refused(2, &["--filename"]);
}

#[test]
fn the_cluster_tells_name_platform_and_region() {
    let input = list(&[infrastructure()]);
    let zone =
        ["machineset", "-f", "-", "--zone", "eu-central-1a", "--image", "ami-0a", "-o", "json"];
    let made = run(&zone, &input);
    assert_eq!(made.status, 0, "{made:?}");
    assert_eq!(made.json()["metadata"]["name"], "shop-x7k2p-windows-worker-eu-central-1a");
    let input = input.replace("\"AWS\"", "\"BareMetal\"");
    let told =
        ["standard input, document 1, item 1", "status.platformStatus.type", "use one of AWS"];
    run(&zone, &input).is_refused(2, &told);
}

#[test]
fn what_is_missing_or_too_much_is_wrong_usage() {
    let missing = run(&["machineset", "--platform", "aws", "--zone", "a"], "");
    missing.is_refused(2, &["give --image, --infrastructure, --region too, for AWS"]);
    machine_set(Platform::Azure, &["--folder", "f"]).is_refused(2, &["leave --folder out"]);
    run(&["machineset"], "").is_refused(2, &["give --platform"]);
    run(&["machineset", "--platform", "ibm"], "").is_refused(2, &["use one of AWS, Azure"]);
    machine_set(Platform::Azure, &["--replicas", "3000000000"]).is_refused(2, &["--replicas"]);
    let input = list(&[worker("a")]);
    let other = run(&["machineset", "-f", "-", "--platform", "aws"], &input);
    other.is_refused(2, &["MachineSet \"a\" is for VSphere, not for AWS"]);
}

#[test]
fn what_would_become_no_node_is_not_printed() {
    let long = machine_set(Platform::Azure, &["--name", "windows-worker"]);
    long.is_refused(1, &["another --name", "may have 9 on Azure", "write for example `windows-w`"]);
    let linux = machine_set(Platform::Nutanix, &[]);
    assert_eq!(linux.status, 0);
    let arguments =
        ["machineset", "--platform", "nutanix", "--infrastructure", "a", "--cluster", "c"];
    let rest = ["--subnet", "s", "--image", "rhcos-9"];
    let linux = run(&[&arguments[..], &rest].concat(), "");
    linux.is_refused(1, &["\"rhcos-9\" is an image of Linux"]);
}

#[test]
fn a_check_tells_each_place_and_counts_linux() {
    let mut wrong = worker("windows-workers");
    let value = &mut wrong["spec"]["template"]["spec"]["providerSpec"]["value"];
    value["userDataSecret"]["name"] = "windows-user-data".into();
    let input = list(&[worker("a"), wrong, worker("b")]);
    let checked = run(&["check", "machinesets", "-f", "-"], &input);
    assert_eq!(checked.status, 1, "{checked:?}");
    insta::assert_snapshot!(checked.out);
    let json = run(&["check", "machinesets", "-f", "-", "-o", "json"], &input).json();
    assert_eq!(json["passedOver"], 2);
    let row = &json["machineSets"][0];
    assert_eq!((&row["ok"], &row["platform"]), (&json!(false), &json!("VSphere")));
    assert_eq!(row["at"], "standard input, document 1, item 2");
    assert_eq!(row["problems"][0]["at"], "metadata.name");
}

#[test]
fn linux_alone_is_fine_and_nothing_is_not() {
    let checked = run(&["check", "machinesets", "-f", "-"], &list(&[worker("a")]));
    let told = "none for Windows; 1 not for Windows, passed over\n";
    assert_eq!((checked.status, checked.out.as_str()), (0, told));
    let empty = run(&["check", "machinesets", "-f", "-"], "kind: Node\n");
    empty.is_refused(2, &["no MachineSet, add it with -f FILE"]);
}

/// The Machine API looks into one namespace.
#[test]
fn sets_that_nobody_looks_at_are_told() {
    let mut elsewhere = worker("b");
    elsewhere["metadata"]["namespace"] = json!("team-a");
    let checked = run(&["check", "machinesets", "-f", "-"], &list(&[worker("a"), elsewhere]));
    assert_eq!(checked.out, "none for Windows; 1 not for Windows, passed over\n");
    assert!(
        checked.err.contains("MachineSet b") && checked.err.contains("is not used"),
        "{checked:?}"
    );
    let twice = run(&["check", "machinesets", "-f", "-"], &list(&[worker("a"), worker("a")]));
    twice.is_refused(2, &["MachineSet a"]);
}

#[test]
fn hostile_input_is_told_on_one_line_each() {
    for set in [
        json!({"kind": "MachineSet", "metadata": {"name": "windows\n\u{1b}[2J"}}),
        json!({"kind": "MachineSet", "metadata": {"name": "win", "labels": {"a\n\u{1b}": "<\u{7}b>"}}}),
        json!({"kind": "MachineSet", "metadata": {"name": "win", "labels": {"\u{1b}": "<b>"}}}),
        json!({"kind": "MachineSet", "metadata": {"name": "win"}, "spec": {"template": [1]}}),
    ] {
        let checked = run(&["check", "machinesets", "-f", "-"], &set.to_string());
        assert_eq!((checked.status, checked.err.as_str()), (1, ""), "{checked:?}");
        assert!(!checked.out.contains('\u{1b}'), "{}", checked.out);
        let lines = checked.out.lines().filter(|line| !line.is_empty());
        for line in lines {
            let known = ["MachineSet ", "  error    ", "  warning  ", "1 for Windows, 1 wrong"];
            assert!(known.iter().any(|start| line.starts_with(start)), "{line:?}");
        }
        let made = run(&["machineset", "-f", "-", "--from", "win"], &set.to_string());
        assert!(made.status == 2 && !made.err.contains('\u{1b}'), "{made:?}");
    }
}
