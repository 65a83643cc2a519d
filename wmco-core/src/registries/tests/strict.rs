//! What has to be told: other names of a registry, wrong shapes, credentials that are none.

use serde_json::{Value, json};

use super::{asked, digests, never, registries, tags, texts, told};
use crate::registries::{Registries, misplaced};

/// The `registrySources` of the cluster.
fn sources(sources: &Value) -> Value {
    json!({"kind": "Image", "spec": {"registrySources": sources}})
}

fn serious(found: &Registries) -> Vec<String> {
    let findings = found.findings().iter().filter(|finding| finding.problem.is_serious());
    findings.map(ToString::to_string).collect()
}

/// One registry has several names: those of Docker Hub, and HTTPS' port written or not.
const SAME: [(&str, &str); 8] = [
    ("docker.io", "registry-1.docker.io"),
    ("docker.io", "index.docker.io"),
    ("docker.io", "Registry-1.docker.io:443"),
    ("registry-1.docker.io", "docker.io"),
    ("a.test", "a.test:443"),
    ("a.test:443", "A.test"),
    ("docker.io/library", "registry-1.docker.io/library"),
    ("a.test/x", "a.test:443/x"),
];

#[test]
fn forbidden_source_under_another_name_is_told() {
    for (source, mirror) in SAME {
        let found = registries(&[never("n", source, &[mirror, "m.test/library/x"])]);
        let told = serious(&found);
        let expected = "mirrors[0]`: this is the source";
        assert!(told.iter().any(|line| line.contains(expected)), "{source} {mirror}: {told:?}");
    }
    for (source, mirror) in [("a.test", "a.test:5000"), ("a.test", "b.test:443")] {
        assert_eq!(serious(&registries(&[never("n", source, &[mirror])])), [""; 0], "{mirror}");
    }
}

/// The rule and the mirror stand in two objects: the rule holds.
#[test]
fn forbidden_source_that_another_entry_mirrors_is_not_asked() {
    let found =
        registries(&[never("n", "a.test", &["m.test"]), tags("t", "A.test", &["a.test:443"])]);
    let told = serious(&found);
    assert!(told[0].starts_with("ImageTagMirrorSet t, "), "{told:?}");
    assert!(told[0].contains("another entry forbids"), "{told:?}");
    for urls in asked(&found, "a.test/x:1") {
        assert!(urls.iter().all(|url| !url.contains("a.test/")), "{urls:?}");
    }
}

#[test]
fn blocked_registry_under_another_name_is_no_mirror() {
    for (blocked, mirror) in SAME {
        let mirror = format!("{}/p", mirror.split('/').next().unwrap());
        let blocked = blocked.split('/').next().unwrap();
        let found = registries(&[
            tags("t", "s.test", &[&mirror, "m.test"]),
            sources(&json!({"blockedRegistries": [blocked]})),
        ]);
        assert!(told(&found).contains("registry of this mirror is blocked"), "{blocked} {mirror}");
        let [resolve, _] = asked(&found, "s.test/x:1");
        let expected =
            ["https://m.test/v2/x/manifests/1?ns=s.test", "https://s.test/v2/x/manifests/1"];
        assert_eq!(resolve, expected, "{blocked} {mirror}");
    }
}

#[test]
fn blocked_part_of_docker_hub_is_no_mirror_under_any_of_its_names() {
    for (blocked, mirror) in [
        ("docker.io/x", "registry-1.docker.io/x/y"),
        ("index.docker.io/x", "docker.io/x"),
        ("*.docker.io", "docker.io/x"),
    ] {
        let found = registries(&[
            tags("t", "s.test", &[mirror]),
            sources(&json!({"blockedRegistries": [blocked]})),
        ]);
        assert!(told(&found).contains("registry of this mirror is blocked"), "{blocked} {mirror}");
    }
}

