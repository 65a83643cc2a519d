//! What holds for all input.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value};
use wmco_core::machine_set::{MachineSetOptions, Platform, Worker, check_name, generate, inspect};

use super::{fine, options, windows_image, worker};

fn any_platform() -> impl Strategy<Value = Platform> {
    prop::sample::select(Platform::ALL.to_vec())
}

/// All that a platform needs, in any spelling that it takes, and some of what it could have besides.
fn any_options() -> impl Strategy<Value = (Platform, MachineSetOptions)> {
    let texts = [
        "[a-z][a-z0-9]{0,11}-[a-z0-9]{5}",
        "[A-Za-z0-9 _./-]{1,20}",
        "[a-z]{2}-[a-z]{4,9}[0-9]-[a-c]",
    ];
    let numbers = (option::of(0..9_u32), option::of(30..4096_u32), option::of(1..64_u32));
    (any_platform(), texts, option::of("[a-z][a-z0-9]{0,8}"), numbers, any::<bool>()).prop_map(
        |(platform, [infrastructure, text, zone], name, (replicas, disk_gib, cpus), more)| {
            let mut all = options(platform);
            for option in [&mut all.server, &mut all.datastore, &mut all.folder, &mut all.cluster] {
                *option = option.take().map(|_| text.clone());
            }
            all.zone = all.zone.map(|_| zone);
            all.subnet = all.subnet.filter(|_| !more);
            if all.subnet.is_none() && platform != Platform::VSphere {
                all.subnet = (more || platform == Platform::Nutanix).then(|| text.clone());
            }
            let has_cpus = matches!(platform, Platform::Nutanix | Platform::VSphere);
            let cpus = cpus.filter(|_| has_cpus);
            let infrastructure = Some(infrastructure);
            (platform, MachineSetOptions { cpus, disk_gib, infrastructure, name, replicas, ..all })
        },
    )
}

/// Members that somebody looks at, so that hostile values get where they matter.
const MEMBERS: [&str; 25] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "spec",
    "replicas",
    "selector",
    "matchLabels",
    "matchExpressions",
    "template",
    "providerSpec",
    "value",
    "disks",
    "image",
    "blockDevices",
    "ebs",
    "placement",
    "subnet",
    "userDataSecret",
    "taints",
    "machine.openshift.io/os-id",
    "\u{1b}\n\u{85}",
];

fn any_json() -> impl Strategy<Value = Value> {
    let words = MEMBERS.into_iter().chain([
        "Windows",
        "AWSMachineProviderConfig",
        "<a>",
        "\u{85}\u{7f}",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(words.collect::<Vec<_>>()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let member = prop::sample::select(MEMBERS.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(member, inner, 0..6)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// All places in `value`.
fn places(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            let pointer = |name: &str| name.replace('~', "~0").replace('/', "~1");
            members.iter().map(|(name, value)| (pointer(name), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    let inner = inner.iter().flat_map(|(name, value)| {
        places(value).into_iter().map(move |place| format!("/{name}{place}"))
    });
    [String::new()].into_iter().chain(inner).collect()
}

/// `object` with one place changed.
fn spoiled(mut object: Value, place: prop::sample::Index, by: Value) -> Value {
    let places = places(&object);
    *object.pointer_mut(&places[place.index(places.len())]).unwrap() = by;
    object
}

proptest! {
    /// What is made for Windows has nothing wrong.
    #[test]
    fn what_is_generated_is_accepted((platform, options) in any_options()) {
        let generated = generate(Some(platform), &options, None);
        let generated = generated.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let found = inspect(&generated.machine_set).expect("it is for Windows");
        prop_assert_eq!(found.problems, []);
        prop_assert_eq!(found.platform, Some(platform));
        prop_assert_eq!(found.warnings, generated.warnings);
    }

    /// The same of what is taken over, whatever is in it; and no shape ends the process.
    #[test]
    fn what_is_taken_over_is_accepted_or_refused(
        platform in any_platform(),
        place in any::<prop::sample::Index>(),
        by in any_json(),
    ) {
        let object = spoiled(worker(platform), place, by);
        let image = Some(windows_image(platform).to_owned());
        let options = MachineSetOptions { image, ..MachineSetOptions::default() };
        if let Ok(worker) = Worker::choose([&object], None)
            && let Ok(generated) = generate(None, &options, Some(worker))
        {
            let found = inspect(&generated.machine_set).expect("it is for Windows");
            prop_assert_eq!(found.problems, []);
        }
    }

    /// Any JSON can be inspected, and no finding holds control characters from it.
    #[test]
    fn hostile_machine_sets_are_told(
        platform in any_platform(),
        place in any::<prop::sample::Index>(),
        by in any_json(),
    ) {
        let _ = inspect(&by);
        if let Some(found) = inspect(&spoiled(fine(platform), place, by)) {
            for finding in found.problems.iter().chain(&found.warnings) {
                let told = finding.to_string();
                prop_assert!(!told.contains(char::is_control), "{told:?}");
            }
        }
    }

    /// A proposed name is accepted.
    #[test]
    fn the_name_that_is_proposed_is_accepted(name in "\\PC{0,20}|[a-z-]{0,80}", platform in any_platform()) {
        if let Err(error) = check_name(Some(platform), &name) {
            let told = error.to_string();
            let (_, rest) = told.rsplit_once("write for example `").expect("a name");
            let (proposed, _) = rest.rsplit_once('`').expect("its end");
            prop_assert_eq!(check_name(Some(platform), proposed), Ok(()));
        }
    }
}
