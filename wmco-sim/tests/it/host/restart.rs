//! Tests power loss and restarts.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::TcpStream;
use wmco_core::protocol::ServiceRunState;
use wmco_services::windows::{
    Machine as _, ServiceConfig, ServiceManager as _, ServiceName, StartType,
};
use wmco_sim::host::{AgentFile, AgentNature, SimHost};

use super::client::{Client, host_with, until, within};

async fn is_refused(host: &SimHost) -> bool {
    let refused = TcpStream::connect(host.ssh_address()).await;
    refused.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn state(host: &SimHost, name: &ServiceName) -> ServiceRunState {
    host.model().query(name).unwrap().unwrap().state
}

#[tokio::test]
async fn a_restart_cuts_refuses_and_comes_back_new() {
    let moment = Duration::from_millis(10);
    let (host, key) = host_with(|b| b.restart_delay(moment).restart_duration(moment)).await;
    host.hold_down(true);
    let first = host.model().boot_id().unwrap();
    let service: ServiceName = "ours".parse().unwrap();
    let config = ServiceConfig {
        command: "ours".to_owned(),
        description: String::new(),
        dependencies: Vec::new(),
        start: StartType::Automatic,
        recovery: None,
    };
    host.model().add_service(&service, &config, ServiceRunState::Running);
    let agent = AgentFile::new("1").nature(AgentNature::Hanging).bytes();
    host.model().put_file(&r"C:\k\a.exe".parse().unwrap(), agent);

    let client = within(Client::connect(&host, &key)).await;
    host.model().restart().unwrap();
    // The running program cannot report its exit.
    let output = within(client.exec(r"C:\k\a.exe probe")).await;
    assert!(output.is_err() || output.is_ok_and(|output| output.code.is_none()));
    until(|| client.handle.is_closed()).await;
    within(async { while !is_refused(&host).await {} }).await;
    assert_eq!(state(&host, &service), ServiceRunState::Stopped);
    assert_eq!(host.counts().restarts, 0);

    host.hold_down(false);
    within(async { while Client::try_connect(&host, host.user(), &key).await.is_err() {} }).await;
    assert_ne!(host.model().boot_id().unwrap(), first);
    assert_eq!(state(&host, &service), ServiceRunState::Running);
    assert_eq!(host.counts().restarts, 1);
}

#[tokio::test]
async fn two_orders_make_one_restart() {
    let moment = Duration::from_millis(20);
    let (host, _) = host_with(|b| b.restart_delay(moment).restart_duration(moment)).await;
    host.model().restart().unwrap();
    host.model().restart().unwrap();
    until(|| host.counts().restarts == 1 && host.model().is_up()).await;
    tokio::time::sleep(5 * moment).await;
    assert_eq!(host.counts().restarts, 1);
}

#[tokio::test]
async fn a_host_without_power_is_gone_until_it_is_back() {
    let (host, key) = host_with(|builder| builder).await;
    let client = within(Client::connect(&host, &key)).await;
    host.power_off();
    until(|| client.handle.is_closed()).await;
    within(async { while !is_refused(&host).await {} }).await;
    within(host.power_on()).await;
    within(async { while Client::try_connect(&host, host.user(), &key).await.is_err() {} }).await;
}

#[tokio::test]
async fn a_host_that_is_shut_down_gives_its_port_back() {
    let (host, key) = host_with(|builder| builder).await;
    let address = host.ssh_address();
    let client = within(Client::connect(&host, &key)).await;
    within(host.shutdown()).await;
    until(|| client.handle.is_closed()).await;
    assert!(TcpStream::connect(address).await.is_err());
}