#[test]
fn blocked_registry_is_asked_under_none_of_its_names() {
    for (blocked, images) in [
        ("docker.io", ["docker.io/t/x", "registry-1.docker.io/t/x", "docker.io:443/t/x"]),
        ("index.docker.io", ["docker.io/t/x", "registry-1.docker.io/t/x", "busybox"]),
        ("registry-1.docker.io", ["docker.io/t/x", "registry-1.docker.io/t/x", "busybox"]),
        ("a.test", ["a.test/x", "a.test:443/x", "A.test/x"]),
        ("a.test:443", ["a.test/x", "a.test:443/x", "A.test:443/x"]),
    ] {
        let found = registries(&[sources(&json!({"blockedRegistries": [blocked]}))]);
        for image in images {
            assert!(asked(&found, image).iter().all(Vec::is_empty), "{blocked}: {image}");
        }
    }
    let found = registries(&[sources(&json!({"blockedRegistries": ["a.test:443"]}))]);
    assert_eq!(asked(&found, "a.test:5000/x")[0].len(), 1, "another port is another registry");
}

/// As a blocked registry. Mirrors serve images with the written name of their source.
#[test]
fn forbidden_source_is_asked_under_none_of_its_names() {
    for (source, other, images) in [
        ("quay.io", "quay.io:443", ["quay.io:443/x/y:1", "QUAY.io:443/x:1"]),
        ("quay.io:443", "quay.io", ["quay.io/x/y:1", "Quay.io/x:1"]),
        ("quay.io/x", "quay.io:443", ["quay.io:443/x/y:1", "quay.io:443/z:1"]),
        ("docker.io", "registry-1.docker.io", ["registry-1.docker.io/t/x", "docker.io:443/t/x"]),
        ("registry-1.docker.io", "docker.io", ["docker.io/t/x", "busybox"]),
        (
            "docker.io",
            "index.docker.io:443",
            ["index.docker.io:443/t/x", "index.docker.io:443/x:1"],
        ),
    ] {
        let mirror = if source.ends_with("/x") { "m.test/x" } else { "m.test" };
        let found = registries(&[never("n", source, &[mirror])]);
        for image in images {
            assert!(asked(&found, image).iter().all(Vec::is_empty), "{source}: {image}");
        }
        let lines = told(&found);
        assert!(!lines.contains("asked in spite"), "{source}: {lines}");
        // An entry for the other name has its own mirrors, and the policy holds for it, too.
        let found = registries(&[never("n", source, &[mirror]), tags("t", other, &["n.test"])]);
        let [resolve, _] = asked(&found, images[0]);
        assert!(resolve.iter().all(|url| url.contains("n.test")), "{source}: {resolve:?}");
        assert_eq!(resolve.len(), 2, "{source}: {resolve:?}");
        let lines = told(&found);
        let expected = "ImageTagMirrorSet t, field `spec.imageTagMirrors[0].mirrorSourcePolicy`: ";
        assert!(lines.contains(expected), "{source}: {lines}");
    }
    let found = registries(&[never("n", "quay.io", &["m.test"])]);
    assert_eq!(asked(&found, "quay.io:5000/x")[0].len(), 1, "another port is another registry");
    assert_eq!(told(&found), "");
    let nothing = registries(&[never("n", "quay.io", &[])]);
    assert_eq!(asked(&nothing, "quay.io:443/x")[0].len(), 1, "it forbids nothing");
}

#[test]
fn mirror_at_a_forbidden_registry_is_not_asked() {
    for (mirror, forbidden) in [
        ("ghcr.io/q", "ghcr.io"),
        ("GHCR.io:443/q", "ghcr.io"),
        ("ghcr.io", "ghcr.io:443"),
        ("registry-1.docker.io", "docker.io"),
        ("ghcr.io/q", "ghcr.io/q"),
        ("ghcr.io/q/r", "ghcr.io/q"),
        ("ghcr.io/q", "ghcr.io/q/r"),
    ] {
        let part =
            forbidden.split_once('/').map_or("m.test".into(), |(_, path)| format!("m.test/{path}"));
        let found = registries(&[
            tags("a", "quay.io", &[mirror, "n.test"]),
            never("b", forbidden, &[&part]),
        ]);
        let told = serious(&found);
        let expected = "ImageTagMirrorSet a, field `spec.imageTagMirrors[0].mirrors[0]`: ";
        assert!(told.iter().any(|it| it.starts_with(expected)), "{mirror} {forbidden}: {told:?}");
        let hosts: Vec<String> = asked(&found, "quay.io/x:1")[0]
            .iter()
            .map(|url| url.split('/').nth(2).unwrap().to_owned())
            .collect();
        assert_eq!(hosts, ["n.test", "quay.io"], "{mirror} {forbidden}");
    }
    for (mirror, forbidden) in [("ghcr.io:5000", "ghcr.io"), ("ghcr.io/qr", "ghcr.io/q")] {
        let part =
            forbidden.split_once('/').map_or("m.test".into(), |(_, path)| format!("m.test/{path}"));
        let found = registries(&[tags("a", "quay.io", &[mirror]), never("b", forbidden, &[&part])]);
        assert_eq!(asked(&found, "quay.io/x:1")[0].len(), 2, "{mirror} {forbidden}");
    }
}

