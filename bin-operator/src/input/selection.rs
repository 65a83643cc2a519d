//! Which objects of an input are those that the operator looks at: one selection for all commands about a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ObjectMeta;
use serde_json::Value;
use wmco_core::names::machine_api::MACHINE_SET_KIND;
use wmco_core::names::objects::{
    DEFAULT_NAMESPACE, HOST_KEYS_CONFIG_MAP, INSTANCES_CONFIG_MAP, MACHINE, MACHINE_API_NAMESPACE,
    PRIVATE_KEY_SECRET,
};

use super::configuration::{CLUSTER_KINDS, is_of_cluster};
use super::{InputError, Located, Location, Objects, strays};

/// The objects of one cluster, each once.
#[derive(Debug)]
pub struct Selection<'a> {
    objects: &'a Objects,
    namespace: String,
    /// Whether somebody said that this is its namespace.
    is_given: bool,
}

impl<'a> Selection<'a> {
    /// Those that an operator in `namespace` looks at; by default in that of the ConfigMap windows-instances. Objects
    /// without a namespace are in the right one.
    ///
    /// # Errors
    /// An object is there twice, or it is not clear which list of hosts is meant.
    pub fn new(objects: &'a Objects, namespace: Option<&str>) -> Result<Self, InputError> {
        let is_given = namespace.is_some();
        let namespace = match namespace {
            Some(namespace) => namespace.to_owned(),
            None => namespace_of_list(objects)?,
        };
        let selection = Self { objects, namespace, is_given };
        selection.each_once()?;
        Ok(selection)
    }

    /// Looks whether each object that counts is there once; others may be there as often as they like.
    fn each_once(&self) -> Result<(), InputError> {
        let objects = self.objects;
        let named = |metadata: &'a ObjectMeta| metadata.name.as_deref().unwrap_or_default();
        once("Node", objects.nodes.iter().map(|it| (named(&it.object.metadata), &it.at)))?;
        let requests = objects.requests.iter().map(|it| (named(&it.object.metadata), &it.at));
        once("CertificateSigningRequest", requests)?;
        let maps = objects.config_maps.iter().filter(|it| self.has(&it.object.metadata));
        once("ConfigMap", maps.map(|it| (named(&it.object.metadata), &it.at)))?;
        let secrets = objects.secrets.iter().filter(|it| self.has(&it.object.metadata));
        once("Secret", secrets.map(|it| (named(&it.object.metadata), &it.at)))?;
        for kind in [MACHINE.2, MACHINE_SET_KIND] {
            once(
                kind,
                of_machine_api(objects, kind)
                    .map(|it| (text(&it.object, "/metadata/name"), &it.at)),
            )?;
        }
        Ok(())
    }

    /// The operator's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A ConfigMap in the operator's namespace.
    pub fn config_map(&self, name: &str) -> Option<&'a ConfigMap> {
        self.located_config_map(name).map(|map| &map.object)
    }

    fn located_config_map(&self, name: &str) -> Option<&'a Located<ConfigMap>> {
        let of_name = |metadata| is_named(metadata, name) && self.has(metadata);
        self.objects.config_maps.iter().find(|map| of_name(&map.object.metadata))
    }

    /// Parts of the list of hosts that nobody reads, a line for each. What is left of such a list is not what its
    /// author listed.
    pub fn strays_of_list(&self) -> Vec<String> {
        let list = self.located_config_map(INSTANCES_CONFIG_MAP);
        list.map(|list| strays(self.objects, list)).unwrap_or_default()
    }

    /// A Secret in the operator's namespace.
    pub fn secret(&self, name: &str) -> Option<&'a Secret> {
        let mut secrets = self.objects.secrets.iter().map(|secret| &secret.object);
        secrets.find(|secret| is_named(&secret.metadata, name) && self.has(&secret.metadata))
    }

    /// The Machines.
    pub fn machines(&self) -> impl Iterator<Item = &'a Value> {
        of_machine_api(self.objects, MACHINE.2).map(|machine| &machine.object)
    }

    /// Whether the input tells which Machines there are, be it that there is none.
    pub fn tells_machines(&self) -> bool {
        let mut none = self.objects.empty_lists.iter();
        self.machines().next().is_some()
            || none.any(|list| text(list, "/kind") == MACHINE.2 && is_of_machine_api(list))
    }

    /// Whether the input tells which Nodes there are, be it that there is none.
    pub fn tells_nodes(&self) -> bool {
        let mut none = self.objects.empty_lists.iter();
        !self.objects.nodes.is_empty() || none.any(|list| text(list, "/kind") == "Node")
    }

    /// The MachineSets.
    pub fn machine_sets(&self) -> impl Iterator<Item = &'a Value> {
        self.located_machine_sets().map(|set| &set.object)
    }

    /// The MachineSets with their places.
    pub fn located_machine_sets(&self) -> impl Iterator<Item = &'a Located<Value>> {
        of_machine_api(self.objects, MACHINE_SET_KIND)
    }

    /// What looks as if it counted and does not, a line for each reason.
    pub fn passed_over(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut add = |reason: String, what: String, at: &Location| {
            by_reason.entry(reason).or_default().push(format!("{what} ({at})"));
        };
        for Located { at, object } in &self.objects.others {
            let kind = text(object, "/kind");
            if [MACHINE.2, MACHINE_SET_KIND].contains(&kind) && !is_of_machine_api(object) {
                let (group, version, _) = MACHINE;
                let name = text(object, "/metadata/name").escape_debug();
                let reason = format!(
                    "the operator looks at those of {group}/{version} in {MACHINE_API_NAMESPACE} alone"
                );
                add(reason, format!("{kind} {name}"), at);
            } else if CLUSTER_KINDS.iter().any(|(_, of)| *of == kind)
                && !CLUSTER_KINDS.iter().any(|(group, of)| is_of_cluster(object, group, of))
            {
                let version = text(object, "/apiVersion").escape_debug();
                let name = text(object, "/metadata/name").escape_debug();
                let reason = "the operator looks at no such object".to_owned();
                add(reason, format!("{kind} {name} of {version}"), at);
            } else if let Some((right, known)) = alike(kind) {
                let version = text(object, "/apiVersion").escape_debug();
                let name = text(object, "/metadata/name").escape_debug();
                let reason = format!("the operator looks at {right} of {known} alone");
                let what = format!("{} {name} of {version}", kind.escape_debug());
                add(reason, what.trim_end_matches(" of ").to_owned(), at);
            }
        }
        let maps = self.objects.config_maps.iter().map(|map| (&map.at, &map.object.metadata));
        let secrets = self.objects.secrets.iter().map(|it| (&it.at, &it.object.metadata));
        for (at, metadata) in maps.chain(secrets) {
            for name in [INSTANCES_CONFIG_MAP, HOST_KEYS_CONFIG_MAP, PRIVATE_KEY_SECRET] {
                if is_named(metadata, name) && !self.has(metadata) {
                    let there = metadata.namespace.as_deref().unwrap_or_default().escape_debug();
                    let reason =
                        format!("the operator looks at its namespace {} alone", self.namespace);
                    add(reason, format!("{name} in {there}"), at);
                }
            }
        }
        let line = |(reason, found): (String, Vec<String>)| match &found[..] {
            [first, more @ ..] if !more.is_empty() => {
                format!("{first} and {} more are not used: {reason}", more.len())
            }
            found => format!("{} is not used: {reason}", found.concat()),
        };
        let mut lines: Vec<String> = by_reason.into_iter().map(line).collect();
        if self.namespace != DEFAULT_NAMESPACE && !self.is_given {
            lines.push(format!(
                "the operator is taken to run in {}, where {INSTANCES_CONFIG_MAP} is; it usually is in \
                 {DEFAULT_NAMESPACE}, and would not read it from there: say --namespace if it does",
                self.namespace
            ));
        }
        lines
    }

    fn has(&self, metadata: &ObjectMeta) -> bool {
        metadata.namespace.as_deref().is_none_or(|found| found == self.namespace)
    }
}

