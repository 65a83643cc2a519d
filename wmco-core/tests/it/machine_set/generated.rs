//! What is made of options, and of MachineSets of Linux workers.

use serde_json::{Value, json};
use wmco_core::machine_set::{
    MachineSetError, MachineSetOptions, Platform, Setting, Worker, WorkerError, generate, inspect,
};

use super::{fine, options, taken_over, windows_image, worker};

fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap()
}

#[track_caller]
fn provider<'a>(set: &'a Value, at: &str) -> &'a Value {
    let found = set.pointer("/spec/template/spec/providerSpec/value").unwrap().pointer(at);
    found.unwrap_or_else(|| panic!("nothing at {at} in {set:#}"))
}

#[test]
fn each_platform_has_the_shape_of_the_documentation() {
    for platform in Platform::ALL {
        insta::assert_snapshot!(format!("options_{platform}"), yaml(&fine(platform)));
    }
}

#[test]
fn all_but_what_is_linux_is_taken_over() {
    for platform in Platform::ALL {
        let generated = taken_over(platform, |_| ());
        let yaml = yaml(&generated.machine_set);
        insta::assert_snapshot!(format!("taken_over_{platform}"), yaml);
        let found = inspect(&generated.machine_set).unwrap();
        assert_eq!((found.problems, found.warnings), (vec![], vec![]), "{platform}");
        for word in ["worker-user-data", "rhcos", "Linux", "resourceVersion", "status", "gen2"] {
            assert!(!yaml.contains(word), "{word} is in {yaml}");
        }
    }
}

#[test]
fn what_is_left_out_is_told() {
    let left_out = |platform| taken_over(platform, |_| ()).left_out;
    assert_eq!(left_out(Platform::Aws), ["capacityReservationId"]);
    assert_eq!(left_out(Platform::Azure), ["securityProfile"]);
    assert_eq!(left_out(Platform::Gcp), ["further disks"]);
    assert_eq!(left_out(Platform::Nutanix), [""; 0]);
    assert_eq!(left_out(Platform::VSphere), ["cloneMode", "snapshot"]);
}

#[test]
fn options_outrank_what_is_taken_over() {
    let set = taken_over(Platform::Azure, |options| {
        options.infrastructure = Some("other-x1".into());
        options.name = Some("win-1".into());
        options.replicas = Some(0);
        options.zone = Some("3".into());
        options.subnet = Some("windows".into());
        options.disk_gib = Some(64);
        options.instance_type = Some("Standard_D8s_v5".into());
    })
    .machine_set;
    assert_eq!(set["metadata"]["name"], "win-1");
    assert_eq!(set["spec"]["replicas"], 0);
    let label = "machine.openshift.io/cluster-api-cluster";
    assert_eq!(set["spec"]["template"]["metadata"]["labels"][label], "other-x1");
    for (at, expected) in [
        ("/zone", json!("3")),
        ("/subnet", json!("windows")),
        ("/osDisk/diskSizeGB", json!(64)),
        ("/vmSize", json!("Standard_D8s_v5")),
        ("/vnet", json!("shop-vnet")),
    ] {
        assert_eq!(provider(&set, at), &expected, "{at}");
    }
}

#[test]
fn a_disk_that_is_large_enough_stays() {
    let size = |platform, at| provider(&taken_over(platform, |_| ()).machine_set, at).clone();
    assert_eq!(size(Platform::Azure, "/osDisk/diskSizeGB"), 256);
    assert_eq!(size(Platform::VSphere, "/diskGiB"), 128);
    assert_eq!(size(Platform::Nutanix, "/systemDiskSize"), "128Gi");
    assert_eq!(size(Platform::Gcp, "/disks/0/sizeGb"), 128);
    let mut object = worker(Platform::Nutanix);
    object["spec"]["template"]["spec"]["providerSpec"]["value"]["systemDiskSize"] = "1Ti".into();
    let worker = Worker::choose([&object], None).unwrap();
    let image = Some("win".to_owned());
    let options = MachineSetOptions { image, ..MachineSetOptions::default() };
    let set = generate(None, &options, Some(worker)).unwrap().machine_set;
    assert_eq!(provider(&set, "/systemDiskSize"), "1Ti");
}

