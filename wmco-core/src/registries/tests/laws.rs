//! Laws that hold for any objects.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item};

use super::{asked, registries, texts, told, with_pause_image};
use crate::registries::{Registries, RegistryProblem};

/// One entry of a mirror set, and what it is meant to say.
#[derive(Clone, Debug)]
struct Entry {
    tags: bool,
    host: &'static str,
    /// Path of the source, as parts.
    path: Vec<&'static str>,
    mirrors: Vec<Mirror>,
    never: bool,
}

#[derive(Clone, Debug)]
struct Mirror {
    host: &'static str,
    before: Vec<&'static str>,
    /// Whether the source's path follows.
    same_path: bool,
}

const HOSTS: [&str; 5] = ["a.test", "a.test:443", "a.test:5000", "b.test", "docker.io"];
const MIRROR_HOSTS: [&str; 7] = [
    "m.test",
    "n.test:8443",
    "o.test",
    "a.test",
    "a.test:443",
    "docker.io",
    "registry-1.docker.io",
];
const REPOSITORIES: [&str; 3] = ["t/x/y", "t/z", "u/v"];
const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

impl Mirror {
    fn base(&self) -> String {
        let host = if self.host == "docker.io" { "registry-1.docker.io" } else { self.host };
        [&["https:/", host, "v2"][..], &self.before].concat().join("/")
    }

    fn written(&self, entry: &Entry) -> String {
        let end: &[&str] = if self.same_path { &entry.path } else { &["other"] };
        [&[self.host][..], &self.before, end].concat().join("/")
    }

    /// Whether containerd can be told of it, which appends the whole repository of an image, and no other registry
    /// is asked that `entries` forbid.
    fn is_usable(&self, entry: &Entry, entries: &[Entry]) -> bool {
        let forbidden = |other: &Entry| {
            let (base, path) = (self.base_path(), other.path.as_slice());
            other.forbids(entries)
                && is_same(other.host, self.host)
                && !(entry.never && is_same(entry.host, self.host))
                && (base.starts_with(path) || path.starts_with(&base))
        };
        (self.same_path || entry.path.is_empty()) && !entries.iter().any(forbidden)
    }

    /// The path that is asked, before the repository of the image.
    fn base_path(&self) -> Vec<&'static str> {
        let more: &[&str] = if self.same_path { &[] } else { &["other"] };
        [&self.before[..], more].concat()
    }

    /// The place that images of `entry` come from, where `other` follows if that is no end of the source.
    fn place(&self) -> String {
        let more: &[&str] = if self.same_path { &[] } else { &["other"] };
        [&[self.base().as_str()][..], more].concat().join("/")
    }
}

/// Whether both are names of one registry.
fn is_same(one: &str, other: &str) -> bool {
    let name = |host: &str| match host {
        "a.test:443" => "a.test".to_owned(),
        "registry-1.docker.io" => "docker.io".to_owned(),
        other => other.to_owned(),
    };
    name(one) == name(other)
}

impl Entry {
    /// Whether its source is forbidden, where `entries` are all entries.
    fn forbids(&self, entries: &[Entry]) -> bool {
        let mut same = entries.iter().filter(|entry| entry.host == self.host);
        self.never && same.any(|entry| !entry.mirrors.is_empty())
    }

    fn source(&self) -> String {
        [&[self.host][..], &self.path].concat().join("/")
    }

    fn object(&self, number: usize) -> Value {
        let (kind, list) = if self.tags {
            ("ImageTagMirrorSet", "imageTagMirrors")
        } else {
            ("ImageDigestMirrorSet", "imageDigestMirrors")
        };
        let mirrors: Vec<String> = self.mirrors.iter().map(|mirror| mirror.written(self)).collect();
        let policy = if self.never { "NeverContactSource" } else { "AllowContactingSource" };
        let entry =
            json!({"source": self.source(), "mirrors": mirrors, "mirrorSourcePolicy": policy});
        let created = format!("2024-01-01T00:00:{number:02}Z");
        let metadata = json!({"name": format!("set-{number}"), "creationTimestamp": created});
        json!({"kind": kind, "metadata": metadata, "spec": {list: [entry]}})
    }
}

