//! Runs the programs of simulated services while their services run.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wmco_core::names::{host as host_names, objects};
use wmco_core::protocol::ServiceRunState;
use wmco_core::text::chain;
use wmco_services::windows::{ServiceManager as _, ServiceName};

use super::daemon::Daemon;
use super::kubelet::Kubelet;
use super::shared::Shared;

/// Exit code of a program that could not start.
const FAILED: u32 = 1;

/// A service's program that is simulated.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Program {
    Daemon,
    Kubelet,
}

impl Program {
    const ALL: [Self; 2] = [Self::Daemon, Self::Kubelet];

    fn service(self) -> Option<ServiceName> {
        let name = match self {
            Self::Daemon => objects::WICD,
            Self::Kubelet => host_names::KUBELET_SERVICE,
        };
        name.parse().ok()
    }

    /// Runs until stopped or failed.
    async fn run(self, host: &Arc<Shared>, command: &str, stop: &CancellationToken) -> Outcome {
        match self {
            Self::Daemon => {
                let daemon = Daemon::start(&host.model, command)?;
                stop.run_until_cancelled(daemon.run(host)).await;
            }
            Self::Kubelet => {
                let kubelet = Kubelet::start(&host.model, command)?;
                let ended = stop.run_until_cancelled(Box::pin(kubelet.run(host))).await;
                kubelet.leave(host).await;
                ended.transpose()?;
            }
        }
        Ok(())
    }
}

/// An error if the program failed; otherwise it was stopped.
type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The running programs.
pub(super) struct Programs {
    host: Arc<Shared>,
    running: BTreeMap<Program, Process>,
}

struct Process {
    id: u32,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Programs {
    pub(super) fn new(host: Arc<Shared>) -> Self {
        Self { host, running: BTreeMap::new() }
    }

    /// Starts and ends programs so that they match the services' processes.
    pub(super) fn follow(&mut self) {
        for program in Program::ALL {
            let Some(name) = program.service() else { continue };
            let service = self.host.model.query(&name).ok().flatten();
            let service = service.filter(|service| service.state == ServiceRunState::Running);
            let wanted =
                service.and_then(|service| Some((service.process?, service.config.command)));
            if self.running.get(&program).map(|process| process.id)
                == wanted.as_ref().map(|(id, _)| *id)
            {
                continue;
            }
            let before = self.running.remove(&program).map(|process| {
                process.stop.cancel();
                process.task
            });
            if let Some((id, command)) = wanted {
                let stop = self.host.power().child_token();
                let process =
                    live(Arc::clone(&self.host), program, name, command, stop.clone(), before);
                let task = self.host.tasks.spawn(process);
                self.running.insert(program, Process { id, stop, task });
            }
        }
    }
}

/// Runs a process from its start to its end, after the previous process of the program.
async fn live(
    host: Arc<Shared>,
    program: Program,
    name: ServiceName,
    command: String,
    stop: CancellationToken,
    before: Option<JoinHandle<()>>,
) {
    if let Some(before) = before {
        // Its result does not matter, only its end.
        let _ = before.await;
    }
    if let Err(error) = Box::pin(program.run(&host, &command, &stop)).await {
        tracing::warn!(service = %name, error = chain(&*error), "a simulated program failed");
        if !stop.is_cancelled() {
            fail(&host, &name);
        }
    }
}

/// Makes the service fail, and restart after the delay of its recovery actions.
fn fail(host: &Arc<Shared>, name: &ServiceName) {
    let delay = host.model.crash(name, FAILED);
    if let Some(delay) = delay.and_then(|delay| delay.try_into().ok()) {
        let (again, name, power) = (Arc::clone(host), name.clone(), host.power());
        let restart = async move {
            tokio::time::sleep(delay).await;
            again.model.recover(&name);
        };
        host.tasks.spawn(power.run_until_cancelled_owned(restart));
    }
}
