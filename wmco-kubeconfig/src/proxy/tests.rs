use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube_testserver::TestServer;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use wmco_core::text::chain;

use super::*;

/// A proxy on loopback that opens tunnels and keeps what it is asked.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heads = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(tunnel(client, Arc::clone(&heads)));
            }
        });
        Self { port, asked }
    }

    /// The heads of all requests so far, which are forgotten.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn tunnel(client: TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    let mut client = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.read_line(&mut head).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heads.lock().unwrap().push(head);
    let mut server = TcpStream::connect(target).await.unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    // Either end may go first.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// What the kubeconfig of `cluster` says, with its server under another name, in this environment.
fn config(cluster: &TestServer, server: &str, set: &[(&str, &str)]) -> Config {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let mut kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let found = kubeconfig.clusters[0].cluster.as_mut().unwrap();
    found.server = Some(server.to_owned());
    let variable = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    crate::config_in(kubeconfig, variable).unwrap()
}

async fn list(config: Config) -> kube::Result<usize> {
    let namespaces: kube::Api<Namespace> = kube::Api::all(client(config)?);
    Ok(namespaces.list(&ListParams::default()).await?.items.len())
}

#[tokio::test]
async fn the_cluster_is_asked_through_the_proxy_or_not_as_no_proxy_says() {
    let (cluster, proxy) = (TestServer::start().await.unwrap(), Proxy::start().await);
    let port = cluster.address().port();
    let (by_address, by_name) =
        (format!("https://127.0.0.1:{port}"), format!("https://localhost:{port}"));
    let url = format!("http://user:p%40ss@127.0.0.1:{}", proxy.port);
    let (with_port, other_port) = (format!("localhost:{port}"), "localhost:1,127.0.0.1:1");
    let address_with_port = format!("127.0.0.1:{port}");
    for (server, no_proxy, direct) in [
        (&by_address, "10.0.0.0/8, 127.0.0.0/8", true),
        (&by_address, "127.0.0.1", true),
        (&by_address, address_with_port.as_str(), true),
        (&by_address, "*", true),
        (&by_name, "other.test,localhost", true),
        (&by_name, with_port.as_str(), true),
        (&by_address, "", false),
        (&by_address, "10.0.0.0/8,localhost", false),
        (&by_address, other_port, false),
        (&by_name, "host,127.0.0.0/8", false),
        (&by_name, other_port, false),
    ] {
        let set = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", no_proxy)];
        let count = list(config(&cluster, server, &set)).await.unwrap();
        assert!(count > 0, "{server} {no_proxy}");
        let asked = proxy.asked();
        assert_eq!(asked.is_empty(), direct, "{server} {no_proxy}: {asked:?}");
        // The text of user and password in base64.
        let authorization = "basic dxnlcjpwqhnz".to_owned();
        assert!(
            asked.iter().all(|head| {
                let head = head.to_ascii_lowercase();
                head.starts_with("connect ") && head.contains(&authorization)
            }),
            "{asked:?}"
        );
    }
}

/// The servers that a NO_PROXY with a suffix means; none of these names leads anywhere.
#[tokio::test]
async fn suffixes_and_networks_are_matched_by_the_server() {
    let cluster = TestServer::start().await.unwrap();
    for (server, no_proxy, direct) in [
        ("https://api-int.example.test:6443", ".example.test", true),
        ("https://api-int.example.test:6443", "example.test", true),
        ("https://api-int.example.test:6443", "example.test:6443", true),
        ("https://api-int.example.test:6443", "example.test:443", false),
        ("https://api-int.example.test", "example.test:443", true),
        ("https://api-int.example.test:6443", "ample.test", false),
        ("https://api-int.example.test:6443", "proxy.test", false),
        ("https://api-int.example.test:6443", "<local>, a.test/,10.0.0.0/99,.example.test", true),
        ("https://api-int.example.test:6443", "<local>,10.0.0.0/8 10.1.0.0/16,http://", false),
        ("https://[fd00::5]:6443", "fd00::/8", true),
        ("https://[fd00::5]:6443", "[fd00::5]:6443", true),
        ("https://[fd00::5]:6443", "fd00::6", false),
    ] {
        let set = [("https_proxy", "http://user:word@proxy.test:3128"), ("no_proxy", no_proxy)];
        let url = config(&cluster, server, &set).proxy_url;
        assert_eq!(url.is_none(), direct, "{server} {no_proxy}");
        assert!(
            url.is_none_or(|url| url.to_string().starts_with("http://user:word@proxy.test:3128"))
        );
    }
    let set = [("HTTPS_PROXY", "proxy.test:3128"), ("NO_PROXY", "")];
    let url = config(&cluster, "https://a.test", &set).proxy_url.unwrap();
    assert_eq!(url.to_string(), "http://proxy.test:3128/", "without a scheme it speaks HTTP");
    let set = [("HTTPS_PROXY", "socks5://user:word@proxy.test:1080")];
    let config = config(&cluster, "https://a.test", &set);
    assert!(config.proxy_url.is_none(), "kube would name it in an error, with its password");
}

#[tokio::test]
async fn a_proxy_that_is_away_is_named_without_its_password() {
    let cluster = TestServer::start().await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://user:hush@{closed}");
    let config = config(&cluster, &cluster.url(), &[("HTTPS_PROXY", &url)]);
    let error = list(config).await.unwrap_err();
    let text = chain(&error);
    assert!(text.contains(&format!("through the proxy {closed}, check")), "{text}");
    assert!(!text.contains("hush") && !format!("{error:?}").contains("hush"), "{text}");
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_comes_first_and_its_password_is_not_told() {
    let cluster = TestServer::start().await.unwrap();
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let with = |url: &str| {
        let mut kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        kubeconfig.clusters[0].cluster.as_mut().unwrap().proxy_url = Some(url.to_owned());
        crate::config_in(kubeconfig, |_| Some("http://other.test:3128".to_owned()))
    };
    let url = with("http://user:hush@proxy.test:3128").unwrap().proxy_url.unwrap();
    assert_eq!(url.to_string(), "http://user:hush@proxy.test:3128/");
    for wrong in ["socks5://user:hush@proxy.test:1080", "http://user:hush@proxy test"] {
        let error = with(wrong).unwrap_err();
        let text = chain(&error);
        assert!(text.starts_with("the proxy-url of cluster "), "{text}");
        assert!(!text.contains("hush") && !format!("{error:?}").contains("hush"), "{text}");
    }
}
