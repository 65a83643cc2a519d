//! Each rule is broken once, and nothing else with it.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::bundle::Bundle;
use crate::manifests::Installation;
use crate::names::objects::OPERATOR;

const IMAGE: &str =
    "registry.example/wmco@sha256:0123456789012345678901234567890123456789012345678901234567890123";

/// The files of a bundle with no findings but those of ours.
fn files() -> BTreeMap<String, String> {
    let bundle = Bundle {
        installation: Installation::new("ns", IMAGE).unwrap(),
        version: "1.2.3".parse().unwrap(),
        skip_range: None,
        catalog_image: "registry.example/catalog:1",
        own_image: "registry.example/bundle:1",
    };
    bundle.files()
}

fn broken(files: &BTreeMap<String, String>) -> BTreeSet<(&'static str, String)> {
    check(files).into_iter().map(|problem| (problem.rule.name, problem.text)).collect()
}

/// Changes the files of a right bundle, and sees that this rule is broken then, and no other.
#[track_caller]
fn change_breaks(rules: &[&Rule], change: impl FnOnce(&mut BTreeMap<String, String>)) {
    let mut files = files();
    let before = broken(&files);
    change(&mut files);
    let new: BTreeSet<_> = broken(&files).difference(&before).map(|(rule, _)| *rule).collect();
    assert_eq!(new, rules.iter().map(|rule| rule.name).collect());
}

fn csv() -> String {
    format!("manifests/{OPERATOR}.clusterserviceversion.yaml")
}

#[track_caller]
fn breaks(rule: &Rule, file: &str, change: impl FnOnce(&mut Value)) {
    change_breaks(&[rule], |files| edit(files, file, change));
}

fn edit(files: &mut BTreeMap<String, String>, file: &str, change: impl FnOnce(&mut Value)) {
    let mut object: Value = serde_saphyr::from_str(&files[file]).unwrap();
    change(&mut object);
    files.insert(file.to_owned(), serde_saphyr::to_string(&object).unwrap());
}

#[track_caller]
fn breaks_text(rule: &Rule, file: &str, text: &str) {
    change_breaks(&[rule], |files| {
        files.insert(file.to_owned(), text.to_owned());
    });
}

#[test]
fn ours_breaks_no_rule_and_is_warned_of_two() {
    let found: Vec<_> = check(&files()).into_iter().map(|it| (it.rule.name, it.text)).collect();
    let pause = "image mcr.microsoft.com/oss/kubernetes/pause:3.9 has no digest; a mirror may hold another one of its tag";
    let preview = "has the channel `preview`; usual names begin with candidate, fast, stable";
    let expected = [(DIGESTS.name, pause.to_owned()), (CHANNELS.name, preview.to_owned())];
    assert_eq!(found, expected);
}

#[test]
fn rules_have_names_of_their_own_and_a_page() {
    let names: BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(RULES.iter().all(|rule| rule.source.starts_with("https://")));
}

#[test]
fn annotations_are_all_there() {
    let file = "metadata/annotations.yaml";
    // The labels of the image stay what they were.
    let breaks = |rule: &Rule, name: &str, value: &str| {
        let name = format!("{}{name}.v1", super::super::metadata::PREFIX);
        change_breaks(&[rule, DOCKERFILE], |files| {
            edit(files, file, |object| object["annotations"][name] = value.into());
        });
    };
    for name in ["mediatype", "manifests", "metadata", "package"] {
        breaks(ANNOTATIONS, name, "");
    }
    breaks(MEDIA_TYPE, "mediatype", "helm");
    breaks(FOLDERS, "manifests", "objects/");
    breaks(FOLDERS, "metadata", "about/");
    breaks(DEFAULT_CHANNEL, "channel.default", "fast");
    breaks(CHANNELS, "channels", "stable,nightly");
    change_breaks(&[ANNOTATIONS], |files| drop(files.remove(file)));
}

