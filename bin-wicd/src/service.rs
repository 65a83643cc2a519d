//! The reports of a Windows service to the Service Control Manager, without Windows.
//!
//! Source: `docs/contract/wicd.md`, WICD23 and WICD24.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wmco_services::limits;

/// How the work ended; what went wrong is already logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It was told to stop.
    Stopped,
    /// It could not go on.
    Failed,
}

/// Signals between the work and its caller.
pub struct Signals {
    /// Cancelled: the work ends soon.
    pub stop: CancellationToken,
    /// To be called by the work when it does what it is for; more calls do no harm.
    pub ready: Box<dyn Fn() + Send + Sync>,
    /// To be called by the work as long as it begins or ends, at the start, after the order to stop, and
    /// after every [`REPORT`] as long as the last call said `true`.
    pub goes_on: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Signals {
    /// Reports that the work continues, as long as reports are wanted. Never ends.
    pub async fn report(&self) {
        loop {
            while (self.goes_on)() {
                tokio::time::sleep(REPORT).await;
            }
            if self.stop.is_cancelled() {
                return std::future::pending().await;
            }
            self.stop.cancelled().await;
        }
    }
}

/// Work that ends when its signals say so.
pub type Work = Box<dyn FnOnce(Signals) -> Outcome + Send>;

/// Pause between two reports while the service starts or stops.
pub const REPORT: Duration = Duration::from_secs(1);

/// Within this time after a report of something pending the manager expects the next.
const WAIT_HINT: Duration = Duration::from_secs(10);

/// Code that the manager shows when the work could not go on.
const FAILED: u32 = 1;

/// Something that happens during the work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Windows wants the service to end.
    Stop,
    /// The work does what it is for.
    Ready,
    /// The work is over.
    Over(Outcome),
    /// [`REPORT`] has passed and nothing happened.
    Nothing,
}

/// State of the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// It does not do yet what it is for.
    Starting,
    /// It does.
    Running,
    /// It ends.
    Stopping,
    /// It has ended, well or with this code of its own.
    Stopped(Option<u32>),
}

/// A status report to the service manager.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Report {
    /// The state.
    pub state: State,
    /// Rises while the state is the same and there is progress.
    pub checkpoint: u32,
    /// Within this time the next report comes.
    pub wait_hint: Duration,
    /// Whether the service can be told to stop.
    pub accepts_stop: bool,
}

/// The reaction to an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reaction {
    /// To be reported, if anything.
    pub report: Option<Report>,
    /// Whether the work is to be told to stop.
    pub cancel: bool,
}

/// The conversation with the manager: starting until the work is ready or has had its time, stopping
/// until it is over or has had its time.
#[derive(Debug)]
pub struct Protocol {
    state: State,
    checkpoint: u32,
    /// End of what is pending, since the start of the process.
    until: Duration,
}

impl Protocol {
    /// Begins to start at `now`, a time since any fixed moment.
    pub fn begin(now: Duration) -> (Self, Report) {
        let until = now + limits::DAEMON_START.unsigned_abs();
        let mut protocol = Self { state: State::Starting, checkpoint: 0, until };
        let report = protocol.report(State::Starting);
        (protocol, report)
    }

