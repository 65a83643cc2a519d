//! `render`: files as they would be written on a host.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::names::{host, objects};
use wmco_core::render::{ServiceNetwork, TokenSecret, kubelet_config, token_kubeconfig};
use wmco_core::secret::Secret;

use super::render_registries::Registries;
use super::render_services::Services;
use super::render_user_data::UserData;
use super::{Answer, Format, Output, no};
use crate::input::Reader;

/// Which file to print.
///
/// `-o json` prints its exact text and a line end, `-o text` a heading and an indented form.
#[derive(Debug, Subcommand)]
pub enum Render {
    /// Print a kubeconfig with a token, as the kubelet and WICD start with.
    Kubeconfig(Kubeconfig),
    /// Print the kubelet's configuration.
    KubeletConfig(KubeletConfig),
    /// Print the files that tell containerd of mirrors, with the credentials in them.
    ///
    /// `-o json` prints an object of path and exact text. What people should know of the objects goes to
    /// standard error.
    Registries(Registries),
    /// Print the services ConfigMap.
    Services(Box<Services>),
    /// Print the Secret that lets the operator log in to new machines.
    ///
    /// `-o text` prints the user data alone, as a cloud takes it, other forms print the Secret with it.
    UserData(UserData),
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
    /// File with the token; it is taken as it is, with any line end.
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
    service_cidr: ServiceNetwork,
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
            Self::Kubeconfig(kubeconfig) => kubeconfig.run(),
            Self::KubeletConfig(config) => config.run(),
            Self::Registries(registries) => registries.run(),
            Self::Services(services) => services.run(),
            Self::UserData(user_data) => user_data.run(),
        }
    }
}

impl Kubeconfig {
    fn run(self) -> anyhow::Result<Answer> {
        let mut reader = Reader::new(std::io::stdin());
        let ca = reader.bytes(&self.ca_file)?;
        let token = Secret::new(reader.bytes(&self.token_file)?);
        match token_kubeconfig(&self.api_server, &self.user, &TokenSecret { ca, token }) {
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
