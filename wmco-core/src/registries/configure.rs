//! Makes one file for each registry from the cluster's objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Registries;
use super::endpoint::{Ability, Endpoint, EndpointReason, Transport};
use super::finding::{ClusterObject, RegistryFinding, RegistryProblem, shown};
use super::forbidden::ForbiddenSources;
use super::hosts_file::HostsFile;
use super::image::ImageReference;
use super::image_config::ImageConfigFacts;
use super::location::{BadLocation, ImageLocation};
use super::mirror_set::{MirrorEntry, MirrorSetFacts};
use super::pull_secret::{PullCredentials, PullSecret};
use crate::names::registries::DOCKER_HUB_INDEX;

/// The cluster's objects about registries.
///
/// ```
/// use wmco_core::registries::{RegistryInputs, configure};
///
/// assert!(configure(&RegistryInputs::default()).files().is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RegistryInputs<'a> {
    /// All mirror sets, in any order.
    pub mirror_sets: &'a [MirrorSetFacts],
    /// The cluster's settings for images.
    pub image_config: &'a ImageConfigFacts,
    /// The pull secret.
    pub pull_secret: &'a PullSecret,
    /// The image that each pod needs. The kubelet sends no credentials for it.
    pub pause_image: Option<&'a ImageReference>,
}

impl Default for RegistryInputs<'_> {
    fn default() -> Self {
        static IMAGE_CONFIG: std::sync::LazyLock<ImageConfigFacts> =
            std::sync::LazyLock::new(ImageConfigFacts::default);
        static PULL_SECRET: std::sync::LazyLock<PullSecret> =
            std::sync::LazyLock::new(PullSecret::default);
        Self {
            mirror_sets: &[],
            image_config: &IMAGE_CONFIG,
            pull_secret: &PULL_SECRET,
            pause_image: None,
        }
    }
}

/// Facts about one registry in image names.
#[derive(Debug)]
struct Registry {
    location: ImageLocation,
    mirrors: Vec<Mirror>,
    /// Indexes of mirrors, by the location that containerd asks.
    known: HashMap<ImageLocation, usize>,
    /// The mirrors of each entry, in its order.
    orders: Vec<Order>,
    /// Whether entries name mirrors, usable or not.
    names_mirrors: bool,
    never: Option<Never>,
    /// Entries for a part of the registry.
    parts: Vec<Part>,
}

/// The order of the mirrors of an entry.
#[derive(Debug)]
struct Order {
    object: ClusterObject,
    /// The field of the entry.
    field: String,
    mirrors: Vec<usize>,
}

/// An entry for a part of a registry.
#[derive(Debug)]
struct Part {
    object: ClusterObject,
    /// The field of its source.
    field: String,
    tags: bool,
    mirrors: Vec<usize>,
}

/// A rule that the source must not be asked.
#[derive(Debug)]
struct Never {
    /// The first object with the rule, and its field.
    object: ClusterObject,
    field: String,
    /// Whether that entry is for a part of the registry.
    part: bool,
}

#[derive(Debug)]
struct Mirror {
    base: ImageLocation,
    tags: bool,
    /// Whether an entry names it for the whole registry, and whether one does so for tags.
    whole: bool,
    whole_tags: bool,
    /// The location as written, which credentials and settings refer to.
    written: ImageLocation,
    because: EndpointReason,
}

