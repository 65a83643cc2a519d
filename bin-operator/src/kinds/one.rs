//! One object of a kind that not every cluster has.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, CustomResourceExt, Resource};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::preflight::Seen;

use super::{Followed, Kind, Kinds, KindsWatch, enter, follow};

/// What matters of the object, `F`, as a watch shows it.
pub type Optional<F> = KindsWatch<Kind<F>>;

impl<F: Clone + PartialEq> Kinds for Kind<F> {
    type Inventory = Option<F>;

    fn is_known(&self) -> bool {
        self.known().is_some()
    }

    fn collect(&self) -> Option<F> {
        self.known()?.values().next().cloned()
    }
}

impl<F: Clone + PartialEq> Optional<F> {
    /// Nothing is known yet of an object whose lack takes something from nodes.
    pub(crate) fn of_consequence() -> Self {
        let watch = Self::unknown();
        watch.update(&|| {}, |kind| {
            *kind = Kind::of_consequence();
            true
        });
        watch
    }

    /// What matters of it; `None` without one.
    pub fn get(&self) -> Option<F> {
        self.look(Kinds::collect)
    }

    /// Whether the cluster lacks the kind, as far as anybody knows.
    pub fn lacks_kind(&self) -> bool {
        self.look(Kind::is_lacking)
    }

    /// What is known of it, shown as this value, with what its lack means.
    pub fn seen_as(&self, value: impl Fn(&F) -> Value) -> Seen {
        self.look(|kind| match kind.known() {
            None => Seen::Unknown,
            Some(_) if kind.is_lacking() => Seen::KindMissing,
            Some(objects) => {
                objects.values().next().map_or(Seen::ObjectMissing, |it| Seen::Object(value(it)))
            }
        })
    }
}

impl Optional<Value> {
    /// The same, with what its lack means.
    pub fn seen(&self) -> Seen {
        self.seen_as(Clone::clone)
    }
}

/// `spec` and `status` of an object, which are what it says; the rest changes with each write.
pub(crate) fn body(object: &Value) -> Value {
    let part = |name: &str| Some((name.to_owned(), object.get(name)?.clone()));
    ["spec", "status"].into_iter().filter_map(part).collect()
}

/// Follows the object `name` of kind `K` until `stop`, and shows it in `watch`; `read` picks out what matters, and `tell` is called
/// when that is another.
pub(crate) fn watch_one<K, F>(
    watch: Optional<F>,
    client: &Client,
    name: &str,
    read: fn(&Value) -> F,
    tell: impl Fn() + Send + 'static,
    (stop, tasks): (&CancellationToken, &TaskTracker),
) -> Optional<F>
where
    K: CustomResourceExt + Resource<DynamicType = ()>,
    F: Clone + PartialEq + Send + Sync + 'static,
{
    let api = Api::all_with(client.clone(), &ApiResource::erase::<K>(&()));
    watch_named(watch, api, name, read, tell, (stop, tasks))
}

/// The same for the object `name` among those of `api`.
pub(crate) fn watch_named<F>(
    watch: Optional<F>,
    api: Api<DynamicObject>,
    name: &str,
    read: fn(&Value) -> F,
    tell: impl Fn() + Send + 'static,
    (stop, tasks): (&CancellationToken, &TaskTracker),
) -> Optional<F>
where
    F: Clone + PartialEq + Send + Sync + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let strip = |object: &mut DynamicObject| object.metadata.managed_fields = None;
    let seeing = watch.clone();
    let following = follow(Followed { api, config, strip }, move |seen| {
        seeing.update(&tell, |kind| enter(seen, kind, read));
    });
    let stop = stop.clone();
    tasks.spawn(async move { stop.run_until_cancelled(following).await });
    watch
}
