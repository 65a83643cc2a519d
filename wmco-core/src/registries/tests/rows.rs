//! Single cases.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{asked, digests, never, registries, set, tags, texts, told, with_pause_image};
use crate::registries::{Registries, RegistryProblem};

/// The `registrySources` of the cluster.
fn sources(sources: &Value) -> Value {
    json!({"kind": "Image", "spec": {"registrySources": sources}})
}

const DIGEST: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";

#[test]
fn the_worked_example_of_the_specification() {
    let found = registries(&[
        tags("shell", "images.acme.test/base/shell", &["cache.lab.test:8443/team/base/shell"]),
        digests("probe", "images.acme.test/util/probe", &["depot.lab.test/util/probe"]),
        json!({"auths": {"depot.lab.test": {"username": "bob", "password": "s3cret"}}}),
    ]);
    assert_snapshot!(texts(&found)[r"images.acme.test\hosts.toml"], @r#"
    server = "https://images.acme.test/v2"

    override_path = true

    [host."https://depot.lab.test/v2"]
      capabilities = ["pull"]
      override_path = true
      [host."https://depot.lab.test/v2".header]
        Authorization = "Basic Ym9iOnMzY3JldA=="

    [host."https://cache.lab.test:8443/v2/team"]
      capabilities = ["pull", "resolve"]
      override_path = true
    "#);
}

#[test]
fn a_pull_is_explained_with_its_reasons() {
    let found = registries(&[
        tags("t", "a.test:5000/team", &["m.test/proxy/team"]),
        digests("d", "a.test:5000/team/app", &["n.test/team/app"]),
        json!({"auths": {"m.test/proxy": {"auth": "dTpw"}}}),
    ]);
    let explain = |image: &str| found.explain(&image.parse().unwrap()).to_string();
    assert_snapshot!(explain("a.test:5000/team/app:1"), @r"
    a.test:5000/team/app:1
      file: a.test_5000_\hosts.toml
      asked in turn:
        https://m.test/v2/proxy/team/app/manifests/1?ns=a.test%3A5000
          with the credentials for m.test/proxy; a mirror of ImageTagMirrorSet t, field `spec.imageTagMirrors[0].mirrors[0]`
        https://a.test:5000/v2/team/app/manifests/1
          without credentials; the source itself
      then content by its digest:
        https://n.test/v2/team/app/blobs/DIGEST?ns=a.test%3A5000
          without credentials; a mirror of ImageDigestMirrorSet d, field `spec.imageDigestMirrors[0].mirrors[0]`
        https://m.test/v2/proxy/team/app/blobs/DIGEST?ns=a.test%3A5000
          with the credentials for m.test/proxy; a mirror of ImageTagMirrorSet t, field `spec.imageTagMirrors[0].mirrors[0]`
        https://a.test:5000/v2/team/app/blobs/DIGEST
          without credentials; the source itself
      a layer that names URLs of its own, as in base images of Windows from before the middle of 2023, is fetched from there first, past every mirror; where that place cannot be reached, the pull fails
    ");
    let image = format!("a.test:5000/team/app:1@{DIGEST}");
    let [resolve, _] = asked(&found, &image);
    let places = ["n.test/v2/team", "m.test/v2/proxy/team", "a.test:5000/v2/team"];
    let kinds = ["manifests", "blobs"].into_iter();
    let expected = kinds.flat_map(|kind| places.map(|place| (kind, place)));
    for (url, (kind, place)) in resolve.iter().zip(expected) {
        let start = format!("https://{place}/app/{kind}/{DIGEST}");
        assert!(url.starts_with(&start), "{url} is not {start}");
    }
    assert_eq!(resolve.len(), 6);
}

#[test]
fn a_registry_on_the_node_itself_is_asked_by_http() {
    let found = registries(&[tags("t", "localhost:5001", &["m.test"])]);
    let first = |image: &str| asked(&found, image)[0].first().cloned().unwrap();
    for host in ["localhost", "localhost:5000", "127.0.0.9:5000", "[::1]:5000"] {
        assert_eq!(first(&format!("{host}/x:1")), format!("http://{host}/v2/x/manifests/1"));
    }
    for host in ["[::1]", "128.0.0.1:5000", "localhost.test"] {
        assert_eq!(first(&format!("{host}/x:1")), format!("https://{host}/v2/x/manifests/1"));
    }
    let [resolve, _] = asked(&found, "localhost:5001/x:1");
    assert_eq!(resolve[1], "http://localhost:5001/v2/x/manifests/1", "as without any settings");
}

#[test]
fn docker_hub_is_asked_where_it_is() {
    let found = registries(&[tags("t", "docker.io/library", &["m.test/hub/library"])]);
    let [resolve, _] = asked(&found, "busybox");
    let expected = [
        "https://m.test/v2/hub/library/busybox/manifests/latest?ns=docker.io",
        "https://registry-1.docker.io/v2/library/busybox/manifests/latest",
    ];
    assert_eq!(resolve, expected);
    assert_eq!(asked(&registries(&[]), "busybox")[0], expected[1..]);
}

#[test]
fn the_oldest_set_goes_first_whatever_the_order_of_the_input() {
    let mut old = digests("z", "a.test", &["old.test"]);
    old["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z".into();
    let mut new = digests("a", "a.test", &["new.test"]);
    new["metadata"]["creationTimestamp"] = "2024-01-02T00:00:00Z".into();
    let found = registries(&[new.clone(), old.clone()]);
    assert_eq!(found, registries(&[old, new]));
    let [_, content] = asked(&found, "a.test/x");
    assert!(
        content[0].starts_with("https://old.test") && content[1].starts_with("https://new.test")
    );
}

#[test]
fn a_registry_is_the_same_in_every_case() {
    let found =
        registries(&[tags("t", "A.test/x", &["m.test/x"]), never("n", "a.TEST", &["n.test"])]);
    let paths = [r"a.TEST\hosts.toml", r"a.TEST_443_\hosts.toml"];
    assert_eq!(texts(&found).keys().collect::<Vec<_>>(), paths);
    let [resolve, _] = asked(&found, "a.test/x:1");
    assert!(resolve.iter().all(|url| !url.contains("://a.test")), "{resolve:?}");
}

#[test]
fn what_is_wrong_in_one_object_leaves_all_others_alone() {
    let right = [
        tags("right", "a.test/team", &["m.test/team"]),
        json!({"auths": {"m.test": {"auth": "dTpw"}}}),
    ];
    let mut wrong = tags("wrong", "a.test/team", &["m.test/team"]);
    let texts_are_wrong =
        json!({"source": "a.test", "mirrors": [1, "*.m.test", "m test", "m.test:1/x:1"]});
    wrong["spec"]["imageTagMirrors"] = json!([
        7,
        {"source": ["b.test"], "mirrors": ["m.test"]},
        {"source": "", "mirrors": ["m.test"]},
        {"source": "*.b.test", "mirrors": ["m.test"]},
        {"source": "nul.b.test", "mirrors": ["m.test"]},
        {"source": "https://bob:hush@b.test", "mirrors": ["m.test"]},
        {"source": "a.test", "mirrors": {"m.test": 1}},
        texts_are_wrong,
    ]);
    let other = json!({"kind": "ImageDigestMirrorSet", "spec": {"imageDigestMirrors": "m.test"}});
    let mut secret = right[1].clone();
    secret["auths"]["x.test"] = json!({"auth": "aHVzaA=="});
    secret["auths"]["user:hush@y.test"] = json!({});
    secret["auths"]["z.test"] = json!("hush");
    secret["auths"]["t.test"] = json!({"identitytoken": "hush"});
    secret["auths"]["u.test"] = json!({"username": "a:b", "password": "hush"});
    let found = registries(&[wrong, right[0].clone(), other, secret]);
    assert_eq!(texts(&found), texts(&registries(&right)));
    let told = told(&found);
    assert!(!told.contains("hush"), "{told}");
    assert_snapshot!(told);
}

#[test]
fn nothing_of_a_password_is_printed() {
    // The base64 form of `bob:hush`, and the words themselves.
    let hidden = ["Ym9iOmh1c2g", "hush"];
    for entry in [json!({"auth": "Ym9iOmh1c2g="}), json!({"username": "bob", "password": "hush"})] {
        let found = registries(&[
            tags("t", "a.test", &["m.test"]),
            json!({"auths": {"m.test": entry, "https://bob:hush@n.test": entry}}),
        ]);
        assert!(texts(&found)[r"a.test\hosts.toml"].contains("Basic Ym9iOmh1c2g="));
        let printed = format!("{found:?} {} {}", told(&found), asked(&found, "a.test/x")[0][0]);
        assert!(hidden.iter().all(|word| !printed.contains(word)), "{printed}");
    }
}

#[test]
fn the_longest_key_gives_the_credentials() {
    let keys =
        ["m.test", "https://m.test/v1/", "m.test/a", "m.test/a/b", "m.test/a/b/team/app/more"];
    let key = |keys: &[&str], mirror: &str| {
        let auths: Value =
            keys.iter().map(|key| ((*key).to_owned(), json!({"auth": "dTpw"}))).collect();
        let found = registries(&[tags("t", "s.test/team/app", &[mirror]), json!({"auths": auths})]);
        found.explain(&"s.test/team/app".parse().unwrap()).resolve[0].credentials.clone()
    };
    assert_eq!(key(&keys, "M.test/a/b/team/app").as_deref(), Some("m.test/a/b"));
    assert_eq!(key(&keys, "m.test/ab/team/app").as_deref(), Some("m.test"));
    assert_eq!(key(&keys[1..2], "m.test/team/app").as_deref(), Some("m.test"));
    assert_eq!(key(&["m.test/v1"], "m.test/team/app"), None);
    assert_eq!(key(&["m.test"], "m.test:5000/team/app"), None);
}

#[test]
fn credentials_at_another_port_are_told() {
    let told_of = |mirror: &str, key: &str| {
        let secret = json!({"auths": {key: {"auth": "dTpw"}}});
        told(&registries(&[tags("t", "s.test/win", &[mirror]), secret]))
    };
    for (mirror, key) in [
        ("reg.corp.test:5000/win", "reg.corp.test"),
        ("reg.corp.test/win", "reg.corp.test:8443"),
        ("Reg.corp.test:5000/team/win", "reg.corp.test:443/team"),
    ] {
        let told = told_of(mirror, key);
        assert!(
            told.contains(&format!("has credentials for {key}, but")),
            "{mirror} {key}: {told}"
        );
    }
    for key in ["reg.corp.test.example", "reg.corp.test:5000", "reg.corp.test/other"] {
        assert!(!told_of("reg.corp.test:5000/win", key).contains("but keys count"), "{key}");
    }
}

#[test]
fn a_mirror_in_place_of_the_source_has_its_credentials() {
    let found = registries(&[
        never("n", "a.test", &["m.test"]),
        json!({"auths": {"m.test": {"auth": "dTpw"}}}),
    ]);
    assert_snapshot!(texts(&found)[r"a.test\hosts.toml"], @r#"
    server = "https://m.test/v2"

    override_path = true

    [header]
      Authorization = "Basic dTpw"

    [host."https://m.test/v2"]
      capabilities = ["pull", "resolve"]
      override_path = true
      [host."https://m.test/v2".header]
        Authorization = "Basic dTpw"
    "#);
}

#[test]
fn mirrors_that_share_a_place_may_want_other_credentials() {
    let found = registries(&[
        tags("1", "a.test/x", &["m.test/x"]),
        tags("2", "a.test/y", &["m.test/y"]),
        json!({"auths": {"m.test": {"auth": "dTpw"}, "m.test/y": {"auth": "dTpx"}}}),
    ]);
    let expected = RegistryProblem::CredentialsDiffer { base: "m.test".into() };
    assert!(found.findings().iter().any(|finding| finding.problem == expected));
}

#[test]
fn insecure_registries_are_asked_both_ways() {
    let found = registries(&[
        never("n", "a.test/x", &["lab.test:5000/x"]),
        tags("t", "b.lab.test", &["m.test"]),
        sources(
            &json!({"insecureRegistries": ["lab.test:5000", "*.lab.test", "alone.test", "m.test/x"]}),
        ),
    ]);
    assert_snapshot!(format!("{:#?}\n{}", texts(&found), told(&found)));
    let [resolve, _] = asked(&found, "alone.test/x");
    let expected = ["https", "http"].map(|by| format!("{by}://alone.test/v2/x/manifests/latest"));
    assert_eq!(resolve, expected);
}

#[test]
fn credentials_that_may_go_by_http_are_told() {
    let found = registries(&[
        tags("t", "a.test", &["lab.test:5000", "m.test"]),
        sources(&json!({"insecureRegistries": ["lab.test"]})),
        json!({"auths": {"lab.test:5000": {"auth": "dTpw"}, "m.test": {"auth": "dTpw"}}}),
    ]);
    assert_snapshot!(told(&found), @r#"
    Image cluster, field `spec.registrySources.insecureRegistries[0]`: on Windows nodes this holds for mirrors at any port, but for images only where their names have no port: list lab.test:PORT, too, where it serves other ports
    ImageTagMirrorSet t, field `spec.imageTagMirrors[0].mirrors[0]`: its registry is insecure, so the credentials for lab.test:5000 go to it by HTTP where HTTPS fails, and everybody on the way can read them: give it a certificate that hosts trust, and take it off insecureRegistries
    "#);
    assert!(found.findings().iter().all(|finding| !finding.problem.is_serious()));
}

#[test]
fn credentials_for_a_part_of_a_mirror_are_told() {
    let found = registries(&[
        tags("t", "a.test", &["m.test/proxy", "n.test"]),
        json!({"auths": {"m.test/proxy/team": {"auth": "dTpw"}, "m.test/proxyteam": {"auth": "dTpw"}}}),
    ]);
    let part = RegistryProblem::CredentialsForPart {
        key: "m.test/proxy/team".into(),
        mirror: "m.test/proxy".into(),
    };
    let problems: Vec<_> = found.findings().iter().map(|finding| &finding.problem).collect();
    assert_eq!(problems, [&part]);
}

#[test]
fn kinds_of_the_same_name_in_other_groups_are_others() {
    let mut set = tags("t", "a.test", &["m.test"]);
    for (version, is_ours) in
        [("config.openshift.io/v1", true), ("example.test/v1", false), ("v1", false)]
    {
        set["apiVersion"] = version.into();
        assert_eq!(
            !texts(&registries(std::slice::from_ref(&set))).is_empty(),
            is_ours,
            "{version}"
        );
    }
}

#[test]
fn a_policy_that_is_no_policy_counts_as_the_strict_one() {
    for policy in [json!("Sometimes"), json!("neverContactSource"), json!(7)] {
        let mut wrong = digests("wrong", "a.test", &["m.test"]);
        wrong["spec"]["imageDigestMirrors"][0]["mirrorSourcePolicy"] = policy.clone();
        let found = registries(&[wrong]);
        let [_, content] = asked(&found, &format!("a.test/x@{DIGEST}"));
        assert!(content.iter().all(|url| url.starts_with("https://m.test/")), "{content:?}");
        let told = &found.findings()[0];
        assert!(matches!(told.problem, RegistryProblem::UnknownPolicy { .. }), "{policy}: {told}");
    }
}

#[test]
fn a_mirror_for_a_part_that_is_asked_for_all_is_told() {
    let found = registries(&[
        tags("t", "a.test/team", &["m.test/team"]),
        digests("d", "a.test/app", &["n.test/app"]),
        tags("whole", "b.test", &["m.test", "n.test"]),
        digests("same", "b.test/team", &["m.test/team", "n.test/team"]),
        tags("also", "b.test/app", &["m.test/app"]),
        digests("digests", "c.test", &["m.test"]),
        tags("tags", "c.test/x", &["m.test/x"]),
        json!({"auths": {"m.test/team": {"auth": "dTpw"}}}),
    ]);
    assert_snapshot!(told(&found));
    let serious = found.findings().iter().filter(|finding| finding.problem.is_serious());
    let names: Vec<_> = serious.map(|finding| finding.object.name.as_str()).collect();
    assert_eq!(names, ["t", "tags"]);
}

#[test]
fn blocked_registries_are_not_asked() {
    let found = registries(&[
        tags("t", "a.test", &["m.test", "bad.test/x"]),
        tags("u", "b.test", &["bad.test"]),
        sources(
            &json!({"blockedRegistries": ["a.test", "b.test", "bad.test", "alone.test:80", "c.test/x"]}),
        ),
    ]);
    let [resolve, _] = asked(&found, "a.test/x:1");
    assert_eq!(resolve, ["https://m.test/v2/x/manifests/1?ns=a.test"; 2]);
    for image in ["b.test/x", "alone.test:80/x", "bad.test/x"] {
        assert!(asked(&found, image).iter().all(Vec::is_empty), "{image}");
    }
    assert_eq!(asked(&found, "c.test/x")[0].len(), 1);
    assert_snapshot!(told(&found), @r#"
    ImageTagMirrorSet t, field `spec.imageTagMirrors[0].mirrors[1]`: the registry of this mirror is blocked in the settings for images, so it is not used: remove the mirror, or take its registry off registrySources.blockedRegistries
    ImageTagMirrorSet u, field `spec.imageTagMirrors[0].mirrors[0]`: the registry of this mirror is blocked in the settings for images, so it is not used: remove the mirror, or take its registry off registrySources.blockedRegistries
    Image cluster, field `spec.registrySources.blockedRegistries[0]`: on Windows nodes this holds for images whose names have no port or 443: block a.test:PORT, too, where it serves other ports
    Image cluster, field `spec.registrySources.blockedRegistries[1]`: on Windows nodes this holds for images whose names have no port or 443: block b.test:PORT, too, where it serves other ports
    Image cluster, field `spec.registrySources.blockedRegistries[2]`: on Windows nodes this holds for images whose names have no port or 443: block bad.test:PORT, too, where it serves other ports
    Image cluster, field `spec.registrySources.blockedRegistries[4]`: containerd knows whole registries only, so this holds for mirrors in this part, but neither for sources nor for mirrors of a wider part: name the registry alone
    "#);
}

#[test]
fn what_containerd_cannot_restrict_is_told() {
    let found = registries(&[sources(&json!({
        "allowedRegistries": ["a.test"],
        "containerRuntimeSearchRegistries": ["a.test"],
        "blockedRegistries": {"a.test": 1},
        "insecureRegistries": [1, "a b"],
    }))]);
    assert!(found.files().is_empty());
    assert_snapshot!(told(&found), @r#"
    Image cluster, field `spec.registrySources.blockedRegistries`: is not a list, so it is passed over: write it as a list, such as `[quay.io]`
    Image cluster, field `spec.registrySources.insecureRegistries[0]`: is not a text, so it is passed over: write it in quotes
    Image cluster, field `spec.registrySources.insecureRegistries[1]`: "a b" is no location of images: start it with a registry such as `quay.io` or `cache.example:8443`
    Image cluster, field `spec.registrySources.allowedRegistries`: allowed registries do not restrict Windows nodes, since containerd has no such list: block registries in blockedRegistries
    Image cluster, field `spec.registrySources.containerRuntimeSearchRegistries`: containerd takes images without a registry from docker.io only, so this is passed over: write the registry in front of such images
    "#);
}

#[test]
fn a_pull_secret_is_missed_only_when_there_are_mirrors() {
    use crate::registries::{MirrorSetFacts, RegistryInputs, configure};
    let with = |object: &Value| {
        let sets = [MirrorSetFacts::of(object).unwrap()];
        told(&configure(&RegistryInputs { mirror_sets: &sets, ..RegistryInputs::default() }))
    };
    assert!(!with(&tags("t", "a.test", &[])).contains("Secret"));
    assert_snapshot!(with(&tags("t", "a.test", &["m.test"])), @r#"
    Secret pull-secret, field `data[.dockerconfigjson]`: there is no such Secret, so no credentials are sent to mirrors: write {"auths": {REGISTRY: {"auth": ..}}}
    "#);
}

#[test]
fn the_deprecated_kind_is_read_and_told() {
    let found = registries(&[set("ImageContentSourcePolicy", "old", "a.test", &["m.test"], "")]);
    let same = registries(&[digests("new", "a.test", &["m.test"])]);
    assert_eq!(texts(&found), texts(&same));
    assert_eq!(found.findings()[0].problem, RegistryProblem::Deprecated);
}

/// How long that takes is the bench `registries`.
#[test]
fn ten_thousand_mirrors_of_one_source_are_all_written() {
    let mirrors: Vec<String> = (0..10_000).map(|number| format!("m{number}.test/p/x")).collect();
    let mirrors: Vec<&str> = mirrors.iter().map(String::as_str).collect();
    let found = registries(&[tags("many", "a.test/x", &mirrors)]);
    let texts = texts(&found);
    let hosts = texts[r"a.test\hosts.toml"]
        .lines()
        .filter_map(|line| line.strip_prefix("[host.\"https://")?.strip_suffix("/v2/p\"]"));
    let expected: Vec<String> = (0..10_000).map(|number| format!("m{number}.test")).collect();
    assert_eq!(hosts.collect::<Vec<_>>(), expected);
}

#[test]
fn each_order_that_people_wrote_is_kept_where_all_can_be() {
    let hosts = |found: &Registries| -> Vec<String> {
        let [_, content] = asked(found, &format!("s.test/x@{DIGEST}"));
        content.iter().map(|url| url.split('/').nth(2).unwrap().to_owned()).collect()
    };
    let list = |name: &str, mirrors: &[&str]| digests(name, "s.test", mirrors);
    let found = registries(&[
        list("1", &["e.test", "c.test"]),
        list("2", &["a.test", "d.test"]),
        list("3", &["c.test", "d.test"]),
        list("4", &["a.test", "c.test", "b.test"]),
    ]);
    assert_eq!(hosts(&found), ["e.test", "a.test", "c.test", "d.test", "b.test", "s.test"]);
    let found = registries(&[
        list("1", &["b.test", "a.test"]),
        list("2", &["a.test", "b.test"]),
        list("3", &["c.test", "b.test"]),
    ]);
    assert_eq!(hosts(&found)[0], "c.test", "only a and b contradict each other");
}

#[test]
fn what_nobody_reads_is_told_with_the_right_name() {
    let mut list = digests("d", "a.test", &["m.test"]);
    list["spec"]["repositoryDigestMirrors"] = list["spec"]["imageDigestMirrors"].take();
    let mut policy = digests("p", "b.test", &["m.test"]);
    policy["spec"]["imageDigestMirrors"][0]["sourcePolicy"] = "NeverContactSource".into();
    let image = json!({"kind": "Image", "spec": {"blockedRegistries": ["c.test"]}});
    let empty = json!({"kind": "ImageTagMirrorSet", "metadata": {"name": "e"}, "spec": {}});
    let found = registries(&[list, policy, image, empty]);
    assert_snapshot!(told(&found), @r#"
    ImageDigestMirrorSet d, field `spec.repositoryDigestMirrors`: nobody reads this member, so it does nothing: write `spec.imageDigestMirrors`
    ImageDigestMirrorSet p, field `spec.imageDigestMirrors[0].sourcePolicy`: nobody reads this member, so it does nothing: write `spec.imageDigestMirrors[0].mirrorSourcePolicy`
    ImageTagMirrorSet e, field `spec.imageTagMirrors`: there is no entry in it, so it does nothing: add one, or remove it
    Image cluster, field `spec.blockedRegistries`: nobody reads this member, so it does nothing: write `spec.registrySources.blockedRegistries`
    "#);
}

#[test]
fn docker_hub_has_three_names_for_credentials_and_one_server() {
    for key in
        ["docker.io", "https://index.docker.io/v1/", "index.docker.io/v1", "registry-1.docker.io"]
    {
        let found = registries(&[
            tags("t", "in.test", &["docker.io"]),
            json!({"auths": {key: {"auth": "dTpw"}}}),
        ]);
        let [resolve, _] = asked(&found, "in.test/team/app:1");
        assert_eq!(resolve[0], "https://registry-1.docker.io/v2/team/app/manifests/1?ns=in.test");
        assert!(texts(&found).values().any(|text| text.contains("Basic dTpw")), "{key}");
    }
}

#[test]
fn credentials_that_cannot_be_sent_are_told() {
    let mirror = || tags("t", "a.test", &["m.test:443/x"]);
    for (secret, expected) in [
        (json!({"auths": {"m.test:443": {"auth": "dTo=", "identitytoken": "x"}}}), "token"),
        (json!({"auths": {"m.test:443": {"registrytoken": "x"}}}), "token"),
        (json!({"m.test:443": {"auth": "dTpw"}}), "no `auths`"),
        (json!({"credHelpers": {}}), "no `auths`"),
        (json!({"auths": {"m.test": {"auth": "dTpw"}}}), "none are sent to m.test:443"),
    ] {
        let found = registries(&[mirror(), secret.clone()]);
        assert!(told(&found).contains(expected), "{secret}: {}", told(&found));
        assert!(!texts(&found).values().any(|text| text.contains("Authorization")), "{secret}");
    }
    for silent in [json!({}), json!({"auths": {}}), json!({"auths": null})] {
        assert_eq!(told(&registries(&[mirror(), silent.clone()])), "", "{silent}");
    }
}

#[test]
fn mirrors_that_are_not_reached_as_they_are_meant_are_told() {
    for (mirror, expected) in [
        ("http://m.test", "`http://` is not kept"),
        ("reg.project.svc:5000", "names of Services"),
        ("reg.project.svc.cluster.local", "names of Services"),
        ("[2001:db8::5]:5000", "IPv6"),
    ] {
        let found = registries(&[tags("t", "a.test", &[mirror, "n.test"])]);
        assert!(told(&found).contains(expected), "{mirror}: {}", told(&found));
        assert!(!asked(&found, "a.test/x:1")[0].iter().any(|url| url.contains('[')));
        assert!(asked(&found, "a.test/x:1")[0].iter().any(|url| url.contains("n.test")));
    }
    let insecure = sources(&json!({"insecureRegistries": ["m.test"]}));
    let found = registries(&[tags("t", "a.test", &["http://m.test"]), insecure]);
    assert!(!told(&found).contains("http"), "{}", told(&found));
    let found = registries(&[digests("d", &format!("a.test/x@{DIGEST}"), &["m.test/x"])]);
    assert!(told(&found).contains("a source names a repository"));
    let http = |source: &str| told(&registries(&[tags("t", source, &["m.test"])]));
    let told = http("http://a.test:5000");
    assert!(told.contains("[0].source`: `http://` is not kept"), "{told}");
    assert_eq!(http("http://localhost:5000"), "", "that is asked by HTTP");
}

#[test]
fn an_insecure_registry_that_is_its_own_mirror_keeps_https_for_tags() {
    let found = registries(&[
        digests("d", "a.test", &["a.test"]),
        sources(&json!({"insecureRegistries": ["a.test"]})),
    ]);
    let [resolve, _] = asked(&found, "a.test/x:1");
    let urls = ["https", "http"].map(|scheme| format!("{scheme}://a.test/v2/x/manifests/1"));
    assert_eq!(resolve, urls);
}

#[test]
fn a_source_that_is_its_own_mirror_is_asked_and_told() {
    let found = registries(&[never("n", "a.test", &["A.test", "m.test"])]);
    let problem = &found.findings()[0].problem;
    assert_eq!((problem, problem.is_serious()), (&RegistryProblem::NeverButMirror, true));
}

#[test]
fn the_image_of_each_pod_is_looked_after() {
    let advice = |objects: &[Value], image: &str| -> Vec<String> {
        let advice = registries(objects).advice(&image.parse().unwrap());
        advice.iter().map(|it| format!("{} {it}", it.is_serious())).collect()
    };
    assert_eq!(advice(&[tags("t", "a.test", &["m.test"])], "a.test/pause:1"), Vec::<String>::new());
    assert_snapshot!(advice(&[tags("t", "a.test", &["m.test"])], "b.test/pause:1").join("\n"), @"false no mirror resolves b.test/pause:1, which each Windows node needs before any pod runs: where its registry cannot be reached, mirror it in an ImageTagMirrorSet, or name another, or one by digest, in CONTAINERD_PAUSE_IMAGE");
    // Mirrors for digests do not resolve a tag.
    let digests = [digests("d", "a.test", &["m.test"])];
    let told = advice(&digests, "a.test/pause:1").join("\n");
    assert!(told.contains("ImageTagMirrorSet") && told.contains("by digest"), "{told}");
    assert_eq!(advice(&digests, &format!("a.test/pause@{DIGEST}")), Vec::<String>::new());
    let blocked = sources(&json!({"blockedRegistries": ["a.test"]}));
    assert_snapshot!(advice(&[blocked], "a.test/pause:1").join("\n"), @r"
    true no registry may be asked for a.test/pause:1, so no pod starts on any Windows node: allow its registry, mirror it, or name another in CONTAINERD_PAUSE_IMAGE
    false layers that name URLs of their own are fetched from there, in spite of NeverContactSource and blocked registries: base images of Windows from before the middle of 2023 have them, and all built on them
    ");
}

/// containerd pulls the pause image itself, without credentials of the kubelet.
#[test]
fn the_source_of_the_pause_image_gets_its_credentials() {
    let pause = |objects: &[Value]| with_pause_image(objects, Some("reg.test:5000/k8s/pause:3.9"));
    let secret = json!({"auths": {"reg.test:5000": {"auth": "dTpw"}}});
    assert_snapshot!(texts(&pause(std::slice::from_ref(&secret)))[r"reg.test_5000_\hosts.toml"], @r#"
    server = "https://reg.test:5000/v2"

    override_path = true

    [header]
      Authorization = "Basic dTpw"

    [host."https://reg.test:5000/v2"]
      capabilities = ["pull", "resolve"]
      override_path = true
      [host."https://reg.test:5000/v2".header]
        Authorization = "Basic dTpw"
    "#);
    let sent = |objects: &[Value]| -> Vec<bool> {
        let pull = pause(&[objects, std::slice::from_ref(&secret)].concat())
            .explain(&"reg.test:5000/k8s/pause:3.9".parse().unwrap());
        pull.resolve.iter().map(|request| request.credentials.is_some()).collect()
    };
    assert_eq!(sent(&[]), [true, true]);
    assert_eq!(sent(&[tags("t", "reg.test:5000", &["m.test"])]), [false, true]);
    assert_eq!(sent(&[tags("t", "reg.test:5000", &["reg.test:5000"])]), [true, true]);
    assert_eq!(sent(&[tags("t", "reg.test:5000/x", &["m.test/y"])]), [true, true]);
    assert_eq!(sent(&[tags("t", "reg.test:5000", &[])]), [true, true]);
    assert_eq!(sent(&[never("n", "reg.test:5000", &["m.test"])]), [false, false]);
    let insecure = sources(&json!({"insecureRegistries": ["reg.test:5000"]}));
    assert_eq!(sent(std::slice::from_ref(&insecure)), [true, true]);
    let told = told(&pause(&[insecure, secret.clone()]));
    assert!(told.contains("credentials for reg.test:5000 go to it by HTTP"), "{told}");
}

#[test]
fn a_pause_image_without_credentials_needs_no_file() {
    let pause = |secret: Value, image: &str| with_pause_image(&[secret], Some(image));
    let usual = crate::render::ContainerdSettings::default().pause_image;
    for (secret, image) in [
        (json!({}), usual.as_str()),
        (json!({"auths": {"quay.io": {"auth": "dTpw"}}}), &usual),
        (json!({"auths": {"a.test/other": {"auth": "dTpw"}}}), "a.test/pause:1"),
    ] {
        let found = pause(secret.clone(), image);
        assert_eq!((texts(&found).len(), told(&found).as_str()), (0, ""), "{secret} {image}");
    }
    let narrow = json!({"auths": {"a.test/k8s": {"auth": "dTpw"}}});
    assert!(texts(&pause(narrow, "a.test/k8s/pause:1"))[r"a.test\hosts.toml"].contains("dTpw"));
}

#[test]
fn credentials_of_the_pause_image_that_cannot_be_used_are_told() {
    for entry in [json!({"identitytoken": "hush"}), json!({"auth": "%"}), json!({})] {
        for (key, is_told) in [("a.test", true), ("a.test/k8s", true), ("b.test", false)] {
            let secret = json!({"auths": {key: entry}});
            let found = with_pause_image(&[secret], Some("a.test/k8s/pause:1"));
            let lines = told(&found);
            assert_eq!(lines.contains("auths["), is_told, "{key} {entry}: {lines}");
        }
    }
}

/// The file stays: the mirror is cut by the same tag.
#[test]
fn a_tag_in_a_source_is_told_where_the_mirror_has_it_too() {
    let found = registries(&[tags("t", "a.test/team/app:1", &["m.test/team/app:1"])]);
    let lines = told(&found);
    assert!(lines.contains("[0].source`: a source names a repository"), "{lines}");
    assert_eq!(asked(&found, "a.test/team/app:1")[0].len(), 2);
}