/// Makes containerd's configuration of registries for all Windows nodes.
///
/// # Guarantees
/// - The order of [`RegistryInputs::mirror_sets`] does not matter, and invalid entries do not affect others: each
///   registry has all its usable mirrors.
/// - Work is in proportion to the size of the objects.
/// - If an entry with mirrors forbids the source, the source is not asked under any of its names, even if no mirror is
///   usable.
pub fn configure(inputs: &RegistryInputs<'_>) -> Registries {
    let mut sets: Vec<&MirrorSetFacts> = inputs.mirror_sets.iter().collect();
    sets.sort_by_key(|set| (set.created, set.rank, &set.object));
    let forbidden = ForbiddenSources::of(sets.iter().flat_map(|set| &set.entries));
    let mut work = Work { inputs, forbidden, registries: BTreeMap::new(), findings: Vec::new() };
    for set in sets {
        work.findings.extend(set.findings.iter().cloned());
        for entry in &set.entries {
            work.add(set, entry);
        }
    }
    let forbidden: Vec<ImageLocation> = work.forbidden.names().collect();
    let pause_image = inputs.pause_image.filter(|_| work.pause_credentials().is_some());
    let pause_image = pause_image.map(ImageReference::registry);
    for location in inputs.image_config.registries.iter().chain(&forbidden).chain(&pause_image) {
        work.registry(location);
    }
    work.findings.extend(inputs.image_config.findings.iter().cloned());
    work.finish()
}

struct Work<'a> {
    inputs: &'a RegistryInputs<'a>,
    forbidden: ForbiddenSources,
    /// By the host in lower case.
    registries: BTreeMap<String, Registry>,
    findings: Vec<RegistryFinding>,
}

