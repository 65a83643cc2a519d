use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Namespace;
use kube::Config;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube_testserver::TestServer;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional,
};
use tokio::net::{TcpListener, TcpStream};
use wmco_core::text::chain;

use crate::client;

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
    let target = head.split(' ').nth(1).unwrap_or_default();
    let port = target.rsplit_once(':').unwrap().1.parse().unwrap();
    heads.lock().unwrap().push(head);
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    connect(client, port).await;
}

/// Copies between a client and what listens at `port` of this host, whatever name the client asked for.
async fn connect(mut client: BufReader<TcpStream>, port: u16) {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    // Either end may go first.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// A proxy of SOCKS 5 for one client without a user; gives the name that it was asked for.
async fn socks(listener: TcpListener) -> String {
    let mut client = BufReader::new(listener.accept().await.unwrap().0);
    let (mut greeting, mut request) = ([0; 3], [0; 5]);
    client.read_exact(&mut greeting).await.unwrap();
    client.write_all(&[5, 0]).await.unwrap();
    client.read_exact(&mut request).await.unwrap();
    let mut name = vec![0; usize::from(request[4])];
    client.read_exact(&mut name).await.unwrap();
    let port = client.read_u16().await.unwrap();
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    tokio::spawn(connect(client, port));
    String::from_utf8(name).unwrap()
}

/// The kubeconfig of `cluster`, with its server under another name.
fn kubeconfig(cluster: &TestServer, server: &str) -> Kubeconfig {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let mut kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let found = kubeconfig.clusters[0].cluster.as_mut().unwrap();
    found.server = Some(server.to_owned());
    found.tls_server_name = Some("localhost".to_owned());
    kubeconfig
}

fn variable(set: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
}

/// What the kubeconfig of `cluster` says, with its server under another name, in this environment.
fn config(cluster: &TestServer, server: &str, set: &[(&str, &str)]) -> Config {
    crate::infer_in(kubeconfig(cluster, server), variable(set)).unwrap()
}

async fn list(config: Config) -> kube::Result<usize> {
    let namespaces: kube::Api<Namespace> = kube::Api::all(client(config).unwrap());
    Ok(namespaces.list(&ListParams::default()).await?.items.len())
}

#[tokio::test]
async fn the_cluster_is_asked_through_the_proxy_or_not_as_no_proxy_says() {
    let (cluster, proxy) = (TestServer::start().await.unwrap(), Proxy::start().await);
    let port = cluster.address().port();
    let here = format!("https://127.0.0.1:{port}");
    let named = format!("https://api.test:{port}");
    let with = |user: &str| format!("{user}127.0.0.1:{}", proxy.port);
    for (server, url, user) in [
        // What a proxy gets is user and password in base64.
        (&named, with("http://user:p%40ss@"), Some("user:p@ss")),
        (&named, with("http://user:p@ss@"), Some("user:p@ss")),
        (&named, with("user:p@ss@"), Some("user:p@ss")),
        (&named, with("http://user@"), Some("user:")),
        (&named, with(" http://"), Some("")),
        (&here, with("http://user:p%40ss@"), None),
    ] {
        assert!(list(config(&cluster, server, &[("HTTPS_PROXY", &url)])).await.unwrap() > 0);
        let asked = proxy.asked();
        assert_eq!(asked.is_empty(), user.is_none(), "{server} {url}: {asked:?}");
        let user = user.filter(|user| !user.is_empty()).map(|user| STANDARD.encode(user));
        for head in asked {
            assert!(head.starts_with("CONNECT api.test:"), "{head}");
            let sent = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": Basic ")?;
                name.eq_ignore_ascii_case("proxy-authorization").then(|| value.to_owned())
            });
            assert_eq!(sent, user, "{url}");
        }
    }
}

#[tokio::test]
async fn a_proxy_of_socks_is_used() {
    let cluster = TestServer::start().await.unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("socks5://{}", listener.local_addr().unwrap());
    let server = format!("https://api.test:{}", cluster.address().port());
    let asked = tokio::spawn(socks(listener));
    assert!(list(config(&cluster, &server, &[("HTTPS_PROXY", &url)])).await.unwrap() > 0);
    assert_eq!(asked.await.unwrap(), "api.test");
}

