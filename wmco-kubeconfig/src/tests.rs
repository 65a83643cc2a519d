//! What a kubeconfig may hold, and that nothing of it is told or ends the program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::client::ConfigExt as _;
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tower::{Layer as _, Service as _};
use wmco_core::text::chain;

use super::*;

/// Part of every value that must not be told.
const SECRET: &str = "hush";

/// Base64 of a certificate and of its key.
static IDENTITY: LazyLock<(String, String)> = LazyLock::new(|| {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap();
    (STANDARD.encode(certificate.pem()), STANDARD.encode(key.serialize_pem()))
});

/// A kubeconfig whose cluster and user have these fields.
fn kubeconfig(cluster: &Value, user: &Value) -> String {
    json!({
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "hans", "user": user}],
        "contexts": [{"name": "all", "context": {"cluster": "lab", "user": "hans"}}],
        "current-context": "all",
    })
    .to_string()
}

/// The configuration that a kubeconfig gives, and whether a client can be made of it; else every word of the error.
fn read(text: &str) -> Result<Config, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let told = |error: &dyn std::error::Error| format!("{} {error:?}", chain(error));
    let kubeconfig = parse(text.as_bytes()).map_err(|error| told(&error))?;
    let config = infer_in(kubeconfig, |_| None).map_err(|error| told(&error))?;
    client(config.clone()).map_err(|error| told(&error))?;
    Ok(config)
}

#[track_caller]
fn refused(cluster: &Value, user: &Value, expected: &str) {
    let error = read(&kubeconfig(cluster, user)).unwrap_err();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains(SECRET), "{error}");
}

fn server(url: &str) -> Value {
    json!({"server": url, "certificate-authority-data": IDENTITY.0})
}

#[tokio::test]
async fn a_field_that_cannot_be_used_is_named_without_its_value() {
    let lab = server("https://10.0.0.1:6443");
    let with = |field: &str, value: &str| {
        let mut cluster = lab.clone();
        cluster[field] = json!(value);
        cluster
    };
    let no_pem = STANDARD.encode(SECRET);
    let no_certificate =
        STANDARD.encode("-----BEGIN CERTIFICATE-----\naHVzaA==\n-----END CERTIFICATE-----\n");
    let other_key = STANDARD.encode(KeyPair::generate().unwrap().serialize_pem());
    for (field, value, expected) in [
        ("server", "", "is missing"),
        ("server", "https://hush:99999", "a port that no host has"),
        ("server", "https://hush hush", "SCHEME://HOST:PORT"),
        ("server", "https://u:hush%zz@api.test", "%25"),
        ("server", "ftp://hush", "another scheme"),
        ("certificate-authority-data", "%hush", "base64"),
        ("certificate-authority-data", &no_pem, "has no certificate in PEM"),
        ("tls-server-name", "hush hush", "is no name of a host"),
        ("proxy-url", "ftp://u:hush@p.test", "another scheme"),
        ("proxy-url", "http://u:hu hush@p.test", "SCHEME://HOST:PORT"),
        ("proxy-url", "http://u:hu/hush@p.test", "write / as %2F"),
        ("proxy-url", "http://u:hush%zz@p.test", "%25"),
        ("proxy-url", "socks5://u:hush@p.test", "user and password"),
    ] {
        refused(&with(field, value), &json!({}), &format!("cluster lab: correct field `{field}`"));
        refused(&with(field, value), &json!({}), expected);
    }
    for (user, field, expected) in [
        (json!({"token": "hush\n"}), "token", "a line end"),
        (json!({"token": "hush\u{1}"}), "token", "a line end"),
        (json!({"as": "hush\r"}), "as", "a line end"),
        (json!({"as-groups": ["hush\n"]}), "as-groups", "a line end"),
        (json!({"as-user-extra": {"a": ["hush\n"]}}), "as-user-extra", "a line end"),
        (
            json!({"client-certificate-data": no_pem, "client-key-data": IDENTITY.1}),
            "client-certificate-data",
            "has no certificate in PEM",
        ),
        (json!({"client-certificate-data": IDENTITY.0}), "client-key", "is missing"),
        (json!({"client-key-data": IDENTITY.1}), "client-certificate", "is missing"),
        (
            json!({"client-certificate-data": IDENTITY.0, "client-key-data": no_pem}),
            "client-key-data",
            "has no private key in PEM",
        ),
        (
            json!({"client-certificate-data": IDENTITY.0, "client-key-data": other_key}),
            "client-key-data",
            "not the key of the client certificate",
        ),
        (
            json!({"client-certificate-data": no_certificate, "client-key-data": IDENTITY.1}),
            "client-certificate-data",
            "has no certificate in PEM",
        ),
        (json!({"exec": {"args": ["hush"]}}), "exec.command", "is missing"),
        (
            json!({"auth-provider": {"name": "oidc", "config": {"id-token": "hush\n"}}}),
            "auth-provider",
            "a line end",
        ),
    ] {
        refused(&lab, &user, &format!("user hans: correct field `{field}`"));
        refused(&lab, &user, expected);
    }
}