#[test]
fn credentials_that_no_registry_takes_are_told() {
    let pair = |text: &str| {
        use base64::Engine as _;
        json!({"auth": base64::prelude::BASE64_STANDARD.encode(text)})
    };
    let found = |entry: &Value| {
        registries(&[tags("t", "a.test", &["m.test"]), json!({"auths": {"m.test": entry}})])
    };
    for entry in [
        pair("bob:hush\n"),
        pair("bob: hush"),
        pair("bob :hush"),
        pair("bob:hu\0sh"),
        json!({"username": "bob", "password": "hush\r"}),
        json!({"username": "\tbob", "password": "hush"}),
    ] {
        let found = found(&entry);
        let lines = told(&found);
        assert!(
            lines.contains("auths[\"m.test\"]`: ") && lines.contains("401"),
            "{entry}: {lines}"
        );
        assert!(!lines.contains("hush") && !lines.contains("bob"), "{lines}");
        assert_eq!(serious(&found), [""; 0]);
        assert!(texts(&found).values().any(|text| text.contains("Authorization")), "{entry}");
    }
    for entry in [pair("bob:hu sh"), pair("b ob:hush"), pair("bob:h\u{fc}sh")] {
        assert_eq!(told(&found(&entry)), "", "{entry}");
    }
}

/// Trust is never widened: only the registry as it is written is asked by HTTP.
#[test]
fn insecure_registry_counts_as_it_is_written() {
    let found = registries(&[
        tags("t", "s.test", &["m.test"]),
        sources(&json!({"insecureRegistries": ["m.test:443"]})),
    ]);
    assert!(asked(&found, "s.test/x:1")[0].iter().all(|url| url.starts_with("https://")));
}

#[test]
fn insecure_registry_without_a_port_is_told() {
    let insecure =
        |list: &[&str]| told(&registries(&[sources(&json!({"insecureRegistries": list}))]));
    let told = insecure(&["m.test"]);
    assert!(told.contains("insecureRegistries[0]`: on Windows nodes"), "{told}");
    assert!(told.contains("m.test:PORT"), "{told}");
    assert_eq!(insecure(&["m.test:5000"]), "");
}

#[test]
fn wrong_shape_is_told_at_every_level() {
    let image = |spec: Value| json!({"kind": "Image", "spec": spec});
    let set =
        |spec: Value| json!({"kind": "ImageTagMirrorSet", "metadata": {"name": "t"}, "spec": spec});
    for (object, expected) in [
        (image(json!([])), "Image cluster, field `spec`: is not an object"),
        (
            image(json!({"registrySources": ["a.test"]})),
            "field `spec.registrySources`: is not an object",
        ),
        (
            image(json!({"registrySources": "blockedRegistries"})),
            "`spec.registrySources`: is not an object",
        ),
        (image(json!({"registrySources": {"blockedRegistries": 1}})), "Registries`: is not a list"),
        (
            set(json!([{"imageTagMirrors": []}])),
            "ImageTagMirrorSet t, field `spec`: is not an object",
        ),
        (set(json!("x")), "field `spec`: is not an object"),
        (set(json!({"imageTagMirrors": {"source": "a"}})), "`spec.imageTagMirrors`: is not a list"),
        (
            set(json!({"imageTagMirrors": ["a.test"]})),
            "`spec.imageTagMirrors[0]`: is not an object",
        ),
        (
            set(json!({"imageTagMirrors": [{"source": "a.test", "mirrors": "m"}]})),
            "[0].mirrors`: is not a list",
        ),
        (set(json!({"imageTagMirrors": [{"mirrors": ["m.test"]}]})), "[0].source`: is missing"),
    ] {
        let found = registries(std::slice::from_ref(&object));
        let lines = told(&found);
        assert_eq!(lines.lines().count(), 1, "{object}: {lines}");
        assert!(lines.contains(expected), "{object}: {lines}");
        assert!(lines.trim_end().rsplit(": ").next().unwrap().starts_with("write "), "{lines}");
        assert_eq!(serious(&found).len(), 1, "{lines}");
    }
}

