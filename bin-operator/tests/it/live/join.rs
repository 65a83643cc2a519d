//! Hosts become nodes, with few round trips.

use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use wmco_core::limits;
use wmco_core::protocol::FeatureState;
use wmco_sim::host::Fault;

use super::scenery::{
    addresses, configure, is_finished, listed, nodes, settled, stage, until, until_metrics,
};

/// The Go operator needs 81 remote commands and 26 SFTP sessions for this (`docs/contract/ssh.md`, SSH47).
#[tokio::test(flavor = "multi_thread")]
async fn first_configuration_takes_at_most_four_commands_and_one_sftp_session() {
    let stage = stage(1).await;
    configure(&stage, &addresses(1)).await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)), "{:?}", nodes(&stage));
    let counts = stage.hosts.counts().remove(0);
    let commands = counts.executions;
    // One of them is a look after the Node has changed, which may come too late to be needed.
    assert!(commands.len() <= 4, "{commands:#?}");
    assert_eq!((counts.connections, counts.sftp_sessions), (1, 1));
    let told = stage.cluster.objects("", "events", "").into_iter();
    let warnings: Vec<_> = told
        .chain(stage.cluster.objects("events.k8s.io", "events", ""))
        .filter(|event| event["type"] == "Warning")
        .collect();
    assert!(warnings.is_empty(), "nothing was wrong: {warnings:#?}");
    stage.shutdown().await;
}

/// A round trip that is far longer than anything takes here, so that what overlaps is seen to.
const FAR: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn a_distant_host_joins_in_at_most_thirty_round_trips() {
    let stage = Stage::start(&listed(&addresses(1)), |_, host| host.latency(FAR)).await.unwrap();
    configure(&stage, &addresses(1)).await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)), "{:?}", nodes(&stage));
    let counts = stage.hosts.counts().remove(0);
    assert_eq!((counts.connections, counts.sftp_sessions), (1, 1));
    assert!(counts.round_trips <= 30, "{counts:#?}");
    // It is the whole of it: to connect alone takes five.
    assert!(counts.round_trips > 15, "{counts:#?}");
    stage.shutdown().await;
}

/// A restart ends the connection, so it costs another one with its own SFTP session.
#[tokio::test(flavor = "multi_thread")]
async fn switching_the_containers_feature_on_takes_six_commands() {
    let stage = stage(1).await;
    for (_, host) in stage.hosts.iter() {
        host.model().set_containers(FeatureState::Disabled);
    }
    configure(&stage, &addresses(1)).await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)), "{:?}", nodes(&stage));
    let counts = stage.hosts.counts().remove(0);
    let commands = counts.executions;
    assert!(commands.len() <= 6, "{commands:#?}");
    assert_eq!((counts.restarts, counts.sftp_sessions), (1, 2));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_operator_finds_nothing_to_do_with_one_probe_per_host() {
    let stage = stage(2).await;
    configure(&stage, &addresses(2)).await;
    stage.hosts.reset_counts();
    let before: Vec<_> = stage.hosts.iter().map(|(_, h)| h.model().snapshot()).collect();
    configure(&stage, &addresses(2)).await;
    for (counts, (_, host)) in stage.hosts.counts().iter().zip(stage.hosts.iter()) {
        assert_eq!(counts.executions.len(), 1, "{:#?}", counts.executions);
        assert_eq!((counts.sftp_sessions, counts.bytes_uploaded), (0, 0));
        assert!(before.contains(&host.model().snapshot()));
    }
    stage.shutdown().await;
}

/// Hosts that take their files slowly, and more than there are windows for all together.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_to_all_hosts_together_are_limited() {
    let most = limits::UPLOAD_BLOCKS_IN_FLIGHT_IN_ALL;
    let all = addresses(u8::try_from(most / limits::UPLOAD_BLOCKS_IN_FLIGHT + 2).unwrap());
    let slow = Fault::Slow { bytes_per_second: 50_000 };
    let stage = Stage::start(&listed(&all), |_, host| host.fault(slow)).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let text = until_metrics(&stage, &running, |text| {
        let blocks = gauge(text, "wmco_ssh_upload_blocks");
        assert!(blocks <= most, "{text}");
        // Nobody waits for others to be done: each has a share.
        blocks == most && gauge(text, "wmco_ssh_uploads") == all.len()
    })
    .await;
    assert_eq!(gauge(&text, "wmco_ssh_connections"), all.len());
    assert_eq!(gauge(&text, "wmco_ssh_connects_total"), all.len());
    running.kill();
    stage.shutdown().await;
}

fn gauge(text: &str, name: &str) -> usize {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

/// No timing: the silent host is still within its first time-out when the others are done, so
/// nothing waited for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_host_holds_up_nobody() {
    let all = addresses(4);
    let stage =
        Stage::start(
            &listed(&all),
            |number, host| {
                if number == 0 { host.fault(Fault::BlackHole) } else { host }
            },
        )
        .await
        .unwrap();
    let progress = Progress::new();
    let others = settled(&progress, &all[1..]);
    let running = stage.operate(progress.clone()).unwrap();
    others.await;
    let finished = nodes(&stage).iter().filter(|node| is_finished(node)).count();
    assert_eq!(finished, 3);
    // When it speaks again, it joins too.
    let silent = settled(&progress, &all[..1]);
    stage.hosts.iter().for_each(|(_, host)| host.clear_faults());
    silent.await;
    until(|| nodes(&stage).iter().all(|node| is_finished(node)).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
