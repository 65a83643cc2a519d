//! Where things go wrong: before and after every single effect.

use std::collections::BTreeMap;

use jiff::Timestamp;
use wmco_core::node::AttemptedStep;

/// Why an effect did not come about, or nobody heard that it did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stop {
    /// The operator died.
    Crash,
    /// The action failed.
    Fail,
    /// Nobody knows yet what came of it.
    Pending,
}

/// Counts down to the next crash and to the next failure; and what is out of order until people see to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) crash_in: Option<u32>,
    pub(crate) fail_in: Option<u32>,
    /// Whether no kubelet reaches the API.
    pub(crate) kubelets_cut: bool,
    /// How many seconds requests last that take slots.
    pub(crate) slots_last: Option<u8>,
    /// What fails each time.
    pub(crate) stuck: Option<Stuck>,
}

/// A kind of step that fails each time, with when it was tried.
#[derive(Clone, Debug)]
pub(crate) struct Stuck {
    /// The verb of its action.
    pub(crate) verb: &'static str,
    /// By instance, since it was last asked for something else.
    pub(crate) tried: BTreeMap<String, Vec<Timestamp>>,
    /// The same of what was asked for before.
    pub(crate) before: Vec<(String, Vec<Timestamp>)>,
}

impl Faults {
    /// Passed before and after each effect.
    pub(crate) fn pass(&mut self) -> Result<(), Stop> {
        if due(&mut self.crash_in) {
            return Err(Stop::Crash);
        }
        if due(&mut self.fail_in) {
            return Err(Stop::Fail);
        }
        Ok(())
    }

    /// An instance is asked for something else.
    pub(crate) fn asked_otherwise(&mut self, instance: &str) {
        if let Some(stuck) = &mut self.stuck {
            stuck.before.extend(stuck.tried.remove_entry(instance));
        }
    }

    /// Fails a step of the kind that is out of order.
    pub(crate) fn stuck(
        &mut self,
        attempt: &AttemptedStep,
        instance: &str,
        now: Timestamp,
    ) -> Result<(), Stop> {
        let AttemptedStep::Step(step) = attempt else { return Ok(()) };
        let verb = step.split(' ').next();
        let Some(stuck) = self.stuck.as_mut().filter(|stuck| Some(stuck.verb) == verb) else {
            return Ok(());
        };
        stuck.tried.entry(instance.to_owned()).or_default().push(now);
        Err(Stop::Fail)
    }
}

fn due(left: &mut Option<u32>) -> bool {
    match left {
        None => false,
        Some(0) => {
            *left = None;
            true
        }
        Some(n) => {
            *n -= 1;
            false
        }
    }
}