#[test]
fn keys_of_the_pull_secret_are_shown_harmless() {
    let long = "x".repeat(300_000);
    for key in [
        "m.test/a\nb",
        "m.test/\u{1b}[2J",
        &format!("m.test/{long}"),
        "m.test/bob:hush@x",
        "m.test/a\u{202e}b",
        "https://bob:hush@m.test/x",
    ] {
        for below in ["m.test", "m.test:443"] {
            let found = registries(&[
                tags("t", "s.test/t", &[&format!("{below}/t")]),
                sources(&json!({"insecureRegistries": ["m.test"]})),
                json!({"auths": {key: {"auth": "dTpw"}}}),
            ]);
            let all = told(&found);
            assert!(all.contains("Secret pull-secret, field `auths["), "{key:.30}: {all:.300}");
            assert!(!all.contains("hush") && !all.contains(&long), "{key:.30}");
            assert!(
                !all.contains(|c: char| c != '\n' && crate::text::steers_terminals(c)),
                "{all:?}"
            );
            assert!(all.lines().all(|line| line.len() < 1000), "{key:.30}");
        }
    }
}

#[test]
fn names_of_members_are_shown_without_passwords() {
    let mut set = tags("https://bob:hush@n/", "a.test", &["m.test"]);
    set["spec"]["https://bob:hush@x/"] = json!({});
    set["spec"]["imageTagMirrors"][0]["bob:hush@x"] = json!({});
    let found = registries(&[set]);
    assert_eq!(found.findings().len(), 2);
    assert!(!told(&found).contains("hush"), "{}", told(&found));
    let name = &found.findings()[0].object.name;
    assert!(!name.contains("hush"), "{name}");
}

#[test]
fn half_credentials_are_told_and_not_sent() {
    for (entry, expected) in [
        (json!({"username": "bob", "passwd": "hush"}), "auths[\"m.test\"].passwd`: nobody reads"),
        (json!({"username": "bob"}), "`password`"),
        (json!({"username": "bob", "password": ""}), "`password`"),
        (json!({"password": "hush"}), "`username`"),
        (json!({"auth": "Ym9iOg=="}), "a password behind the colon"),
        // `:hush`
        (json!({"auth": "Omh1c2g="}), "a user before the colon"),
    ] {
        let found =
            registries(&[tags("t", "a.test", &["m.test"]), json!({"auths": {"m.test": entry}})]);
        assert!(told(&found).contains(expected), "{entry}: {}", told(&found));
        assert!(!told(&found).contains("hush"), "{entry}");
        assert!(!texts(&found).values().any(|text| text.contains("Authorization")), "{entry}");
    }
    let whole = json!({"auth": "dTpw", "email": "bob@x.test", "username": "u", "password": "p"});
    let found =
        registries(&[tags("t", "a.test", &["m.test"]), json!({"auths": {"m.test": whole}})]);
    assert_eq!(told(&found), "");
}

#[test]
fn helpers_that_nobody_runs_are_told() {
    for (member, value, expected) in [
        ("credsStore", json!("desktop"), "field `credsStore`: containerd asks no credential store"),
        ("credHelpers", json!(["m.test"]), "field `credHelpers`: is not an object"),
    ] {
        let secret = json!({"auths": {}, member: value});
        let found = registries(&[tags("t", "a.test", &["m.test"]), secret]);
        assert!(told(&found).contains(expected), "{member}: {}", told(&found));
    }
}