#[test]
fn what_a_bundle_needs_is_of_a_kind_that_is_known() {
    let file = "metadata/dependencies.yaml";
    for wrong in [
        "dependencies: [",
        "[]",
        "dependencies: [{type: olm.nope, value: {}}]",
        "dependencies: [{type: olm.package, value: {packageName: a}}]",
        "dependencies: [{type: olm.gvk, value: {group: a, kind: B}}]",
    ] {
        breaks_text(DEPENDENCIES, file, wrong);
    }
    let right = "dependencies: [{type: olm.package, value: {packageName: a, version: '>1.0.0'}}]";
    change_breaks(&[], |files| drop(files.insert(file.to_owned(), right.to_owned())));
}

#[test]
fn labels_of_the_image_are_the_annotations() {
    breaks_text(DOCKERFILE, "Dockerfile", "FROM scratch\n");
    change_breaks(&[DOCKERFILE], |files| {
        let without = files["Dockerfile"].replace("COPY metadata/ /metadata/", "");
        files.insert("Dockerfile".to_owned(), without);
    });
    change_breaks(&[], |files| {
        let joined = files["Dockerfile"].replace("\"\nLABEL ", "\" \\\n      ");
        files.insert("Dockerfile".to_owned(), joined);
    });
}

#[test]
fn fields_have_their_types() {
    let set = |pointer: &str, value: Value| {
        let mut files = files();
        edit(&mut files, &csv(), |object| *object.pointer_mut(pointer).unwrap() = value);
        assert!(broken(&files).iter().any(|(rule, _)| *rule == TYPES.name), "{pointer}");
    };
    let deployment = "/spec/install/spec/deployments/0";
    for pointer in
        ["/spec/keywords", "/spec/links", "/spec/maturity", "/metadata/labels", "/apiVersion"]
    {
        set(pointer, 7.into());
    }
    for field in ["label", "spec/replicas", "spec/selector", "spec/template/spec/containers/0/args"]
    {
        set(&format!("{deployment}/{field}"), "x".into());
    }
    for field in ["permissions", "clusterPermissions", "permissions/0/rules/0/verbs"] {
        set(&format!("/spec/install/spec/{field}"), 7.into());
    }
}

#[test]
fn each_file_holds_one_object() {
    let service = "manifests/windows-exporter_v1_service.yaml";
    breaks_text(ONE_OBJECT, service, "kind: Service\n---\nkind: Service\n");
    breaks_text(ONE_OBJECT, service, "{");
    breaks_text(ONE_OBJECT, service, "");
}

#[test]
fn there_is_one_service_version() {
    change_breaks(&[ONE_SERVICE_VERSION], |files| drop(files.remove(&csv())));
    change_breaks(&[ONE_SERVICE_VERSION, OBJECT_NAMES], |files| {
        files.insert("manifests/b.yaml".to_owned(), files[&csv()].clone());
    });
}

#[test]
fn other_objects_are_of_kinds_that_are_taken() {
    let more = "manifests/more.yaml";
    let object = |version: &str, kind: &str, name: &str| {
        format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}}}}}")
    };
    breaks_text(SUPPORTED_KINDS, more, &object("apps/v1", "DaemonSet", "a"));
    breaks_text(REMOVED_APIS, more, &object("policy/v1beta1", "PodDisruptionBudget", "a"));
    breaks_text(OBJECT_NAMES, more, &object("v1", "Service", "windows-exporter"));
    breaks_text(OBJECT_NAMES, more, &object("v1", "Service", "BAD_name"));
    breaks_text(OBJECT_NAMES, more, "{apiVersion: v1, kind: Service}");
    breaks_text(OBJECT_NAMES, more, "{kind: Service, metadata: {name: a}}");
    breaks_text(OBJECT_NAMES, more, "{apiVersion: v1, metadata: {name: a}}");
    let account =
        format!("{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: {OPERATOR}}}}}");
    breaks_text(SERVICE_ACCOUNT, more, &account);
    let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}}";
    breaks_text(DEFINITIONS, more, definition);
    breaks(DEFINITIONS, &csv(), |object| {
        object["spec"]["customresourcedefinitions"] = json!({"owned": [{"name": "a.b"}]});
    });
}

