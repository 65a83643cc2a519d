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
        // What cannot be expressed is an error; the files say the rest.
        let is_wrong = expected.findings().iter().any(|finding| finding.problem.is_serious());
        assert_eq!(run.status, i32::from(is_wrong), "{name}: {run:?}");
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
    let mut fine = tags("b.test", "m.test");
    fine["metadata"]["name"] = "fine".into();
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

/// containerd pulls it without the credentials of any pod.
#[test]
fn the_source_of_the_pause_image_gets_its_credentials() {
    let environment = [("CONTAINERD_PAUSE_IMAGE".to_owned(), "reg.test:5000/pause:3.9".to_owned())];
    let input = list(&[credentials("reg.test:5000")]);
    let rendered = run_in(&environment.into(), &RENDER, &input);
    assert!(rendered.out.contains(r"registries\reg.test_5000_\hosts.toml: "), "{rendered:?}");
    assert!(rendered.out.contains("Basic Ym9iOmh1c2g="), "{rendered:?}");
    let usual = run(&[&RENDER[..], &["-o", "json"]].concat(), &input);
    assert_eq!(usual.json(), json!({}), "the usual one needs none");
}

#[test]
fn an_image_is_explained() {
    let explain = |image: &str, input: &str| run(&["explain", "mirror", image, "-f", "-"], input);
    let input = list(&[tags("quay.io/team", "m.test:5000/q/team"), credentials("m.test:5000")]);
    let explained = explain("quay.io/team/app:1", &input);
    assert_eq!(explained.status, 1, "{explained:?}");
    assert!(explained.err.starts_with("error: ImageTagMirrorSet ours, "), "{explained:?}");
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

/// An object that does not count is named, with what is wrong with it.
#[test]
fn objects_that_do_not_count_are_told() {
    let of = |kind: &str, version: &str, name: &str| {
        let mut object = tags("a.test", "m.test");
        object["kind"] = kind.into();
        object["apiVersion"] = version.into();
        object["metadata"]["name"] = name.into();
        object
    };
    for (object, expected) in [
        (
            of("ImageDigestMirrorSet", "operator.openshift.io/v1alpha1", "d"),
            [
                "ImageDigestMirrorSet d, field `apiVersion`",
                "write `apiVersion: config.openshift.io/v1`",
            ],
        ),
        (
            of("ImageContentSourcePolicy", "config.openshift.io/v1", "p"),
            ["ImageContentSourcePolicy p, field", "`apiVersion: operator.openshift.io/v1alpha1`"],
        ),
        (
            of("Image", "config.openshift.io/v1", "custer"),
            ["Image custer, field `metadata.name`", "write `name: cluster`"],
        ),
    ] {
        let good = tags("b.test", "m.test");
        let beside = run(&CHECK, &list(&[good, object.clone(), credentials("m.test")]));
        assert_eq!(beside.status, 1, "{beside:?}");
        let alone = run(&CHECK, &object.to_string());
        assert!(expected.iter().all(|text| beside.out.contains(text)), "{beside:?}");
        alone.is_refused(2, &[&["the input has none of"][..], &expected].concat());
        let explained = run(&["explain", "mirror", "a.test/x", "-f", "-"], &object.to_string());
        assert!(expected.iter().all(|text| explained.err.contains(text)), "{explained:?}");
    }
    let image = of("Image", "image.openshift.io/v1", "sha256:0123");
    let fine = run(&CHECK, &list(&[tags("a.test", "m.test"), image, credentials("m.test")]));
    assert_eq!(fine.status, 0, "images of the registry of the cluster are another kind: {fine:?}");
}

#[test]
fn an_object_that_is_given_twice_is_refused() {
    let twice = list(&[tags("a.test", "m.test"), tags("b.test", "n.test")]);
    for command in [&CHECK[..], &RENDER, &["explain", "mirror", "a.test/x", "-f", "-"]] {
        let places = ["ImageTagMirrorSet ours is given twice", "item 1", "item 2"];
        run(command, &twice).is_refused(2, &places);
    }
    let mut digests = tags("a.test", "m.test");
    digests["kind"] = "ImageDigestMirrorSet".into();
    digests["spec"] = json!({"imageDigestMirrors": digests["spec"]["imageTagMirrors"]});
    let two = run(&CHECK, &list(&[tags("a.test", "m.test"), digests, credentials("m.test")]));
    assert_eq!(two.status, 0, "two kinds may share a name: {two:?}");
}

/// What `check` says of a registry, `explain` says, too, and nothing of others.
#[test]
fn explain_has_the_findings_of_check() {
    let mut other = tags("other.test", "n.test/*");
    other["metadata"]["name"] = "other".into();
    let left_out = tags("a.test/team", "m.test/else");
    let config = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
        "spec": {"registrySources": {"blockedRegistries": ["a.test", "c.test"], "insecureRegistries": "x"}},
    });
    let input = list(&[other, left_out, config, credentials("m.test")]);
    let checked = run(&CHECK, &input);
    for (image, theirs, others) in [
        (
            "a.test:5000/team/app:1",
            &["mirrors[0]", "blockedRegistries[0]"][..],
            &["other.test", "n.test", "Registries[1]"][..],
        ),
        ("other.test/x", &["n.test/*"], &["a.test", "c.test"]),
        ("unknown.test/x", &[], &["a.test", "n.test", "c.test"]),
    ] {
        let explained = run(&["explain", "mirror", image, "-f", "-"], &input);
        for text in
            theirs.iter().chain(&["`spec.registrySources.insecureRegistries`: is not a list"])
        {
            assert!(explained.err.contains(text), "{text}: {explained:?}");
        }
        assert!(!others.iter().any(|text| explained.err.contains(text)), "{explained:?}");
        for line in explained.err.lines() {
            let finding = line.split_once(": ").unwrap().1;
            assert!(checked.out.contains(finding), "{finding} is not in {}", checked.out);
        }
    }
    let unknown =
        run(&["explain", "mirror", "b.test/x", "-f", "-"], &list(&[tags("*.test", "m.test")]));
    assert!(unknown.err.contains("ImageTagMirrorSet ours"), "{unknown:?}");
    assert!(
        unknown.out.contains("no object that can be used says anything of its registry"),
        "{unknown:?}"
    );
}

/// `-o json` repeats names of objects, too.
#[test]
fn json_holds_no_password_and_no_endless_name() {
    let mut set = tags("a.test/x", "m.test/y");
    set["metadata"]["name"] = format!("https://bob:hush@x/\u{1b}{}", "x".repeat(100_000)).into();
    let checked = run(&[&CHECK[..], &["-o", "json"]].concat(), &list(&[set]));
    assert!(!checked.out.contains("hush") && checked.out.len() < 5000, "{checked:?}");
}