/// As Go reads them: what cannot be read of several certificates is passed over.
#[tokio::test]
async fn certificates_that_cannot_be_read_are_passed_over_beside_others() {
    let good = String::from_utf8(STANDARD.decode(&IDENTITY.0).unwrap()).unwrap();
    let begin = "-----BEGIN CERTIFICATE-----";
    let bad = |text: &str| format!("{begin}\n{text}\n{}\n", begin.replace("BEGIN", "END"));
    for bad in [bad("aHVzaA=="), bad("%hush")] {
        for pem in [format!("{bad}{good}"), format!("{good}{bad}")] {
            let mut cluster = server("https://lab");
            cluster["certificate-authority-data"] = json!(STANDARD.encode(pem));
            let config = read(&kubeconfig(&cluster, &json!({}))).unwrap();
            assert_eq!(config.root_cert.unwrap().len(), 1);
        }
        let mut cluster = server("https://lab");
        cluster["certificate-authority-data"] = json!(STANDARD.encode(bad));
        refused(&cluster, &json!({}), "has no certificate in PEM that can be read");
    }
}

#[tokio::test]
async fn a_user_that_is_not_there_is_named() {
    let text = kubeconfig(&server("https://lab"), &json!({}));
    let other = text.replace("\"user\":\"hans\"", "\"user\":\"ghost\"");
    assert!(read(&other).unwrap_err().contains("has no user ghost"), "{other}");
}

/// kubectl's rule for a host without a scheme: TLS where something in the kubeconfig is about TLS.
#[tokio::test]
async fn a_server_without_a_scheme_is_reached_by_tls_if_the_kubeconfig_says_anything_of_it() {
    let none = json!({});
    let user = json!({"client-certificate-data": IDENTITY.0, "client-key-data": IDENTITY.1});
    for (cluster, user, expected) in [
        (server("10.0.0.1:6443"), &none, "https://10.0.0.1:6443/"),
        (json!({"server": "lab", "insecure-skip-tls-verify": true}), &none, "https://lab/"),
        (json!({"server": "[fd00::1]:6443"}), &user, "https://[fd00::1]:6443/"),
        (json!({"server": "localhost:8080"}), &none, "http://localhost:8080/"),
        (json!({"server": "HTTPS://lab/path/"}), &none, "https://lab/path/"),
    ] {
        let config = read(&kubeconfig(&cluster, user)).unwrap();
        assert_eq!(config.cluster_url.to_string(), expected);
    }
}

#[tokio::test]
async fn a_user_in_the_url_of_the_server_is_the_user() {
    let config =
        read(&kubeconfig(&server("https://me:h%40sh@lab:1/p"), &json!({"token": "t"}))).unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://lab:1/p", "it is in logs");
    assert_eq!(config.auth_info.username.as_deref(), Some("me"));
}

/// kubectl reads empty fields as if they were not there, and sends no credentials in clear text.
#[tokio::test]
async fn empty_fields_are_none_and_credentials_need_tls() {
    let cluster =
        json!({"server": "https://lab", "certificate-authority-data": "", "proxy-url": ""});
    let user = json!({"token": "", "username": "", "tokenFile": "", "client-key": ""});
    let config = read(&kubeconfig(&cluster, &user)).unwrap();
    assert_eq!(config.root_cert, None);
    assert!(config.auth_info.token.is_none() && config.auth_info.token_file.is_none());
    let plain = json!({"server": "http://lab"});
    let config = read(&kubeconfig(&plain, &json!({"token": "hush", "as": "eve"}))).unwrap();
    assert!(config.auth_info.token.is_none());
    assert_eq!(config.auth_info.impersonate.as_deref(), Some("eve"));
}