#[test]
fn objects_of_the_whole_cluster_keep_their_limits() {
    let more = "manifests/more.yaml";
    let object = |version: &str, kind: &str, rest: &str| {
        format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}, {rest}}}")
    };
    let role = |rule: &str| {
        object("rbac.authorization.k8s.io/v1", "ClusterRole", &format!("rules: [{rule}]"))
    };
    for rule in ["{apiGroups: [''], resources: [pods]}", "{apiGroups: [''], verbs: [get]}"] {
        breaks_text(ROLE_RULES, more, &role(rule));
    }
    for limit in ["maxUnavailable: 0", "maxUnavailable: 0%", "minAvailable: 100%"] {
        let budget = object("policy/v1", "PodDisruptionBudget", &format!("spec: {{{limit}}}"));
        breaks_text(DISRUPTION_BUDGET, more, &budget);
    }
    let class = |rest| object("scheduling.k8s.io/v1", "PriorityClass", rest);
    breaks_text(PRIORITY_CLASS, more, &class("globalDefault: true"));
    for right in [
        role("{nonResourceURLs: [/metrics], verbs: [get]}"),
        object("policy/v1", "PodDisruptionBudget", "spec: {maxUnavailable: 1}"),
        class("globalDefault: false"),
    ] {
        change_breaks(&[], |files| drop(files.insert(more.to_owned(), right)));
    }
}

#[test]
fn a_bundle_fits_into_a_config_map() {
    // Text that does not compress well.
    let mut seed = 1_u64;
    let letters = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from(seed >> 60).unwrap())
    });
    let long: String = letters.take(3 << 20).collect();
    let text =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{a: {long}}}}}");
    breaks_text(SIZE, "manifests/more.yaml", &text);
}

#[test]
fn name_and_versions_agree() {
    let long = format!("wmco.v1.2.3-{}", "a".repeat(300));
    for name in ["wmco", "wmco.v1", "wmco-1.2.3"] {
        breaks(NAME, &csv(), |object| object["metadata"]["name"] = name.into());
    }
    for name in ["Wmco.v1.2.3", "wmco.v1.2.3+1", &long] {
        change_breaks(&[NAME, OBJECT_NAMES], |files| {
            edit(files, &csv(), |object| object["metadata"]["name"] = name.into());
        });
    }
    for version in ["1.2.4", "", "one"] {
        breaks(VERSION, &csv(), |object| object["spec"]["version"] = version.into());
    }
    let newer = format!("{OPERATOR}.v1.2.4");
    for replaces in [format!("{OPERATOR}.v1.2.3"), newer, "other.v1.0.0".into(), "wmco".into()] {
        breaks(REPLACES, &csv(), |object| object["spec"]["replaces"] = replaces.into());
    }
    for range in ["", "all", "^1.0.0", ">=1.0.0 <2.0.0", "<1.0.0 || >=1.2.3", ">=2.0.0"] {
        let change =
            |object: &mut Value| object["metadata"]["annotations"]["olm.skipRange"] = range.into();
        breaks(SKIP_RANGE, &csv(), change);
    }
    for least in ["", "1.36", "v1.36.0"] {
        breaks(MIN_KUBERNETES, &csv(), |object| object["spec"]["minKubeVersion"] = least.into());
    }
    breaks(NO_MIN_KUBERNETES, &csv(), |object| {
        object["spec"].as_object_mut().unwrap().remove("minKubeVersion");
    });
}