    /// Whether all is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Stopped(_))
    }

    /// Whether it starts or stops, of which the manager wants to hear again and again.
    pub const fn is_pending(&self) -> bool {
        matches!(self.state, State::Starting | State::Stopping)
    }

    /// Returns the reaction to `event` at `now`.
    pub fn on(&mut self, event: Event, now: Duration) -> Reaction {
        let late = now >= self.until;
        let state = match (self.state, event) {
            (State::Stopped(_), _)
            | (State::Stopping, Event::Stop | Event::Ready)
            | (State::Running, Event::Ready | Event::Nothing) => None,
            (State::Stopping, Event::Over(_)) | (_, Event::Over(Outcome::Stopped)) => {
                Some(State::Stopped(None))
            }
            (_, Event::Over(Outcome::Failed)) => Some(State::Stopped(Some(FAILED))),
            (_, Event::Stop) => {
                self.until = now + limits::DAEMON_STOP.unsigned_abs();
                Some(State::Stopping)
            }
            (State::Starting, Event::Ready) => Some(State::Running),
            // It does not give up, and the manager, which waits for the start, should not wait for the cluster.
            (State::Starting, Event::Nothing) if late => Some(State::Running),
            // What is half done is found by the next start: every step may be repeated.
            (State::Stopping, Event::Nothing) if late => Some(State::Stopped(None)),
            (state @ (State::Starting | State::Stopping), Event::Nothing) => Some(state),
        };
        Reaction { report: state.map(|state| self.report(state)), cancel: event == Event::Stop }
    }

    fn report(&mut self, state: State) -> Report {
        let again = state == self.state;
        self.state = state;
        let pending = self.is_pending();
        self.checkpoint = match (pending, again) {
            (true, true) => self.checkpoint + 1,
            (true, false) => 1,
            (false, _) => 0,
        };
        Report {
            state,
            checkpoint: self.checkpoint,
            wait_hint: if pending { WAIT_HINT } else { Duration::ZERO },
            accepts_stop: matches!(state, State::Starting | State::Running),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// States and checkpoints that are reported for these events.
    fn run(events: &[(Event, u64)]) -> Vec<(State, u32)> {
        let (mut protocol, first) = Protocol::begin(s(0));
        let reports = events.iter().filter_map(|(event, at)| protocol.on(*event, s(*at)).report);
        std::iter::once(first).chain(reports).map(|r| (r.state, r.checkpoint)).collect()
    }

    #[test]
    fn a_start_is_pending_until_the_work_is_ready() {
        let seen = run(&[(Event::Nothing, 1), (Event::Nothing, 2), (Event::Ready, 2)]);
        let starting = State::Starting;
        assert_eq!(seen, [(starting, 1), (starting, 2), (starting, 3), (State::Running, 0)]);
    }

    #[test]
    fn a_start_that_waits_for_the_cluster_counts_as_running_in_the_end() {
        let seen = run(&[(Event::Nothing, 29), (Event::Nothing, 30), (Event::Nothing, 31)]);
        assert_eq!(seen.last(), Some(&(State::Running, 0)));
    }

    #[test]
    fn a_stop_is_pending_until_the_work_is_over() {
        let seen = run(&[
            (Event::Ready, 0),
            (Event::Stop, 5),
            (Event::Nothing, 6),
            (Event::Stop, 6),
            (Event::Over(Outcome::Stopped), 7),
        ]);
        let stopping = State::Stopping;
        let expected = [(stopping, 1), (stopping, 2), (State::Stopped(None), 0)];
        assert_eq!(seen.get(2..), Some(expected.as_slice()));
    }

    #[test]
    fn a_stop_has_its_limit() {
        let (mut protocol, _) = Protocol::begin(s(0));
        assert!(protocol.on(Event::Stop, s(5)).cancel);
        for at in 6..25 {
            protocol.on(Event::Nothing, s(at));
            // Being asked again does not give it more time.
            protocol.on(Event::Stop, s(at));
            assert!(!protocol.is_over(), "{at}");
        }
        protocol.on(Event::Nothing, s(25));
        assert!(protocol.is_over());
    }

    #[test]
    fn a_failure_is_told_with_a_code_so_that_the_service_is_restarted() {
        let seen = run(&[(Event::Over(Outcome::Failed), 1)]);
        assert_eq!(seen.last(), Some(&(State::Stopped(Some(1)), 0)));
        let seen = run(&[(Event::Ready, 1), (Event::Over(Outcome::Failed), 2)]);
        assert_eq!(seen.last(), Some(&(State::Stopped(Some(1)), 0)));
    }

    #[test]
    fn who_stops_it_does_not_get_it_restarted() {
        let seen = run(&[(Event::Stop, 1), (Event::Over(Outcome::Failed), 2)]);
        assert_eq!(seen.last(), Some(&(State::Stopped(None), 0)));
    }

    #[test]
    fn only_a_service_that_is_not_stopping_takes_orders() {
        let (mut protocol, first) = Protocol::begin(s(0));
        assert!(first.accepts_stop && first.wait_hint > REPORT);
        let running = protocol.on(Event::Ready, s(0)).report.unwrap();
        assert!(running.accepts_stop && running.wait_hint.is_zero());
        assert!(!protocol.on(Event::Stop, s(1)).report.unwrap().accepts_stop);
    }
}
