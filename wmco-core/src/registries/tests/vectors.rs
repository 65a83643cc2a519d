//! What the Go operator answers, and where we answer otherwise.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use super::{texts, told};
use crate::registries::{
    MirrorSetFacts, PullSecret, PullSecretData, Registries, RegistryInputs, configure,
};
use crate::vectors::{Case, cases};

const CLOSED: &str = "the mirror has another path than its source, so containerd cannot use it, and the \
                      source must not be asked: nothing is";
const DIGESTS_ONLY: &str =
    "a mirror for digests does not resolve tags when it stands for the source";
const DOCKER_HUB: &str = "docker.io is served by registry-1.docker.io";
const DOMAIN: &str = "Windows cannot hold a folder with `*`, and containerd would not look for it";
const LEGACY_KEY: &str = "credentials whose key is a URL are for the same registry";
const NO_CREDENTIALS: &str = "an entry without user and password gives no header";
const NO_PULL_SECRET: &str = "mirrors work without credentials while the pull secret is wrong";
const ORDER: &str = "mirrors are tried in the order in which people wrote them";
const OTHER_PATH: &str = "the mirror has another path than its source, so containerd cannot use it";
const UNUSABLE: &str = "an entry that can mean nothing is left out";

/// Cases where our answer differs on purpose. Folders of sources with a port differ in all cases: the Go
/// operator names them as Windows cannot. A source that must not be asked has one more file, which closes its name with
/// `:443`: what is forbidden is so under all names.
const DEVIATIONS: [(&str, &str); 32] = [
    ("idms never contact source", DIGESTS_ONLY),
    ("never contact source, mirror with org path", CLOSED),
    ("ipv4 hosts with ports", CLOSED),
    ("mirror renames the last segment", OTHER_PATH),
    ("mirror shares only the last segment", OTHER_PATH),
    ("source has a path, mirror is only a host", OTHER_PATH),
    ("deep namespaces, suffix differs in the middle", OTHER_PATH),
    ("mirror equals source, host only", DIGESTS_ONLY),
    ("repeated segment names", OTHER_PATH),
    ("trailing slash on the mirror (not admitted by the API)", "the slash means nothing"),
    ("docker.io library image", DOCKER_HUB),
    ("index.docker.io and docker.io are two sources", DOCKER_HUB),
    (
        "ipv6 mirror in brackets (not admitted by the API)",
        "no form of it is read by all of containerd",
    ),
    ("wildcard source, never", DOMAIN),
    ("deep wildcard", DOMAIN),
    ("two objects, same source, distinct mirrors", ORDER),
    ("three objects merging five mirrors", ORDER),
    ("policies: never then allow", ORDER),
    ("policies: never then unset", ORDER),
    ("policies: unset then allow", ORDER),
    ("policies: digest allow, tag never, same source", ORDER),
    ("policies: digest unset, tag never, same source", ORDER),
    ("mirrors empty list, never", UNUSABLE),
    ("mirrors in digest, none in tag", DIGESTS_ONLY),
    ("empty source string (not admitted by the API)", UNUSABLE),
    ("byte-wise order of mirrors: case, digits, dash, dot, colon, slash", ORDER),
    ("credentials keyed by URL are not used", LEGACY_KEY),
    ("credentials: empty entry", NO_CREDENTIALS),
    ("error: pull secret missing, no mirror sets", NO_PULL_SECRET),
    ("error: pull secret is not JSON", NO_PULL_SECRET),
    ("error: auth is not base64", NO_PULL_SECRET),
    ("error: auths is a list", NO_PULL_SECRET),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    image_digest_mirror_sets: Vec<Value>,
    image_tag_mirror_sets: Vec<Value>,
    pull_secret: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Expect {
    /// `None` for an error.
    files: Option<BTreeMap<String, String>>,
    /// The right ones, where the Go operator's are plainly wrong.
    fixed_files: Option<BTreeMap<String, String>>,
}

impl Expect {
    /// The files in folders that containerd on Windows looks for.
    fn files(self) -> Option<BTreeMap<String, String>> {
        let folder = |path: String| match path.split_once(':') {
            Some((host, rest)) => format!("{host}_{}", rest.replace('\\', "_\\")),
            None => path,
        };
        let files = self.fixed_files.or(self.files)?;
        Some(files.into_iter().map(|(path, text)| (folder(path), text)).collect())
    }
}

fn vectors() -> Vec<Case<Input, Expect>> {
    cases(include_str!("../../../tests/vectors/registries.json"), 57)
}

fn answer(input: &Input) -> Registries {
    let sets = input.image_digest_mirror_sets.iter().chain(&input.image_tag_mirror_sets);
    let sets: Vec<MirrorSetFacts> = sets.map(|set| MirrorSetFacts::of(set).unwrap()).collect();
    let data = input.pull_secret.as_ref().map(|data| data.get(".dockerconfigjson"));
    let pull_secret = PullSecret::read(match data {
        None => PullSecretData::NoSecret,
        Some(None) => PullSecretData::NoKey,
        Some(Some(text)) => PullSecretData::Text(text.as_bytes()),
    });
    configure(&RegistryInputs {
        mirror_sets: &sets,
        pull_secret: &pull_secret,
        ..RegistryInputs::default()
    })
}

fn is_deviation(name: &str) -> bool {
    DEVIATIONS.iter().any(|(deviation, _)| *deviation == name)
}

#[test]
fn the_vectors_hold() {
    for Case { name, input, expect } in vectors() {
        if !is_deviation(&name) {
            assert_eq!(Some(texts(&answer(&input))), expect.files(), "{name}");
        }
    }
}

#[test]
fn where_we_answer_otherwise() {
    let mut cases: BTreeMap<String, _> =
        vectors().into_iter().map(|case| (case.name, (case.input, case.expect))).collect();
    let mut answers = String::new();
    for (name, reason) in DEVIATIONS {
        let (input, expect) = cases.remove(name).expect("a deviation names a case, once");
        let found = answer(&input);
        let files = texts(&found);
        assert_ne!(Some(&files), expect.files().as_ref(), "{name} is no deviation");
        writeln!(answers, "# {name}\n# for {reason}").unwrap();
        for (path, text) in files {
            write!(answers, "{path}:\n{text}").unwrap();
        }
        writeln!(answers, "{}", told(&found)).unwrap();
    }
    insta::assert_snapshot!(answers);
}
