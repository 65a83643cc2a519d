//! What the operator does with a host, as one object.

use async_trait::async_trait;
use futures::future::join;
use wmco_core::names::host;
use wmco_core::protocol::{
    AgentCommand, AgentLocation, FreshFolder, HostPlan, HostStep, Probe, ReportError, ReportLine,
    Verb, read_report, staged_content, staged_plan,
};
use wmco_core::winpath::WindowsPath;

use crate::blob::{Blob, Payload};
use crate::error::HostError;
use crate::host_key::SeenHostKey;
use crate::session::{ExecOutcome, Exited, Session};
use crate::upload::{Item, OnProgress, UploadProgress};

/// A host that can be probed and changed. One plan at a time: the owner sees to that.
#[async_trait]
pub trait HostAgent: Send + Sync {
    /// The key that the host proved to hold; the caller stores one seen for the first time.
    fn host_key(&self) -> &SeenHostKey;

    /// As [`Self::host_key`] for the jump host, if it is reached through one.
    fn jump_key(&self) -> Option<&SeenHostKey>;

    /// Asks an agent to describe its host.
    ///
    /// # Errors
    /// [`HostError`] if no agent was asked, or its answer was lost.
    async fn probe(&self, agent: AgentLocation) -> Result<ProbeOutcome, HostError>;

    /// Brings `agent` into `folder`, which must not be there yet, and asks it to describe its host. The
    /// folder is removed again, with those that attempts which were cut have left.
    ///
    /// # Errors
    /// [`HostError`] if the agent was not asked, or its answer was lost.
    async fn probe_with(
        &self,
        agent: &Blob,
        folder: FreshFolder,
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<ProbeOutcome, HostError>;

    /// Brings contents, compressed, to [`staged_content`], in place of what has these names. The
    /// staging folder has to be there: only an agent makes it.
    ///
    /// # Errors
    /// [`HostError`]; a later call goes on where this one stopped.
    async fn upload(
        &self,
        blobs: &[Blob],
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<(), HostError>;

    /// Brings `plan` to [`staged_plan`] and has an agent carry it out. Each report line goes to
    /// `on_line` as it arrives.
    ///
    /// # Errors
    /// [`HostError`] if the plan was not begun, or nobody knows how far it came.
    async fn apply(
        &self,
        agent: AgentLocation,
        plan: &HostPlan,
        on_line: &mut (dyn for<'line> FnMut(&'line ReportLine) + Send),
    ) -> Result<ApplyOutcome, HostError>;

    /// Removes `files`, then `directories` in the given order, children before parents. What is
    /// absent is fine. The staging folder is emptied of plain files first; any other folder must be
    /// empty. Returns the folders that stay because something is in them. Folders that agents were
    /// brought to go as well.
    ///
    /// # Errors
    /// [`HostError`] if the host refuses a removal for another reason.
    async fn remove_leftovers(
        &self,
        files: &[WindowsPath],
        directories: &[WindowsPath],
    ) -> Result<Vec<WindowsPath>, HostError>;

    /// Whether the connection has ended.
    fn is_closed(&self) -> bool;

    /// Ends the connection and returns when it has ended.
    async fn close(&self);
}

/// Why there is no report.
#[derive(Debug)]
pub enum NoReport {
    /// Nothing at that path can be run: a non-zero status and not one report line.
    NoAgent {
        /// What the shell returned: 1 or 9009 from `cmd`, 1 from PowerShell.
        status: u32,
        /// The start of what it wrote on standard error, in the host's language.
        errors: String,
    },
    /// Something ran, but it is no agent that we understand, or it was cut short.
    Unusable {
        /// What is wrong.
        error: ReportError,
        /// How it ended.
        exited: Exited,
        /// The start of what it wrote on standard error.
        errors: String,
    },
}

/// What a probe found.
#[derive(Debug)]
pub enum ProbeOutcome {
    /// The host as its agent sees it.
    Reported(Box<Probe>),
    /// No agent, or none that we understand.
    NoReport(NoReport),
}

/// What applying a plan led to. `lines` are all report lines, in order.
#[derive(Debug)]
pub enum ApplyOutcome {
    /// The agent came to its end: the last step done, or one failed.
    Finished {
        /// What it reported, the final probe included.
        lines: Vec<ReportLine>,
        /// The host afterwards.
        probe: Box<Probe>,
    },
    /// The plan ends with a restart, came as far as that, and the host went away.
    Restarting {
        /// What it reported before.
        lines: Vec<ReportLine>,
    },
    /// No agent, or none that we understand.
    NoReport(NoReport),
}

/// The host at the other end of a [`Session`].
#[derive(Debug)]
pub struct SshHost {
    session: Session,
}

impl SshHost {
    /// Takes over `session`.
    pub const fn new(session: Session) -> Self {
        Self { session }
    }

