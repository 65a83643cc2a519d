//! Random cases, the same for the same `PROPTEST_RNG_SEED`.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::Case;
use super::behaviour::Behaviour;
use super::cases::{secret, set};

const HOSTS: [&str; 5] = ["a.test", "a.test:5000", "b.test", "docker.io", "quay.io"];
const MIRROR_HOSTS: [&str; 7] =
    ["m.test", "m.test:8443", "n.test", "o.test", "a.test", "docker.io", "registry-1.docker.io"];
const KEYS: [&str; 8] = [
    "m.test",
    "m.test/p",
    "m.test/p/q/t",
    "m.test:8443",
    "n.test",
    "https://n.test/v1/",
    "o.test/t",
    "a.test",
];
const KINDS: [&str; 4] =
    ["ImageTagMirrorSet", "ImageTagMirrorSet", "ImageDigestMirrorSet", "ImageContentSourcePolicy"];

prop_compose! {
    fn any_mirror()(
        host in select(&MIRROR_HOSTS[..]),
        before in select(&["", "/p", "/p/q", "/t"][..]),
        same_path in prop::bool::weighted(0.9),
    ) -> (String, bool) {
        (format!("{host}{before}"), same_path)
    }
}

prop_compose! {
    fn any_set()(
        kind in select(&KINDS[..]),
        host in prop_oneof![9 => select(&HOSTS[..]), 1 => Just("*.test")],
        path in select(&["", "/t", "/t/x", "/t/x/y"][..]),
        mirrors in prop_oneof![1 => Just(vec![]), 9 => vec(any_mirror(), 1..4)],
        never in prop::bool::weighted(0.2),
        number in 0..9_u8,
    ) -> (&'static str, Value) {
        let end = |same_path: bool| if same_path { path } else { "/else" };
        let mirrors: Vec<String> =
            mirrors.iter().map(|(base, same)| format!("{base}{}", end(*same))).collect();
        let policy = if never { "NeverContactSource" } else { "" };
        (host, set(kind, &number.to_string(), &format!("{host}{path}"), &mirrors, policy))
    }
}

prop_compose! {
    fn any_case()(
        sets in vec(any_set(), 0..5),
        insecure in subsequence(vec!["m.test", "n.test", "a.test", "a.test:5000", "*.test"], 0..3),
        blocked in prop_oneof![
            4 => Just(vec![]),
            1 => subsequence(vec!["m.test/p", "o.test", "b.test", "quay.io"], 0..3),
        ],
        keys in subsequence(KEYS.to_vec(), 0..6),
        other in select(&HOSTS[..]),
        mirrored in prop::bool::weighted(0.85),
        repository in select(&["t/x", "t/x/y", "t", "other/x"][..]),
        version in select(&[":1", ":v2.0", "@DIGEST"][..]),
        seed: u64,
    ) -> Case {
        let sources = json!({"insecureRegistries": insecure, "blockedRegistries": blocked});
        // Most images are of a registry that a set names: without a mirror there is little to get wrong.
        let named = sets.iter().map(|(host, _)| *host).find(|host| !host.starts_with('*'));
        let host = named.filter(|_| mirrored).unwrap_or(other);
        let mut objects: Vec<Value> = sets.into_iter().map(|(_, set)| set).collect();
        objects.push(json!({"kind": "Image", "spec": {"registrySources": sources}}));
        objects.push(secret(&keys));
        Case {
            objects,
            image: format!("{host}/{repository}{version}"),
            behaviour: Behaviour::Drawn(seed),
        }
    }
}

/// Generates this many cases.
pub(super) fn cases(count: usize) -> Vec<Case> {
    let mut runner = TestRunner::default();
    (0..count).map(|_| any_case().new_tree(&mut runner).unwrap().current()).collect()
}
