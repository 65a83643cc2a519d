use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn service(name: &str, priority: u64, needs: &[&str]) -> Service {
    Service {
        dependencies: needs.iter().map(|name| name.parse().unwrap()).collect(),
        priority,
        ..Service::new(name.parse().unwrap(), format!(r"C:\k\{name}.exe"))
    }
}

fn manifest(services: Vec<Service>) -> Result<Manifest, ManifestError> {
    Manifest::new(Parts { services, ..Parts::default() })
}

fn refusal(services: Vec<Service>) -> String {
    manifest(services).unwrap_err().to_string()
}

fn variable(name: &str, path: &str) -> NodeVariable {
    NodeVariable { name: name.to_owned(), node_object_json_path: path.to_owned() }
}

#[test]
fn a_cycle_is_named_in_full() {
    let services = vec![service("c", 1, &["a"]), service("a", 1, &["b"]), service("b", 1, &["c"])];
    insta::assert_snapshot!(refusal(services), @"services need each other in a circle, drop one dependency: a -> b -> c -> a");
}

#[test]
fn names_are_unique_without_regard_to_case() {
    let services = vec![service("kubelet", 1, &[]), service("Kubelet", 2, &[])];
    insta::assert_snapshot!(refusal(services), @"service `Kubelet` is there twice (names ignore case), drop one");
}

#[test]
fn a_placeholder_stands_apart() {
    let mut one = Service { command: "a --node=NODE_NAMES".to_owned(), ..service("a", 1, &[]) };
    one.node_variables_in_command = vec![variable("NODE_NAME", "{.metadata.name}")];
    insta::assert_snapshot!(refusal(vec![one]), @"placeholder `NODE_NAME` in field `nodeVariablesInCommand` of service `a` stands only within other words of the text that it is for, set it apart");
}

#[test]
fn a_bootstrap_service_may_pass_constants_to_a_script() {
    let mut one = Service { bootstrap: true, ..service("a", 0, &[]) };
    let script = PreScript {
        variable_name: String::new(),
        path: "run VERBOSITY".to_owned(),
        node_args: vec![variable("VERBOSITY", "4")],
    };
    one.powershell_pre_scripts = vec![script.clone()];
    assert!(manifest(vec![one.clone()]).is_ok());
    let asks = PreScript { node_args: vec![variable("VERBOSITY", "{.metadata.name}")], ..script };
    one.powershell_pre_scripts = vec![asks];
    assert!(matches!(manifest(vec![one]), Err(ManifestError::BootstrapVariable { .. })));
}

#[test]
fn needs_come_before_priorities_in_start_order() {
    let all = manifest(vec![service("early", 1, &["late"]), service("late", 2, &[])]).unwrap();
    let names = |services: Vec<&Service>| -> Vec<String> {
        services.into_iter().map(|service| service.name.to_string()).collect()
    };
    assert_eq!(names(all.start_order().collect()), ["late", "early"]);
    assert_eq!(names(all.services().iter().collect()), ["early", "late"]);
}

/// Of the services whose dependencies are met, the first in the given order comes next, also when its dependencies were
/// met only now.
#[test]
fn the_given_order_counts_where_needs_do_not() {
    let services = [("a", &["c"][..]), ("b", &[]), ("c", &[]), ("d", &["c", "c"]), ("e", &[])];
    let services = services.map(|(name, needs)| service(name, 0, needs));
    assert_eq!(order::start_order(&services), [1, 2, 0, 3, 4]);
}

/// A hostile or mistaken ConfigMap: each service depends on the next. A quadratic algorithm takes hours, and is ended.
#[test]
fn start_order_of_a_long_chain_takes_no_time() {
    const COUNT: usize = 400_000;
    let name = |place: usize| format!("s{place:06}");
    // The last one depends on a service outside the list, which counts as met.
    let chain = (0..COUNT).map(|place| service(&name(place), 0, &[&name(place + 1)]));
    let services: Vec<Service> = chain.collect();
    let order = order::start_order(&services);
    assert!(order.into_iter().eq((0..COUNT).rev()));
}

