//! `render registries`, `check registries` and `explain mirror`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wmco_core::registries::{
    MirrorSetFacts, PullSecret, PullSecretData, RegistryInputs, configure,
};

use crate::program::{run, run_in};
use crate::vectors::{Case, cases};

const RENDER: [&str; 4] = ["render", "registries", "-f", "-"];
const CHECK: [&str; 4] = ["check", "registries", "-f", "-"];

fn list(items: &[Value]) -> String {
    json!({"kind": "List", "items": items}).to_string()
}

/// A mirror set as the cluster has it.
fn tags(source: &str, mirror: &str) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageTagMirrorSet",
        "metadata": {"name": "ours"},
        "spec": {"imageTagMirrors": [{"source": source, "mirrors": [mirror]}]},
    })
}

/// The pull secret with these plain texts.
fn pull_secret(data: &BTreeMap<String, String>) -> Value {
    let metadata = json!({"name": "pull-secret", "namespace": "openshift-config"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
}

fn credentials(registry: &str) -> Value {
    let auths = json!({"auths": {registry: {"username": "bob", "password": "hush"}}});
    pull_secret(&BTreeMap::from([(".dockerconfigjson".to_owned(), auths.to_string())]))
}

/// `-f` takes all words behind it, so what people copy from the help has the image before it.
#[test]
fn the_help_names_the_image_before_the_files() {
    let usage = run(&["explain", "mirror", "--help"], "").out;
    assert!(usage.contains("explain mirror <IMAGE> --filename <FILE>..."), "{usage}");
}

/// The command prints exactly what the library makes of each vector; the library's own tests compare
/// that with what the vectors ask for.
#[test]
fn vectors_go_through_the_command() {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Input {
        image_digest_mirror_sets: Vec<Value>,
        image_tag_mirror_sets: Vec<Value>,
        pull_secret: Option<BTreeMap<String, String>>,
    }
    let text = include_str!("../../../wmco-core/tests/vectors/registries.json");
    let cases: Vec<Case<Input, Value>> = cases("registries.json", text);
    assert_eq!(cases.len(), 57);
    for Case { name, input, .. } in cases {
        let mut objects = [input.image_digest_mirror_sets, input.image_tag_mirror_sets].concat();
        let sets: Vec<_> = objects.iter().filter_map(MirrorSetFacts::of).collect();
        let data = input.pull_secret.as_ref().and_then(|data| data.get(".dockerconfigjson"));
        let text = data.map_or("{}", String::as_str).as_bytes();
        let pull_secret_facts = PullSecret::read(PullSecretData::Text(text));
        let expected = configure(&RegistryInputs {
            mirror_sets: &sets,
            pull_secret: &pull_secret_facts,
            ..RegistryInputs::default()
        });
        let files: BTreeMap<String, String> = expected
            .files()
            .into_iter()
            .map(|(path, text)| (path, String::from_utf8(text.expose().to_vec()).unwrap()))
            .collect();
        objects.extend(input.pull_secret.as_ref().map(pull_secret));
        let run = run(&[&RENDER[..], &["-o", "json"]].concat(), &list(&objects));
        assert_eq!(run.status, 0, "{name}: {run:?}");
        assert_eq!(run.json(), json!(files), "{name}");
        let labels = ["error: ", "warning: ", "note: "];
        let told = run.err.lines().filter(|line| !line.starts_with("note: ")).count();
        assert_eq!(told, expected.findings().len(), "{name}: {}", run.err);
        assert!(run.err.lines().all(|line| labels.iter().any(|label| line.starts_with(label))));
    }
}

#[test]
fn credentials_are_found_in_either_form_of_the_secret() {
    let mut secret = credentials("m.test");
    let text = secret["stringData"][".dockerconfigjson"].as_str().unwrap().to_owned();
    let set = tags("a.test", "m.test");
    let plain = run(&RENDER, &list(&[set.clone(), secret.clone()]));
    assert!(plain.out.contains(r"C:\k\containerd\registries\a.test\hosts.toml: "), "{plain:?}");
    assert!(plain.out.contains("Basic Ym9iOmh1c2g="), "{plain:?}");
    secret["stringData"] = Value::Null;
    secret["data"] = json!({".dockerconfigjson": base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text)});
    let stored = run(&RENDER, &list(&[set.clone(), secret.clone()]));
    assert_eq!((&stored.out, stored.err.as_str()), (&plain.out, ""));
    secret["metadata"]["namespace"] = "elsewhere".into();
    let other = run(&RENDER, &list(&[set, secret]));
    assert!(!other.out.contains("Basic"), "{other:?}");
    assert!(other.err.starts_with("note: no Secret pull-secret in the input"), "{other:?}");
}

#[test]
fn a_check_tells_object_and_field() {
    let secret =
        pull_secret(&BTreeMap::from([(".dockerconfigjson".to_owned(), "{hush".to_owned())]));
    let config = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
        "spec": {"registrySources": {"insecureRegistries": ["*.lab.test"]}},
    });
    let image = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
        "spec": {"registrySources": {"allowedRegistries": ["a.test"]}},
    });
    let fine = tags("b.test", "m.test");
    let input = list(&[tags("a.test/x", "m.test/y"), fine, image, config, secret]);
    let checked = run(&CHECK, &input);
    assert_eq!(checked.status, 1, "{checked:?}");
    insta::assert_snapshot!(checked.out);
    let json = run(&[&CHECK[..], &["-o", "json"]].concat(), &input).json();
    assert_eq!(json["files"], json!([r"b.test\hosts.toml"]));
    let problem = &json["problems"][0];
    assert_eq!(problem["object"], json!({"kind": "ImageTagMirrorSet", "name": "ours"}));
    assert_eq!(problem["field"], "spec.imageTagMirrors[0].mirrors[0]");
    assert_eq!(json["warnings"][0]["field"], "spec.registrySources.insecureRegistries[0]");
}