prop_compose! {
    fn any_mirror()(
        host in select(&MIRROR_HOSTS[..]),
        before in select(vec![vec![], vec!["p"], vec!["p", "q"], vec!["t"]]),
        same_path in prop::bool::weighted(0.8),
    ) -> Mirror {
        Mirror { host, before, same_path }
    }
}

prop_compose! {
    fn any_entry()(
        tags: bool,
        host in select(&HOSTS[..]),
        path in select(vec![vec![], vec!["t"], vec!["t", "x"], vec!["t", "x", "y"]]),
        mirrors in vec(any_mirror(), 0..4),
        never in prop::bool::weighted(0.3),
    ) -> Entry {
        Entry { tags, host, path, mirrors, never }
    }
}

/// Any JSON of some depth.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
        select(&["a.test/x", "*.test", "m.test", "[::1]:1", "con", "NeverContactSource"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = select(
            &[
                "spec",
                "imageDigestMirrors",
                "source",
                "mirrors",
                "mirrorSourcePolicy",
                "auths",
                "auth",
            ][..],
        );
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((key.prop_map(str::to_owned), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// What the files make a reader ask that knows only containerd's documentation, each URL with whether
/// credentials go along: first for a tag or digest, then for content.
fn read_as_containerd(
    registries: &Registries,
    image: &str,
    version: &str,
) -> [Vec<(String, bool)>; 2] {
    let (host, repository) = image.split_once('/').unwrap();
    let files: BTreeMap<String, String> =
        texts(registries).into_iter().map(|(path, text)| (path.to_lowercase(), text)).collect();
    let folder = match host.split_once(':') {
        Some((name, port)) => format!("{name}_{port}_"),
        None => host.to_owned(),
    };
    let text = files.get(&format!("{folder}\\hosts.toml")).map_or("", String::as_str);
    let real = if host == "docker.io" { "registry-1.docker.io" } else { host };
    let mut places = Vec::new();
    if text.is_empty() {
        places.push((format!("https://{real}/v2"), Item::None));
    } else {
        let file: DocumentMut = text.parse().unwrap();
        for (url, table) in file["host"].as_table().unwrap() {
            places.push((url.to_owned(), table.clone()));
        }
        let server = file["server"].as_str().unwrap().to_owned();
        places.push((server, file.as_item().clone()));
    }
    let can = |table: &Item, what: &str| match table.get("capabilities").and_then(Item::as_array) {
        Some(list) => list.iter().any(|word| word.as_str() == Some(what)),
        None => true,
    };
    let is_digest = version.starts_with("sha256:");
    let kinds: &[&str] = if is_digest { &["manifests", "blobs"] } else { &["manifests"] };
    let url = |base: &str, rest: String| {
        let authority = base.split('/').nth(2).unwrap();
        let own = authority == host || authority == real;
        let query = if own { String::new() } else { format!("?ns={}", host.replace(':', "%3A")) };
        format!("{base}/{repository}{rest}{query}")
    };
    let mut resolve = Vec::new();
    for kind in kinds {
        for (base, table) in &places {
            if can(table, "pull") && (is_digest || can(table, "resolve")) {
                resolve
                    .push((url(base, format!("/{kind}/{version}")), table.get("header").is_some()));
            }
        }
    }
    let mut content = Vec::new();
    for (base, table) in &places {
        if can(table, "pull") && !resolve.is_empty() {
            content.push((url(base, "/blobs/DIGEST".to_owned()), table.get("header").is_some()));
        }
    }
    [resolve, content]
}

/// Whether `shown` has the places of each order in that order.
fn keeps_all(orders: &[Vec<String>], shown: &[String]) -> bool {
    let at = |place: &String| shown.iter().position(|other| other == place);
    orders.iter().flat_map(|order| order.windows(2)).all(|pair| at(&pair[0]) < at(&pair[1]))
}

/// Whether one order keeps all of `orders`: again and again there is a place that no other precedes.
fn can_be_kept(orders: &[Vec<String>]) -> bool {
    let mut left: Vec<Vec<String>> = orders.to_vec();
    loop {
        left.retain(|order| !order.is_empty());
        let firsts = left.iter().map(|order| order[0].clone());
        let is_free = |place: &String| left.iter().all(|order| !order[1..].contains(place));
        match firsts.into_iter().find(is_free) {
            Some(free) => left.iter_mut().for_each(|order| order.retain(|place| *place != free)),
            None => return left.is_empty(),
        }
    }
}

proptest! {
    /// The goal itself: an image comes from the mirrors that people wrote for it, in their order, then
    /// from its source unless somebody forbids that, and from nowhere else.
    #[test]
    fn images_come_from_where_people_said(
        entries in vec(any_entry(), 0..6),
        host in select(&HOSTS[..]),
        repository in select(&REPOSITORIES[..]),
    ) {
        let objects: Vec<Value> =
            entries.iter().enumerate().map(|(number, entry)| entry.object(number)).collect();
        let found = registries(&objects);
        let ours: Vec<&Entry> = entries.iter().filter(|entry| entry.host == host).collect();
        let forbidden =
            entries.iter().any(|entry| is_same(entry.host, host) && entry.forbids(&entries));
        // A source that is forbidden and a mirror all the same is told, by whatever name.
        let itself = forbidden
            && ours.iter().any(|entry| {
                let mut mirrors = entry.mirrors.iter();
                mirrors.any(|it| it.is_usable(entry, &entries) && is_same(it.host, host))
            });
        let told = found.findings().iter().any(|finding| {
            let number: usize = finding.object.name["set-".len()..].parse().unwrap();
            entries[number].host == host && finding.problem == RegistryProblem::NeverButMirror
        });
        prop_assert_eq!(told, itself);
        let bare = |url: &String| {
            let url = url.split("?ns=").next().unwrap();
            url.trim_end_matches("/blobs/DIGEST").to_owned()
        };
        for version in ["1", DIGEST] {
            let mark = if version == "1" { ':' } else { '@' };
            let [resolve, content] = asked(&found, &format!("{host}/{repository}{mark}{version}"));
            let resolve: Vec<String> = resolve.iter().map(bare).collect();
            let content: Vec<String> = content.iter().map(bare).collect();

            // Mirrors in an order that keeps each list, if there is one, each place once.
            let mut seen = BTreeSet::new();
            let mut places = Vec::new();
            let mut resolving = BTreeSet::new();
            let mut orders = Vec::new();
            for entry in &ours {
                let mut order: Vec<String> = Vec::new();
                for mirror in entry.mirrors.iter().filter(|it| it.is_usable(entry, &entries)) {
                    let place = format!("{}/{repository}", mirror.place());
                    if entry.tags {
                        resolving.insert(place.clone());
                    }
                    if !order.contains(&place) {
                        order.push(place.clone());
                    }
                    if seen.insert(place.clone()) {
                        places.push(place);
                    }
                }
                orders.push(order);
            }
            if !content.is_empty() {
                let shown: Vec<String> = content.iter().take(places.len()).cloned().collect();
                prop_assert_eq!(shown.iter().collect::<BTreeSet<_>>(), places.iter().collect());
                prop_assert!(keeps_all(&orders, &shown) || !can_be_kept(&orders), "{:?}", orders);
                places = shown;
            }
            let real = if host == "docker.io" { "registry-1.docker.io" } else { host };
            let source = format!("https://{real}/v2/{repository}");
            let last = match places.first() {
                Some(first) if forbidden => Some(first.clone()),
                _ if forbidden => None,
                _ => Some(source.clone()),
            };
            let all: Vec<String> = places.iter().cloned().chain(last.clone()).collect();
            let able = |place: &&String| {
                version != "1" || resolving.contains(*place) || (!forbidden && **place == source)
            };
            if all.iter().any(|place| able(&place)) {
                prop_assert_eq!(&content, &all);
            } else {
                prop_assert!(content.is_empty());
            }
            // The source may be among the mirrors of its own digests; as the last one it resolves.
            let mirrors = places.iter().filter(|place| version != "1" || resolving.contains(*place));
            let ends = last.iter().filter(able);
            let once: Vec<String> = mirrors.chain(ends).cloned().collect();
            let kinds: &[&str] = if version == "1" { &["manifests"] } else { &["manifests", "blobs"] };
            let expected: Vec<String> = kinds
                .iter()
                .flat_map(|kind| once.iter().map(move |place| format!("{place}/{kind}/{version}")))
                .collect();
            prop_assert_eq!(resolve, expected);
        }
    }

    /// What is explained is what the files say, insecure, blocked and with credentials as they may be.
    #[test]
    fn what_is_explained_stands_in_the_files(
        entries in vec(any_entry(), 0..6),
        insecure in vec(select(&["m.test", "*.test", "a.test", "n.test:8443/p", "b.test"][..]), 0..3),
        blocked in vec(select(&["m.test", "a.test", "b.test", "o.test/p"][..]), 0..2),
        keys in vec(select(&["m.test", "m.test/p", "https://n.test:8443/v1/", "a.test/t", "b.test"][..]), 0..4),
        pause_image in select(&[None, Some("a.test/t/pause:1"), Some("b.test/pause:1")][..]),
    ) {
        let auths: Value =
            keys.iter().map(|key| ((*key).to_owned(), json!({"auth": "dTpw"}))).collect();
        let sources = json!({"insecureRegistries": insecure, "blockedRegistries": blocked});
        let mut objects: Vec<Value> =
            entries.iter().enumerate().map(|(number, entry)| entry.object(number)).collect();
        objects.push(json!({"kind": "Image", "spec": {"registrySources": sources}}));
        objects.push(json!({"auths": auths}));
        let found = with_pause_image(&objects, pause_image);
        for host in HOSTS.into_iter().chain(["m.test"]) {
            for (mark, version) in [(':', "1"), ('@', DIGEST)] {
                let image = format!("{host}/t/x/y");
                let pull = found.explain(&format!("{image}{mark}{version}").parse().unwrap());
                let explained = [pull.resolve, pull.content].map(|list| {
                    let pair = |request: crate::registries::PullRequest| {
                        (request.url, request.credentials.is_some())
                    };
                    list.into_iter().map(pair).collect::<Vec<_>>()
                });
                prop_assert_eq!(explained, read_as_containerd(&found, &image, version));
            }
        }
    }

    /// The order in which objects are listed decides nothing.
    #[test]
    fn the_order_of_objects_does_not_matter(entries in vec(any_entry(), 0..6), seed: u64) {
        let mut objects: Vec<Value> =
            entries.iter().enumerate().map(|(number, entry)| entry.object(number)).collect();
        let before = registries(&objects);
        for at in 1..objects.len() {
            objects.swap(at, usize::try_from(seed >> (at * 8) & 0xff).unwrap() % (at + 1));
        }
        prop_assert_eq!(registries(&objects), before);
    }

    /// Any JSON gives files that can be read in folders that Windows can hold, and does not touch what
    /// others say of other registries, unless it forbids a mirror of them.
    #[test]
    fn any_json_is_read(spec in any_json(), sources in any_json(), auths in any_json(), entry in any_entry()) {
        let mut right = entry.object(0);
        right["metadata"]["name"] = "right".into();
        let list = if spec.is_array() { json!({"imageDigestMirrors": spec}) } else { spec };
        let found = registries(&[
            right.clone(),
            json!({"kind": "ImageDigestMirrorSet", "metadata": {"name": 1}, "spec": list}),
            json!({"kind": "Image", "spec": {"registrySources": {"allowedRegistries": sources}}}),
            json!({"auths": auths}),
        ]);
        for (path, text) in texts(&found) {
            let whole = format!(r"C:\k\containerd\registries\{path}");
            prop_assert!(whole.parse::<crate::winpath::WindowsPath>().is_ok(), "{}", whole);
            prop_assert!(text.parse::<DocumentMut>().is_ok(), "{}", text);
        }
        let told = told(&found);
        prop_assert!(told.lines().count() == found.findings().len(), "{}", told);
        prop_assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "{:?}", told);
        let mut findings = found.findings().iter();
        let is_forbidden = findings.any(|it| it.problem == RegistryProblem::ForbiddenMirror);
        if entry.host == "b.test" && !is_forbidden {
            let text = |found| texts(found).remove(r"b.test\hosts.toml");
            prop_assert_eq!(text(&found), text(&registries(&[right])));
        }
    }
}
