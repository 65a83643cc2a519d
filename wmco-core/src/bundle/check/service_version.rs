//! The ClusterServiceVersion.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use semver::Version;
use serde_json::Value;

use super::super::csv::FEATURES as FEATURE_PREFIX;
use super::{
    CAPABILITIES, CATEGORIES, CONTACTS, DIGESTS, EXAMPLES, FEATURES, FIELDS, Found, ICON, INSTALL,
    INSTALL_MODES, MIN_KUBERNETES, NAME, NO_MIN_KUBERNETES, PROVIDER, RELATED_IMAGES, REPLACES,
    REQUESTS, ROLE_RULES, Rule, SKIP_RANGE, SUGGESTED_NAMESPACE, VERSION, WEBHOOKS, items, objects,
    range, text,
};
use crate::registries::ImageReference;
use crate::text::{is_dns_label, is_dns_subdomain};

const CAPABILITY_LEVELS: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];

const CATEGORY_NAMES: [&str; 18] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Development Tools",
    "Drivers and plugins",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
];

const ICON_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/svg+xml"];

const MODES: [&str; 4] = ["AllNamespaces", "MultiNamespace", "OwnNamespace", "SingleNamespace"];

/// A ClusterServiceVersion and its file.
struct Looked<'a> {
    file: &'a str,
    object: &'a Value,
    found: &'a mut Found,
}

pub(super) fn check(file: &str, object: &Value, found: &mut Found) {
    let mut looked = Looked { file, object, found };
    looked.name_and_versions();
    looked.annotations();
    looked.install_modes();
    looked.install();
    looked.images();
    looked.shown();
}

impl<'a> Looked<'a> {
    fn says(&self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    fn annotation(&self, name: &str) -> Option<&'a str> {
        self.object.pointer("/metadata/annotations")?.get(name)?.as_str()
    }

    fn problem(&mut self, rule: &'static Rule, text: impl Into<String>) {
        self.found.push(rule, self.file, text);
    }

    fn name_and_versions(&mut self) {
        let (name, version) = (self.says("/metadata/name"), self.says("/spec/version"));
        let Some(named) = version_in(name) else {
            return self.problem(
                NAME,
                format!("metadata.name is `{name}`, write the package, `.v` and the version, in lower case"),
            );
        };
        match version.parse::<Version>() {
            Ok(version) if version == Version::new(0, 0, 0) => {
                self.problem(
                    VERSION,
                    "spec.version is 0.0.0, which stands for none, write another",
                );
            }
            Ok(version) if version == named => {}
            Ok(_) | Err(_) => self.problem(
                VERSION,
                format!("spec.version is `{version}`, write the version of metadata.name, {named}"),
            ),
        }
        let replaces = self.says("/spec/replaces");
        let package = |name: &str| name.split_once('.').map(|(package, _)| package.to_owned());
        let is_older = version_in(replaces).is_some_and(|it| it.cmp_precedence(&named).is_lt());
        let is_right = is_older && package(replaces) == package(name);
        if !replaces.is_empty() && !is_right {
            self.problem(
                REPLACES,
                format!("spec.replaces is `{replaces}`, write the name of an older ClusterServiceVersion of the package"),
            );
        }
        if let Some(range) = self.annotation("olm.skipRange")
            && !range::is_of_older(range, &named)
        {
            self.problem(
                SKIP_RANGE,
                format!("olm.skipRange is `{range}`, write for example `>=0.1.0 <{named}`: older versions, which are upgraded to it"),
            );
        }
        let least = self.says("/spec/minKubeVersion");
        if self.object.pointer("/spec/minKubeVersion").is_none() {
            self.problem(
                NO_MIN_KUBERNETES,
                "spec.minKubeVersion is missing, write a version such as 1.36.0",
            );
        } else if least.parse::<Version>().is_err() {
            self.problem(
                MIN_KUBERNETES,
                format!("spec.minKubeVersion is `{least}`, write a version such as 1.36.0"),
            );
        }
    }