#[test]
fn what_is_fine_is_yes_and_nothing_is_wrong_usage() {
    let checked = run(&CHECK, &list(&[tags("a.test", "m.test"), credentials("m.test")]));
    let told = "1 mirror set, 1 file for containerd, all fine\n";
    assert_eq!((checked.status, checked.out.as_str()), (0, told), "{checked:?}");
    run(&CHECK, "kind: Node\n").is_refused(2, &["none of ImageDigestMirrorSet", "-f FILE"]);
    let nothing = run(&[&RENDER[..], &["-o", "json"]].concat(), "kind: Node\n");
    assert_eq!((nothing.status, nothing.json()), (0, json!({})));
}

/// It comes before every pod, so people who mirror have to think of it.
#[test]
fn a_pause_image_without_a_mirror_is_a_hint() {
    let check = |environment: &[(&str, &str)], mirror: &Value| {
        let pairs = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        run_in(&pairs.collect(), &CHECK, &list(&[mirror.clone(), credentials("m.test")]))
    };
    let other = tags("quay.io", "m.test");
    let hint = check(&[], &other);
    assert_eq!(hint.status, 0, "{hint:?}");
    insta::assert_snapshot!(hint.err);
    let mirrored = check(&[], &tags("mcr.microsoft.com", "m.test/mcr"));
    assert_eq!((mirrored.status, mirrored.err.as_str()), (0, ""));
    let chosen = check(&[("CONTAINERD_PAUSE_IMAGE", "quay.io/team/pause:1")], &other);
    assert_eq!((chosen.status, chosen.err.as_str()), (0, ""));
    let explained = run(
        &["explain", "mirror", "mcr.microsoft.com/oss/kubernetes/pause:3.9", "-f", "-"],
        &list(&[tags("mcr.microsoft.com/oss", "m.test/oss"), credentials("m.test")]),
    );
    let url = "https://m.test/v2/oss/kubernetes/pause/manifests/3.9?ns=mcr.microsoft.com";
    assert!(explained.out.contains(url), "{explained:?}");
}

#[test]
fn an_image_is_explained() {
    let explain = |image: &str, input: &str| run(&["explain", "mirror", image, "-f", "-"], input);
    let input = list(&[tags("quay.io/team", "m.test:5000/q/team"), credentials("m.test:5000")]);
    let explained = explain("quay.io/team/app:1", &input);
    assert_eq!((explained.status, explained.err.as_str()), (0, ""), "{explained:?}");
    insta::assert_snapshot!(explained.out);
    let json =
        run(&["explain", "mirror", "quay.io/team/app:1", "-f", "-", "-o", "json"], &input).json();
    let url = "https://m.test:5000/v2/q/team/app/manifests/1?ns=quay.io";
    assert_eq!(json["resolve"][0]["url"], url);
    assert_eq!(json["resolve"][0]["credentials"], "m.test:5000");
    assert_eq!(json["resolve"][0]["because"]["object"]["name"], "ours");
    assert_eq!(json["resolve"][1]["because"], json!({"kind": "source"}));
    explain("quay.io/Team/app", &input).is_refused(2, &["IMAGE", "in lower case"]);

    let blocked = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Image",
        "spec": {"registrySources": {"blockedRegistries": ["quay.io"]}},
    });
    let refused = explain("quay.io/team/app:1", &blocked.to_string());
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.out.contains("no registry may be asked"), "{refused:?}");
}