    /// The connection.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Brings `agent` into `folder` and asks it. The channel that it is run in is opened meanwhile.
    async fn bring_and_ask(
        &self,
        agent: &Payload,
        folder: FreshFolder,
        on_progress: OnProgress<'_>,
    ) -> Result<ProbeOutcome, HostError> {
        let bringing = self.session.bring(agent, folder, on_progress);
        let (brought, channel) = join(bringing, self.session.command_channel()).await;
        brought?;
        let command = AgentCommand { agent: AgentLocation::Brought(folder), verb: Verb::Probe };
        let limit = self.session.options().timeouts.probe;
        answer(self.session.exec_in(channel?, command, limit, &mut |_| {}).await?)
    }
}

/// What an agent that was asked to describe its host has said.
fn answer(ended: ExecOutcome) -> Result<ProbeOutcome, HostError> {
    Ok(match read(ended)? {
        Ok((_, probe)) => ProbeOutcome::Reported(probe),
        Err(why) => ProbeOutcome::NoReport(why),
    })
}

#[async_trait]
impl HostAgent for SshHost {
    fn host_key(&self) -> &SeenHostKey {
        self.session.host_key()
    }

    fn jump_key(&self) -> Option<&SeenHostKey> {
        self.session.via().map(Session::host_key)
    }

    async fn probe(&self, agent: AgentLocation) -> Result<ProbeOutcome, HostError> {
        let command = AgentCommand { agent, verb: Verb::Probe };
        let limit = self.session.options().timeouts.probe;
        answer(self.session.exec(command, limit, &mut |_| {}).await?)
    }

