//! Failed steps for the operator's own objects: when they are tried again, and how they are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use wmco_core::cluster::{Action, Because, Step};
use wmco_core::fleet::Topic;
use wmco_core::limits;
use wmco_core::names::{events, objects};

use crate::backoff::Backoff;
use crate::problems::{Found, Problem, Problems};

/// A step that is taken.
pub(super) struct Attempt {
    /// The object.
    pub(super) object: String,
    /// What it does, and why.
    pub(super) text: String,
    /// Whether what it is about is there and somebody wrote something else into it.
    pub(super) puts_right: bool,
    /// What to do where the operator has no right to do it.
    rights: &'static str,
}

/// What failed and was not done since.
#[derive(Default)]
pub(super) struct Failures {
    /// By what was to be done.
    all: BTreeMap<String, Failure>,
    /// What this pass was to do.
    met: BTreeSet<String>,
    /// What this pass found wrong that no attempt of ours can mend.
    found: Vec<Problem>,
    problems: Problems,
}

#[derive(Default)]
struct Failure {
    retry_at: Option<Instant>,
    backoff: Backoff,
    error: String,
    /// What to tell, unless others do.
    problem: Option<Problem>,
}

impl Attempt {
    pub(super) fn of(step: &Step, namespace: &str) -> Self {
        let rights = match &step.action {
            Action::CreateUserData { namespace, .. }
            | Action::ChangeUserData { namespace, .. }
            | Action::ReplaceUserData { namespace, .. }
                if namespace == objects::CLUSTER_API_NAMESPACE =>
            {
                "add the component `cluster-api` to the operator's deployment and apply it again"
            }
            _ => "apply the rights in the operator's deployment again",
        };
        let puts_right = !matches!(step.because, Because::Missing | Because::Outdated);
        let object = step.action.object(namespace).to_string();
        Self { object, text: step.to_string(), puts_right, rights }
    }
}

impl Failures {
    /// Whether a step failed a moment ago, so that it is not taken yet.
    pub(super) fn rests(&mut self, step: &Step, now: Instant) -> bool {
        let text = step.to_string();
        let rests = self.all.get(&text).and_then(|failure| failure.retry_at);
        let rests = rests.is_some_and(|retry_at| now < retry_at);
        if rests {
            self.met.insert(text);
        }
        rests
    }

    /// There is no plan for these objects. The fleet itself reports inputs that it needs, too.
    pub(super) fn no_plan(&mut self, objects: &str, error: &anyhow::Error, now: Instant) {
        self.note(objects, crate::chain(error.as_ref()), None, now);
    }

    /// A step failed.
    pub(super) fn failed(&mut self, attempt: &Attempt, error: &anyhow::Error, now: Instant) {
        let (code, error) = match error.downcast_ref() {
            Some(kube::Error::Api(status)) => (status.code, status.message.clone()),
            _ => (0, crate::chain(error.as_ref())),
        };
        let rights = if code == 403 { attempt.rights } else { "it is tried again" };
        // What to do comes first: Events are cut.
        let text = format!("cannot {}; {rights}: {error}", attempt.text);
        let (reason, topic) = (events::OWNED_OBJECT_FAILURE, Topic::Always(attempt.object.clone()));
        let problem = Problem { reason, topic: Some(topic), ..Problem::from(text) };
        self.note(&attempt.text, error, Some(problem), now);
    }

    /// Something is wrong that people have to put right.
    pub(super) fn found(&mut self, problem: Problem) {
        self.found.push(problem);
    }

    fn note(&mut self, what: &str, error: String, problem: Option<Problem>, now: Instant) {
        let failure = self.all.entry(what.to_owned()).or_default();
        if failure.error != error {
            tracing::warn!(what, error, "own objects not in order");
        }
        let retry_at = now + failure.backoff.next().exact;
        (failure.retry_at, failure.error, failure.problem) = (Some(retry_at), error, problem);
        self.met.insert(what.to_owned());
    }

