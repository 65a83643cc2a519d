//! Following one kind.

use std::time::Duration;

use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use wmco_core::limits;

use super::Kind;

/// What a watch brings of a kind.
pub(crate) type Seen = Result<Event<DynamicObject>, Missing>;

/// The cluster does not have the kind.
pub(crate) struct Missing;

/// What is followed, and what of it is left out.
pub(crate) struct Followed {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) config: watcher::Config,
    /// Takes off what nobody here looks at and what is most of an object.
    pub(crate) strip: fn(&mut DynamicObject),
}

/// Takes in what a watch brings, and tells whether anything is another now.
pub(crate) fn enter<F: PartialEq>(
    seen: Seen,
    kind: &mut Kind<F>,
    read: impl Fn(&Value) -> F,
) -> bool {
    let facts = |object: DynamicObject| {
        let name = object.name_any();
        // An object that was read from JSON can be written as JSON.
        let facts = read(&serde_json::to_value(object).unwrap_or_default());
        (name, facts)
    };
    match seen {
        Ok(Event::Init) => {
            kind.list_begins();
            false
        }
        Ok(Event::InitApply(object)) => {
            let (name, facts) = facts(object);
            kind.list_shows(name, facts);
            false
        }
        Ok(Event::InitDone) => kind.list_ends(),
        Ok(Event::Apply(object)) => {
            let (name, facts) = facts(object);
            kind.set(name, facts)
        }
        Ok(Event::Delete(object)) => kind.remove(&object.name_any()),
        Err(Missing) => kind.is_missing(),
    }
}

/// Gives `see` what a watch brings, for ever.
pub(crate) async fn follow(followed: Followed, see: impl Fn(Seen)) {
    let Followed { api, config, strip } = followed;
    let kind = api.resource_url().rsplit('/').next().unwrap_or_default().to_owned();
    let first = limits::RETRY_FIRST.unsigned_abs();
    let mut pause = first;
    loop {
        let events = watcher(api.clone(), config.clone()).default_backoff();
        let mut events = std::pin::pin!(events.modify(strip));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if matches!(event, Event::InitDone) {
                        pause = first;
                    }
                    see(Ok(event));
                }
                Err(watcher::Error::InitialListFailed(error)) if is_missing(&error) => {
                    see(Err(Missing));
                    break;
                }
                // A new list tells whether it is missing.
                Err(watcher::Error::WatchStartFailed(error)) if is_missing(&error) => break,
                Err(error) => tracing::warn!(kind, %error, "watch failed, trying again"),
            }
        }
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The pause after `pause` when the kind is still missing.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(limits::RESYNC.unsigned_abs())
}