#[test]
fn annotations_of_the_service_version_are_known() {
    let set = |rule: &Rule, name: &str, value: Value| {
        breaks(rule, &csv(), |object| object["metadata"]["annotations"][name] = value);
    };
    set(EXAMPLES, "alm-examples", "{".into());
    set(CAPABILITIES, "capabilities", "All".into());
    set(CATEGORIES, "categories", "Networking,Windows".into());
    set(FEATURES, "features.operators.openshift.io/disconnected", "yes".into());
    change_breaks(&[FEATURES, TYPES], |files| {
        edit(files, &csv(), |object| {
            object["metadata"]["annotations"]["features.operators.openshift.io/disconnected"] =
                true.into();
        });
    });
    set(EXAMPLES, "alm-examples", r#"[{"apiVersion": "a/v1", "kind": "B"}]"#.into());
    set(EXAMPLES, "alm-examples", "[1]".into());
    set(SUGGESTED_NAMESPACE, "operatorframework.io/suggested-namespace", "other".into());
    set(SUGGESTED_NAMESPACE, "operatorframework.io/suggested-namespace-template", "x".into());
}

#[test]
fn an_install_mode_is_supported_and_none_is_there_twice() {
    let mode = |name: &str, supported: bool| json!({"type": name, "supported": supported});
    for modes in [
        json!([]),
        json!([mode("OwnNamespace", false)]),
        json!([mode("OwnNamespace", true), mode("OwnNamespace", false)]),
        json!([mode("OwnNamespace", true), mode("Mine", true)]),
    ] {
        breaks(INSTALL_MODES, &csv(), |object| object["spec"]["installModes"] = modes);
    }
}

#[test]
fn something_is_installed_with_rights_of_its_own() {
    let install = |rule: &Rule, change: &dyn Fn(&mut Value)| {
        breaks(rule, &csv(), |object| change(&mut object["spec"]["install"]));
    };
    install(INSTALL, &|it| it["strategy"] = "pod".into());
    install(INSTALL, &|it| it["spec"]["permissions"][0]["serviceAccountName"] = "other".into());
    install(INSTALL, &|it| it["spec"]["deployments"][0]["name"] = "".into());
    let nothing = json!({"strategy": "deployment", "spec": {"deployments": []}});
    install(INSTALL, &|it| *it = nothing.clone());
    let rules = "clusterPermissions";
    install(ROLE_RULES, &|it| it["spec"][rules][0]["rules"][0]["verbs"] = json!([]));
    install(INSTALL, &|it| {
        let deployments = it["spec"]["deployments"].as_array_mut().unwrap();
        deployments.push(deployments[0].clone());
    });
    let selector = |it: &mut Value, labels: Value| {
        it["spec"]["deployments"][0]["spec"]["selector"]["matchLabels"] = labels;
    };
    install(INSTALL, &|it| selector(it, json!({"name": "other"})));
    install(INSTALL, &|it| selector(it, Value::Null));
    breaks(WEBHOOKS, &csv(), |object| {
        object["spec"]["webhookdefinitions"] =
            json!([{"generateName": "a", "deploymentName": "b"}]);
    });
    let containers = |it: &mut Value| {
        it["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"].take()
    };
    install(REQUESTS, &|it| {
        let mut found = containers(it);
        found[0]["resources"]["requests"].as_object_mut().unwrap().remove("cpu");
        it["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"] = found;
    });
}

#[test]
fn images_are_listed_for_mirrors() {
    let without =
        |object: &mut Value| object["spec"]["relatedImages"].as_array_mut().unwrap().remove(0);
    breaks(RELATED_IMAGES, &csv(), |object| drop(without(object)));
    let image = "registry.example/init@sha256:zz";
    breaks(RELATED_IMAGES, &csv(), |object| {
        let pod =
            &mut object["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
        pod["initContainers"] = json!([{"name": "a", "image": image}]);
    });
    breaks(RELATED_IMAGES, &csv(), |object| {
        object["spec"]["relatedImages"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "a", "image": image}));
    });
    breaks(DIGESTS, &csv(), |object| {
        object["spec"]["relatedImages"][1]["image"] = "registry.example/pause:1".into();
    });
}

#[test]
fn catalogues_have_something_to_show() {
    let spec = |rule: &Rule, field: &str, value: Value| {
        breaks(rule, &csv(), |object| object["spec"][field] = value);
    };
    spec(FIELDS, "displayName", "".into());
    spec(FIELDS, "description", " ".into());
    spec(PROVIDER, "provider", json!({}));
    spec(CONTACTS, "links", json!([{"name": "a"}]));
    for url in ["/b", "not a url", "ftp://a.test", "https://"] {
        spec(CONTACTS, "links", json!([{"name": "a", "url": url}]));
    }
    spec(CONTACTS, "maintainers", json!([{"name": "a", "email": "b"}]));
    spec(ICON, "icon", json!([]));
    spec(ICON, "icon", json!([{"base64data": "YQ==", "mediatype": "text/plain"}]));
    spec(ICON, "icon", json!([{"base64data": "***", "mediatype": "image/png"}]));
    let icon = json!({"base64data": "YQ==", "mediatype": "image/png"});
    spec(ICON, "icon", json!([icon, icon]));
}
