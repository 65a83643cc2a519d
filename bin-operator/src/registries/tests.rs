use std::cell::Cell;
use std::sync::Arc;

use kube::runtime::watcher::Event;
use serde_json::json;
use wmco_core::names::registries::{
    CONTENT_SOURCE_POLICY_KIND, DIGEST_MIRROR_SET_KIND, IMAGE_CONFIG_KIND, TAG_MIRROR_SET_KIND,
};

use super::*;
use crate::kinds::{Missing, PROOFS, Seen};

/// A follower without a cluster, and how often it told of a change.
struct Follower(RegistryWatch, Cell<usize>);

fn tag_set(name: &str, source: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-of-{name}")},
        "spec": {"imageTagMirrors": [{"source": source, "mirrors": ["cache.example"]}]},
    })
}

/// What a watch brings of a whole list.
fn listing(objects: &[Value]) -> Vec<Seen> {
    let items = objects.iter().map(|object| Ok(Event::InitApply(read(object))));
    [Ok(Event::Init)].into_iter().chain(items).chain([Ok(Event::InitDone)]).collect()
}

fn read(object: &Value) -> kube::api::DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

impl Follower {
    fn new() -> Self {
        Self(RegistryWatch::unknown(), Cell::new(0))
    }

    fn told(&self) -> usize {
        self.1.replace(0)
    }

    fn see(&self, kind: &str, seen: impl IntoIterator<Item = Seen>) {
        for seen in seen {
            let tell = || self.1.set(self.1.get() + 1);
            self.0.update(&tell, |kinds| see(kinds, kind, seen));
        }
    }

    /// A follower that has listed all kinds, with these mirror sets for tags.
    fn filled(sets: &[Value]) -> Self {
        let follower = Self::new();
        for kind in [DIGEST_MIRROR_SET_KIND, CONTENT_SOURCE_POLICY_KIND, IMAGE_CONFIG_KIND] {
            follower.see(kind, (0..PROOFS).map(|_| Err(Missing)));
        }
        follower.see(TAG_MIRROR_SET_KIND, listing(sets));
        follower.see(SECRET_KIND, listing(&[json!({"metadata": {"name": "pull-secret"}})]));
        follower.told();
        follower
    }

    fn paths(&self) -> Option<Vec<String>> {
        let inventory = self.0.inventory()?;
        Some(inventory.files.iter().map(|(path, _)| path.to_string()).collect())
    }
}

#[test]
fn nothing_is_known_before_all_kinds_are_listed() {
    let follower = Follower::new();
    let mut unlisted = vec![
        DIGEST_MIRROR_SET_KIND,
        TAG_MIRROR_SET_KIND,
        CONTENT_SOURCE_POLICY_KIND,
        IMAGE_CONFIG_KIND,
    ];
    while let Some(kind) = unlisted.pop() {
        assert_eq!(follower.paths(), None);
        follower.see(kind, listing(&[]));
        assert_eq!(follower.0.look(RegistryKinds::unlisted), unlisted);
    }
    assert_eq!(follower.paths(), Some(Vec::new()));
}

#[test]
fn a_cluster_without_these_kinds_has_no_mirrors() {
    let follower = Follower::new();
    for kind in
        [DIGEST_MIRROR_SET_KIND, TAG_MIRROR_SET_KIND, CONTENT_SOURCE_POLICY_KIND, IMAGE_CONFIG_KIND]
    {
        for _ in 0..PROOFS {
            // An API server that starts may say so, too.
            assert_eq!(follower.paths(), None);
            follower.see(kind, [Err(Missing)]);
        }
    }
    assert_eq!(follower.paths(), Some(Vec::new()));
}

#[test]
fn mirrors_wait_for_their_credentials() {
    let follower = Follower::filled(&[]);
    follower.see(SECRET_KIND, listing(&[]));
    let unknown = Follower::new();
    for kind in [DIGEST_MIRROR_SET_KIND, CONTENT_SOURCE_POLICY_KIND, IMAGE_CONFIG_KIND] {
        unknown.see(kind, listing(&[]));
    }
    unknown.see(TAG_MIRROR_SET_KIND, listing(&[tag_set("a", "a.example")]));
    assert_eq!(
        (unknown.paths(), unknown.0.look(RegistryKinds::unlisted)),
        (None, vec![SECRET_KIND])
    );
    // There is none, which is an answer, too.
    unknown.see(SECRET_KIND, listing(&[]));
    assert_eq!(unknown.paths().map(|paths| paths.len()), Some(1));
    let notices = &unknown.0.inventory().unwrap().notices;
    assert!(notices.iter().any(|it| it.text.contains("there is no such Secret")), "{notices:?}");
}