#[test]
fn a_forbidden_source_by_a_name_that_images_do_not_have_is_told() {
    for source in ["registry-1.docker.io", "Index.docker.io", "index.docker.io/library"] {
        let found = registries(&[never("n", source, &["m.test/library"])]);
        let told = serious(&found);
        assert!(told[0].contains("write docker.io as the source"), "{source}: {told:?}");
    }
    for source in ["quay.io:443", "QUAY.io:443/team"] {
        let there = never("n", source, &["m.test/team"]);
        let found = registries(std::slice::from_ref(&there));
        let lines = serious(&found);
        assert!(lines[0].contains("write quay.io as the source"), "{source}: {lines:?}");
        let found = told(&registries(&[there, never("o", "quay.io", &["m.test"])]));
        assert!(!found.contains("usually name"), "{source}: {found}");
    }
    for source in ["docker.io", "quay.io", "quay.io:5000"] {
        let found = registries(&[never("n", source, &["m.test/library"])]);
        assert_eq!(serious(&found), [""; 0], "{source}");
    }
}

#[test]
fn a_kind_that_nobody_reads_is_told() {
    let of = |kind: &str| misplaced(&json!({"kind": kind, "apiVersion": "config.openshift.io/v1"}));
    for (kind, right) in [
        ("ImageDigestMirrorset", "ImageDigestMirrorSet"),
        ("ImageTagMirrorSets", "ImageTagMirrorSet"),
        ("ImageTagMirror", "ImageTagMirrorSet"),
    ] {
        let finding = of(kind).unwrap().to_string();
        assert!(finding.ends_with(&format!("write `kind: {right}`")), "{finding}");
    }
    for other in ["ImagePolicy", "ImageContentPolicy", "ClusterVersion", "Image"] {
        assert_eq!(of(other), None, "{other}");
    }
    assert_eq!(misplaced(&json!({"kind": "ImageTagMirror", "apiVersion": "other.test/v1"})), None);
}

#[test]
fn a_trusted_ca_of_the_wrong_shape_is_told() {
    for (value, expected) in [
        (json!("cas"), "field `spec.additionalTrustedCA`: is not an object"),
        (json!({"nam": "cas"}), "field `spec.additionalTrustedCA.nam`: nobody reads"),
    ] {
        let found = registries(&[json!({"kind": "Image", "spec": {"additionalTrustedCA": value}})]);
        assert!(told(&found).contains(expected), "{}", told(&found));
    }
}

#[test]
fn keys_that_never_match_are_told() {
    for key in
        ["m.test//team", "m.test/team/../x", "m.test/te am", "m.test/team:1", "m.test/team@x"]
    {
        let found = registries(&[
            tags("t", "a.test/team", &["m.test/team"]),
            json!({"auths": {key: {"auth": "dTpw"}}}),
        ]);
        assert!(told(&found).contains("their key"), "{key}: {}", told(&found));
        assert!(!texts(&found).values().any(|text| text.contains("Authorization")), "{key}");
    }
}

#[test]
fn two_keys_for_one_registry_are_told_where_they_differ() {
    for (one, other) in [
        ("m.test", "https://m.test/v1/"),
        ("https://m.test", "https://m.test/v2/"),
        ("M.test", "m.test"),
        ("docker.io", "https://index.docker.io/v1/"),
    ] {
        let mirror = if one.starts_with("docker") { "docker.io" } else { "m.test" };
        let with = |second: &str| {
            let auths = json!({one: {"auth": "dTpw"}, other: {"auth": second}});
            registries(&[tags("t", "a.test", &[mirror]), json!({"auths": auths})])
        };
        let differ = with("dTpx");
        assert!(told(&differ).contains("other credentials"), "{one} {other}: {}", told(&differ));
        assert_eq!(differ.findings().len(), 1);
        assert_eq!(told(&with("dTpw")), "", "{one} {other}");
    }
}