    fn annotations(&mut self) {
        let examples = self.annotation("alm-examples").unwrap_or_default();
        let owned: BTreeSet<(String, &str)> =
            items(self.object, "/spec/customresourcedefinitions/owned")
                .filter_map(|it| {
                    let group = text(it, "/name").split_once('.')?.1;
                    Some((format!("{group}/{}", text(it, "/version")), text(it, "/kind")))
                })
                .collect();
        let is_owned =
            |it: &Value| owned.contains(&(text(it, "/apiVersion").to_owned(), text(it, "/kind")));
        if !serde_json::from_str::<Vec<Value>>(examples).is_ok_and(|all| all.iter().all(is_owned)) {
            let text =
                "alm-examples is no list in JSON of kinds that are owned, write `[]` where none is";
            self.problem(EXAMPLES, text);
        }
        if let Some(level) = self.annotation("capabilities")
            && !CAPABILITY_LEVELS.contains(&level)
        {
            let known = CAPABILITY_LEVELS.join(", ");
            self.problem(CAPABILITIES, format!("capabilities is `{level}`, write one of {known}"));
        }
        for category in self.annotation("categories").into_iter().flat_map(|all| all.split(',')) {
            if !CATEGORY_NAMES.contains(&category.trim()) {
                let known = CATEGORY_NAMES.join(", ");
                self.problem(
                    CATEGORIES,
                    format!("categories has `{category}`, write some of {known}"),
                );
            }
        }
        let annotations = self.object.pointer("/metadata/annotations").and_then(Value::as_object);
        for (name, value) in annotations.into_iter().flatten() {
            let is_feature = name.starts_with(FEATURE_PREFIX);
            if is_feature && !matches!(value.as_str(), Some("true" | "false")) {
                self.problem(
                    FEATURES,
                    format!("{name} is {value}, write `true` or `false` as text"),
                );
            }
        }
        if let Some(namespace) = self.annotation("operatorframework.io/suggested-namespace") {
            let template = self.annotation("operatorframework.io/suggested-namespace-template");
            let template =
                template.map(|text| serde_json::from_str::<Value>(text).unwrap_or_default());
            let agrees = template.is_none_or(|object| text(&object, "/metadata/name") == namespace);
            if !is_dns_label(namespace) || !agrees {
                let text = format!(
                    "the suggested namespace is `{namespace}`, write one name, the template's, too"
                );
                self.problem(SUGGESTED_NAMESPACE, text);
            }
        }
    }

    fn install_modes(&mut self) {
        let (mut seen, mut is_supported) = (BTreeSet::new(), false);
        for mode in items(self.object, "/spec/installModes") {
            let name = text(mode, "/type");
            if !MODES.contains(&name) || !seen.insert(name) {
                self.problem(
                    INSTALL_MODES,
                    format!("install mode `{name}` is unknown or there twice"),
                );
            }
            is_supported |= mode["supported"] == true;
        }
        if !is_supported {
            self.problem(INSTALL_MODES, "no install mode is supported, support one");
        }
    }

    fn install(&mut self) {
        if self.says("/spec/install/strategy") != "deployment" {
            self.problem(
                INSTALL,
                "spec.install.strategy is not `deployment`, the only one there is",
            );
        }
        let deployments = || items(self.object, "/spec/install/spec/deployments");
        let mut accounts: BTreeSet<&str> = BTreeSet::new();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        if deployments().next().is_none() {
            self.problem(INSTALL, "spec.install.spec.deployments is empty, add the operator's");
        }
        for deployment in deployments() {
            let name = text(deployment, "/name");
            accounts.insert(text(deployment, "/spec/template/spec/serviceAccountName"));
            if name.is_empty()
                || items(deployment, "/spec/template/spec/containers").next().is_none()
            {
                self.problem(
                    INSTALL,
                    format!("deployment `{name}` has no name or no container, add it"),
                );
            } else if !names.insert(name) {
                self.problem(INSTALL, format!("deployment `{name}` is there twice, leave one out"));
            }
            if !selects_its_pods(deployment) {
                let text = format!(
                    "deployment `{name}` does not select its own pods: write the same labels to spec.selector.matchLabels \
                     and spec.template.metadata.labels"
                );
                self.problem(INSTALL, text);
            }
            for container in items(deployment, "/spec/template/spec/containers") {
                let lacks = |what: &str| {
                    container
                        .pointer(&format!("/resources/requests/{what}"))
                        .is_none_or(Value::is_null)
                };
                if lacks("cpu") || lacks("memory") {
                    let name = text(container, "/name");
                    self.problem(
                        REQUESTS,
                        format!("container `{name}` requests no CPU or no memory, add both"),
                    );
                }
            }
        }
        for field in ["permissions", "clusterPermissions"] {
            for granted in items(self.object, &format!("/spec/install/spec/{field}")) {
                let account = text(granted, "/serviceAccountName");
                if !accounts.contains(account) {
                    let text = format!(
                        "{field} are for ServiceAccount `{account}`, which no deployment has"
                    );
                    self.problem(INSTALL, text);
                }
                if items(granted, "/rules").any(|rule| !objects::is_whole(rule)) {
                    self.problem(
                        ROLE_RULES,
                        format!("{field} of `{account}`: {}", objects::NOT_WHOLE),
                    );
                }
            }
        }
        for webhook in items(self.object, "/spec/webhookdefinitions") {
            let (name, serves) = (text(webhook, "/generateName"), text(webhook, "/deploymentName"));
            if !names.contains(serves) {
                let text = format!(
                    "webhook `{name}` is served by deployment `{serves}`, which there is not"
                );
                self.problem(WEBHOOKS, text);
            }
        }
    }

