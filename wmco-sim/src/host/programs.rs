//! Runs the programs of services that do something here, as long as their services run.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wmco_core::names::host as names;
use wmco_core::protocol::ServiceRunState;
use wmco_services::windows::{ServiceManager as _, ServiceName};

use super::kubelet;
use super::shared::Shared;

/// Exit code of a program that could not start.
const FAILED: u32 = 1;

/// A program that does something.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Program {
    Kubelet,
}

impl Program {
    const ALL: [Self; 1] = [Self::Kubelet];

    fn service(self) -> Option<ServiceName> {
        let name = match self {
            Self::Kubelet => names::KUBELET_SERVICE,
        };
        name.parse().ok()
    }

    /// Returns when the program cannot go on; its service then fails.
    async fn run(self, host: &Shared, command: &str) {
        let Err(error) = match self {
            Self::Kubelet => kubelet::run(host, command).await.map_err(|error| error.to_string()),
        };
        tracing::warn!(program = ?self, error, "a simulated program ended");
    }

    /// What others notice when the program is gone.
    async fn leave(self, host: &Shared, command: &str) {
        match self {
            Self::Kubelet => kubelet::leave(host, command).await,
        }
    }
}

/// The programs that run.
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

/// One process, from its start to the traces that it leaves.
async fn live(
    host: Arc<Shared>,
    program: Program,
    name: ServiceName,
    command: String,
    stop: CancellationToken,
    before: Option<JoinHandle<()>>,
) {
    if let Some(before) = before {
        // Whether it ended well does not matter, only that it is gone.
        let _ = before.await;
    }
    if stop.run_until_cancelled(Box::pin(program.run(&host, &command))).await.is_some() {
        fail(&host, &name);
    }
    program.leave(&host, &command).await;
}

/// Lets the service fail, and restart if it is configured so.
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