#[test]
fn a_name_that_is_taken_is_known() {
    let generated = taken_over(Platform::Azure, |_| ());
    let (own, other) = (generated.machine_set.clone(), worker(Platform::Azure));
    let node = json!({"kind": "Node", "metadata": {"name": own["metadata"]["name"]}});
    assert!(generated.is_among([&other, &own]));
    assert!(!generated.is_among([&other, &node]));
}

#[test]
fn taints_are_taken_over() {
    let mut object = worker(Platform::Gcp);
    let taints = json!([{"key": "team", "value": "shop", "effect": "NoSchedule"}]);
    object["spec"]["template"]["spec"]["taints"] = taints.clone();
    let worker = Worker::choose([&object], None).unwrap();
    let image = Some(windows_image(Platform::Gcp).to_owned());
    let options = MachineSetOptions { image, ..MachineSetOptions::default() };
    let set = generate(None, &options, Some(worker)).unwrap().machine_set;
    assert_eq!(set["spec"]["template"]["spec"]["taints"], taints);
}

#[test]
fn names_and_ids_stand_where_they_belong() {
    let with = |platform, change: fn(&mut MachineSetOptions)| {
        let mut options = options(platform);
        change(&mut options);
        generate(Some(platform), &options, None).unwrap().machine_set
    };
    let set = with(Platform::Aws, |o| o.subnet = Some("subnet-0a1".into()));
    assert_eq!(provider(&set, "/subnet"), &json!({"id": "subnet-0a1"}));
    let set = with(Platform::Aws, |o| o.subnet = Some("windows-a".into()));
    assert_eq!(provider(&set, "/subnet/filters/0/values"), &json!(["windows-a"]));
    let set = with(Platform::Azure, |o| {
        o.image = Some("/resourceGroups/images/providers/Microsoft.Compute/images/win".into());
    });
    assert_eq!(
        provider(&set, "/image/resourceID"),
        "/resourceGroups/images/providers/Microsoft.Compute/images/win"
    );
    assert_eq!(provider(&set, "/image/offer"), "");
    let uuid = "0005b0f1-8f43-a0f2-02b7-3cecef193712";
    let set = with(Platform::Nutanix, |o| {
        o.image = Some("0005b0f1-8f43-a0f2-02b7-3cecef193712".into());
    });
    assert_eq!(provider(&set, "/image"), &json!({"type": "uuid", "uuid": uuid}));
    assert_eq!(provider(&set, "/cluster"), &json!({"type": "name", "name": "pe-1"}));
}

#[track_caller]
fn missing(platform: Platform, change: fn(&mut MachineSetOptions), expected: &[Setting]) {
    let object = worker(platform);
    let image = Some(windows_image(platform).to_owned());
    let mut options = MachineSetOptions { image, ..MachineSetOptions::default() };
    change(&mut options);
    let worker = Worker::choose([&object], None).unwrap();
    let error = generate(None, &options, Some(worker)).unwrap_err();
    let MachineSetError::Missing { settings, .. } = &error else { panic!("{error}") };
    assert_eq!(settings, expected);
    for setting in expected {
        assert!(error.to_string().contains(&setting.to_string()), "{error}");
    }
}

#[test]
fn an_image_is_asked_for_everywhere() {
    for platform in Platform::ALL {
        missing(platform, |o| o.image = Some(String::new()), &[Setting::Image]);
    }
}

#[test]
fn a_subnet_is_asked_for_where_the_one_taken_over_does_not_reach() {
    missing(Platform::Aws, |o| o.zone = Some("eu-central-1c".into()), &[Setting::Subnet]);
    missing(Platform::Gcp, |o| o.region = Some("us-west1".into()), &[Setting::Subnet]);
    let both = [Setting::Network, Setting::Subnet];
    missing(Platform::Azure, |o| o.region = Some("eastus".into()), &both);
    taken_over(Platform::Gcp, |o| o.zone = Some("europe-west3-c".into()));
    taken_over(Platform::Azure, |o| o.zone = Some("1".into()));
}

