//! `render`.

use std::fs;

use bin_operator::cli::{Args, Command};
use clap::Parser as _;
use serde::Deserialize;
use serde_json::Value;
use wmco_core::render::certificate_kubeconfig;

use crate::program::{Run, run, run_in};
use crate::vectors::{Case, cases};

const VECTORS: &str = include_str!("../vectors/kubelet_config.json");

#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Input {
    KubeletConf {
        service_cidr: String,
    },
    Kubeconfig {
        ca: Option<String>,
        token: Option<String>,
        api_server_endpoint: String,
        username: String,
    },
    CertificateKubeconfig {
        ca: Option<String>,
        cert_path: String,
        api_server_endpoint: String,
        username: String,
    },
}

#[derive(Deserialize)]
struct Expect {
    #[serde(default)]
    peer_bug: bool,
    kubelet_conf_text: Option<String>,
    kubeconfig_text: Option<String>,
}

fn kubelet_config(service_cidr: &str) -> Run {
    let cidr = format!("--service-cidr={service_cidr}");
    run(&["render", "kubelet-config", &cidr, "-o", "json"], "")
}

/// Runs `render kubeconfig` with files of these contents, and without the arguments of missing ones.
fn kubeconfig(server: &str, user: &str, ca: Option<&str>, token: Option<&str>) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["render".to_owned(), "kubeconfig".to_owned(), "-o".to_owned()];
    arguments.extend(["json".to_owned(), format!("--api-server={server}")]);
    arguments.push(format!("--user={user}"));
    for (name, content) in [("ca-file", ca), ("token-file", token)] {
        if let Some(content) = content {
            let file = folder.path().join(name);
            fs::write(&file, content).unwrap();
            arguments.push(format!("--{name}={}", file.display()));
        }
    }
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "")
}

/// Byte for byte: a node that is taken over keeps its files.
#[test]
fn the_vectors_hold() {
    let cases: Vec<Case<Input, Expect>> = cases("kubelet_config", VECTORS);
    assert_eq!(cases.len(), 23);
    for Case { name, input, expect } in cases {
        let (run, expected) = match input {
            // Its right answer is an error: the network is IPv4, written as IPv6.
            Input::KubeletConf { service_cidr } if expect.peer_bug => {
                (kubelet_config(&service_cidr), None)
            }
            Input::KubeletConf { service_cidr } => {
                (kubelet_config(&service_cidr), expect.kubelet_conf_text)
            }
            Input::Kubeconfig { ca, token, api_server_endpoint, username } => (
                kubeconfig(&api_server_endpoint, &username, ca.as_deref(), token.as_deref()),
                expect.kubeconfig_text,
            ),
            Input::CertificateKubeconfig { ca, cert_path, api_server_endpoint, username } => {
                let (ca, pem) = (ca.unwrap(), cert_path.parse().unwrap());
                let text =
                    certificate_kubeconfig(&api_server_endpoint, &username, ca.as_bytes(), &pem);
                let text = String::from_utf8(text.unwrap().expose().to_vec()).unwrap();
                assert_eq!(Some(text), expect.kubeconfig_text, "{name}");
                continue;
            }
        };
        if let Some(text) = expected {
            assert_eq!((run.status, run.out.trim_end()), (0, text.as_str()), "{name}: {}", run.err);
        } else {
            assert_ne!(run.status, 0, "{name}");
            assert_eq!(run.out, "", "{name}");
            assert!(run.err.starts_with("error: "), "{name}: {}", run.err);
        }
    }
}

#[test]
fn a_network_that_is_too_small_is_a_no_and_words_are_wrong_usage() {
    assert_eq!(kubelet_config("10.0.0.0/29").status, 1);
    assert_eq!(kubelet_config("words").status, 2);
}

#[test]
fn an_empty_server_is_a_no() {
    let run = kubeconfig("", "wicd", Some("CA"), Some("hush-hush"));
    assert_eq!(run.status, 1);
    assert!(run.err.contains("the API server's URL is empty"), "{}", run.err);
    assert!(!run.err.contains("hush"), "{}", run.err);
}

#[test]
fn the_other_forms_say_the_same() {
    let print =
        |format| run(&["render", "kubelet-config", "--service-cidr=10.0.0.0/8", "-o", format], "");
    let json = print("json").json();
    let yaml: Value = serde_saphyr::from_str(&print("yaml").out).unwrap();
    assert_eq!(yaml, json);
    let text = print("text").out;
    let (heading, body) = text.split_once("\n\n").unwrap();
    assert!(heading.starts_with(r"C:\k\kubelet.conf: 1"), "{heading}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), json);
}

#[test]
fn the_arguments_are_also_a_library() {
    let line = ["wmco-operator", "render", "kubelet-config", "--service-cidr", "10.0.0.0/8"];
    assert!(matches!(Args::parse_from(line).command, Command::Render(_)));
}

#[test]
fn containerd_is_configured_from_the_environment() {
    let render = |environment: &[(&str, &str)], format: &str| {
        let pairs = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        run_in(&pairs.collect(), &["render", "containerd-config", "-o", format], "")
    };
    let path = r"C:\k\containerd\containerd_conf.toml";
    let set = render(&[("CONTAINERD_PAUSE_IMAGE", "a.test/pause:1")], "json");
    let text = set.json()[path].as_str().unwrap().to_owned();
    assert!(text.contains("sandbox_image = \"a.test/pause:1\"\n"), "{text}");
    let usual = render(&[], "text");
    assert!(usual.out.starts_with(&format!("{path}: ")), "{usual:?}");
    assert!(usual.out.contains("default_runtime_name = \"runhcs-wcow-process\"\n"), "{usual:?}");
    let wrong =
        render(&[("CONTAINERD_SNAPSHOTTER", "a b"), ("CONTAINERD_LOG_LEVEL", "loud")], "text");
    let problems = ["variable CONTAINERD_SNAPSHOTTER: ", "variable CONTAINERD_LOG_LEVEL: "];
    wrong.is_refused(1, &problems);
}