/// The kind that is spelled as `kind` but for its case, and its version. What has both right is no other object.
fn alike(kind: &str) -> Option<(&'static str, &'static str)> {
    const BUILT_IN: [(&str, &str); 4] = [
        ("ConfigMap", "v1"),
        ("Node", "v1"),
        ("Secret", "v1"),
        ("CertificateSigningRequest", "certificates.k8s.io/v1"),
    ];
    let of_machines = [MACHINE.2, MACHINE_SET_KIND].map(|kind| (kind, MACHINE.0));
    let of_cluster = CLUSTER_KINDS.iter().map(|(group, kind)| (*kind, *group));
    let other = of_machines.into_iter().chain(of_cluster).filter(|(known, _)| *known != kind);
    BUILT_IN.into_iter().chain(other).find(|(known, _)| known.eq_ignore_ascii_case(kind))
}

/// Looks whether each name is there once among objects of `kind`; those without a name are not compared.
///
/// # Errors
/// [`InputError::Twice`] names both places.
pub fn once<'b>(
    kind: &str,
    found: impl Iterator<Item = (&'b str, &'b Location)>,
) -> Result<(), InputError> {
    let mut places = BTreeMap::new();
    for (name, at) in found.filter(|(name, _)| !name.is_empty()) {
        if let Some(first) = places.insert(name, at) {
            let what = format!("{kind} {}", name.escape_debug());
            return Err(InputError::Twice { what, first: first.clone(), second: at.clone() });
        }
    }
    Ok(())
}

/// Objects of a kind in which the operator looks for hosts.
fn of_machine_api<'a>(
    objects: &'a Objects,
    kind: &'static str,
) -> impl Iterator<Item = &'a Located<Value>> {
    objects.others_of(kind).filter(|found| is_of_machine_api(&found.object))
}

fn is_of_machine_api(object: &Value) -> bool {
    let version = text(object, "/apiVersion");
    let namespace = text(object, "/metadata/namespace");
    (version.is_empty() || version.split_once('/') == Some((MACHINE.0, MACHINE.1)))
        && (namespace.is_empty() || namespace == MACHINE_API_NAMESPACE)
}

/// The namespace of the list of hosts. That in the usual one wins.
fn namespace_of_list(objects: &Objects) -> Result<String, InputError> {
    let lists = objects.config_maps.iter().map(|map| &map.object.metadata);
    let lists = lists.filter(|metadata| is_named(metadata, INSTANCES_CONFIG_MAP));
    let mut found: Vec<&str> =
        lists.map(|list| list.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)).collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [one] => Ok(one.to_owned()),
        _ if found.is_empty() || found.contains(&DEFAULT_NAMESPACE) => {
            Ok(DEFAULT_NAMESPACE.to_owned())
        }
        _ => Err(InputError::Namespaces { found: found.join(" and ") }),
    }
}

fn is_named(metadata: &ObjectMeta, name: &str) -> bool {
    metadata.name.as_deref() == Some(name)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
