//! Learns from logins which keys hosts let in.

use tokio::time::Instant;
use wmco_core::digest::Sha256;
use wmco_core::fleet::{LoginResult, LoginTry};
use wmco_core::host_record::RecordChange;
use wmco_core::login_keys::LoginKeys;
use wmco_core::node::{InstanceInputs, Outcome};
use wmco_ssh::{ConnectError, HostAgent as _, Lease, SshHost};

use super::error::StepError;
use super::executor::{Executor, Turn};

/// What the attempt to connect tells of the host's keys: only a refusal by the host itself counts against it at any time,
/// and only a host that did not answer at all holds up an exchange of keys as one without an answer.
///
/// Source: `docs/contract/ssh.md`, SSH51.
fn evidence(connected: Result<&(), &StepError>) -> Option<LoginResult> {
    match connected {
        Ok(()) => Some(LoginResult::Accepted),
        Err(StepError::LoginRefused { .. }) => Some(LoginResult::Refused),
        Err(StepError::Connect(error)) if !error.host_answered() => Some(LoginResult::Unanswered),
        Err(_) => None,
    }
}

impl Executor {
    /// Notes what came of a login that `began` then, unless it tells nothing of the host's keys.
    pub(super) fn note_login(
        &self,
        instance: &InstanceInputs,
        connected: Result<&(), &StepError>,
        began: Instant,
    ) {
        let Ok(reach) = &instance.reach else { return };
        let Some(result) = evidence(connected) else { return };
        let login = LoginTry { at: reach.address, keys: LoginKeys::id(&instance.keys) };
        self.host_reports.logged_in(&instance.address, login, result, began);
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
                StepError::LoginRefused { refusal, .. }
                | StepError::Connect(refusal @ ConnectError::NoAlgorithm { .. }) => {
                    Ok(Err(refusal))
                }
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io;
    use std::sync::Arc;

    use wmco_core::host_key::HostKey;
    use wmco_core::limits;
    use wmco_core::reach::{Pin, Pinned, Reach};
    use wmco_core::secret::Secret;
    use wmco_ssh::{Credentials, PrivateKey, Reached, Retry, Route, Stage, Target};

    use super::*;
    use crate::words::chain;

    const HOST: &str = "10.0.0.5:22";

    /// The first kind is `None`'s; a kind without a line here does not compile.
    fn kind_after(kind: Option<&ConnectError>) -> Option<ConnectError> {
        use ConnectError as E;
        let target = || HOST.to_owned();
        let timed_out =
            |stage, reached| Some(ConnectError::TimedOut { target: target(), stage, reached });
        let Some(kind) = kind else {
            let (user, keys) = ("capi".into(), "RSA 4096".into());
            return Some(E::AuthenticationRefused { target: target(), user, keys });
        };
        match kind {
            E::AuthenticationRefused { .. } => {
                Some(E::Busy { target: target(), said: "Exceeded MaxStartups".into() })
            }
            E::Busy { .. } => Some(E::Dropped {
                target: target(),
                stage: Stage::Authenticate,
                source: "the server said: bye".into(),
            }),
            E::Dropped { .. } => Some(E::HostKeyMismatch {
                target: target(),
                expected: "SHA256:a".into(),
                found: "SHA256:b".into(),
            }),
            E::HostKeyMismatch { .. } => {
                Some(E::NoAlgorithm { target: target(), keys: "RSA 4096".into() })
            }
            E::NoAlgorithm { .. } => {
                Some(E::NoPublicKey { target: target(), methods: "password".into() })
            }
            E::NoPublicKey { .. } => Some(E::NotForwarded {
                target: target(),
                via: "bastion:22".into(),
                source: "no".into(),
            }),
            E::NotForwarded { .. } => Some(E::Protocol {
                target: target(),
                source: "it said `220 ftp`, which is no version of ssh".into(),
            }),
            E::Protocol { .. } => Some(E::Refused {
                target: target(),
                source: io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"),
            }),
            E::Refused { .. } => timed_out(Stage::Connect, Reached::Nothing),
            E::TimedOut { reached, .. } => match reached {
                Reached::Nothing => timed_out(Stage::Connect, Reached::Tcp { line: None }),
                Reached::Tcp { line: None } => {
                    timed_out(Stage::Connect, Reached::Tcp { line: Some("220 ftp".into()) })
                }
                Reached::Tcp { line: Some(_) } => {
                    let version = "SSH-2.0-OpenSSH_9.2".into();
                    timed_out(Stage::Connect, Reached::Version { version })
                }
                Reached::Version { .. } => timed_out(Stage::Authenticate, Reached::KeysAgreed),
                Reached::KeysAgreed => {
                    let key = "ssh-ed25519 SHA256:c".into();
                    timed_out(Stage::Authenticate, Reached::Offered { key })
                }
                Reached::Offered { .. } => Some(E::TooManyTries {
                    target: target(),
                    said: "Too many authentication failures".into(),
                }),
            },
            E::TooManyTries { .. } => Some(E::Unreachable {
                target: target(),
                source: io::Error::other("no route to host"),
            }),
            E::Unreachable { .. } => {
                Some(E::WantsMore { target: target(), methods: "password".into() })
            }
            E::WantsMore { .. } => None,
        }
    }

    fn pinned() -> Pinned {
        let wire = "AAAAC3NzaC1lZDI1NTE5AAAAIFhouWNzcB/oQvf4E8rYYmvZlMKO6GbXIirLOMhh6nGJ";
        let key: HostKey = wire.parse().unwrap();
        Pinned { key, by: Pin::Kept { name: "10.0.0.5".into() } }
    }

    fn reach() -> Reach {
        Reach {
            address: [10, 0, 0, 5].into(),
            port: limits::SSH_PORT,
            username: "capi".into(),
            host_key: Some(pinned()),
            to_keep: false,
            via: None,
        }
    }

    /// What follows from an error, with the columns of the table.
    fn row(error: ConnectError, keys: &[Arc<PrivateKey>]) -> String {
        let credentials = Credentials { user: "capi".into(), keys: keys.to_vec() };
        let route = Route::new(Target::new("10.0.0.5"), credentials);
        let retry = match error.retry() {
            Retry::Helps => "helps",
            Retry::WhileNew => "helps while the host is new",
            Retry::NeedsPerson => "helps after a person has changed something",
        };
        let verb = error.verb();
        let error = StepError::connect(error, &route, &reach(), keys);
        let follows = match evidence(Err(&error)) {
            Some(LoginResult::Accepted) => unreachable!("it is an error"),
            Some(LoginResult::Refused) => {
                format!("refused, after {:#} replace the Machine", limits::LOGIN_REFUSED)
            }
            Some(LoginResult::Unanswered) => "silence, which is no login (MACH12)".into(),
            None => "reported only".into(),
        };
        let line = keys[0].public().authorized_key();
        let told = chain(&error).replace(&line, "LINE");
        format!("{verb}\n  retry: {retry}\n  tell: {told}\n  counts as: {follows}\n")
    }

    #[test]
    fn kinds_of_failed_logins_and_what_follows_from_each() {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let keys = [Arc::new(PrivateKey::parse(&Secret::new(pem)).unwrap())];
        let mut table = String::new();
        let mut kind = kind_after(None);
        while let Some(error) = kind {
            kind = kind_after(Some(&error));
            let is_refusal = matches!(error, ConnectError::AuthenticationRefused { .. });
            let row = row(error, &keys);
            assert_eq!(row.contains("replace the Machine"), is_refusal, "{row}");
            assert!(!is_refusal || row.contains("RSA 4096") && row.contains("SYSTEM"), "{row}");
            writeln!(table, "{row}").unwrap();
        }
        // The jump host is not the host.
        let target = "bastion:22".to_owned();
        let (user, kind) = ("jump".into(), "RSA 4096".into());
        let jump = ConnectError::AuthenticationRefused { target, user, keys: kind };
        let row = row(jump, &keys);
        assert!(!row.contains("replace the Machine"), "{row}");
        table.push_str(&row);
        insta::assert_snapshot!(table);
    }
}
