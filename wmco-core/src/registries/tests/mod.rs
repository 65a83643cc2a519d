//! Tests of the whole: vectors, single cases, and laws for any objects.

mod laws;
mod rows;
mod strict;
mod vectors;
mod words;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    ImageConfigFacts, MirrorSetFacts, PullSecret, PullSecretData, Registries, RegistryInputs,
    configure,
};

/// What the objects of one test give. A Secret is an object with `auths`.
fn registries(objects: &[Value]) -> Registries {
    with_pause_image(objects, None)
}

/// The same where each pod needs `pause_image`.
fn with_pause_image(objects: &[Value], pause_image: Option<&str>) -> Registries {
    let pause_image = pause_image.map(|image| image.parse().unwrap());
    let sets: Vec<_> = objects.iter().filter_map(MirrorSetFacts::of).collect();
    let config = objects.iter().find(|object| object["kind"] == "Image");
    let config = config.map(ImageConfigFacts::of).unwrap_or_default();
    let secret = objects.iter().find(|object| object.get("kind").is_none());
    let secret = secret.map_or("{}".into(), ToString::to_string);
    let pull_secret = PullSecret::read(PullSecretData::Text(secret.as_bytes()));
    configure(&RegistryInputs {
        mirror_sets: &sets,
        image_config: &config,
        pull_secret: &pull_secret,
        pause_image: pause_image.as_ref(),
    })
}

/// A mirror set of one entry.
fn set(kind: &str, name: &str, source: &str, mirrors: &[&str], policy: &str) -> Value {
    let list = match kind {
        "ImageTagMirrorSet" => "imageTagMirrors",
        "ImageContentSourcePolicy" => "repositoryDigestMirrors",
        _ => "imageDigestMirrors",
    };
    let entry = json!({"source": source, "mirrors": mirrors, "mirrorSourcePolicy": policy});
    json!({"kind": kind, "metadata": {"name": name}, "spec": {list: [entry]}})
}

fn digests(name: &str, source: &str, mirrors: &[&str]) -> Value {
    set("ImageDigestMirrorSet", name, source, mirrors, "")
}

fn tags(name: &str, source: &str, mirrors: &[&str]) -> Value {
    set("ImageTagMirrorSet", name, source, mirrors, "")
}

fn never(name: &str, source: &str, mirrors: &[&str]) -> Value {
    set("ImageTagMirrorSet", name, source, mirrors, "NeverContactSource")
}

/// The texts of the files.
fn texts(registries: &Registries) -> BTreeMap<String, String> {
    let files = registries.files().into_iter();
    files.map(|(path, text)| (path, String::from_utf8(text.expose().to_vec()).unwrap())).collect()
}

/// The findings, one line each.
fn told(registries: &Registries) -> String {
    let mut lines = registries.findings().iter().map(ToString::to_string).collect::<Vec<_>>();
    lines.push(String::new());
    lines.join("\n")
}

/// The URLs that are asked for `image`, first those for its tag or digest, then those for content.
fn asked(registries: &Registries, image: &str) -> [Vec<String>; 2] {
    let pull = registries.explain(&image.parse().unwrap());
    [pull.resolve, pull.content].map(|list| list.into_iter().map(|request| request.url).collect())
}