    /// Forgets what this pass was not to do, or did, and returns what is to be told.
    pub(super) fn end_pass(&mut self, now: Instant) -> Vec<Problem> {
        let met = std::mem::take(&mut self.met);
        self.all.retain(|what, _| met.contains(what));
        let patience = limits::MISSING_OBJECT_PATIENCE.unsigned_abs();
        let problems = self.all.values().filter_map(|failure| failure.problem.clone());
        let mut found: Found = problems.map(|problem| (problem, patience)).collect();
        found.extend(self.found.drain(..).map(|problem| (problem, Duration::ZERO)));
        self.problems.update(&found, now)
    }

    /// When something is to be tried again, or told.
    pub(super) fn next(&self) -> Option<Instant> {
        let retries = self.all.values().filter_map(|failure| failure.retry_at);
        retries.chain(self.problems.next()).min()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use wmco_core::secret::Secret;

    use super::*;

    fn step(namespace: &str) -> Step {
        let action =
            Action::CreateUserData { namespace: namespace.to_owned(), text: Secret::new("text") };
        Step { action, because: Because::Missing }
    }

    fn forbidden() -> anyhow::Error {
        let status = kube::core::Status::failure("no right", "Forbidden").with_code(403);
        kube::Error::Api(status.boxed()).into()
    }

    /// Takes `step`, which fails, as soon as it may be, for so long; tells how often, and what was told.
    fn tries(step: &Step, error: fn() -> anyhow::Error, long: Duration) -> (usize, Vec<Problem>) {
        let (mut failures, begin) = (Failures::default(), Instant::now());
        let (mut now, mut tries, mut told) = (begin, 0, Vec::new());
        while now < begin + long {
            if !failures.rests(step, now) {
                failures.failed(&Attempt::of(step, "ns"), &error(), now);
                tries += 1;
            }
            told.extend(failures.end_pass(now));
            now = failures.next().unwrap().max(now + Duration::from_millis(1));
        }
        (tries, told)
    }

    #[test]
    fn what_fails_for_good_is_told_once_and_tried_every_minute_at_most() {
        let hour = Duration::from_secs(3600);
        let (tries, told) = tries(&step(objects::CLUSTER_API_NAMESPACE), forbidden, hour);
        assert!((60..=130).contains(&tries), "{tries}");
        let [problem] = told.as_slice() else { panic!("{told:#?}") };
        assert_eq!(problem.reason, events::OWNED_OBJECT_FAILURE);
        let text = &problem.text;
        assert!(text.contains("no right") && text.contains("component `cluster-api`"), "{text}");
    }

    #[test]
    fn what_to_do_is_told_of_rights_only_and_by_namespace() {
        let long = Duration::from_secs(20);
        let (_, told) = tries(&step(objects::MACHINE_API_NAMESPACE), forbidden, long);
        let text = &told[0].text;
        assert!(text.contains("rights") && !text.contains("cluster-api"), "{text}");
        let (_, told) = tries(&step(objects::MACHINE_API_NAMESPACE), || anyhow!("away"), long);
        assert!(!told[0].text.contains("rights"), "{told:#?}");
    }

    #[test]
    fn what_succeeds_after_a_moment_is_not_told_and_begins_anew() {
        let (mut failures, now, step) = (Failures::default(), Instant::now(), step("ns"));
        for _ in 0..5 {
            failures.failed(&Attempt::of(&step, "ns"), &anyhow!("away"), now);
            assert!(failures.rests(&step, now));
            assert_eq!(failures.end_pass(now), []);
        }
        let later = now + Duration::from_secs(60);
        assert!(!failures.rests(&step, later));
        assert_eq!(failures.end_pass(later), []);
        assert_eq!(failures.next(), None);
        failures.failed(&Attempt::of(&step, "ns"), &anyhow!("away"), later);
        assert!(!failures.rests(&step, later + limits::RETRY_FIRST.unsigned_abs()));
    }

    #[test]
    fn one_step_that_rests_holds_up_no_other() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        failures.failed(&Attempt::of(&step("one"), "ns"), &anyhow!("away"), now);
        failures.no_plan("services", &anyhow!("missing"), now);
        assert!(!failures.rests(&step("other"), now));
    }

    #[test]
    fn only_what_somebody_else_wrote_is_put_right() {
        let because = |because| Attempt::of(&Step { because, ..step("ns") }, "ns").puts_right;
        assert!(!because(Because::Missing) && !because(Because::Outdated));
        assert!(because(Because::OtherKeys) && because(Because::Type));
    }
}
