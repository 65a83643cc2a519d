//! Hosts on which somebody runs a containerd already.

use bin_operator::progress::Progress;
use wmco_core::limits;
use wmco_core::names::host;
use wmco_core::protocol::ServiceRunState;
use wmco_services::windows::{ServiceConfig, ServiceName, StartType, Wait, Windows as _};

use super::scenery::{addresses, configure, is_finished, nodes, notes, stage, until};

const COMMAND: &str = r#""C:\Program Files\containerd\containerd.exe" --run-service"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_containerd_of_others_is_told_and_waited_for() {
    let (stage, all) = (stage(1).await, addresses(1));
    let (_, host) = stage.hosts.iter().next().unwrap();
    let name: ServiceName = host::CONTAINERD_SERVICE.parse().unwrap();
    let config = ServiceConfig {
        command: COMMAND.to_owned(),
        description: String::new(),
        dependencies: Vec::new(),
        start: StartType::Automatic,
        recovery: None,
    };
    host.model().add_service(&name, &config, ServiceRunState::Running);
    let running = stage.operate(Progress::new()).unwrap();
    let told = until(|| notes(&stage, "ForeignContainerd").pop()).await;
    assert!(told.contains("`containerd`") && told.contains("sc.exe delete"), "{told}");
    assert!(told.contains(r"Program Files"), "{told}");
    running.stop().await.unwrap();
    let theirs = host.model().services().query(&name).unwrap().unwrap();
    assert_eq!((theirs.state, theirs.config.command.as_str()), (ServiceRunState::Running, COMMAND));
    assert!(nodes(&stage).is_empty());

    let wait = Wait::at_most(limits::SERVICE_STOP);
    host.model().services().stop(&name, wait).unwrap();
    host.model().services().delete(&name, wait).unwrap();
    configure(&stage, &all).await;
    assert!(is_finished(&nodes(&stage)[0]), "{:?}", nodes(&stage));
    stage.shutdown().await;
}