#[test]
fn credential_helper_for_a_mirror_is_told() {
    let secret = json!({"auths": {"n.test": {"auth": "dTpw"}}, "credHelpers": {"m.test": "ecr", "o.test": "gcr"}});
    let found = registries(&[tags("t", "a.test", &["m.test", "n.test"]), secret.clone()]);
    let lines = told(&found);
    assert_eq!(found.findings().len(), 1, "{lines}");
    assert!(lines.contains("mirrors[0]`") && lines.contains("helper"), "{lines}");
    let found = registries(&[tags("t", "a.test", &["n.test"]), secret]);
    assert_eq!(told(&found), "", "helpers of others do not matter");
    let wrong = json!({"auths": {}, "Auths": {"m.test": {"auth": "dTpw"}}});
    let found = registries(&[tags("t", "a.test", &["m.test"]), wrong]);
    assert!(told(&found).contains("`Auths`: nobody reads this member"), "{}", told(&found));
}

#[test]
fn orders_that_contradict_each_other_are_told() {
    let found = registries(&[
        digests("1", "s.test", &["a.test", "b.test", "c.test"]),
        digests("2", "s.test", &["c.test", "a.test"]),
    ]);
    let lines = told(&found);
    assert_eq!(found.findings().len(), 1, "{lines}");
    assert!(
        lines.contains("ImageDigestMirrorSet 2, field `spec.imageDigestMirrors[0].mirrors`"),
        "{lines}"
    );
    let found = registries(&[
        digests("1", "s.test", &["a.test", "b.test"]),
        digests("2", "s.test", &["b.test", "c.test"]),
    ]);
    assert_eq!(told(&found), "");
}

#[test]
fn scheme_in_upper_case_is_a_scheme() {
    let found = registries(&[tags("t", "a.test", &["HTTP://m.test"])]);
    assert!(told(&found).contains("`http://` is not kept"), "{}", told(&found));
}

#[test]
fn entry_that_says_nothing_is_told() {
    let empty = |policy: &str| {
        let set = super::set("ImageTagMirrorSet", "t", "a.test", &[], policy);
        registries(&[set])
    };
    for policy in ["AllowContactingSource", ""] {
        let lines = told(&empty(policy));
        assert!(lines.contains("[0].mirrors`: there is no mirror in it"), "{policy}: {lines}");
        assert_eq!(serious(&empty(policy)), [""; 0]);
    }
}

#[test]
fn blocked_part_below_a_mirror_is_not_claimed_to_hold() {
    let found = registries(&[
        tags("t", "s.test", &["m.test/x"]),
        sources(&json!({"blockedRegistries": ["m.test/x/y"]})),
    ]);
    let lines = told(&found);
    assert!(!lines.contains("so this holds for mirrors, but not"), "{lines}");
    assert!(lines.contains("mirrors of a wider part"), "{lines}");
}

#[test]
fn findings_know_the_images_that_they_are_about() {
    let found = registries(&[
        tags("part", "a.test:5000/t", &["m.test/t"]),
        tags("hub", "docker.io", &["*.x"]),
        tags("domain", "*.b.test", &["m.test"]),
        sources(&json!({"blockedRegistries": ["a.test", "c.test/x"]})),
    ]);
    let about = |image: &str| -> Vec<String> {
        let image = image.parse().unwrap();
        let findings = found.findings().iter().filter(|finding| finding.is_about(&image));
        findings.map(|finding| format!("{} {}", finding.object.name, finding.field)).collect()
    };
    let domain = "domain spec.imageTagMirrors[0].source";
    let blocked = "cluster spec.registrySources.blockedRegistries[0]";
    assert_eq!(about("a.test:5000/t/x"), [domain, blocked, "part spec.imageTagMirrors[0].source"]);
    assert_eq!(about("busybox"), [domain, "hub spec.imageTagMirrors[0].mirrors[0]"]);
    assert_eq!(about("c.test/x"), [domain, "cluster spec.registrySources.blockedRegistries[1]"]);
    assert_eq!(about("d.test/x"), [domain]);
}
