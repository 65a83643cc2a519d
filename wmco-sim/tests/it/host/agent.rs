//! Tests the agent on a simulated host, used as by the operator: upload, probe, apply, remove.

use std::sync::Arc;

use jiff::Timestamp;
use russh_sftp::client::SftpSession;
use russh_sftp::protocol::OpenFlags;
use tokio::io::AsyncWriteExt;
use wmco_core::digest::Sha256;
use wmco_core::names::host::{AGENT, DIRECTORIES, ROOT, STAGING, STATE_FILE};
use wmco_core::names::objects::WICD;
use wmco_core::protocol::{
    Access, AgentCommand, AgentLocation, HostPlan, HostStep, PROTOCOL, Probe, ReportError,
    ReportLine, ServiceRunState, Verb, read_report, staged_agent, staged_content, staged_plan,
};
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeEvent;
use wmco_services::windows::{Files as _, Machine as _};
use wmco_sim::host::{AgentFile, AgentNature, Fault, Shell, SimHost};

use super::client::{Client, host, host_with, within};

const VERSION: &str = "1.2.3-test";

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

/// A simplified operator.
pub(super) struct Operator {
    client: Client,
    sftp: SftpSession,
    pub(super) agent: AgentLocation,
}

impl Operator {
    pub(super) async fn new(host: &SimHost, key: &russh::keys::PrivateKey) -> Self {
        let client = within(Client::connect(host, key)).await;
        let sftp = within(client.sftp()).await;
        Self { client, sftp, agent: AgentLocation::Installed }
    }

    pub(super) async fn upload(&self, to: &WindowsPath, content: &[u8]) {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let mut file = within(self.sftp.open_with_flags(to.sftp(), flags)).await.unwrap();
        within(file.write_all(content)).await.unwrap();
        within(file.shutdown()).await.unwrap();
    }

    /// Uploads an agent, which is used from then on.
    pub(super) async fn bring(&mut self, file: &[u8]) {
        for folder in [ROOT, STAGING] {
            // It may exist already.
            let _ = within(self.sftp.create_dir(path(folder).sftp())).await;
        }
        let digest = Sha256::of(file);
        self.upload(&staged_agent(digest), file).await;
        self.agent = AgentLocation::Staged(digest);
    }

    pub(super) async fn run(&self, verb: Verb) -> Result<Vec<ReportLine>, ReportError> {
        let command = AgentCommand { agent: self.agent, verb };
        let output = within(self.client.exec(command)).await.unwrap();
        read_report(&output.stdout)
    }

    pub(super) async fn probe(&self) -> Probe {
        let mut lines = self.run(Verb::Probe).await.unwrap();
        assert_eq!(lines.len(), 1);
        let Some(ReportLine::Probed(probe)) = lines.pop() else { panic!("{lines:?}") };
        *probe
    }

    pub(super) async fn apply(&self, steps: Vec<HostStep>) -> Vec<ReportLine> {
        let plan = serde_json::to_vec(&HostPlan { protocol: PROTOCOL, vacant_since: None, steps })
            .unwrap();
        let digest = Sha256::of(&plan);
        self.upload(&staged_plan(digest), &plan).await;
        self.run(Verb::Apply(digest)).await.unwrap()
    }
}

#[tokio::test]
async fn an_uploaded_agent_describes_its_host() {
    let (host, key) = host_with(|b| b.host_name("win-7").address([10, 1, 2, 3].into())).await;
    let mut operator = Operator::new(&host, &key).await;
    let file = SimHost::agent_binary(VERSION);
    operator.bring(&file).await;
    let probe = operator.probe().await;
    assert_eq!(probe.agent.version, VERSION);
    assert_eq!(probe.agent.sha256, Sha256::of(&file));
    assert_eq!(probe.agent.installed, None);
    assert_eq!(probe.host_name, "win-7");
    assert_eq!(probe.addresses, [host.address()]);
    assert_eq!(probe.boot_id, host.model().boot_id().unwrap());
    assert_eq!(host.counts().executions.len(), 1);
}

