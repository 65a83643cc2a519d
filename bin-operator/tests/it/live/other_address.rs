//! A host that is listed by another address than before.

use std::collections::BTreeMap;

use bin_operator::demo::Stage;
use wmco_core::names::events;

use super::scenery::{
    addresses, configure, is_finished, kept_keys, listed, nodes, notes, operate_until_settled,
    stage, until,
};

/// Entries for the hosts by their other address, which is where they really listen.
fn by_other_address(stage: &Stage) -> BTreeMap<String, String> {
    let entry = |(_, host): (&str, &wmco_sim::host::SimHost)| {
        let at = host.ssh_address();
        (at.ip().to_string(), format!("username=Administrator\nport={}", at.port()))
    };
    stage.hosts.iter().map(entry).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_listed_by_another_address_keeps_its_node() {
    let all = addresses(1);
    let stage = stage(1).await;
    configure(&stage, &all).await;
    let before = nodes(&stage).remove(0);
    let pin = kept_keys(&stage)[&all[0]].clone();
    stage.hosts.reset_counts();

    let now = by_other_address(&stage);
    let address = now.keys().next().unwrap().clone();
    stage.list(&now).unwrap();
    let running = operate_until_settled(&stage, std::slice::from_ref(&address)).await;
    let kept = until(|| {
        let kept = kept_keys(&stage);
        kept.keys().all(|key| key.starts_with(&address)).then_some(kept)
    })
    .await;
    assert_eq!(kept[&address], pin);
    assert_eq!(kept.len(), 2, "{kept:#?}");
    running.stop().await.unwrap();

    let after = nodes(&stage).remove(0);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(is_finished(&after), "{after:#}");
    assert_eq!(notes(&stage, events::INSTANCE_TEARDOWN), Vec::<String>::new());
    let applied = stage.hosts.counts().remove(0).executions;
    assert!(applied.iter().all(|command| !command.contains(" apply")), "{applied:#?}");
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_listed_by_two_addresses_is_told_and_has_one_node() {
    let all = addresses(1);
    let stage = stage(1).await;
    configure(&stage, &all).await;
    let before = nodes(&stage).remove(0);
    let mut both = by_other_address(&stage);
    let other = both.keys().next().unwrap().clone();
    both.extend(listed(&all));
    stage.list(&both).unwrap();
    let running = operate_until_settled(&stage, &all).await;
    until(|| {
        let told = notes(&stage, events::INSTANCE_SETUP_FAILURE);
        let same =
            format!("{other} is left alone, because entry {} stands for the same host", all[0]);
        told.iter().any(|note| note.contains(&same)).then_some(())
    })
    .await;
    running.stop().await.unwrap();
    let after = nodes(&stage);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(is_finished(&after[0]), "{:#}", after[0]);
    stage.shutdown().await;
}
