//! What a worker of an instance remembers between its plans, and what follows from what came of their steps.

use jiff::{SignedDuration, Timestamp};

use super::{
    Action, AttemptedStep, FailureKind, HostSeen, InstanceInputs, Memory, Next, Outcome, Plan,
    Rest, Setbacks, Wake,
};

/// The state of a worker. Its executor calls [`plan`](Self::plan) and carries out the steps until one fails. Of each it
/// tells that it [`connects`](Self::connects), that the step [`begins`](Self::begins), and that it
/// [`succeeded`](Self::succeeded) or [`failed`](Self::failed). Once all succeeded the plan is [`done`](Self::done). Then it
/// rests for the returned time, and tells with [`woken`](Self::woken) what ended the rest. Losing a state costs one probe.
///
/// ```
/// use jiff::{SignedDuration, Timestamp};
/// use wmco_core::node::{Action, FailureKind, WorkerState};
///
/// let (mut worker, now) = (WorkerState::default(), Timestamp::UNIX_EPOCH);
/// for seconds in [1, 2, 4] {
///     worker.connects();
///     let rest = worker.failed(FailureKind::Other, true, |pause| now + pause);
///     assert_eq!(rest.until, now + SignedDuration::from_secs(seconds));
/// }
/// worker.begins(&Action::Probe);
/// assert!(!worker.is_failing(), "the host was reached");
/// ```
#[derive(Clone, Debug, Default)]
pub struct WorkerState {
    memory: Memory,
    setbacks: Setbacks,
    /// What it tried last.
    tried: AttemptedStep,
}

impl WorkerState {
    /// The plan for now.
    pub fn plan(&mut self, inputs: &InstanceInputs, now: Timestamp) -> Plan {
        self.memory.plan(inputs, now)
    }

    /// The last observation of the host.
    pub fn host(&self) -> &HostSeen {
        self.memory.host()
    }

    /// Whether the last plan met another writer who undoes its corrections again and again; once for each time.
    pub fn meets_other_writer(&mut self) -> bool {
        self.memory.meets_other_writer()
    }

    /// Whether the instance claims a disruption slot; `None` if that is not known.
    pub fn claims_slot(&self, inputs: &InstanceInputs, now: Timestamp) -> Option<bool> {
        self.memory.claims_slot(inputs, now)
    }

    /// A connection is tried, which some step needs.
    pub fn connects(&mut self) {
        self.tried = AttemptedStep::Connect;
    }

    /// The connection is there, if the step needs one, and the step is tried.
    pub fn begins(&mut self, action: &Action) {
        if action.is_on_host() {
            self.setbacks.succeeded(&AttemptedStep::Connect);
        }
        self.tried = AttemptedStep::of(action);
    }

    /// The step succeeded.
    pub fn succeeded(&mut self, outcome: Outcome) {
        self.setbacks.succeeded(&self.tried);
        self.memory.learn(outcome);
    }

    /// What a step that failed shows of the host.
    pub fn saw(&mut self, host: HostSeen) {
        self.memory.learn(Outcome::Worked(host));
    }

    /// What was tried last failed. `retry_at` says when a pause is over. Returns the rest until then.
    pub fn failed(
        &mut self,
        kind: FailureKind,
        leaves_host_unknown: bool,
        retry_at: impl FnOnce(SignedDuration) -> Timestamp,
    ) -> Rest {
        let retry_at = retry_at(self.setbacks.failed(self.tried.clone(), kind));
        self.memory.failed(leaves_host_unknown.then_some(retry_at));
        Rest::after_failure(retry_at)
    }

    /// Whether something failed that has not succeeded since.
    pub fn is_failing(&self) -> bool {
        !self.setbacks.is_empty()
    }

    /// All steps of the plan were carried out. Returns the rest; `None` when the next plan follows at once.
    pub fn done(&mut self, plan: &Plan, now: Timestamp) -> Option<Rest> {
        if plan.next == Next::Settled {
            self.setbacks.clear();
        }
        self.memory.done(plan, now)
    }

    /// The rest is over.
    pub fn woken(&mut self, wake: Wake, now: Timestamp) {
        if wake == Wake::AskedOtherwise {
            self.setbacks.clear();
        }
        self.memory.woken(wake, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    type Change = fn(&mut WorkerState);

    fn pause(worker: &mut WorkerState) -> i64 {
        let rest = worker.failed(FailureKind::Other, false, |pause| NOW + pause);
        rest.until.duration_since(NOW).as_secs()
    }

    /// The third pause in a row is of four seconds.
    fn failing(action: &Action) -> WorkerState {
        let mut worker = WorkerState::default();
        worker.begins(action);
        assert_eq!([pause(&mut worker), pause(&mut worker)], [1, 2]);
        worker
    }

    #[test]
    fn pauses_begin_anew_once_nothing_is_left_of_what_failed() {
        let changes: [(Change, bool); 6] = [
            (|_| {}, false),
            (|worker| worker.succeeded(Outcome::Uploaded), true),
            (|worker| assert!(worker.done(&Plan::settled(), NOW).is_some()), true),
            (|worker| worker.woken(Wake::AskedOtherwise, NOW), true),
            (|worker| worker.woken(Wake::Deadline, NOW), false),
            (|worker| worker.begins(&Action::ListPods), false),
        ];
        for (number, (change, is_over)) in changes.into_iter().enumerate() {
            let mut worker = failing(&Action::ListPods);
            change(&mut worker);
            worker.begins(&Action::ListPods);
            assert_eq!(pause(&mut worker), if is_over { 1 } else { 4 }, "{number}");
        }
    }

    #[test]
    fn a_host_is_reached_once_a_step_on_it_begins() {
        for (action, is_reached) in [(Action::Probe, true), (Action::ListPods, false)] {
            let mut worker = WorkerState::default();
            worker.connects();
            assert_eq!(pause(&mut worker), 1);
            worker.begins(&action);
            assert_eq!(worker.is_failing(), !is_reached, "{action}");
        }
    }

    #[test]
    fn a_failure_forgets_the_host_only_if_it_leaves_it_unknown() {
        for is_unknown in [false, true] {
            let mut worker = WorkerState::default();
            worker.saw(HostSeen::NoAgent);
            worker.failed(FailureKind::Other, is_unknown, |pause| NOW + pause);
            assert_eq!(*worker.host() == HostSeen::NoAgent, !is_unknown);
        }
    }
}