#[test]
fn what_no_one_can_know_is_asked_for() {
    use Setting::{
        Cluster, Datacenter, Datastore, Folder, Image, Infrastructure, Network, Project, Region,
        ResourcePool, Server, Subnet, Zone,
    };
    let expected: [(Platform, &[Setting]); 5] = [
        (Platform::Aws, &[Image, Infrastructure, Region, Zone]),
        (Platform::Azure, &[Image, Infrastructure, Region]),
        (Platform::Gcp, &[Image, Infrastructure, Project, Region, Zone]),
        (Platform::Nutanix, &[Cluster, Image, Infrastructure, Subnet]),
        (
            Platform::VSphere,
            &[Datacenter, Datastore, Folder, Image, Infrastructure, Network, ResourcePool, Server],
        ),
    ];
    for (platform, expected) in expected {
        let error = generate(Some(platform), &MachineSetOptions::default(), None).unwrap_err();
        let MachineSetError::Missing { settings, .. } = &error else { panic!("{error}") };
        assert_eq!(settings, expected, "{platform}");
    }
}

#[test]
fn a_size_is_asked_for_where_workers_are_arm() {
    let mut object = worker(Platform::Aws);
    let annotation = "capacity.cluster-autoscaler.kubernetes.io/labels";
    object["metadata"]["annotations"][annotation] = "a=b,kubernetes.io/arch=arm64".into();
    let worker = Worker::choose([&object], None).unwrap();
    let image = Some(windows_image(Platform::Aws).to_owned());
    let mut options = MachineSetOptions { image, ..MachineSetOptions::default() };
    let error = generate(None, &options, Some(worker)).unwrap_err();
    assert!(error.to_string().contains("--instance-type"), "{error}");
    options.instance_type = Some("m6i.large".into());
    assert!(generate(None, &options, Some(worker)).is_ok());
}

#[track_caller]
fn refused(platform: Platform, change: fn(&mut MachineSetOptions), messages: &[&str]) {
    let mut options = options(platform);
    change(&mut options);
    let error = generate(Some(platform), &options, None).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let told = format!("{error}: {}", source.unwrap_or_default());
    for message in messages {
        assert!(told.contains(message), "{message} is not in {told}");
    }
}

#[test]
fn what_the_platform_has_not_is_refused() {
    refused(Platform::Aws, |o| o.folder = Some("f".into()), &["leave --folder out", "AWS"]);
    refused(Platform::VSphere, |o| o.zone = Some("a".into()), &["leave --zone out"]);
    refused(Platform::Nutanix, |o| o.instance_type = Some("a".into()), &["--instance-type"]);
}

#[test]
fn images_of_other_platforms_are_refused() {
    for image in ["windows-2022", "ami-", "ami-xyz"] {
        let mut options = options(Platform::Aws);
        options.image = Some(image.into());
        let error = generate(Some(Platform::Aws), &options, None).unwrap_err();
        assert!(matches!(error, MachineSetError::Image { .. }), "{error}");
    }
    let parts = ["PUBLISHER:OFFER:SKU:VERSION"];
    refused(Platform::Azure, |o| o.image = Some("win2022".into()), &parts);
    refused(Platform::Azure, |o| o.image = Some("a:b::d".into()), &parts);
    refused(Platform::Azure, |o| o.image = Some("a:b:c:d:e".into()), &parts);
}

#[test]
fn images_of_linux_and_blanks_are_refused() {
    let rhcos = |o: &mut MachineSetOptions| o.image = Some("shop-x7k2p-rhcos".into());
    refused(Platform::VSphere, rhcos, &["\"shop-x7k2p-rhcos\" is an image of Linux"]);
    let blank = |o: &mut MachineSetOptions| o.folder = Some("/<datacenter>/vm".into());
    refused(Platform::VSphere, blank, &["workspace.folder: fill in \"datacenter\""]);
}

