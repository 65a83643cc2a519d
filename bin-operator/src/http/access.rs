//! Who may scrape metrics: users that the API server authenticates and authorizes to `get` the path.
//!
//! Source: `docs/contract/cluster.md`, CLU24; Kubernetes, "Authentication" and "Authorization", webhook mode.

mod cache;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use tokio::time::{Instant, timeout};
use wmco_core::digest::Sha256;
use wmco_core::limits;
use wmco_core::names::monitoring::METRICS_PATH;

use cache::Cache;

/// The answer to a client that asks for metrics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricsAccess {
    /// It may see them.
    Allowed,
    /// It is known and may not.
    Forbidden,
    /// Nobody knows it.
    Unknown,
    /// The API server does not answer.
    NoAnswer,
    /// The API server does not let us ask.
    NoRights,
}

/// Answers about clients; cheap to clone.
#[derive(Clone)]
pub struct Access {
    reviewer: Arc<dyn Reviewer>,
    /// By the digest of a token, so that no token is kept.
    users: Arc<Mutex<Cache<Sha256, Option<UserInfo>>>>,
    /// By all that is known of a user.
    rights: Arc<Mutex<Cache<Sha256, bool>>>,
}

/// Asks the API server.
#[async_trait]
pub(super) trait Reviewer: Send + Sync {
    /// Who a token belongs to.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, Error>;

    /// Whether this one may get the metrics.
    async fn allowed(&self, user: &UserInfo) -> Result<bool, Error>;
}

struct Cluster(Client);

impl Access {
    /// Asks by `client`, which sends each question once.
    pub fn new(client: Client) -> Self {
        Self::by(Arc::new(Cluster(client)))
    }

    pub(super) fn by(reviewer: Arc<dyn Reviewer>) -> Self {
        Self { reviewer, users: Arc::default(), rights: Arc::default() }
    }

    /// Whether who shows this token may see metrics.
    pub async fn look(&self, token: Option<&str>) -> MetricsAccess {
        self.look_at(Instant::now(), token).await
    }

    /// The same at a time.
    pub(super) async fn look_at(&self, now: Instant, token: Option<&str>) -> MetricsAccess {
        let Some(token) = token else { return MetricsAccess::Unknown };
        match timeout(limits::REVIEW.unsigned_abs(), self.ask(token, now)).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => {
                let refused =
                    matches!(&error, Error::Api(status) if (400..500).contains(&status.code));
                tracing::warn!(%error, "cannot ask who may see metrics");
                if refused { MetricsAccess::NoRights } else { MetricsAccess::NoAnswer }
            }
            Err(_) => {
                tracing::warn!("the api server takes too long to say who may see metrics");
                MetricsAccess::NoAnswer
            }
        }
    }

    async fn ask(&self, token: &str, now: Instant) -> Result<MetricsAccess, Error> {
        let digest = Sha256::of(token.as_bytes());
        let known = lock(&self.users).get(&digest, now);
        let user = if let Some(user) = known {
            user
        } else {
            let user = self.reviewer.user(token).await?;
            let until = now + limits::TOKEN_KNOWN.unsigned_abs();
            lock(&self.users).put(digest, user.clone(), until);
            user
        };
        let Some(user) = user else { return Ok(MetricsAccess::Unknown) };
        // Another group is another user.
        let digest = Sha256::of(&serde_json::to_vec(&user).map_err(Error::SerdeError)?);
        let known = lock(&self.rights).get(&digest, now);
        let allowed = if let Some(allowed) = known {
            allowed
        } else {
            let allowed = self.reviewer.allowed(&user).await?;
            lock(&self.rights).put(digest, allowed, now + believed(allowed));
            allowed
        };
        Ok(if allowed { MetricsAccess::Allowed } else { MetricsAccess::Forbidden })
    }
}

/// How long an answer about rights counts.
const fn believed(allowed: bool) -> Duration {
    if allowed { limits::SCRAPE_ALLOWED } else { limits::SCRAPE_DENIED }.unsigned_abs()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The token in a header `Authorization`. Source: RFC 6750, section 2.1.
pub(super) fn bearer(header: &[u8]) -> Option<&str> {
    let (scheme, token) = std::str::from_utf8(header).ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[async_trait]
impl Reviewer for Cluster {
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, Error> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.0.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let status = answer.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }

    async fn allowed(&self, user: &UserInfo) -> Result<bool, Error> {
        let path = NonResourceAttributes {
            path: Some(METRICS_PATH.to_owned()),
            verb: Some("get".to_owned()),
        };
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(path),
            user: user.username.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.0.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}
