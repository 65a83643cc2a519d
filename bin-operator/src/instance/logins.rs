//! Learns from logins which keys hosts let in.

use wmco_core::digest::Sha256;
use wmco_core::fleet::{LoginResult, LoginTry};
use wmco_core::host_record::RecordChange;
use wmco_core::login_keys::LoginKeys;
use wmco_core::node::{InstanceInputs, Outcome};
use wmco_ssh::{ConnectError, HostAgent as _, Lease, Retry, SshHost};

use super::error::StepError;
use super::executor::{Executor, Turn};

impl Executor {
    /// Notes what came of a login, unless it tells nothing of the host's keys.
    pub(super) fn note_login(&self, instance: &InstanceInputs, connected: Result<&(), &StepError>) {
        let Ok(reach) = &instance.reach else { return };
        let result = match connected {
            Ok(()) => LoginResult::Accepted,
            Err(StepError::LoginRefused { .. }) => LoginResult::Refused,
            Err(StepError::Connect(error)) if error.retry() == Retry::Helps => {
                LoginResult::Unanswered
            }
            Err(_) => return,
        };
        let login = LoginTry { at: reach.address, keys: LoginKeys::id(&instance.keys) };
        self.host_reports.logged_in(&instance.address, login, result);
    }

    /// Corrects the record of a host that let in another key than it says.
    pub(super) async fn note_accepted(
        &self,
        host: &SshHost,
        turn: &Turn<'_>,
    ) -> Result<(), StepError> {
        let instance = &turn.inputs.instance;
        let accepted = host.session().accepted_key().hash();
        self.correct(instance, instance.disproved_by(&instance.keys, Some(accepted))).await
    }

    /// Logs in with one key alone, by a connection of its own.
    pub(super) async fn prove_key(
        &self,
        key: Sha256,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, StepError> {
        let login = match self.log_in_with(key, turn).await? {
            Ok(login) => login,
            Err(refusal) => {
                let instance = &turn.inputs.instance;
                self.correct(instance, instance.disproved_by(&[key], None)).await?;
                return Err(StepError::NextKeyRefused { refusal });
            }
        };
        let (_, reach) = turn.inputs.route()?;
        self.pin_keys(reach, &login, turn).await?;
        login.close().await;
        self.change_record(turn.address(), RecordChange::LetsIn(Some(key))).await?;
        Ok(Outcome::KeyProven(key))
    }

    /// The same with a key that was taken off the host.
    pub(super) async fn prove_key_removed(
        &self,
        key: Sha256,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, StepError> {
        if let Ok(login) = self.log_in_with(key, turn).await? {
            login.close().await;
            return Err(StepError::RemovedKeyLetIn);
        }
        self.change_record(turn.address(), RecordChange::KeyRemoved(key)).await?;
        Ok(Outcome::KeyRemovalProven(key))
    }

    /// A connection for which nothing but this key was offered, or the host's refusal.
    async fn log_in_with(
        &self,
        key: Sha256,
        turn: &mut Turn<'_>,
    ) -> Result<Result<Lease, ConnectError>, StepError> {
        let (route, reach) = turn.inputs.route_with(&[key])?;
        turn.link.close().await;
        // Boxed: the future of a handshake is large, and it is rare.
        match Box::pin(self.pool.lease(&route)).await {
            Ok(login) => Ok(Ok(login)),
            Err(error) => match StepError::connect(error, &route, reach, &turn.inputs.keys) {
                StepError::LoginRefused { refusal, .. } => Ok(Err(refusal)),
                other => Err(other),
            },
        }
    }

    async fn correct(
        &self,
        instance: &InstanceInputs,
        wrong: Option<RecordChange>,
    ) -> Result<(), StepError> {
        match wrong {
            Some(change) => self.change_record(&instance.address, change).await,
            None => Ok(()),
        }
    }
}