#[test]
fn the_pause_image_gets_credentials_once_the_pull_secret_is_known() {
    let follower = Follower::new();
    follower.0.update(&|| (), |kinds| {
        kinds.pause_image = Some("reg.example:5000/pause:1".parse().unwrap());
        true
    });
    for kind in
        [DIGEST_MIRROR_SET_KIND, TAG_MIRROR_SET_KIND, CONTENT_SOURCE_POLICY_KIND, IMAGE_CONFIG_KIND]
    {
        follower.see(kind, listing(&[]));
    }
    assert_eq!(follower.paths(), Some(Vec::new()));
    let auths = json!({"auths": {"reg.example:5000": {"auth": "dTpw"}}}).to_string();
    let secret = json!({
        "metadata": {"name": "pull-secret"}, "stringData": {".dockerconfigjson": auths},
    });
    follower.see(SECRET_KIND, listing(&[secret]));
    let path = r"C:\k\containerd\registries\reg.example_5000_\hosts.toml";
    assert_eq!(follower.paths(), Some(vec![path.to_owned()]));
}

/// As of a disconnected cluster whose set has no mirrors of tags.
#[test]
fn a_pause_image_that_no_registry_gives_is_told() {
    let follower = Follower::filled(&[]);
    follower.0.update(&|| (), |kinds| {
        kinds.pause_image = Some("mcr.example/pause:1".parse().unwrap());
        true
    });
    let serious = || follower.0.inventory().unwrap().serious.clone();
    assert_eq!(serious(), []);
    let set = json!({
        "apiVersion": "config.openshift.io/v1", "kind": DIGEST_MIRROR_SET_KIND, "metadata": {"name": "mcr"},
        "spec": {"imageDigestMirrors": [{
            "source": "mcr.example", "mirrors": ["reg.example/mcr"], "mirrorSourcePolicy": "NeverContactSource",
        }]},
    });
    follower.see(DIGEST_MIRROR_SET_KIND, listing(&[set]));
    let told = serious().iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("no registry may be asked for mcr.example/pause:1"), "{told}");
}

#[test]
fn only_a_change_of_facts_is_told_and_made_to_files() {
    let follower = Follower::filled(&[tag_set("a", "a.example")]);
    let before = follower.0.inventory().unwrap();
    let mut same = tag_set("a", "a.example");
    same["metadata"]["resourceVersion"] = json!("8");
    same["status"] = json!({"conditions": []});
    follower.see(TAG_MIRROR_SET_KIND, [Ok(Event::Apply(read(&same)))]);
    follower.see(TAG_MIRROR_SET_KIND, listing(&[same]));
    assert_eq!(follower.told(), 0);
    assert!(Arc::ptr_eq(&before, &follower.0.inventory().unwrap()), "it is made once");

    follower.see(TAG_MIRROR_SET_KIND, [Ok(Event::Apply(read(&tag_set("a", "b.example:5000"))))]);
    assert_eq!(follower.told(), 1);
    let path = r"C:\k\containerd\registries\b.example_5000_\hosts.toml";
    assert_eq!(follower.paths(), Some(vec![path.to_owned()]));
}

#[test]
fn what_is_told_names_the_very_object() {
    let follower = Follower::filled(&[tag_set("a", "*.example")]);
    let inventory = follower.0.inventory().unwrap();
    let [notice] = &inventory.notices[..] else { panic!("{:?}", inventory.notices) };
    let on = reference(&notice.object);
    assert_eq!(on.api_version.as_deref(), Some("config.openshift.io/v1"));
    assert_eq!(on.kind.as_deref(), Some(TAG_MIRROR_SET_KIND));
    assert_eq!((on.name.as_deref(), on.uid.as_deref()), (Some("a"), Some("uid-of-a")));
}

#[test]
fn a_broken_object_takes_nothing_from_others() {
    let follower = Follower::filled(&[tag_set("a", "a.example")]);
    let before = follower.paths();
    assert_eq!(before.as_ref().map(Vec::len), Some(1));
    for broken in [
        json!({"imageTagMirrors": "none"}),
        json!(7),
        json!({"imageTagMirrors": [{"source": "://"}]}),
    ] {
        let broken = json!({"metadata": {"name": "broken"}, "spec": broken});
        follower.see(TAG_MIRROR_SET_KIND, [Ok(Event::Apply(read(&broken)))]);
        assert_eq!(follower.paths(), before, "{broken}");
    }
}