    async fn probe_with(
        &self,
        agent: &Blob,
        folder: FreshFolder,
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<ProbeOutcome, HostError> {
        let payload = agent.raw().await?;
        let clearing = self.session.clear_fresh_folders(Some(folder));
        let asking = self.bring_and_ask(&payload, folder, on_progress);
        let (asked, cleared) = Box::pin(join(asking, clearing)).await;
        self.session.take_back(folder).await;
        let asked = asked?;
        cleared?;
        Ok(asked)
    }

    async fn upload(
        &self,
        blobs: &[Blob],
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<(), HostError> {
        let mut items = Vec::with_capacity(blobs.len());
        for blob in blobs {
            items.push(Item { path: staged_content(blob.digest()), payload: blob.packed().await? });
        }
        // The same content may be wanted in two places, but is sent once.
        items.sort_by(|a, b| a.path.cmp(&b.path));
        items.dedup_by(|a, b| a.path == b.path);
        self.session.upload(&items, on_progress).await
    }

    async fn apply(
        &self,
        agent: AgentLocation,
        plan: &HostPlan,
        on_line: &mut (dyn for<'line> FnMut(&'line ReportLine) + Send),
    ) -> Result<ApplyOutcome, HostError> {
        let json = serde_json::to_vec(plan).map_err(|source| HostError::Plan { source })?;
        let blob = Blob::from_bytes(json);
        let item = Item { path: staged_plan(blob.digest()), payload: blob.raw().await? };
        let items = [item];
        let sending = self.session.upload(&items, &|_| {});
        let (sent, channel) = Box::pin(join(sending, self.session.command_channel())).await;
        sent?;

        let command = AgentCommand { agent, verb: Verb::Apply(blob.digest()) };
        let limit = self.session.options().timeouts.apply;
        let mut lines = Vec::new();
        let mut on_text = |text: &str| {
            if let Some(line) = read_line(text) {
                on_line(&line);
                lines.push(line);
            }
        };
        let ended = self.session.exec_in(channel?, command, limit, &mut on_text).await?;
        match read(ended) {
            Ok(Ok((lines, probe))) => Ok(ApplyOutcome::Finished { lines, probe }),
            // A host that goes down may cut the connection, or end the agent before its last line.
            Err(_) | Ok(Err(NoReport::Unusable { error: ReportError::Incomplete, .. }))
                if restarting(plan, &lines) =>
            {
                Ok(ApplyOutcome::Restarting { lines })
            }
            Ok(Err(why)) => Ok(ApplyOutcome::NoReport(why)),
            Err(error) => Err(error),
        }
    }

    async fn remove_leftovers(
        &self,
        files: &[WindowsPath],
        directories: &[WindowsPath],
    ) -> Result<Vec<WindowsPath>, HostError> {
        let sftp = self.session.sftp().await?;
        sftp.remove_files(files).await?;
        self.session.clear_fresh_folders(None).await?;
        let mut kept = Vec::new();
        for directory in directories {
            if directory.as_str().eq_ignore_ascii_case(host::STAGING) {
                sftp.remove_files(&sftp.files_in(directory).await?).await?;
            }
            if !sftp.remove_folder(&sftp.render(directory)).await? {
                kept.push(directory.clone());
            }
        }
        Ok(kept)
    }

    fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    async fn close(&self) {
        self.session.close().await;
    }
}

/// One line of a report; anything else is a shell's own.
fn read_line(text: &str) -> Option<ReportLine> {
    serde_json::from_str(text.trim_start_matches('\u{feff}').trim()).ok()
}

type Report = (Vec<ReportLine>, Box<Probe>);

/// The report in what a command wrote. A connection that ended before the report did is an error.
fn read(ended: ExecOutcome) -> Result<Result<Report, NoReport>, HostError> {
    let ExecOutcome { exited, output, errors } = ended;
    let error = match read_report(&output) {
        Ok(lines) => match lines.last() {
            Some(ReportLine::Probed(probe)) => {
                let probe = probe.clone();
                return Ok(Ok((lines, probe)));
            }
            _ => ReportError::Incomplete,
        },
        Err(error) => error,
    };
    match (&error, exited) {
        (_, Exited::Dropped) => {
            Err(HostError::Dropped { doing: "running the agent", source: None })
        }
        (ReportError::Garbage { .. }, Exited::Status(status)) if status != 0 => {
            Ok(Err(NoReport::NoAgent { status, errors }))
        }
        (_, exited) => Ok(Err(NoReport::Unusable { error, exited, errors })),
    }
}

/// Whether `plan` ends with a restart and, by `lines`, nothing else was left to do.
///
/// A drop before that is an error although it may be the restart with its lines lost: trying again
/// soon is the cheaper mistake than waiting for a host that never went away.
fn restarting(plan: &HostPlan, lines: &[ReportLine]) -> bool {
    let Some((HostStep::Restart, before)) = plan.steps.split_last() else { return false };
    let done = |wanted| {
        lines.iter().any(|line| matches!(line, ReportLine::Done { step, .. } if *step == wanted))
    };
    (0..before.len()).all(done)
        && !lines
            .iter()
            .any(|line| matches!(line, ReportLine::Failed { .. } | ReportLine::Refused { .. }))
}