#[test]
fn static_addresses_are_not_taken_over() {
    let mut object = worker(Platform::VSphere);
    let devices = "/spec/template/spec/providerSpec/value/network/devices";
    *object.pointer_mut(devices).unwrap() = json!([
        {"networkName": "one", "addressesFromPools": [{"name": "pool"}], "nameservers": ["10.0.0.2"]},
        {"networkName": "two", "nameservers": ["10.0.0.2"], "gateway": ""},
    ]);
    let image = windows_image(Platform::VSphere);
    let options = MachineSetOptions { image: Some(image.into()), ..MachineSetOptions::default() };
    let generated =
        generate(None, &options, Some(Worker::choose([&object], None).unwrap())).unwrap();
    let left = generated.machine_set.pointer(devices).unwrap();
    assert_eq!(left, &json!([{"networkName": "one"}, {"networkName": "two"}]));
    let told = |member| generated.left_out.iter().filter(|it| **it == member).count();
    assert_eq!((told("addressesFromPools"), told("nameservers"), told("gateway")), (1, 1, 0));
}

#[test]
fn long_names_are_refused_with_the_length_and_a_name() {
    for platform in [Platform::Azure, Platform::Nutanix, Platform::VSphere] {
        let long = |o: &mut MachineSetOptions| o.name = Some("windows-worker".into());
        let told = ["--name", "14 characters and may have 9", "15 characters", "`windows-w`"];
        refused(platform, long, &told);
        let most = |o: &mut MachineSetOptions| o.name = Some("winworker".into());
        let mut options = options(platform);
        most(&mut options);
        assert!(generate(Some(platform), &options, None).is_ok());
    }
    let long = |o: &mut MachineSetOptions| o.name = Some("w".repeat(64));
    refused(Platform::Aws, long, &["64 characters and may have 63"]);
    let infrastructure = |o: &mut MachineSetOptions| o.infrastructure = Some("Shop".into());
    refused(
        Platform::Gcp,
        infrastructure,
        &["another --infrastructure", "write for example `shop`"],
    );
}

#[test]
fn two_platforms_are_not_mixed() {
    let object = worker(Platform::Gcp);
    let worker = Worker::choose([&object], None).unwrap();
    let error = generate(Some(Platform::Aws), &options(Platform::Aws), Some(worker)).unwrap_err();
    assert!(error.to_string().contains("is for GCP, not for AWS"), "{error}");
    let error = generate(None, &MachineSetOptions::default(), None).unwrap_err();
    assert!(matches!(error, MachineSetError::NoPlatform), "{error}");
}

#[test]
fn the_worker_is_the_only_one_or_is_chosen() {
    let named = |name: &str| {
        let mut set = worker(Platform::Aws);
        set["metadata"]["name"] = name.into();
        set
    };
    let (a, b, windows) = (named("a"), named("b"), fine(Platform::Aws));
    let node = json!({"kind": "Node", "metadata": {"name": "a"}});
    let chosen = |sets: &[&Value], name| {
        Worker::choose(sets.iter().copied(), name).map(|worker| worker.name().to_owned())
    };
    assert_eq!(chosen(&[&node, &windows, &a], None), Ok("a".to_owned()));
    assert_eq!(chosen(&[&a, &b], Some("b")), Ok("b".to_owned()));
    let there = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(chosen(&[&a, &b], None), Err(WorkerError::Several { there: there.clone() }));
    let name = "c".to_owned();
    assert_eq!(chosen(&[&a, &b], Some("c")), Err(WorkerError::Name { name, there }));
    assert_eq!(chosen(&[&node, &windows], None), Err(WorkerError::None));
    let other = json!({"kind": "MachineSet", "metadata": {"name": "x"}});
    let error = chosen(&[&other], None).unwrap_err().to_string();
    assert!(error.contains("providerSpec.value.kind is \"\""), "{error}");
}