#[test]
fn field_names_ignore_case_and_nulls_are_absent() {
    let data = ServicesData(BTreeMap::from([
        (
            SERVICES_KEY.to_owned(),
            r#"[{"NAME":"a","Path":"x NODE","nodevariablesincommand":null,"dependencies":null,
                 "powershellPreScripts":[{"path":"p NODE","nodeargs":[{"Name":"NODE",
                 "nodeobjectjsonpath":"{.metadata.name}"}]}],"colour":1,"priority":3}]"#
                .to_owned(),
        ),
        (FILES_KEY.to_owned(), "null".to_owned()),
        (ENVIRONMENT_KEY.to_owned(), "null".to_owned()),
    ]));
    let manifest = Manifest::parse(&data).unwrap();
    let [service] = manifest.services() else { panic!("one service") };
    assert_eq!(service.priority, 3);
    assert_eq!(service.powershell_pre_scripts[0].node_args, [variable("NODE", "{.metadata.name}")]);
}

#[test]
fn the_wire_form_is_that_of_the_original() {
    let mut one = service("a", 0, &[]);
    one.command = "a <b> & c".to_owned();
    one.powershell_pre_scripts = vec![PreScript {
        variable_name: String::new(),
        path: "p".to_owned(),
        node_args: Vec::new(),
    }];
    let parts = Parts {
        services: vec![one],
        environment: BTreeMap::from([("B".to_owned(), "2".to_owned())]),
        watched: vec!["B".to_owned(), "A".to_owned()],
        ..Parts::default()
    };
    let data = Manifest::new(parts).unwrap().render();
    insta::assert_yaml_snapshot!(data, @r#"
    environmentVars: "{\"B\":\"2\"}"
    files: "[]"
    services: "[{\"name\":\"a\",\"path\":\"a \\u003cb\\u003e \\u0026 c\",\"powershellPreScripts\":[{\"path\":\"p\",\"NodeArgs\":null}],\"bootstrap\":false,\"priority\":0}]"
    watchedEnvironmentVars: "[\"B\",\"A\"]"
    "#);
}

#[test]
fn values_of_variables_are_not_in_debug() {
    let parts = Parts {
        environment: BTreeMap::from([("P".to_owned(), "secret".to_owned())]),
        ..Parts::default()
    };
    for text in [format!("{parts:?}"), format!("{:?}", Manifest::new(parts).unwrap())] {
        assert!(text.contains("\"P\"") && !text.contains("secret"), "{text}");
    }
}

/// Whether some service reaches itself, by trying every path.
fn has_cycle(needs: &[Vec<usize>]) -> bool {
    fn reaches(needs: &[Vec<usize>], from: usize, to: usize, seen: &mut Vec<usize>) -> bool {
        needs[from].iter().any(|next| {
            *next == to
                || (!seen.contains(next) && {
                    seen.push(*next);
                    reaches(needs, *next, to, seen)
                })
        })
    }
    (0..needs.len()).any(|place| reaches(needs, place, place, &mut Vec::new()))
}

fn any_graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1..7_usize).prop_flat_map(|n| vec(vec(0..n, 0..3), n))
}

proptest! {
    /// A cycle is found exactly when there is one, whatever the order of the list, and in start order every dependency
    /// comes first.
    #[test]
    fn cycles_and_order_agree_with_brute_force(needs in any_graph(), rotate in 0..7_usize) {
        let name = |place: usize| format!("s{place}");
        let mut services: Vec<Service> = needs
            .iter()
            .enumerate()
            .map(|(place, needs)| {
                let needs: Vec<String> = needs.iter().map(|need| name(*need)).collect();
                let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
                service(&name(place), 0, &needs)
            })
            .collect();
        let first = manifest(services.clone()).map_err(|error| error.to_string());
        let turn = rotate % services.len();
        services.rotate_left(turn);
        let second = manifest(services).map_err(|error| error.to_string());
        prop_assert_eq!(first.is_err(), has_cycle(&needs));
        prop_assert_eq!(first.as_ref().err(), second.as_ref().err());
        if let Ok(manifest) = first {
            let mut up = Vec::new();
            for service in manifest.start_order() {
                prop_assert!(service.dependencies.iter().all(|need| up.contains(&need)));
                up.push(&service.name);
            }
            prop_assert_eq!(up.len(), needs.len());
            prop_assert_eq!(Manifest::parse(&manifest.render()).unwrap(), manifest.clone());
        }
    }
}