#[test]
fn a_broken_kubeconfig_is_told_by_its_place_without_a_word_of_it() {
    for (text, place) in [
        ("users:\n- name: a\n  user:\n    token: [hush]\n", "line 4, column 12"),
        ("token: hush\nclusters: hush\n", "line 2, column 11"),
        ("{\"users\":[{\"token\":\"hush\"},}", "line 1, column"),
        ("a: &a [hush]\nb: *b\n", "line 2"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        let told = chain(&error);
        assert!(told.contains("is no kubeconfig") && told.contains(place), "{told}");
        assert!(!format!("{told} {error:?}").contains(SECRET), "{told} {error:?}");
    }
}

/// Editors of Windows write such files. One of them ends amid a character.
#[test]
fn a_kubeconfig_may_be_in_utf_16() {
    let text = "current-context: a";
    let units = || text.encode_utf16();
    let little: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(units().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(units().flat_map(u16::to_be_bytes)).collect();
    let mark: Vec<u8> = [0xef, 0xbb, 0xbf].into_iter().chain(text.bytes()).collect();
    for bytes in [&little, &big, &mark] {
        assert_eq!(parse(bytes).unwrap().current_context.as_deref(), Some("a"));
    }
    for bytes in [&little[..little.len() - 1], &[0xff, 0xfe, 0], b"a\xff"] {
        parse(bytes).unwrap_err();
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn missing_files_of_kubeconfig_are_skipped_and_broken_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let whole: Value =
        serde_json::from_str(&kubeconfig(&server("https://lab"), &json!({"tokenFile": "t"})))
            .unwrap();
    let clusters = write(folder.path(), "a", &json!({"clusters": whole["clusters"]}).to_string());
    let rest = json!({"users": whole["users"], "contexts": whole["contexts"],
        "current-context": "all"});
    let rest = write(folder.path(), "b", &rest.to_string());
    let missing = folder.path().join("missing");
    let read = files::read(&[missing.clone(), clusters.clone(), rest]).unwrap().unwrap();
    let user = read.auth_infos[0].auth_info.as_ref().unwrap();
    let token = folder.path().join("t");
    assert_eq!(user.token_file.as_deref(), token.to_str(), "relative to the file that says so");
    infer_in(read, |_| None).unwrap();
    assert!(files::read(std::slice::from_ref(&missing)).unwrap().is_none());
    let broken = write(folder.path(), "c", "clusters: hush");
    let error = chain(&files::read(&[missing, broken.clone(), clusters]).unwrap_err());
    assert!(error.contains(broken.to_str().unwrap()) && !error.contains(SECRET), "{error}");
}

/// A program that gets credentials.
fn plug_in(script: &str, fields: &Value) -> Value {
    let mut exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
        "args": ["-c", script, SECRET], "env": [{"name": "PASSWORD", "value": SECRET}],
        "interactiveMode": "Never", "provideClusterInfo": true,
    });
    for (name, value) in fields.as_object().unwrap() {
        exec[name] = value.clone();
    }
    json!({"exec": exec})
}

#[cfg(unix)]
#[tokio::test]
async fn a_plug_in_that_fails_is_named_without_what_it_is_given_and_prints() {
    let mut cluster = server("https://lab");
    cluster["proxy-url"] = json!("http://u:hush@p.test:1");
    for (script, fields, expected) in [
        ("echo hush; echo hush >&2; exit 3", json!({}), "`sh` ended with exit status: 3"),
        ("echo '{hush'", json!({}), "`sh` printed no credentials"),
        ("echo '{}'", json!({}), "`sh` printed no credentials"),
        (r#"echo '{"status":{"token":"hush\\n"}}'"#, json!({}), "`sh` printed a token with"),
        ("", json!({"command": "/nix/plug"}), "`/nix/plug` does not start"),
    ] {
        refused(&cluster, &plug_in(script, &fields), expected);
    }
    let token = r#"echo '{"status":{"token":"fine"}}'"#;
    read(&kubeconfig(&cluster, &plug_in(token, &json!({})))).unwrap();
}

/// Every field of cluster and user with a text, and whether it is one that names a file, which errors show.
const FIELDS: [(bool, &str, bool); 21] = [
    (false, "server", false),
    (false, "certificate-authority-data", false),
    (false, "certificate-authority", true),
    (false, "proxy-url", false),
    (false, "tls-server-name", false),
    (true, "token", false),
    (true, "tokenFile", true),
    (true, "username", false),
    (true, "password", false),
    (true, "client-certificate-data", false),
    (true, "client-certificate", true),
    (true, "client-key-data", false),
    (true, "client-key", true),
    (true, "as", false),
    (true, "as-uid", false),
    (true, "as-groups", false),
    (true, "as-user-extra", false),
    (true, "exec.args", false),
    (true, "exec.env", false),
    (true, "exec.command", true),
    (true, "auth-provider", false),
];

fn hostile() -> impl Strategy<Value = String> {
    let begin = prop::sample::select(vec![
        "",
        "http://",
        "https://",
        "socks5://",
        "://",
        "10.0.0.1:6443/",
        "[::1",
        "%zz",
        "\n",
        "\0",
        "ü",
        "@",
        ":@",
        "-----BEGIN CERTIFICATE-----\n",
        "-----BEGIN PRIVATE KEY-----\n",
        "/",
        "=",
        " ",
    ]);
    let end = prop::sample::select(vec![
        "",
        "\n",
        "\r\n",
        ":99999",
        ":",
        "@h",
        "@h:1",
        "/x?y#z",
        "%",
        "\u{7f}",
        "\u{202e}",
        "]",
        "\n-----END CERTIFICATE-----\n",
        "\n-----END PRIVATE KEY-----",
        "\0",
        "\\",
        "'",
    ]);
    (begin, ".{0,6}", end, any::<bool>()).prop_map(|(begin, middle, end, encoded)| {
        let text = format!("{begin}{middle}{SECRET}{end}");
        if encoded { STANDARD.encode(text) } else { text }
    })
}

fn with_text(field: &str, text: &str) -> Value {
    match field.split_once('.') {
        Some((_, "args")) => json!({"exec": {"command": "/nix/none", "args": [text]}}),
        Some((_, "env")) => {
            json!({"exec": {"command": "/nix/none", "env": [{"name": text, "value": text}]}})
        }
        Some(_) => json!({"exec": {"command": format!("/nix/{text}")}}),
        None if field == "as-groups" => json!({field: [text]}),
        None if field == "as-user-extra" => json!({field: {text: [text]}}),
        None if field == "auth-provider" => {
            json!({field: {"name": "oidc", "config": {"id-token": text}}})
        }
        None => json!({field: text}),
    }
}

proptest! {
    /// Whatever a field holds, the program goes on, and no error tells it.
    #[test]
    fn no_value_ends_the_program_or_is_told(
        (of_user, field, is_file) in prop::sample::select(&FIELDS[..]), text in hostile(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let (mut cluster, mut user) = (server("https://lab"), json!({}));
        let changed = if of_user { &mut user } else { &mut cluster };
        for (name, value) in with_text(field, &text).as_object().unwrap() {
            changed[name] = value.clone();
        }
        if is_file && !of_user {
            cluster.as_object_mut().unwrap().remove("certificate-authority-data");
        }
        match read(&kubeconfig(&cluster, &user)) {
            Ok(config) => {
                // What each request does with the server's URL.
                let mut service = config.base_uri_layer().layer(tower::service_fn(
                    |request: http::Request<()>| async move { Ok::<_, io::Error>(request) },
                ));
                let request = http::Request::get("/version").body(()).unwrap();
                let request = runtime.block_on(service.call(request)).unwrap();
                prop_assert!(request.uri().host().is_some_and(|host| !host.is_empty()));
            }
            Err(error) => {
                prop_assert!(is_file || !error.contains(SECRET), "{field} {error}");
                // Otherwise a panic of kube was caught.
                prop_assert!(!error.contains("plug-in") || field.starts_with("exec"), "{field} {error}");
            }
        }
    }
}