/// Returns a simplified first configuration.
pub(super) fn configuration(content: &[u8]) -> Vec<HostStep> {
    let folder = |path: &str| HostStep::EnsureDirectory {
        path: path.parse().unwrap(),
        access: Access::of_directory(&path.parse().unwrap()),
    };
    let file = HostStep::PlaceFile {
        path: path(r"C:\k\kubelet.exe"),
        sha256: Sha256::of(content),
        access: Access::Inherited,
    };
    DIRECTORIES.into_iter().map(folder).chain([HostStep::InstallAgent, file]).collect()
}

fn written(host: &SimHost, file: &WindowsPath) -> Timestamp {
    host.model().with_tree(|tree| tree.node(file).unwrap().modified)
}

#[tokio::test]
async fn a_host_is_configured_and_brought_back_to_what_it_was() {
    let (host, key) = host().await;
    let start = Timestamp::now();
    let first = host.model().snapshot();
    let mut operator = Operator::new(&host, &key).await;
    let agent = AgentFile::new(VERSION).size(200_000).bytes();
    operator.bring(&agent).await;
    let content = b"a kubelet".as_slice();
    let compressed = zstd::encode_all(content, 0).unwrap();
    operator.upload(&staged_content(Sha256::of(content)), &compressed).await;

    // The agent removes old staged files, so files need a correct modification time.
    assert!(written(&host, &staged_agent(Sha256::of(&agent))) >= start);
    let lines = operator.apply(configuration(content)).await;
    let failed = lines.iter().any(|line| matches!(line, ReportLine::Failed { .. }));
    assert!(!failed, "{lines:?}");
    assert!(written(&host, &path(r"C:\k\kubelet.exe")) >= start);
    operator.agent = AgentLocation::Installed;
    let probe = operator.probe().await;
    assert_eq!(probe.agent.installed, Some(Sha256::of(&agent)));
    assert_eq!(probe.files[&path(r"C:\k\kubelet.exe")].sha256, Sha256::of(content));
    assert_eq!(host.model().file(&path(AGENT)).unwrap().len(), agent.len());
    assert!(host.model().file(&path(STATE_FILE)).is_some());
    let again = operator.apply(configuration(content)).await;
    let changed = again.iter().any(|line| matches!(line, ReportLine::Done { changed: true, .. }));
    assert!(!changed, "{again:?}");

    let removal = vec![HostStep::RemoveDaemon, HostStep::RemoveInstallation];
    let lines = operator.apply(removal).await;
    let failed = lines.iter().any(|line| matches!(line, ReportLine::Failed { .. }));
    assert!(!failed, "{lines:?}");
    // The operator removes the agent and its folders, which the agent itself cannot.
    within(async {
        operator.sftp.remove_file(path(AGENT).sftp()).await.unwrap();
        for folder in [STAGING, ROOT] {
            let folder = path(folder);
            for entry in operator.sftp.read_dir(folder.sftp()).await.into_iter().flatten() {
                let name = folder.join(&entry.file_name()).unwrap().sftp();
                operator.sftp.remove_file(name).await.unwrap();
            }
            let _ = operator.sftp.remove_dir(folder.sftp()).await;
        }
    })
    .await;
    assert_eq!(host.model().snapshot(), first);
}

