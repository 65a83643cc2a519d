//! Which problems of the cluster a person is to hear of, and when: each once, and one that is expected
//! to go by itself only when it stays.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use wmco_core::fleet::{Notice, SlotWait, Topic};
use wmco_core::instances::OfMachine;
use wmco_core::limits;
use wmco_core::machines::Machines;
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
    /// What it is about, and whether other words about that are told; `None` if only the words tell.
    pub topic: Option<Topic>,
}

/// An object that people look at when something is wrong.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum About {
    /// The list of instances.
    Instances,
    /// A Machine.
    Machine(OfMachine),
    /// A Node, by its name.
    Node(String),
    /// A MachineSet.
    MachineSet {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
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
            Self::Instances | Self::Machine(_) | Self::MachineSet { .. } => {
                "instances cannot be configured"
            }
            Self::Node(_) => "work on its host waits",
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
pub struct Problems(BTreeMap<Identity, State>);

/// What makes two problems of two passes the same one: reason, object, and topic or else the words.
type Identity = (&'static str, About, String);

#[derive(Clone, Debug)]
enum State {
    ToTell(Instant),
    Told { at: Instant, text: String },
}

impl From<String> for Problem {
    /// Something that is wrong with instances.
    fn from(text: String) -> Self {
        Self { text, reason: events::INSTANCE_SETUP_FAILURE, about: About::Instances, topic: None }
    }
}

impl Problem {
    /// A setting of the cluster that hosts cannot follow.
    pub fn of_settings(text: String) -> Self {
        Self { text, reason: events::SETTING_NOT_APPLIED, about: About::Settings, topic: None }
    }

    /// A notice about the whole fleet, on the Machine or MachineSet that it is about if that is one of `machines`.
    pub fn of_notice(notice: &Notice, machines: &Machines) -> Self {
        let set = notice.machine_set().and_then(|name| machines.set(name));
        let machine = notice.machine().and_then(|name| machines.get(name));
        let about = if let Some(set) = set {
            About::MachineSet { name: set.name.clone(), uid: set.uid.clone() }
        } else {
            machine.map_or(About::Instances, |it| About::Machine(it.identity()))
        };
        Self { text: notice.to_string(), reason: notice.reason(), about, topic: notice.topic() }
    }

    /// Whether it only asks for the next step of what goes well.
    pub fn is_good_news(&self) -> bool {
        self.reason == events::KEY_EXCHANGED
    }

    /// What its Events are counted by, beside the object that they are recorded on.
    pub fn subject(&self) -> &str {
        match &self.topic {
            Some(Topic::Always(topic) | Topic::Once(topic) | Topic::Retold(topic)) => topic,
            None => self.reason,
        }
    }

    fn identity(&self) -> Identity {
        let topic = match &self.topic {
            Some(Topic::Retold(topic) | Topic::Once(topic)) => topic,
            Some(Topic::Always(_)) | None => &self.text,
        };
        (self.reason, self.about.clone(), topic.clone())
    }

    /// Whether it is to be told again, after `text` was told.
    fn is_news_after(&self, text: &str) -> bool {
        match self.topic {
            Some(Topic::Retold(_)) => self.text != text,
            Some(Topic::Always(_) | Topic::Once(_)) | None => false,
        }
    }
}

impl From<&SlotWait> for Problem {
    fn from(wait: &SlotWait) -> Self {
        Self {
            text: wait.to_string(),
            reason: events::SLOT_AWAITED,
            about: About::Node(wait.node.clone()),
            topic: Some(Topic::Once(wait.since.to_string())),
        }
    }
}

impl From<&RegistryNotice> for Problem {
    fn from(notice: &RegistryNotice) -> Self {
        let reason =
            if notice.serious { events::REGISTRY_NOT_APPLIED } else { events::REGISTRY_WARNING };
        let about = About::Registries(notice.object.clone());
        Self { text: notice.text.clone(), reason, about, topic: None }
    }
}

impl Problems {
    /// Takes what a pass at `now` found, and returns what to tell. A problem that went and came back
    /// is a new one. One whose words have changed is told again after a while, if its topic says so.
    pub fn update(&mut self, found: &Found, now: Instant) -> Vec<Problem> {
        let mut before = std::mem::take(&mut self.0);
        let mut due = Vec::new();
        for (problem, patience) in found {
            let identity = problem.identity();
            let mut state = before.remove(&identity).unwrap_or(State::ToTell(now + *patience));
            if let State::Told { at, text } = &state
                && problem.is_news_after(text)
            {
                state = State::ToTell(*at + limits::PROBLEM_AGAIN.unsigned_abs());
            }
            if matches!(state, State::ToTell(at) if at <= now) {
                state = State::Told { at: now, text: problem.text.clone() };
                due.push(problem.clone());
            }
            self.0.insert(identity, state);
        }
        due
    }

    /// When the next one is to be told, if it is still there then.
    pub fn next(&self) -> Option<Instant> {
        let to_tell = self.0.values().filter_map(|state| match state {
            State::ToTell(at) => Some(*at),
            State::Told { .. } => None,
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

    #[test]
    fn words_that_change_are_told_again_after_a_while_and_only_the_last() {
        let mut problems = Problems::default();
        let (begun, again) = (Instant::now(), limits::PROBLEM_AGAIN.unsigned_abs());
        let mut told = |count: u32, after: Duration| {
            let topic = Some(Topic::Retold("machines of a set".to_owned()));
            let problem = Problem { topic, ..Problem::from(format!("{count} machines")) };
            let found = [(problem, Duration::ZERO)].into();
            texts(problems.update(&found, begun + after))
        };
        assert_eq!(told(1, Duration::ZERO), ["1 machines"]);
        for count in 2..2_000 {
            assert!(told(count, again * count / 2_001).is_empty());
        }
        assert_eq!(told(2_000, again), ["2000 machines"]);
        assert!(told(2_000, 3 * again).is_empty());
        assert_eq!(told(1_999, 3 * again), ["1999 machines"]);
    }

    /// Nodes that wait for their turn, while one after the other has it.
    #[test]
    fn words_that_change_are_told_once_where_the_first_are_enough() {
        let mut problems = Problems::default();
        let begun = Instant::now();
        let mut told = |holder: u32, minutes: u64| {
            let topic = Some(Topic::Once("slots".to_owned()));
            let problem = Problem { topic, ..Problem::from(format!("node {holder} holds it")) };
            let found = [(problem, PATIENCE)].into();
            texts(problems.update(&found, begun + Duration::from_secs(60 * minutes)))
        };
        assert!(told(0, 0).is_empty());
        assert_eq!(told(1, 1), ["node 1 holds it"]);
        for holder in 2..200 {
            assert!(told(holder, 10 * u64::from(holder)).is_empty());
        }
    }
}