    fn images(&mut self) {
        let related: BTreeSet<&str> =
            items(self.object, "/spec/relatedImages").map(|it| text(it, "/image")).collect();
        let used = items(self.object, "/spec/install/spec/deployments")
            .flat_map(|deployment| {
                items(deployment, "/spec/template/spec/initContainers")
                    .chain(items(deployment, "/spec/template/spec/containers"))
            })
            .map(|container| text(container, "/image"));
        for image in used.chain(self.annotation("containerImage")) {
            if !related.contains(image) {
                let text = format!(
                    "image {image} is none of spec.relatedImages, add it: mirrors are made by that list"
                );
                self.problem(RELATED_IMAGES, text);
            }
        }
        for image in related {
            if image.parse::<ImageReference>().is_err() {
                self.problem(
                    RELATED_IMAGES,
                    format!("image {image} is no name of an image, correct it"),
                );
            } else if !image.contains("@sha256:") {
                self.problem(
                    DIGESTS,
                    format!(
                        "image {image} has no digest; a mirror may hold another one of its tag"
                    ),
                );
            }
        }
    }

    /// Checks the fields that catalogs and the console show.
    fn shown(&mut self) {
        for field in ["displayName", "description"] {
            if self.says(&format!("/spec/{field}")).trim().is_empty() {
                self.problem(FIELDS, format!("spec.{field} is empty, fill it in"));
            }
        }
        if self.says("/spec/provider/name").is_empty() {
            self.problem(PROVIDER, "spec.provider.name is empty, fill it in");
        }
        for (list, fields) in [("links", ["name", "url"]), ("maintainers", ["name", "email"])] {
            for entry in items(self.object, &format!("/spec/{list}")) {
                let url = text(entry, "/url");
                let is_wrong =
                    fields.iter().any(|field| text(entry, &format!("/{field}")).is_empty())
                        || (!url.is_empty() && !is_url(url))
                        || (list == "maintainers" && !text(entry, "/email").contains('@'));
                if is_wrong {
                    self.problem(
                        CONTACTS,
                        format!("spec.{list} has {entry}, write {}", fields.join(" and ")),
                    );
                }
            }
        }
        let icons: Vec<&Value> = items(self.object, "/spec/icon").collect();
        let is_icon = |icon: &Value| {
            let data = BASE64_STANDARD.decode(text(icon, "/base64data"));
            data.is_ok_and(|data| !data.is_empty())
                && ICON_TYPES.contains(&text(icon, "/mediatype"))
        };
        if !matches!(icons.as_slice(), [icon] if is_icon(icon)) {
            let known = ICON_TYPES.join(", ");
            self.problem(
                ICON,
                format!("spec.icon has not one icon with data and a media type of {known}"),
            );
        }
    }
}

/// Whether a deployment's selector means the pods of its template.
fn selects_its_pods(deployment: &Value) -> bool {
    let labels = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_object);
    let has = labels("/spec/template/metadata/labels");
    labels("/spec/selector/matchLabels").is_some_and(|asked| {
        asked.iter().all(|(name, value)| has.and_then(|has| has.get(name)) == Some(value))
    })
}

/// Whether people can follow it.
fn is_url(text: &str) -> bool {
    let url = text.parse::<http::Uri>();
    url.is_ok_and(|url| url.host().is_some() && matches!(url.scheme_str(), Some("http" | "https")))
}

/// The version at the end of the name of a ClusterServiceVersion.
fn version_in(name: &str) -> Option<Version> {
    let (package, version) = name.split_once('.')?;
    let is_name = is_dns_label(package) && is_dns_subdomain(name);
    version.trim_start_matches('v').parse().ok().filter(|_| is_name)
}
