//! `render`: files as they would be written, on a host or into a cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::ip_network::IpNetwork;
use wmco_core::names::{host, objects};
use wmco_core::render::{
    ContainerdSettings, ServiceAccountToken, containerd_config, kubelet_config, token_kubeconfig,
};
use wmco_core::secret::Secret;

use super::render_bundle::Bundle;
use super::render_credential_provider::CredentialProvider;
use super::render_manifests::Manifests;
use super::render_registries::Registries;
use super::render_services::Services;
use super::render_user_data::UserData;
use super::{Answer, Format, Output, no};
use crate::input::Reader;

/// Which file to print.
///
/// Unless stated otherwise, `-o json` prints the file's exact text and a line end, `-o text` a heading and an
/// indented form.
#[derive(Debug, Subcommand)]
pub enum Render {
    /// Print the operator as a bundle for the Operator Lifecycle Manager.
    ///
    /// `-o json` prints an object with path and text.
    Bundle(Box<Bundle>),
    /// Print containerd's own configuration.
    ///
    /// `-o json` prints an object with path and exact text. Settings are read from the operator's environment
    /// variables: CONTAINERD_PAUSE_IMAGE, CONTAINERD_SNAPSHOTTER, CONTAINERD_RUNTIMES,
    /// CONTAINERD_DEFAULT_RUNTIME, CONTAINERD_LOG_LEVEL.
    ContainerdConfig(ContainerdConfig),
    /// Print the image credential providers of kubelets on AWS.
    ///
    /// `-o yaml` prints the file's exact text, `-o json` the same as JSON.
    CredentialProvider(CredentialProvider),
    /// Print the kubeconfig with a token that the kubelet or WICD starts with.
    Kubeconfig(Kubeconfig),
    /// Print the kubelet's configuration.
    KubeletConfig(KubeletConfig),
    /// Print the manifests that install the operator in a cluster.
    ///
    /// `-o json` prints a List, other forms YAML with comments.
    Manifests(Manifests),
    /// Print containerd's registry configuration for mirrors, with credentials.
    ///
    /// `-o json` prints an object with path and exact text. Warnings about the objects go to standard
    /// error.
    Registries(Registries),
    /// Print the services ConfigMap.
    Services(Box<Services>),
    /// Print the Secret that lets the operator log in to new machines.
    ///
    /// `-o text` prints the user data alone, in the form that a cloud takes; other forms print the Secret.
    UserData(UserData),
}

/// Arguments of `render containerd-config`.
#[derive(Args, Debug)]
pub struct ContainerdConfig {
    #[command(flatten)]
    output: Output,
}

/// Arguments of `render kubeconfig`.
#[derive(Args, Debug)]
pub struct Kubeconfig {
    /// Internal URL of the API server.
    #[arg(long, value_name = "URL")]
    api_server: String,
    /// File with the certificates of the API server's authority; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    ca_file: PathBuf,
    /// File with the token; used unchanged, with any line end.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Name of the user: `kubelet` or `wicd`.
    #[arg(long, value_name = "NAME")]
    user: String,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `render kubelet-config`.
#[derive(Args, Debug)]
pub struct KubeletConfig {
    /// Service network of the cluster, for example 172.30.0.0/16.
    #[arg(long, value_name = "CIDR")]
    service_cidr: IpNetwork,
    #[command(flatten)]
    output: Output,
}

impl Render {
    /// Prints the file.
    ///
    /// # Errors
    /// An input file cannot be read, or the output cannot be written.
    pub fn run(self) -> anyhow::Result<Answer> {
        match self {
            Self::Bundle(bundle) => bundle.run(),
            Self::ContainerdConfig(config) => config.run(),
            Self::CredentialProvider(provider) => provider.run(),
            Self::Kubeconfig(kubeconfig) => kubeconfig.run(),
            Self::KubeletConfig(config) => config.run(),
            Self::Manifests(manifests) => manifests.run(),
            Self::Registries(registries) => registries.run(),
            Self::Services(services) => services.run(),
            Self::UserData(user_data) => user_data.run(),
        }
    }
}

impl ContainerdConfig {
    fn run(self) -> anyhow::Result<Answer> {
        let settings = match ContainerdSettings::from_environment(|name| std::env::var(name).ok()) {
            Ok(settings) => settings,
            Err(error) => return Ok(no(error)),
        };
        let (path, text) = (host::CONTAINERD_CONFIG, containerd_config(&settings));
        self.output.print(&BTreeMap::from([(path, &text)]), || {
            let digest = Sha256::of(text.as_bytes());
            format!("{path}: {} bytes, SHA-256 {digest}\n\n{text}", text.len())
        })?;
        Ok(Answer::Yes)
    }
}

impl Kubeconfig {
    fn run(self) -> anyhow::Result<Answer> {
        let mut reader = Reader::new(std::io::stdin());
        let ca = reader.bytes(&self.ca_file)?;
        let token = Secret::new(reader.bytes(&self.token_file)?);
        match token_kubeconfig(&self.api_server, &self.user, &ServiceAccountToken { ca, token }) {
            Ok(text) => {
                let path = if self.user == objects::WICD_KUBECONFIG_USER {
                    host::WICD_KUBECONFIG
                } else {
                    host::BOOTSTRAP_KUBECONFIG
                };
                print(self.output, path, std::str::from_utf8(text.expose())?)
            }
            Err(error) => Ok(no(error)),
        }
    }
}

impl KubeletConfig {
    fn run(self) -> anyhow::Result<Answer> {
        match self.service_cidr.cluster_dns() {
            Ok(dns) => print(self.output, host::KUBELET_CONFIG, &kubelet_config(dns)),
            Err(error) => Ok(no(error)),
        }
    }
}

/// Prints `json`, the text of the file `path`.
fn print(output: Output, path: &str, json: &str) -> anyhow::Result<Answer> {
    if output.format == Format::Json {
        super::output::print(&format!("{json}\n"))?;
        return Ok(Answer::Yes);
    }
    let value: Value = serde_json::from_str(json)?;
    let pretty = serde_json::to_string_pretty(&value)?;
    let (length, digest) = (json.len(), Sha256::of(json.as_bytes()));
    output.print(&value, || format!("{path}: {length} bytes, SHA-256 {digest}\n\n{pretty}\n"))?;
    Ok(Answer::Yes)
}
