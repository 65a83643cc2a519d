//! The protocol of Windows services.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Instant;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    self, ServiceControlHandlerResult, ServiceStatusHandle,
};
use windows_service::{define_windows_service, service_dispatcher};
use wmco_core::names::objects;

use crate::service::{Event, Outcome, Protocol, REPORT, Report, Signals, State, Work};

/// What [`serve`] gets and gives; the dispatcher passes on nothing but text.
static WORK: Mutex<Option<Work>> = Mutex::new(None);
static OUTCOME: Mutex<Option<anyhow::Result<Outcome>>> = Mutex::new(None);

define_windows_service!(entered, service_main);

/// Does `work` as the service; returns when that has stopped.
pub(super) fn run(work: Work) -> anyhow::Result<Outcome> {
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
    service_dispatcher::start(objects::WICD, entered)
        .context("cannot run as a service, leave out --windows-service when starting by hand")?;
    let outcome = OUTCOME.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome.context("the service ended before it began, look at the Windows event log")?
}

fn service_main(_: Vec<OsString>) {
    let work = WORK.lock().unwrap_or_else(PoisonError::into_inner).take();
    let outcome = work.map(serve);
    *OUTCOME.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
}

fn tell(handle: ServiceStatusHandle, report: Report) {
    let (current_state, exit_code) = match report.state {
        State::Starting => (ServiceState::StartPending, ServiceExitCode::NO_ERROR),
        State::Running => (ServiceState::Running, ServiceExitCode::NO_ERROR),
        State::Stopping => (ServiceState::StopPending, ServiceExitCode::NO_ERROR),
        State::Stopped(None) => (ServiceState::Stopped, ServiceExitCode::NO_ERROR),
        State::Stopped(Some(code)) => {
            (ServiceState::Stopped, ServiceExitCode::ServiceSpecific(code))
        }
    };
    let controls_accepted = if report.accepts_stop {
        ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN
    } else {
        ServiceControlAccept::empty()
    };
    let status = ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state,
        controls_accepted,
        exit_code,
        checkpoint: report.checkpoint,
        wait_hint: report.wait_hint,
        process_id: None,
    };
    if let Err(error) = handle.set_service_status(status) {
        tracing::warn!(%error, "cannot report the state of the service");
    }
}

/// Does the work on a thread of its own and keeps Windows informed.
fn serve(work: Work) -> anyhow::Result<Outcome> {
    let (events, seen) = mpsc::channel();
    let controls = events.clone();
    let handle = service_control_handler::register(objects::WICD, move |control| match control {
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        ServiceControl::Stop | ServiceControl::Shutdown => {
            // Nobody listens when the service has just ended by itself.
            let _ = controls.send(Event::Stop);
            ServiceControlHandlerResult::NoError
        }
        _ => ServiceControlHandlerResult::NotImplemented,
    })
    .context("cannot register as a service")?;

    let clock = Instant::now();
    let (mut protocol, report) = Protocol::begin(clock.elapsed());
    tell(handle, report);
    let stop = CancellationToken::new();
    let ready = events.clone();
    let ready = Box::new(move || {
        // As above.
        let _ = ready.send(Event::Ready);
    });
    let signals = Signals { stop: stop.clone(), ready };
    std::thread::spawn(move || {
        // A thread that broke down would leave a service that never ends.
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| work(signals)));
        let outcome = outcome.unwrap_or(Outcome::Failed);
        // As above.
        let _ = events.send(Event::Over(outcome));
    });
    let mut outcome = Outcome::Stopped;
    while !protocol.is_over() {
        let event = match seen.recv_timeout(REPORT) {
            Ok(event) => event,
            Err(mpsc::RecvTimeoutError::Timeout) => Event::Nothing,
            // The handler keeps its end, so this does not happen.
            Err(mpsc::RecvTimeoutError::Disconnected) => Event::Over(Outcome::Failed),
        };
        if let Event::Over(how) = event {
            outcome = how;
        }
        let reaction = protocol.on(event, clock.elapsed());
        if reaction.cancel {
            stop.cancel();
        }
        if let Some(report) = reaction.report {
            tell(handle, report);
        }
    }
    Ok(outcome)
}
