//! The annotations of a bundle, and the labels of its image.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::metadata::{MEDIA_TYPE, PREFIX};
use super::super::{ANNOTATIONS as FILE, DOCKERFILE as IMAGE_FILE, MANIFESTS, METADATA};
use super::{
    ANNOTATIONS, CHANNELS, DEFAULT_CHANNEL, DEPENDENCIES, DOCKERFILE, FOLDERS, Found, items, text,
};

const REQUIRED: [&str; 5] = ["mediatype", "manifests", "metadata", "package", "channels"];

/// Where a bundle says what it needs; it need not.
const NEEDS: &str = "metadata/dependencies.yaml";

/// What a bundle may need, with the members that tell it.
const NEEDED: [(&str, &[&str]); 4] = [
    ("olm.package", &["packageName", "version"]),
    ("olm.gvk", &["group", "kind", "version"]),
    ("olm.label", &["label"]),
    ("olm.constraint", &["failureMessage"]),
];

/// Usual channel names, or their prefixes.
const USUAL_CHANNELS: [&str; 3] = ["candidate", "fast", "stable"];

pub(super) fn check(files: &BTreeMap<String, String>, found: &mut Found) {
    dependencies(files, found);
    let Some(annotations) = files.get(FILE).and_then(|text| annotations(text)) else {
        found.push(ANNOTATIONS, FILE, "holds no annotations, write them below `annotations`");
        return;
    };
    let value =
        |name: &str| annotations.get(&format!("{PREFIX}{name}.v1")).map_or("", String::as_str);
    for name in REQUIRED.into_iter().filter(|name| value(name).is_empty()) {
        found.push(ANNOTATIONS, FILE, format!("lacks `{PREFIX}{name}.v1`, add it"));
    }
    let is_other = |name: &str, usual: &str| !value(name).is_empty() && value(name) != usual;
    if is_other("mediatype", MEDIA_TYPE) {
        let text = format!("has the media type `{}`, write `{MEDIA_TYPE}`", value("mediatype"));
        found.push(super::MEDIA_TYPE, FILE, text);
    }
    for (name, folder) in [("manifests", MANIFESTS), ("metadata", METADATA)] {
        if is_other(name, folder) {
            let text = format!("says that {name} are in `{}`, write `{folder}`", value(name));
            found.push(FOLDERS, FILE, text);
        }
    }
    channels(value("channels"), value("channel.default"), found);
    if let Some(image) = files.get(IMAGE_FILE) {
        labels(image, &annotations, found);
    }
}

fn dependencies(files: &BTreeMap<String, String>, found: &mut Found) {
    let Some(file) = files.get(NEEDS) else { return };
    let known = NEEDED.map(|(kind, _)| kind).join(", ");
    let Some(file) = serde_saphyr::from_str::<Value>(file).ok().filter(Value::is_object) else {
        return found.push(
            DEPENDENCIES,
            NEEDS,
            "is no YAML with a list `dependencies`, correct it",
        );
    };
    for needed in items(&file, "/dependencies") {
        let kind = text(needed, "/type");
        let members = NEEDED.iter().find(|(known, _)| *known == kind).map(|(_, members)| *members);
        let lacks = |member: &&&str| text(needed, &format!("/value/{member}")).is_empty();
        match members.map(|members| members.iter().find(lacks)) {
            None => {
                let text = format!("needs something of type `{kind}`, write one of {known}");
                found.push(DEPENDENCIES, NEEDS, text);
            }
            Some(Some(member)) => {
                let text = format!("needs an {kind} without `value.{member}`, add it");
                found.push(DEPENDENCIES, NEEDS, text);
            }
            Some(None) => {}
        }
    }
}

fn annotations(text: &str) -> Option<BTreeMap<String, String>> {
    let file: Value = serde_saphyr::from_str(text).ok()?;
    serde_json::from_value(file.get("annotations")?.clone()).ok()
}

fn channels(channels: &str, default: &str, found: &mut Found) {
    let all: Vec<&str> = channels.split(',').map(str::trim).collect();
    if !default.is_empty() && !all.contains(&default) {
        let text = format!("has the default channel `{default}`, which is none of `{channels}`");
        found.push(DEFAULT_CHANNEL, FILE, text);
    }
    let is_usual = |channel: &str| USUAL_CHANNELS.iter().any(|usual| channel.starts_with(usual));
    for channel in all.into_iter().filter(|channel| !channel.is_empty() && !is_usual(channel)) {
        let text = format!(
            "has the channel `{channel}`; usual names begin with {}",
            USUAL_CHANNELS.join(", ")
        );
        found.push(CHANNELS, FILE, text);
    }
}

fn labels(image: &str, annotations: &BTreeMap<String, String>, found: &mut Found) {
    let joined = image.replace("\\\n", " ");
    let instructions = |name: &'static str| {
        let lines = joined.lines().map(str::trim);
        lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(char::is_whitespace))
    };
    let written = |name: &str| {
        let pairs = instructions("LABEL").flat_map(str::split_whitespace);
        let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
        pairs.find(|(label, _)| *label == name).map(|(_, value)| value.trim_matches('"'))
    };
    for (name, value) in annotations {
        if written(name) != Some(value.as_str()) {
            let text = format!("lacks the label `{name}=\"{value}\"` of {FILE}");
            found.push(DOCKERFILE, IMAGE_FILE, text);
        }
    }
    for folder in [MANIFESTS, METADATA] {
        let mut copies = instructions("COPY").chain(instructions("ADD"));
        let target = folder.trim_end_matches('/');
        if !copies.any(|line| {
            line.ends_with(&format!("/{target}")) || line.ends_with(&format!("/{folder}"))
        }) {
            let text = format!("does not copy {folder}, add `COPY {folder} /{folder}`");
            found.push(DOCKERFILE, IMAGE_FILE, text);
        }
    }
}
