//! Network faults.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use wmco_sim::host::Fault;

use super::client::{Client, NoClient, host, host_with, until, within};

/// Long enough for any answer to arrive.
const A_WHILE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_closed_port_refuses_and_old_connections_go_on() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    host.set_fault(Fault::RefuseConnections);
    within(async {
        loop {
            match TcpStream::connect(host.ssh_address()).await {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => break,
                Ok(_) | Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    assert_eq!(within(client.exec("x")).await.unwrap().code, Some(1));
    host.clear_fault(Fault::RefuseConnections);
    within(async { while Client::try_connect(&host, host.user(), &key).await.is_err() {} }).await;
}

#[tokio::test]
async fn a_black_hole_takes_all_and_answers_nothing() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    host.set_fault(Fault::BlackHole);
    let (old, new) = tokio::join!(
        timeout(A_WHILE, client.exec("x")),
        timeout(A_WHILE, Client::connect(&host, &key)),
    );
    assert!(old.is_err() && new.is_err());
    host.clear_faults();
    assert_eq!(within(client.exec("x")).await.unwrap().code, Some(1));
    within(Client::connect(&host, &key)).await;
}

#[tokio::test]
async fn a_line_breaks_after_so_many_bytes() {
    let (host, key) = host_with(|b| b.fault(Fault::DropConnection { after_bytes: 600 })).await;
    let broken = within(Client::try_connect(&host, host.user(), &key)).await;
    assert!(matches!(broken, Err(NoClient::Connection)));
    host.clear_faults();
    within(Client::connect(&host, &key)).await;
}

#[tokio::test]
async fn a_line_breaks_during_an_upload_and_what_arrived_stays() {
    let (host, key) = host().await;
    host.set_fault(Fault::DropUpload { after_bytes: 100_000 });
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    let target = r"C:\ProgramData\x".parse().unwrap();
    within(async {
        let mut file = sftp.create("/C:/ProgramData/x").await.unwrap();
        let _ = file.write_all(&vec![7; 4_000_000]).await;
    })
    .await;
    until(|| client.handle.is_closed()).await;
    let arrived = host.model().file(&target).unwrap().len();
    assert!((100_000..4_000_000).contains(&arrived), "{arrived}");
    assert_eq!(host.counts().bytes_uploaded, arrived as u64);
}

#[tokio::test]
async fn a_distant_host_answers_late_but_in_bulk() {
    let (host, key) = host().await;
    let latency = Duration::from_millis(80);
    let client = within(Client::connect(&host, &key)).await;
    host.set_latency(latency);
    let start = Instant::now();
    within(client.exec("x")).await.unwrap();
    // At least one round trip for the channel and one for the command.
    assert!(start.elapsed() >= 2 * latency, "{:?}", start.elapsed());
    let sftp = within(client.sftp()).await;
    let mut file = within(sftp.create("/C:/ProgramData/x")).await.unwrap();
    // With no answer at all the client goes on: many blocks of 32 KiB are on their way at once.
    host.set_fault(Fault::BlackHole);
    let before = host.counts().bytes_received;
    let upload = tokio::spawn(async move {
        file.write_all(&vec![7; 6_000_000]).await.unwrap();
        file.shutdown().await.unwrap();
    });
    until(|| host.counts().bytes_received - before > 200_000).await;
    assert_eq!(host.counts().bytes_uploaded, 0);
    host.clear_faults();
    within(upload).await.unwrap();
    assert_eq!(host.counts().bytes_uploaded, 6_000_000);
}

#[tokio::test]
async fn a_slow_line_takes_its_time() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    host.set_fault(Fault::Slow { bytes_per_second: 1_000_000 });
    let start = Instant::now();
    within(async {
        let mut file = sftp.create("/C:/ProgramData/x").await.unwrap();
        file.write_all(&vec![7; 300_000]).await.unwrap();
        file.shutdown().await.unwrap();
    })
    .await;
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
}
