//! The protocol of Windows services.

use std::ffi::OsString;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
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

use crate::service::{Event, Outcome, Protocol, Report, Signals, State, Work};

/// What [`service_main`] gets, and where it tells what came of that; the dispatcher passes on nothing
/// but text.
static WORK: Mutex<Option<(Work, Sender<anyhow::Result<Outcome>>)>> = Mutex::new(None);

define_windows_service!(entered, service_main);

fn take_work() -> Option<(Work, Sender<anyhow::Result<Outcome>>)> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Does `work` as the service; returns when that has stopped.
pub(super) fn run(work: Work) -> anyhow::Result<Outcome> {
    let (over, outcome) = mpsc::channel();
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some((work, over));
    service_dispatcher::start(objects::WICD, entered)
        .context("cannot run as a service, leave out --windows-service when starting by hand")?;
    // Else nobody would ever say that it did not begin.
    drop(take_work());
    outcome.recv().context("the service ended before it began, look at the Windows event log")?
}

fn service_main(_: Vec<OsString>) {
    if let Some((work, over)) = take_work() {
        // The dispatcher listens until the service has stopped.
        let _ = over.send(serve(work));
    }
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

/// The conversation with the Service Control Manager. Several threads carry it on, but none waits for
/// the next word only: an idle service sleeps.
struct Conversation {
    clock: Instant,
    stop: CancellationToken,
    /// `None` until the service is registered; reports wait until then.
    words: Mutex<Option<(Protocol, ServiceStatusHandle)>>,
}

impl Conversation {
    /// Does what follows from `event`; tells whether more is to be reported soon.
    fn on(&self, event: Event) -> bool {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((protocol, handle)) = words.as_mut() else { return false };
        let reaction = protocol.on(event, self.clock.elapsed());
        if let Some(report) = reaction.report {
            tell(*handle, report);
        }
        if reaction.cancel {
            self.stop.cancel();
        }
        protocol.is_pending()
    }
}

/// Does the work and keeps Windows informed.
fn serve(work: Work) -> anyhow::Result<Outcome> {
    let stop = CancellationToken::new();
    let service = Arc::new(Conversation {
        clock: Instant::now(),
        stop: stop.clone(),
        words: Mutex::default(),
    });
    {
        let mut words = service.words.lock().unwrap_or_else(PoisonError::into_inner);
        let told = Arc::clone(&service);
        let handle =
            service_control_handler::register(objects::WICD, move |control| match control {
                ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
                ServiceControl::Stop | ServiceControl::Shutdown => {
                    told.on(Event::Stop);
                    ServiceControlHandlerResult::NoError
                }
                _ => ServiceControlHandlerResult::NotImplemented,
            })
            .context("cannot register as a service")?;
        let (protocol, report) = Protocol::begin(service.clock.elapsed());
        tell(handle, report);
        *words = Some((protocol, handle));
    }
    let (ready, goes_on) = (Arc::clone(&service), Arc::clone(&service));
    let signals = Signals {
        stop,
        ready: Box::new(move || {
            ready.on(Event::Ready);
        }),
        goes_on: Box::new(move || goes_on.on(Event::Nothing)),
    };
    // A panic ends the process here, in every build. Windows takes that for a crash and restarts it.
    let outcome = work(signals);
    service.on(Event::Over(outcome));
    Ok(outcome)
}