impl Work<'_> {
    fn registry(&mut self, location: &ImageLocation) -> &mut Registry {
        self.registries.entry(location.host_key()).or_insert_with(|| Registry {
            location: ImageLocation::of_registry(location.host()),
            mirrors: Vec::new(),
            known: HashMap::new(),
            orders: Vec::new(),
            names_mirrors: false,
            never: None,
            parts: Vec::new(),
        })
    }

    /// Adds a finding about images of the registry of `source`.
    fn tell(
        &mut self,
        source: &ImageLocation,
        object: &ClusterObject,
        field: String,
        problem: RegistryProblem,
    ) {
        let (object, registry) = (object.clone(), Some(source.canonical()));
        self.findings.push(RegistryFinding { object, field, problem, registry });
    }

    fn add(&mut self, set: &MirrorSetFacts, entry: &MirrorEntry) {
        let at = format!("{}.source", entry.field);
        if entry.source.folder().is_none() {
            let problem =
                RegistryProblem::UnusableFolder { registry: entry.source.host().to_owned() };
            return self.tell(&entry.source, &set.object, at, problem);
        }
        self.tell_source(set, entry, &at);
        if entry.never {
            self.registry(&entry.source).never.get_or_insert_with(|| Never {
                object: set.object.clone(),
                field: policy_of(&entry.field),
                part: !entry.source.path().is_empty(),
            });
        }
        let (mut order, mut used) = (Vec::new(), BTreeSet::new());
        for (index, mirror) in &entry.mirrors {
            let field = format!("{}.mirrors[{index}]", entry.field);
            if entry.plain.contains(&field) && !self.inputs.image_config.insecure.covers(mirror) {
                self.tell(
                    &entry.source,
                    &set.object,
                    field.clone(),
                    RegistryProblem::HttpIsNotKept,
                );
            }
            if mirror.is_service() {
                self.tell(&entry.source, &set.object, field.clone(), RegistryProblem::ServiceName);
            }
            match self.mirror(set, &field, entry, mirror) {
                Ok(mirror) if used.insert(mirror) => order.push(mirror),
                Ok(_) => {}
                Err(problem) => self.tell(&entry.source, &set.object, field, problem),
            }
        }
        // Mirrors that are not used for it have told so.
        if entry.source.has_version() && !order.is_empty() {
            self.tell(&entry.source, &set.object, at.clone(), RegistryProblem::TaggedSource);
        }
        let registry = self.registry(&entry.source);
        if !entry.source.path().is_empty() {
            let (object, mirrors) = (set.object.clone(), order.clone());
            registry.parts.push(Part { object, field: at, tags: entry.tags, mirrors });
        }
        let (object, field) = (set.object.clone(), entry.field.clone());
        registry.orders.push(Order { object, field, mirrors: order });
        registry.names_mirrors |= entry.has_mirrors;
    }

    /// Adds a mirror and returns its index.
    fn mirror(
        &mut self,
        set: &MirrorSetFacts,
        field: &str,
        entry: &MirrorEntry,
        mirror: &ImageLocation,
    ) -> Result<usize, RegistryProblem> {
        let Some(base) = mirror.base_for(&entry.source) else {
            return Err(match entry.source.path() {
                _ if entry.source.has_version() => RegistryProblem::TaggedSource,
                // Only a tag or a digest can be wrong here.
                "" => RegistryProblem::BadLocation {
                    text: mirror.to_string(),
                    reason: BadLocation::Path,
                },
                path => RegistryProblem::OtherPath { path: path.to_owned() },
            });
        };
        if self.inputs.image_config.blocks(mirror) {
            return Err(RegistryProblem::BlockedMirror);
        }
        let forbids_itself = entry.never && base.is_at_the_same_registry(&entry.source);
        if self.forbidden.meet(&base) && !forbids_itself {
            return Err(RegistryProblem::ForbiddenMirror);
        }
        if mirror.is_ipv6() {
            return Err(RegistryProblem::Ipv6Mirror);
        }
        let base = base.at_its_server();
        let registry = self.registry(&entry.source);
        let next = registry.mirrors.len();
        let number = *registry.known.entry(base.clone()).or_insert(next);
        let whole = entry.source.path().is_empty();
        match registry.mirrors.get_mut(number) {
            None => {
                let because =
                    EndpointReason::Mirror { object: set.object.clone(), field: field.to_owned() };
                let written = mirror.clone();
                let (tags, whole_tags) = (entry.tags, whole && entry.tags);
                registry.mirrors.push(Mirror { base, tags, whole, whole_tags, written, because });
            }
            Some(known) => {
                known.tags |= entry.tags;
                known.whole |= whole;
                known.whole_tags |= whole && entry.tags;
                let known = known.written.clone();
                let key = |location: &ImageLocation| {
                    self.inputs.pull_secret.for_location(location).map(PullCredentials::key)
                };
                if key(&known) != key(mirror) {
                    let problem = RegistryProblem::CredentialsDiffer { base: base.to_string() };
                    self.tell(&entry.source, &set.object, field.to_owned(), problem);
                }
            }
        }
        Ok(number)
    }

    fn finish(mut self) -> Registries {
        let registries = std::mem::take(&mut self.registries);
        let mut files = BTreeMap::new();
        let has_mirrors = registries.values().any(|registry| !registry.mirrors.is_empty());
        let secret = self.inputs.pull_secret;
        if has_mirrors || self.inputs.pause_image.is_some_and(|it| secret.names(&it.location())) {
            self.findings.extend(secret.findings.iter().cloned());
        }
        for registry in registries.into_values() {
            let Some(folder) = registry.location.folder() else { continue };
            if let Some(file) = self.file(&registry) {
                files.insert(folder.to_ascii_lowercase(), (folder, file));
            }
        }
        Registries { files, findings: self.findings }
    }

    /// The file of a registry, if it needs one.
    fn file(&mut self, registry: &Registry) -> Option<HostsFile> {
        let config = self.inputs.image_config;
        let blocked = config.blocks(&registry.location);
        let source = self.source(&registry.location);
        if !blocked {
            self.tell_never(registry);
        }
        self.tell_parts(registry);
        let forbidden = blocked || self.forbidden.name_of(&registry.location).is_some();
        if forbidden && registry.mirrors.is_empty() {
            return Some(closed(source));
        }
        let mut endpoints = self.mirrors(registry);
        let insecure = config.insecure.covers(&registry.location);
        let server = match endpoints.list.first() {
            Some(first) if forbidden => {
                Endpoint { because: EndpointReason::InPlaceOfSource, ..first.clone() }
            }
            _ if insecure => {
                self.tell_in_clear(&source);
                // The file's last endpoint is plain HTTP, so HTTPS has to come before it.
                endpoints.push(Endpoint { transport: Transport::AnyCertificate, ..source.clone() });
                Endpoint { transport: Transport::Plain, ..source }
            }
            None if source.credentials.is_some() => {
                // containerd 1.6 ignores a file without a table of a host.
                endpoints.push(source.clone());
                source
            }
            None if registry.names_mirrors || registry.never.is_some() => return None,
            // The Go operator writes an empty file in this case.
            None => return Some(HostsFile { endpoints: Vec::new(), server: None }),
            Some(_) => source,
        };
        Some(HostsFile { endpoints: endpoints.list, server: Some(server) })
    }

    /// The endpoints of the mirrors of a registry, in their order.
    fn mirrors(&mut self, registry: &Registry) -> Endpoints {
        let config = self.inputs.image_config;
        let mut endpoints = Endpoints::default();
        let order = common_order(registry.mirrors.len(), &registry.orders);
        self.tell_orders(registry, &order);
        for mirror in order.into_iter().filter_map(|number| registry.mirrors.get(number)) {
            let ability = if mirror.tags { Ability::PullAndResolve } else { Ability::Pull };
            let endpoint = Endpoint {
                transport: Transport::Trusted,
                base: mirror.base.clone(),
                ability,
                credentials: self.inputs.pull_secret.for_location(&mirror.written).cloned(),
                because: mirror.because.clone(),
            };
            self.tell_mirror(registry, mirror);
            let insecure = config.insecure.covers(&mirror.written);
            endpoints.add(endpoint, insecure);
        }
        endpoints
    }

    /// The registry itself. That of the pause image gets credentials: no kubelet sends any for it.
    fn source(&self, registry: &ImageLocation) -> Endpoint {
        let image = self.inputs.pause_image;
        let is_its = image.is_some_and(|it| it.registry().host_key() == registry.host_key());
        let credentials = self.pause_credentials().filter(|_| is_its).cloned();
        Endpoint { credentials, ..source_endpoint(registry) }
    }

    /// The credentials for the pause image at its source.
    fn pause_credentials(&self) -> Option<&PullCredentials> {
        self.inputs.pull_secret.for_location(&self.inputs.pause_image?.location())
    }

    /// Whether HTTP is tried at a source.
    fn may_be_plain(&self, source: &ImageLocation) -> bool {
        let registry = ImageLocation::of_registry(source.host());
        registry.is_this_host() || self.inputs.image_config.insecure.covers(&registry)
    }
}

