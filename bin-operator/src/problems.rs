//! Which problems of the cluster a person is to hear of, and when: each once, and one that is expected
//! to go by itself only when it stays.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use wmco_core::instances::OfMachine;
use wmco_core::names::events;
use wmco_core::registries::{ClusterObject, RegistryNotice};

/// The problems of one pass, and how long each may last before it is reported.
pub type Found = BTreeMap<Problem, Duration>;

/// Something that is wrong.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Problem {
    /// The problem, and what to do about it.
    pub text: String,
    /// Reason of the Event that reports it.
    pub reason: &'static str,
    /// The object that the Event is recorded on.
    pub about: About,
}

/// An object that people look at when something is wrong.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum About {
    /// The list of instances.
    Instances,
    /// A Machine.
    Machine(OfMachine),
    /// The same: the cluster is not fit for Windows nodes.
    Cluster,
    /// The list of instances, for want of a better place: a setting of the cluster that hosts cannot follow.
    Settings,
    /// A mirror set, the settings for images or the pull secret.
    Registries(ClusterObject),
    /// Our OperatorCondition, by its name.
    OperatorCondition(String),
    /// The operator's namespace.
    Namespace,
}

impl About {
    /// What it means for instances, for the log.
    pub const fn consequence(&self) -> &'static str {
        match self {
            Self::Instances | Self::Machine(_) => "instances cannot be configured",
            Self::Cluster => "the cluster is not as windows nodes need it",
            Self::Settings => "windows nodes differ from what the cluster asks for",
            Self::Registries(_) => "windows nodes pull images in another way than the cluster says",
            Self::OperatorCondition(_) => "nobody knows whether an upgrade is safe",
            Self::Namespace => "nodes are monitored as before",
        }
    }
}

/// The problems so far.
#[derive(Debug, Default)]
pub struct Problems(BTreeMap<Problem, State>);

#[derive(Clone, Copy, Debug)]
enum State {
    ToTell(Instant),
    Told,
}

impl From<String> for Problem {
    /// Something that is wrong with instances.
    fn from(text: String) -> Self {
        Self { text, reason: events::INSTANCE_SETUP_FAILURE, about: About::Instances }
    }
}

impl Problem {
    /// A setting of the cluster that hosts cannot follow.
    pub fn of_settings(text: String) -> Self {
        Self { text, reason: events::SETTING_NOT_APPLIED, about: About::Settings }
    }
}

impl From<&RegistryNotice> for Problem {
    fn from(notice: &RegistryNotice) -> Self {
        let reason =
            if notice.serious { events::REGISTRY_NOT_APPLIED } else { events::REGISTRY_WARNING };
        let about = About::Registries(notice.object.clone());
        Self { text: notice.text.clone(), reason, about }
    }
}

impl Problems {
    /// Takes what a pass at `now` found, and returns what to tell. A problem that went and came back
    /// is a new one.
    pub fn update(&mut self, found: &Found, now: Instant) -> Vec<Problem> {
        self.0.retain(|problem, _| found.contains_key(problem));
        let mut due = Vec::new();
        for (problem, patience) in found {
            let state = self.0.entry(problem.clone()).or_insert(State::ToTell(now + *patience));
            if matches!(state, State::ToTell(at) if *at <= now) {
                *state = State::Told;
                due.push(problem.clone());
            }
        }
        due
    }

    /// When the next one is to be told, if it is still there then.
    pub fn next(&self) -> Option<Instant> {
        let to_tell = self.0.values().filter_map(|state| match state {
            State::ToTell(at) => Some(*at),
            State::Told => None,
        });
        to_tell.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn found(problems: &[(&str, Duration)]) -> Found {
        let problem = |text: &str| Problem::from(text.to_owned());
        problems.iter().map(|(text, patience)| (problem(text), *patience)).collect()
    }

    fn texts(problems: Vec<Problem>) -> Vec<String> {
        problems.into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn a_lasting_problem_is_told_once() {
        let mut problems = Problems::default();
        let now = Instant::now();
        let wrong = found(&[("bad entry", Duration::ZERO)]);
        assert_eq!(texts(problems.update(&wrong, now)), ["bad entry"]);
        assert!(problems.update(&wrong, now + PATIENCE).is_empty());
        assert_eq!(problems.next(), None);
    }

    #[test]
    fn a_problem_that_comes_back_is_told_again() {
        let mut problems = Problems::default();
        let now = Instant::now();
        let wrong = found(&[("bad entry", Duration::ZERO)]);
        assert_eq!(texts(problems.update(&wrong, now)), ["bad entry"]);
        assert!(problems.update(&Found::new(), now).is_empty());
        assert_eq!(texts(problems.update(&wrong, now)), ["bad entry"]);
    }

    #[test]
    fn what_goes_in_time_is_never_told() {
        let mut problems = Problems::default();
        let now = Instant::now();
        assert!(problems.update(&found(&[("no token", PATIENCE)]), now).is_empty());
        assert_eq!(problems.next(), Some(now + PATIENCE));
        assert!(problems.update(&Found::new(), now + PATIENCE).is_empty());
        assert_eq!(problems.next(), None);
    }

    #[test]
    fn what_does_not_go_in_time_is_told() {
        let mut problems = Problems::default();
        let now = Instant::now();
        let wrong = found(&[("no token", PATIENCE)]);
        assert!(problems.update(&wrong, now).is_empty());
        assert!(problems.update(&wrong, now + PATIENCE / 2).is_empty());
        assert_eq!(texts(problems.update(&wrong, now + PATIENCE)), ["no token"]);
    }
}