#[tokio::test]
async fn an_agent_that_loses_power_leaves_the_rest_of_its_plan_undone() {
    let (host, key) = host().await;
    let host = Arc::new(host);
    let mut operator = Operator::new(&host, &key).await;
    operator.bring(&SimHost::agent_binary(VERSION)).await;
    let weak = Arc::downgrade(&host);
    host.model().observe(move |event| {
        let starts = matches!(event, FakeEvent::ServiceChanged { name, state, .. }
            if name.as_str() == WICD && *state == ServiceRunState::Running);
        if let (true, Some(host)) = (starts, weak.upgrade()) {
            host.power_off();
        }
    });
    let late = path(r"C:\k\late");
    let mut steps = configuration(b"");
    steps.pop();
    steps.push(HostStep::EnsureDaemon { arguments: vec!["controller".to_owned()] });
    steps.push(HostStep::EnsureDirectory { path: late.clone(), access: Access::Inherited });
    let plan =
        serde_json::to_vec(&HostPlan { protocol: PROTOCOL, vacant_since: None, steps }).unwrap();
    operator.upload(&staged_plan(Sha256::of(&plan)), &plan).await;
    let verb = Verb::Apply(Sha256::of(&plan));
    let output = within(operator.client.exec(AgentCommand { agent: operator.agent, verb })).await;
    assert!(output.is_err() || output.is_ok_and(|output| output.code.is_none()));

    within(host.power_on()).await;
    assert!(host.model().file(&path(AGENT)).is_some());
    assert!(host.model().with_tree(|tree| tree.node(&late).is_none()));
    // The interruption has no lasting effect: the machine can be changed again.
    host.model().make_directory(&late).unwrap();
}

#[tokio::test]
async fn a_restart_that_the_agent_orders_happens() {
    let (host, key) = host().await;
    let mut operator = Operator::new(&host, &key).await;
    operator.bring(&SimHost::agent_binary(VERSION)).await;
    let before = operator.probe().await.boot_id;
    let plan = serde_json::to_vec(&HostPlan {
        protocol: PROTOCOL,
        vacant_since: None,
        steps: vec![HostStep::Restart],
    });
    let plan = plan.unwrap();
    operator.upload(&staged_plan(Sha256::of(&plan)), &plan).await;
    let command = AgentCommand { agent: operator.agent, verb: Verb::Apply(Sha256::of(&plan)) };
    // The answer may or may not arrive before the connection ends.
    let _ = within(operator.client.exec(command)).await;
    let client = within(async {
        loop {
            if host.counts().restarts == 1
                && let Ok(client) = Client::try_connect(&host, host.user(), &key).await
            {
                break client;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    operator.client = client;
    assert_ne!(operator.probe().await.boot_id, before);
}

#[tokio::test]
async fn an_agent_of_another_protocol_says_so_and_takes_no_plan() {
    let (host, key) = host().await;
    let mut operator = Operator::new(&host, &key).await;
    operator.bring(&AgentFile::new("9").nature(AgentNature::Protocol(9)).bytes()).await;
    let other = operator.run(Verb::Probe).await.unwrap_err();
    assert!(matches!(other, ReportError::OtherProtocol { found: 9 }), "{other}");
    let other = operator.run(Verb::Apply(Sha256::of(b""))).await.unwrap_err();
    assert!(matches!(other, ReportError::OtherProtocol { found: 9 }), "{other}");
}

#[tokio::test]
async fn a_full_disk_fails_a_step_and_the_probe_still_comes() {
    let (host, key) = host().await;
    let mut operator = Operator::new(&host, &key).await;
    operator.bring(&SimHost::agent_binary(VERSION)).await;
    let content = vec![b'x'; 100_000];
    let compressed = zstd::encode_all(content.as_slice(), 0).unwrap();
    operator.upload(&staged_content(Sha256::of(&content)), &compressed).await;
    host.set_fault(Fault::DiskFull { after_bytes: 50_000 });
    let lines = operator.apply(configuration(&content)).await;
    let failed = lines.iter().find_map(|line| match line {
        ReportLine::Failed { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert!(failed.is_some_and(|error| error.contains("space")), "{lines:?}");
    host.clear_faults();
    let lines = operator.apply(configuration(&content)).await;
    assert!(!lines.iter().any(|line| matches!(line, ReportLine::Failed { .. })), "{lines:?}");
}

#[tokio::test]
async fn a_host_with_powershell_runs_the_agent_all_the_same() {
    let (host, key) = host_with(|builder| builder.shell(Shell::PowerShell)).await;
    let mut operator = Operator::new(&host, &key).await;
    operator.bring(&SimHost::agent_binary(VERSION)).await;
    assert_eq!(operator.probe().await.agent.version, VERSION);
}