impl Work<'_> {
    /// Tells of a source, whose field is `at`, that is probably not meant as it is written.
    fn tell_source(&mut self, set: &MirrorSetFacts, entry: &MirrorEntry, at: &str) {
        let source = &entry.source;
        let mut problems = Vec::new();
        if !source.is_registry_in_names() {
            let name = source.host().to_owned();
            problems.push(RegistryProblem::SourceWithoutRegistry { name });
        }
        let usual = source.usual_name().filter(|name| !self.forbidden.has_mirrors(name));
        if let Some(name) = usual.filter(|_| entry.never) {
            problems.push(RegistryProblem::NeverByAnotherName { name });
        } else if source.host().eq_ignore_ascii_case(DOCKER_HUB_INDEX) {
            problems.push(RegistryProblem::NeverLookedUp);
        }
        if entry.plain.contains(at) && !self.may_be_plain(source) {
            problems.push(RegistryProblem::HttpIsNotKept);
        }
        for problem in problems {
            self.tell(source, &set.object, at.to_owned(), problem);
        }
    }

    /// Tells of a policy that forbids to ask the source.
    fn tell_never(&mut self, registry: &Registry) {
        let (source, host) = (&registry.location, registry.location.host().to_owned());
        let Some(forbidden) = self.forbidden.name_of(source) else { return };
        let name = forbidden.host().to_owned();
        match &registry.never {
            Some(never) if registry.mirrors.is_empty() => {
                let problem = RegistryProblem::Closed { registry: host };
                self.tell(source, &never.object, never.field.clone(), problem);
            }
            Some(never) if never.part => {
                let problem = RegistryProblem::NeverIsShared { registry: host };
                self.tell(source, &never.object, never.field.clone(), problem);
            }
            Some(_) => {}
            None => {
                for entry in &registry.orders {
                    let problem = RegistryProblem::NeverByOtherName { name: name.clone() };
                    self.tell(source, &entry.object, policy_of(&entry.field), problem);
                }
            }
        }
    }

    /// Tells of credentials that may go to a source by HTTP.
    fn tell_in_clear(&mut self, source: &Endpoint) {
        let Some(credentials) = &source.credentials else { return };
        let key = credentials.key().to_owned();
        let field = format!("auths[{}]", shown(&key));
        let object = &self.inputs.pull_secret.object;
        self.tell(&source.base, object, field, RegistryProblem::CredentialsInClear { key });
    }

    /// Tells of mirrors for a part that are asked for all of the registry.
    fn tell_parts(&mut self, registry: &Registry) {
        let host = registry.location.host();
        for part in &registry.parts {
            let mut mirrors =
                part.mirrors.iter().filter_map(|number| registry.mirrors.get(*number));
            let wider = mirrors.find(|it| if part.tags { !it.whole_tags } else { !it.whole });
            let Some(wider) = wider else { continue };
            let (source, mirror) = (&registry.location, wider.base.to_string());
            let registry = host.to_owned();
            let credentials = self.inputs.pull_secret.for_location(&wider.written);
            let credentials = credentials.map(|credentials| credentials.key().to_owned());
            let problem = if part.tags {
                RegistryProblem::DecidesAllTags { registry, mirror, credentials }
            } else {
                RegistryProblem::AskedForAll { registry, mirror, credentials }
            };
            self.tell(source, &part.object, part.field.clone(), problem);
        }
    }

    /// Tells of entries whose order of mirrors is not that of `order`.
    fn tell_orders(&mut self, registry: &Registry, order: &[usize]) {
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            if let Some(known) = places.get_mut(*number) {
                *known = place;
            }
        }
        for entry in &registry.orders {
            if !entry.mirrors.is_sorted_by_key(|number| places.get(*number)) {
                let source = &registry.location;
                let problem = RegistryProblem::OtherOrder { registry: source.host().to_owned() };
                let field = format!("{}.mirrors", entry.field);
                self.tell(source, &entry.object, field, problem);
            }
        }
    }

    /// Tells of a mirror that is the source in spite of a policy, and of its credentials.
    fn tell_mirror(&mut self, registry: &Registry, mirror: &Mirror) {
        let EndpointReason::Mirror { object, field } = &mirror.because else { return };
        let (secret, config) = (self.inputs.pull_secret, self.inputs.image_config);
        let mut problems = Vec::new();
        let is_forbidden = self.forbidden.name_of(&registry.location).is_some();
        if is_forbidden && mirror.base.is_at_the_same_registry(&registry.location) {
            problems.push(RegistryProblem::NeverButMirror);
        }
        match secret.for_location(&mirror.written) {
            Some(credentials) if config.insecure.covers(&mirror.written) => {
                let key = credentials.key().to_owned();
                problems.push(RegistryProblem::CredentialsInClear { key });
            }
            Some(_) => {}
            None => problems.extend(self.unsent(mirror)),
        }
        for problem in problems {
            self.tell(&registry.location, object, field.clone(), problem);
        }
    }

    /// Credentials that are not sent to `mirror`, though they are for the same registry.
    fn unsent(&self, mirror: &Mirror) -> impl Iterator<Item = RegistryProblem> + use<> {
        let secret = self.inputs.pull_secret;
        let other = secret.at_another_port(&mirror.written).map(|key| {
            let (key, host) = (key.to_owned(), mirror.written.host().to_owned());
            RegistryProblem::OtherPort { key, host }
        });
        let helper = secret.helper(&mirror.written);
        let helper = helper.map(|key| RegistryProblem::CredentialHelper { key: key.to_owned() });
        let part = secret.within(&mirror.written).map(|key| {
            let (key, mirror) = (key.to_owned(), mirror.written.to_string());
            RegistryProblem::CredentialsForPart { key, mirror }
        });
        [other, helper, part].into_iter().flatten()
    }
}