/// The servers that a NO_PROXY means; none of these names leads anywhere. Cases where Go's programs go through the
/// proxy have `false`.
#[tokio::test]
async fn no_proxy_is_matched_by_the_server_as_go_does() {
    let cluster = TestServer::start().await.unwrap();
    for (server, no_proxy, direct) in [
        ("https://api.lab.test:6443", ".lab.test", true),
        ("https://api.lab.test:6443", "lab.test", true),
        ("https://api.lab.test:6443", "*.lab.test", true),
        ("https://api.lab.test:6443", "*.lab.test:6443", true),
        ("https://api.lab.test:6443", "API.Lab.test", true),
        ("https://lab.test", "lab.test", true),
        ("https://lab.test", ".lab.test", false),
        ("https://lab.test", "*.lab.test", false),
        ("https://api.lab.test:6443", "*lab.test", false),
        ("https://api.lab.test:6443", "api.*.test", false),
        ("https://api.lab.test:6443", "lab.test:6443", true),
        ("https://api.lab.test:6443", "lab.test:", true),
        ("https://api.lab.test:6443", "lab.test:443", false),
        ("https://api.lab.test:6443", ":6443", false),
        ("https://api.lab.test", "lab.test:443", true),
        ("http://api.lab.test", "lab.test:80", true),
        ("https://api.lab.test:6443", "b.test", false),
        ("https://api.lab.test:6443", "proxy.test", false),
        ("https://api.lab.test:6443", "", false),
        ("https://api.lab.test:6443", "x,*", true),
        ("https://api.lab.test:6443", "<local>, a.test/,10.0.0.0/99,.lab.test", true),
        ("https://api.lab.test:6443", "<local>,10.0.0.0/8 10.1.0.0/16,http://", false),
        ("https://10.1.2.3:6443", "10.0.0.0/8, 127.0.0.0/8", true),
        ("https://10.1.2.3:6443", "10.1.2.3", true),
        ("https://10.1.2.3:6443", "::ffff:10.1.2.3", true),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", true),
        ("https://10.1.2.3:6443", "10.1.2.3:443", false),
        ("https://10.1.2.3:6443", "10.0.0.0/8:6443", false),
        ("https://10.1.2.3:6443", "10.1", false),
        ("https://10.1.2.3:6443", "*", true),
        ("https://[fd00::5]:6443", "fd00::/8", true),
        ("https://[fd00::5]:6443", "[fd00::5]:6443", true),
        ("https://[fd00::5]:6443", "fd00::6", false),
        ("https://localhost:6443", "", true),
        ("https://127.0.0.5:6443", "", true),
        ("https://[::1]:6443", "", true),
        ("https://[::ffff:127.0.0.1]:6443", "", true),
        ("https://localhost.test:6443", "", false),
    ] {
        let proxy = "http://user:word@proxy.test:3128";
        let set = [("https_proxy", proxy), ("http_proxy", proxy), ("no_proxy", no_proxy)];
        let url = config(&cluster, server, &set).proxy_url;
        assert_eq!(url.is_none(), direct, "{server} {no_proxy}");
        assert!(url.is_none_or(|url| url.to_string().starts_with(proxy)));
    }
}

#[tokio::test]
async fn a_proxy_of_the_environment_may_be_short_and_is_refused_if_it_is_none() {
    let cluster = TestServer::start().await.unwrap();
    let of = |server: &str, set: &[(&str, &str)]| {
        crate::infer_in(kubeconfig(&cluster, server), variable(set))
            .map(|config| config.proxy_url.map(|url| url.to_string()))
    };
    let (tls, plain) = ("https://a.test", "http://a.test");
    for (server, name, text, expected) in [
        (tls, "HTTPS_PROXY", "p.test:3128", Some("http://p.test:3128/")),
        (tls, "HTTPS_PROXY", "u:w@p.test:3128", Some("http://u:w@p.test:3128/")),
        (tls, "HTTPS_PROXY", "https://u@p.test", Some("https://u:@p.test/")),
        (tls, "HTTPS_PROXY", "socks5h://p.test", Some("socks5://p.test:1080/")),
        (tls, "HTTPS_PROXY", "  ", None),
        (tls, "HTTP_PROXY", "http://p.test", None),
        (plain, "HTTP_PROXY", "http://p.test", Some("http://p.test/")),
        (plain, "HTTPS_PROXY", "http://p.test", None),
    ] {
        assert_eq!(of(server, &[(name, text)]).unwrap().as_deref(), expected, "{text}");
    }
    for text in [
        "socks5://user:hush@p.test:1080",
        "ftp://hush@p.test",
        "http://u:hu hush@p.test",
        "http://u:hush%zz@p.test",
        "u:hu/hush@p.test",
        "hush:99999",
        "http://",
    ] {
        let set = [("HTTPS_PROXY", text)];
        let error = of(tls, &set).unwrap_err();
        let told = chain(&error);
        assert!(told.starts_with("variable HTTPS_PROXY names no proxy"), "{told}");
        assert!(!format!("{told} {error:?}").contains("hush"), "{told} {error:?}");
        assert_eq!(of(tls, &[set[0], ("NO_PROXY", "a.test")]).unwrap(), None);
        let daemon = crate::config_in(kubeconfig(&cluster, tls), variable(&set)).unwrap();
        assert!(daemon.proxy_url.is_none(), "it has to read the correction");
    }
}

#[tokio::test]
async fn a_proxy_that_is_away_is_named_without_its_password() {
    let cluster = TestServer::start().await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://user:hush@{closed}");
    let config = config(&cluster, "https://api.test", &[("HTTPS_PROXY", &url)]);
    let error = list(config).await.unwrap_err();
    let text = chain(&error);
    assert!(text.contains(&format!("through the proxy {closed}, check")), "{text}");
    assert!(!text.contains("hush") && !format!("{error:?}").contains("hush"), "{text}");
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_comes_first_and_needs_a_scheme() {
    let cluster = TestServer::start().await.unwrap();
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let with = |url: &str| {
        let mut kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        kubeconfig.clusters[0].cluster.as_mut().unwrap().proxy_url = Some(url.to_owned());
        crate::infer_in(kubeconfig, |_| Some("http://other.test:3128".to_owned()))
    };
    let url = with("http://user:hush@proxy.test:3128").unwrap().proxy_url.unwrap();
    assert_eq!(url.to_string(), "http://user:hush@proxy.test:3128/");
    let error = with("proxy.test:3128").unwrap_err();
    assert!(chain(&error).contains("field `proxy-url`"), "kubectl wants the scheme there: {error}");
}
