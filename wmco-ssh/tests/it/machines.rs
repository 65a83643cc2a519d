//! Hosts that a simulated Machine API created, reached at the addresses of their Machines.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_testserver::TestServer;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, EcdsaCurve};
use serde_json::{Value, json};
use wmco_core::names::objects::{MACHINE_API_NAMESPACE, USER_DATA_KEY, USER_DATA_SECRET};
use wmco_core::names::{host, platforms};
use wmco_core::render::user_data;
use wmco_core::secret::Secret;
use wmco_sim::machines::{MachineApi, machine_set};
use wmco_ssh::{
    ByteStream, ConnectError, Credentials, Dialer, Options, PrivateKey, Route, Session, Target,
    TcpDialer,
};

/// Connects the addresses of Machines to their hosts.
struct ToMachines<'a>(&'a MachineApi);

#[async_trait]
impl Dialer for ToMachines<'_> {
    async fn dial(&self, address: &str, _port: u16) -> io::Result<ByteStream> {
        let address: Option<Ipv4Addr> = address.parse().ok();
        match address.and_then(|address| self.0.ssh_address(address)) {
            Some(to) => TcpDialer.dial(&to.ip().to_string(), to.port()).await,
            None => Err(io::ErrorKind::HostUnreachable.into()),
        }
    }
}

fn new_key() -> PrivateKey {
    let algorithm = Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 };
    let key = russh::keys::PrivateKey::random(&mut russh::keys::key::safe_rng(), algorithm);
    let pem = key.unwrap().to_openssh(LineEnding::LF).unwrap();
    PrivateKey::parse(&Secret::new(pem.as_bytes().to_vec())).unwrap()
}

async fn log_in(
    machines: &MachineApi,
    address: &str,
    user: &str,
    key: &PrivateKey,
) -> Result<(), ConnectError> {
    let route = Route::new(Target::new(address), Credentials::new(user, key.clone()));
    let session = Session::connect(&route, &ToMachines(machines), &Options::default()).await?;
    session.close().await;
    Ok(())
}

/// Writes the user data, creates a Machine with it, and returns its address when its host is up.
async fn machine(cluster: &TestServer, machines: &MachineApi, user_data: &str) -> String {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": USER_DATA_SECRET, "namespace": MACHINE_API_NAMESPACE},
        "data": {USER_DATA_KEY: BASE64_STANDARD.encode(user_data)},
    });
    cluster.put(&secret).unwrap();
    cluster.put(&machine_set("win", 1)).unwrap();
    let waiting = async {
        loop {
            let all = cluster.objects("machine.openshift.io", "machines", MACHINE_API_NAMESPACE);
            let address = |machine: &Value| {
                Some(machine.pointer("/status/addresses/0/address")?.as_str()?.to_owned())
            };
            let address = all.first().and_then(|machine| address(machine));
            if let Some(address) = address.filter(|_| !machines.hosts().is_empty()) {
                return address;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap()
}

#[tokio::test]
async fn the_key_of_the_user_data_logs_in_and_no_other() {
    for (platform, user) in
        [(platforms::AZURE, host::AZURE_USER), (platforms::GCP, host::ADMINISTRATOR)]
    {
        let cluster = TestServer::start().await.unwrap();
        let machines = MachineApi::builder().platform(platform).start(&cluster).await.unwrap();
        let key = new_key();
        let public = key.public().authorized_key().parse().unwrap();
        let address = machine(&cluster, &machines, &user_data(platform, &public, None)).await;
        log_in(&machines, &address, user, &key).await.unwrap();
        let refused = log_in(&machines, &address, user, &new_key()).await.unwrap_err();
        assert!(matches!(refused, ConnectError::AuthenticationRefused { .. }), "{refused}");
        let refused = log_in(&machines, &address, "somebody", &key).await.unwrap_err();
        assert!(matches!(refused, ConnectError::AuthenticationRefused { .. }), "{refused}");
        machines.shutdown().await;
    }
}

#[tokio::test]
async fn user_data_without_a_key_lets_nobody_in() {
    let cluster = TestServer::start().await.unwrap();
    let machines = MachineApi::builder().start(&cluster).await.unwrap();
    let key = new_key();
    let public = key.public().authorized_key().parse().unwrap();
    let text = user_data(platforms::NONE, &public, None).replace(&public.to_string(), "# nobody");
    let address = machine(&cluster, &machines, &text).await;
    let refused = log_in(&machines, &address, host::ADMINISTRATOR, &key).await.unwrap_err();
    assert!(matches!(refused, ConnectError::AuthenticationRefused { .. }), "{refused}");
    let nobody = log_in(&machines, "10.0.200.1", host::ADMINISTRATOR, &key).await.unwrap_err();
    assert!(matches!(nobody, ConnectError::Unreachable { .. }), "{nobody}");
    machines.shutdown().await;
}
