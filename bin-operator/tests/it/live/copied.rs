//! A host that is a copy of a node's, disk and all.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use wmco_core::names::events;

use super::scenery::{addresses, configure, is_finished, listed, nodes, notes, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_host_does_not_take_its_node() {
    let all = addresses(2);
    let stage = Stage::start(&listed(&all), |_, host| host.host_name("win-1")).await.unwrap();
    let hosts: Vec<_> = stage.hosts.iter().map(|(_, host)| host).collect();
    stage.list(&listed(&all[..1])).unwrap();
    configure(&stage, &all[..1]).await;
    let before = nodes(&stage).remove(0);
    let disk = hosts[0].model().with_tree(|disk| disk.clone());
    hosts[1].model().with_tree(|copy| *copy = disk);
    hosts[1].copy_host_keys(hosts[0]);

    // The entry of the node goes, and that of the copy comes.
    stage.list(&listed(&all[1..])).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until(|| {
        let told = notes(&stage, events::PREFLIGHT_FAILED);
        let where_it_is = format!("is not at {}, where node win-1 is ready", all[0]);
        told.iter().any(|note| note.contains(&where_it_is)).then_some(())
    })
    .await;
    let there = nodes(&stage);
    assert_eq!(there.len(), 1);
    assert_eq!(there[0]["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(is_finished(&there[0]), "{:#}", there[0]);
    let done = |number: usize| stage.hosts.counts().remove(number).executions;
    assert!(done(1).iter().all(|command| !command.contains(" apply")), "{:#?}", done(1));
    running.stop().await.unwrap();
    stage.shutdown().await;
}