/// The numbers below `count` in an order that keeps each of `orders`, if there is one. Among several, a smaller
/// number comes first; where `orders` contradict each other, too.
fn common_order(count: usize, orders: &[Order]) -> Vec<usize> {
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for pair in orders.iter().flat_map(|order| order.mirrors.windows(2)) {
        if let [first, then] = *pair
            && first != then
            && let Some(before) = before.get_mut(then)
        {
            before.insert(first);
        }
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (then, firsts) in before.iter().enumerate() {
        for first in firsts {
            if let Some(after) = after.get_mut(*first) {
                after.push(then);
            }
        }
    }
    let mut open: BTreeSet<usize> = (0..count).collect();
    let is_free = |number: &usize| before.get(*number).is_some_and(BTreeSet::is_empty);
    let mut free: BTreeSet<usize> = open.iter().copied().filter(is_free).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(next) = free.pop_first().or_else(|| open.first().copied()) {
        open.remove(&next);
        order.push(next);
        for then in after.get(next).into_iter().flatten() {
            if let Some(before) = before.get_mut(*then) {
                before.remove(&next);
                if before.is_empty() && open.contains(then) {
                    free.insert(*then);
                }
            }
        }
    }
    order
}

/// Endpoints of a file, each URL once.
#[derive(Default)]
struct Endpoints {
    list: Vec<Endpoint>,
    /// Indexes in the list.
    urls: HashMap<String, usize>,
}

impl Endpoints {
    /// Adds `endpoint`; an insecure endpoint is added as HTTPS with any certificate, and then as HTTP.
    fn add(&mut self, endpoint: Endpoint, insecure: bool) {
        if insecure {
            self.push(Endpoint { transport: Transport::AnyCertificate, ..endpoint.clone() });
            self.push(Endpoint { transport: Transport::Plain, ..endpoint });
        } else {
            self.push(endpoint);
        }
    }

    /// Adds `endpoint`. One that is there may do what either may.
    fn push(&mut self, endpoint: Endpoint) {
        let number = *self.urls.entry(endpoint.url()).or_insert(self.list.len());
        match self.list.get_mut(number) {
            None => self.list.push(endpoint),
            Some(known) => known.ability = known.ability.max(endpoint.ability),
        }
    }
}

/// The field of the policy of an entry.
fn policy_of(entry: &str) -> String {
    format!("{entry}.mirrorSourcePolicy")
}

/// The registry itself, at containerd's default URL.
pub(super) fn source_endpoint(registry: &ImageLocation) -> Endpoint {
    // containerd asks itself so, and a file with settings has to say it.
    let is_this_host = registry.is_this_host();
    Endpoint {
        transport: if is_this_host { Transport::Plain } else { Transport::Trusted },
        base: ImageLocation::of_registry(registry.host()).at_its_server(),
        ability: Ability::PullAndResolve,
        credentials: None,
        because: EndpointReason::Source,
    }
}

/// A file with which containerd asks no endpoint. containerd treats a file without hosts as broken, and an empty
/// server as the source.
fn closed(source: Endpoint) -> HostsFile {
    let (ability, because) = (Ability::Nothing, EndpointReason::Closed);
    let nobody = Endpoint { ability, because, credentials: None, ..source };
    HostsFile { endpoints: vec![nobody.clone()], server: Some(nobody) }
}
