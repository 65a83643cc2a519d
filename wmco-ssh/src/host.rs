//! The operator's operations on a host, as a trait.

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
use crate::session::{ExecOutcome, Exited, Session, allows_sftp_only};
use crate::upload::{Item, OnProgress, UploadProgress};

/// A host that can be probed and changed. Its owner applies one plan at a time.
#[async_trait]
pub trait HostAgent: Send + Sync {
    /// Returns the host's proven key; the caller stores it on first use.
    fn host_key(&self) -> &SeenHostKey;

    /// Returns the same for the jump host, if there is one.
    fn jump_key(&self) -> Option<&SeenHostKey>;

    /// Runs an agent that describes its host.
    ///
    /// # Errors
    /// [`HostError`] if the agent was not run, or its output was lost.
    async fn probe(&self, agent: AgentLocation) -> Result<ProbeOutcome, HostError>;

    /// Uploads `agent` to `folder`, which must not exist yet, and runs it to describe its host. The folder is removed
    /// afterwards, as are those of interrupted attempts.
    ///
    /// # Errors
    /// [`HostError`] if the agent was not run, or its output was lost.
    async fn probe_with(
        &self,
        agent: &Blob,
        folder: FreshFolder,
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<ProbeOutcome, HostError>;

    /// Uploads contents, compressed, to [`staged_content`], replacing files of these names. The staging folder must
    /// exist: only an agent creates it.
    ///
    /// # Errors
    /// [`HostError`]; a later call continues where this one stopped.
    async fn upload(
        &self,
        blobs: &[Blob],
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<(), HostError>;

    /// Uploads `plan` to [`staged_plan`] and runs an agent that carries it out. Each report line is passed to `on_line`
    /// as it arrives.
    ///
    /// # Errors
    /// [`HostError`] if the plan was not begun, or its progress is unknown.
    async fn apply(
        &self,
        agent: AgentLocation,
        plan: &HostPlan,
        on_line: &mut (dyn for<'line> FnMut(&'line ReportLine) + Send),
    ) -> Result<ApplyOutcome, HostError>;

    /// Removes `files`, then `directories` in the given order, children before parents. Missing ones are no error.
    /// Plain files in the staging folder are removed first; any other folder must be empty. Returns the folders that
    /// are not empty and stay. Folders of uploaded agents are removed as well.
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

    /// Closes the connection and waits for its end.
    async fn close(&self);
}

/// Why there is no report.
#[derive(Debug)]
pub enum NoReport {
    /// No program can be run at that path: a non-zero status and no report line.
    NoAgent {
        /// The shell's exit status: 1 or 9009 from `cmd`, 1 from PowerShell.
        status: u32,
        /// The start of its standard error, in the host's language.
        errors: String,
    },
    /// A program ran, but it is no compatible agent, or it was interrupted.
    Unusable {
        /// The problem.
        error: ReportError,
        /// The exit of the program.
        exited: Exited,
        /// The start of its standard error.
        errors: String,
    },
}

/// The result of a probe.
#[derive(Debug)]
pub enum ProbeOutcome {
    /// The agent's description of the host.
    Reported(Box<Probe>),
    /// No agent, or no compatible one.
    NoReport(NoReport),
}

/// The result of applying a plan. `lines` are all report lines, in order.
#[derive(Debug)]
pub enum ApplyOutcome {
    /// The agent finished: all steps are done, or a step failed.
    Finished {
        /// All report lines, including the final probe.
        lines: Vec<ReportLine>,
        /// The host afterwards.
        probe: Box<Probe>,
    },
    /// The plan ends with a restart, all earlier steps are done, and the host went away.
    Restarting {
        /// The report lines before the restart.
        lines: Vec<ReportLine>,
    },
    /// No agent, or no compatible one.
    NoReport(NoReport),
}

/// The host at the other end of a [`Session`].
#[derive(Debug)]
pub struct SshHost {
    session: Session,
}

impl SshHost {
    /// Creates the host of `session`.
    pub const fn new(session: Session) -> Self {
        Self { session }
    }

    /// Returns the connection.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Uploads `agent` to `folder` and runs it. Its channel is opened during the upload.
    async fn bring_and_ask(
        &self,
        agent: &Payload,
        folder: FreshFolder,
        on_progress: OnProgress<'_>,
    ) -> Result<ProbeOutcome, HostError> {
        let uploading = self.session.upload_agent(agent, folder, on_progress);
        let (brought, channel) = join(uploading, self.session.command_channel()).await;
        brought?;
        let command = AgentCommand { agent: AgentLocation::Brought(folder), verb: Verb::Probe };
        let limit = self.session.options().timeouts.probe;
        answer(self.session.exec_in(channel?, command, limit, &mut |_| {}).await?)
    }
}

/// Converts the output of a probe.
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
        match self.session.exec(command, limit, &mut |_| {}).await {
            Ok(ended) => answer(ended),
            Err(error) => Err(self.session.explained(error).await),
        }
    }

    async fn probe_with(
        &self,
        agent: &Blob,
        folder: FreshFolder,
        on_progress: &(dyn Fn(UploadProgress) + Send + Sync),
    ) -> Result<ProbeOutcome, HostError> {
        let payload = agent.raw().await?;
        // Opened first: where that fails there is nothing to clear.
        if let Err(error) = self.session.sftp().await {
            return Err(self.session.explained(error).await);
        }
        let clearing = self.session.clear_fresh_folders(Some(folder));
        let asking = self.bring_and_ask(&payload, folder, on_progress);
        let (asked, cleared) = Box::pin(join(asking, clearing)).await;
        let asked = match asked {
            Ok(ProbeOutcome::NoReport(why)) => {
                self.session.forced().await.map_or(Ok(ProbeOutcome::NoReport(why)), Err)
            }
            Ok(reported @ ProbeOutcome::Reported(_)) => Ok(reported),
            Err(error) => Err(self.session.explained(error).await),
        };
        self.session.remove_agent(folder).await;
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
        // Content that is needed in two places is sent once.
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
            // A host that shuts down may drop the connection, or end the agent before its last line.
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
        self.session.sftp().await?.remove_files(files).await?;
        self.session.clear_fresh_folders(None).await?;
        let sftp = self.session.sftp().await?;
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

/// Parses a line of a report; `None` for other output, such as a shell's.
fn read_line(text: &str) -> Option<ReportLine> {
    serde_json::from_str(text.trim_start_matches('\u{feff}').trim()).ok()
}

type Report = (Vec<ReportLine>, Box<Probe>);

/// Parses the report in a command's output. A connection that ended before the report did is an error.
fn read(ended: ExecOutcome) -> Result<Result<Report, NoReport>, HostError> {
    let ExecOutcome { exited, output, errors } = ended;
    if allows_sftp_only(&output) {
        return Err(HostError::SftpOnly);
    }
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

/// Whether `plan` ends with a restart and `lines` show that all earlier steps are done.
///
/// A disconnect before that is an error, although the restart may have happened with its lines lost: an early retry is
/// the cheaper mistake than waiting for a host that never restarted.
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
