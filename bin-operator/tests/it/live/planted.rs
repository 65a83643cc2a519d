//! Hosts on which a local user made our folder before us.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::host_record::HostRecord;
use wmco_core::names::{host, objects};
use wmco_core::protocol::{Access, ECHO_COMMAND, staged_agent};
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::Content;
use wmco_services::windows::Files as _;
use wmco_sim::host::{AgentFile, AgentNature, SimHost};

use super::scenery::{addresses, configure, is_finished, nodes, notes, settled, stage, until};

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

fn record(stage: &Stage, address: &str) -> Option<HostRecord> {
    let map =
        stage.cluster.object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP);
    let text: Value = map?["data"][HostRecord::key_name(address)].clone();
    serde_json::from_str(text.as_str()?).ok()
}

/// Puts a file on the only host, as everybody may on a default Windows.
fn plant(stage: &Stage, at: &str, content: &[u8]) {
    let (_, host) = stage.hosts.iter().next().unwrap();
    host.model().put_file(&path(at), content);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_planted_is_run_and_people_are_told() {
    let stage = stage(1).await;
    // An agent that was installed and staged before us; run, it would not report.
    let evil = AgentFile::new("9.9.9").nature(AgentNature::Failing(3)).bytes();
    let ours = Sha256::of(&SimHost::agent_binary(bin_operator::VERSION));
    let staged = staged_agent(ours);
    for at in [host::AGENT, staged.as_str(), r"C:\k\version.dll", r"C:\k\cni\userenv.dll"] {
        plant(&stage, at, &evil);
    }
    configure(&stage, &addresses(1)).await;
    assert!(is_finished(&nodes(&stage)[0]), "{:?}", nodes(&stage));

    let counts = stage.hosts.counts().remove(0);
    let first = &counts.executions[0];
    assert!(first.starts_with(r".\wmco-") && first.ends_with(r"\wicd.exe probe"), "{first}");
    assert!(counts.executions.len() <= 4, "{:#?}", counts.executions);
    assert_eq!(counts.sftp_sessions, 1);

    let (_, host) = stage.hosts.iter().next().unwrap();
    let files = host.model().snapshot().files;
    let evil: Vec<&WindowsPath> = files
        .iter()
        .filter(|(_, entry)| entry.content == Content::File(evil.clone().into()))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(evil.len(), 4, "nothing was destroyed: {evil:?}");
    assert!(evil.iter().all(|at| at.is_within(&path(host::QUARANTINE))), "{evil:?}");
    assert_eq!(files[&path(host::QUARANTINE)].access, Access::Administrators);
    let told = notes(&stage, "ForeignFilesQuarantined");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(host::QUARANTINE) && told[0].contains("moved 6 "), "{told:?}");
    let home = path(r"C:\Users").join(host.user()).unwrap();
    assert!(!files.keys().any(|at| at.is_within(&home) && *at != home), "ours is taken back");
    stage.shutdown().await;
}

/// What an agent of ours said of the root is kept where no host may write, for the key it was said by.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_lost_or_of_another_key_costs_a_first_contact() {
    let (stage, all) = (stage(1).await, addresses(1));
    configure(&stage, &all).await;
    let known = record(&stage, &all[0]).expect("it is on record");
    let (_, host) = stage.hosts.iter().next().unwrap();
    let commands = async || {
        host.reset_counts();
        configure(&stage, &all).await;
        host.counts().executions
    };
    assert_eq!(commands().await, [format!("{} probe", host::AGENT)]);

    for other in [None, Some("SHA256:another".to_owned())] {
        let mut map = stage
            .cluster
            .object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP)
            .unwrap()
            .as_ref()
            .clone();
        let text =
            serde_json::json!(HostRecord { root_closed_with_host_key: other, ..known.clone() })
                .to_string();
        map["data"][HostRecord::key_name(&all[0])] = text.into();
        stage.cluster.put(&map).unwrap();
        let commands = commands().await;
        assert_eq!(commands.len(), 1, "{commands:?}");
        assert!(commands[0].starts_with(r".\wmco-"), "{commands:?}");
        assert_eq!(record(&stage, &all[0]), Some(known.clone()));
    }
    stage.shutdown().await;
}

/// A root that was closed and is open again is met as for the first time.
#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_open_again_is_noticed_and_closed() {
    let (stage, all) = (stage(1).await, addresses(1));
    configure(&stage, &all).await;
    let (_, host) = stage.hosts.iter().next().unwrap();
    host.model().set_access(&path(host::ROOT), Access::Inherited).unwrap();
    host.model().put_file(&path(r"C:\k\version.dll"), "evil");
    host.reset_counts();
    configure(&stage, &all).await;
    let commands = host.counts().executions;
    assert_eq!(commands[0], format!("{} probe", host::AGENT));
    assert!(commands[1].starts_with(r".\wmco-"), "{commands:#?}");
    let files = host.model().snapshot().files;
    assert_eq!(files[&path(host::ROOT)].access, Access::Administrators);
    assert!(!files.contains_key(&path(r"C:\k\version.dll")));
    assert_eq!(notes(&stage, "ForeignFilesQuarantined").len(), 1);
    assert!(
        record(&stage, &all[0]).is_some_and(|record| record.root_closed_with_host_key.is_some())
    );
    assert!(is_finished(&nodes(&stage)[0]), "{:?}", nodes(&stage));
    stage.shutdown().await;
}

/// A file that somebody keeps open could change later, so no step follows before it is closed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_local_user_keeps_open_is_told_and_waited_for() {
    let (stage, all) = (stage(1).await, addresses(1));
    plant(&stage, r"C:\k\version.dll", b"evil");
    let (_, host) = stage.hosts.iter().next().unwrap();
    host.model().set_locked(&path(r"C:\k\version.dll"), true);
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    let told = until(|| {
        notes(&stage, "InstanceSetupFailure").into_iter().find(|note| note.contains(r"C:\k"))
    })
    .await;
    assert!(told.contains("in use") || told.contains("open"), "{told}");
    // A command of the shell itself is no file.
    let is_ours = |command: &String| command.starts_with(r".\wmco-") || command == ECHO_COMMAND;
    assert!(host.counts().executions.iter().all(is_ours));
    host.model().set_locked(&path(r"C:\k\version.dll"), false);
    joined.await;
    running.stop().await.unwrap();
    assert!(is_finished(&nodes(&stage)[0]), "{:?}", nodes(&stage));
    stage.shutdown().await;
}
