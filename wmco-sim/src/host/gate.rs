//! Prevents a program from changing the machine after its service has stopped.
//!
//! On Windows, the stop of a service returns when its process is gone. Here the program is a task or a thread that
//! stops a little later, so it works behind a gate, at which a stop waits.

use std::sync::{Mutex, PoisonError};

use wmco_core::names::{host, objects};
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::{FakeEvent, FakeWindows};
use wmco_services::windows::{ServiceManager as _, ServiceName};

/// The gate of one service.
#[derive(Debug)]
pub(super) struct Gate {
    service: &'static str,
    busy: Mutex<()>,
}

/// The gates of all services with simulated programs.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) daemon: Gate,
    pub(super) kubelet: Gate,
}

impl Default for Gates {
    fn default() -> Self {
        let gate = |service| Gate { service, busy: Mutex::new(()) };
        Self { daemon: gate(objects::WICD), kubelet: gate(host::KUBELET_SERVICE) }
    }
}

impl Gate {
    /// Runs `work` if the service runs; a stop of the service waits for its end. `work` must not stop the service
    /// itself.
    pub(super) fn enter<T>(&self, model: &FakeWindows, work: impl FnOnce() -> T) -> Option<T> {
        let _busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let name: ServiceName = self.service.parse().ok()?;
        let service = model.query(&name).ok()??;
        (service.state == ServiceRunState::Running).then(work)
    }
}

impl Gates {
    /// Waits for the end of work behind the gate of a service that has just stopped.
    pub(super) fn observe(&self, event: &FakeEvent) {
        let FakeEvent::ServiceChanged { name, state: ServiceRunState::Stopped, .. } = event else {
            return;
        };
        for gate in [&self.daemon, &self.kubelet] {
            if name.as_str().eq_ignore_ascii_case(gate.service) {
                drop(gate.busy.lock());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use wmco_core::limits;
    use wmco_services::windows::{ServiceConfig, StartType, Wait};

    use super::*;

    fn model() -> (FakeWindows, ServiceName) {
        let (model, name) = (FakeWindows::new("winhost"), host::KUBELET_SERVICE.parse().unwrap());
        let config = ServiceConfig {
            command: "kubelet".to_owned(),
            description: String::new(),
            dependencies: Vec::new(),
            start: StartType::Manual,
            recovery: None,
        };
        model.add_service(&name, &config, ServiceRunState::Running);
        (model, name)
    }

    #[test]
    fn who_stops_a_service_waits_for_its_work() {
        let (model, name) = model();
        let gates = Arc::new(Gates::default());
        let observer = Arc::clone(&gates);
        model.observe(move |event| observer.observe(event));
        let (entered, wait) = mpsc::channel();
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                gates.kubelet.enter(&model, || {
                    entered.send(()).unwrap();
                    // Until the service counts as stopped, which is before the stop returns.
                    while model.query(&name).unwrap().unwrap().state == ServiceRunState::Running {
                        std::thread::yield_now();
                    }
                    done.store(true, Ordering::SeqCst);
                });
            });
            wait.recv().unwrap();
            model.stop(&name, Wait::at_most(limits::SERVICE_STOP)).unwrap();
            assert!(done.load(Ordering::SeqCst));
        });
        assert_eq!(gates.kubelet.enter(&model, || ()), None);
    }
}
