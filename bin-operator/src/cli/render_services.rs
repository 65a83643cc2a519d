//! `render services`: the services ConfigMap as the operator would write it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wmco_core::ignition_unit::KEPT_OPTIONS;
use wmco_core::names::objects::{self, services_name};
use wmco_core::proxy::ProxySettings;
use wmco_core::render::ContainerdSettings;
use wmco_services::generate::{self, KubeletArguments, LogSettings, ManifestInputs};
use wmco_services::manifest::Manifest;
use wmco_services::windows::ServiceName;

use super::platform::any_platform;
use super::{Answer, Output, no, tell};
use crate::VERSION;
use crate::config::ConfigError;
use crate::input::{CONFIGURATION, OPERATORS, Objects, Reader, of_cluster};
use crate::openshift::{InfrastructureStatus, ProxyStatus, proxy_settings};

/// Arguments of `render services`.
///
/// Log rotation, containerd's log level and proxy are read from the operator's environment variables:
/// CONTAINERD_LOG_LEVEL, SERVICES_LOG_FILE_SIZE, SERVICES_LOG_FILE_AGE, SERVICES_LOG_FLUSH_INTERVAL, HTTP_PROXY,
/// HTTPS_PROXY, NO_PROXY. Flags and these variables take precedence over files.
#[derive(Args, Debug)]
pub struct Services {
    /// Platform of the cluster, such as AWS or None; default: that of the Infrastructure in -f.
    #[arg(long, value_name = "PLATFORM", value_parser = any_platform)]
    platform: Option<&'static str>,
    /// Enable debug logs of the services.
    #[arg(long)]
    debug: bool,
    /// Port of the hybrid overlay, if not the default.
    #[arg(long, value_name = "PORT", value_parser = port)]
    vxlan_port: Option<Port>,
    /// Internal URL of the API server; default: that of the Infrastructure in -f.
    #[arg(long, value_name = "URL")]
    api_server: Option<String>,
    /// Option of the Linux kubelets; options that Windows kubelets do not support are left out.
    #[arg(long = "kubelet-arg", value_name = "KEY=VALUE", value_parser = option)]
    kubelet: Vec<(String, String)>,
    /// Files with an Infrastructure, a Proxy and a Network of the operators' group; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    /// Namespace of the ConfigMap; default: the operator's default namespace.
    #[arg(long, value_name = "NAMESPACE", default_value = objects::DEFAULT_NAMESPACE)]
    namespace: String,
    /// Version at the end of its name; default: the version of this program.
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    operator_version: String,
    #[command(flatten)]
    output: Output,
}

/// The value of `--vxlan-port`; `None` when it is given and empty, as an unset field is.
#[derive(Clone, Copy, Debug)]
struct Port(Option<u16>);

fn port(text: &str) -> Result<Port, String> {
    if text.is_empty() {
        return Ok(Port(None));
    }
    let port = text.parse().ok().filter(|port| *port > 0);
    port.map(|port| Port(Some(port))).ok_or_else(|| "use a number from 1 to 65535".to_owned())
}

fn option(text: &str) -> Result<(String, String), String> {
    let bare = text.strip_prefix("--").unwrap_or(text);
    let (key, value) =
        bare.split_once('=').ok_or("write KEY=VALUE, such as cloud-provider=external")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Services {
    /// Prints the ConfigMap.
    ///
    /// # Errors
    /// The input cannot be read, or does not say enough.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let objects = Reader::new(std::io::stdin()).objects(&self.files)?;
        let environment = |name: &str| std::env::var(name).ok();
        let inputs = match self.inputs(&objects, environment)? {
            Ok(inputs) => inputs,
            Err(wrong) => return Ok(no(wrong)),
        };
        if inputs.logs.age_without_size() {
            tell("note", LogSettings::AGE_WITHOUT_SIZE);
        }
        let manifest = match generate::manifest(&inputs) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(no(error)),
        };
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(services_name(&self.operator_version)),
                namespace: Some(self.namespace),
                ..ObjectMeta::default()
            },
            immutable: Some(true),
            data: Some(manifest.render().0),
            ..ConfigMap::default()
        };
        self.output.print(&map, || text(&map.metadata, &manifest))?;
        Ok(Answer::Yes)
    }

    /// From flags, files and environment; the inner error is about what people configured.
    fn inputs(
        &self,
        objects: &Objects,
        environment: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Result<ManifestInputs, ConfigError>> {
        let found = Found::read(objects)?;
        let missing = |what, flag| {
            anyhow::anyhow!(
                "the {what} is not known, tell it with {flag} or in a file with the Infrastructure"
            )
        };
        let platform = self.platform.map(str::to_owned).or(found.platform);
        let api_server = self.api_server.clone().or(found.api_server);
        let mut kubelet = BTreeMap::new();
        for (key, value) in &self.kubelet {
            if KEPT_OPTIONS.contains(&key.as_str()) {
                kubelet.insert(key.as_str(), value.clone());
            } else {
                tell("note", &format!("kubelets on Windows do not get the option {key}"));
            }
        }
        let [provider, config] = KEPT_OPTIONS.map(|key| kubelet.remove(key));
        let logs = match LogSettings::from_environment(&environment) {
            Ok(logs) => logs,
            Err(wrong) => return Ok(Err(wrong.into())),
        };
        let containerd = match ContainerdSettings::from_environment(&environment) {
            Ok(containerd) => containerd,
            Err(wrong) => return Ok(Err(wrong.into())),
        };
        let proxy = ProxySettings::from_environment(environment);
        let of_cluster = found.proxy.as_ref().map(ProxyStatus::in_force);
        let proxy = match proxy_settings(&proxy, of_cluster.as_ref().map(Option::as_ref)) {
            Ok(proxy) => proxy,
            Err(wrong) => return Ok(Err(wrong.into())),
        };
        Ok(Ok(ManifestInputs {
            platform: platform.ok_or_else(|| missing("platform", "--platform"))?,
            debug: self.debug,
            containerd_log_level: containerd.log_level,
            vxlan_port: self.vxlan_port.map_or(found.vxlan_port, |port| port.0),
            kubelet: KubeletArguments {
                cloud_provider: provider,
                cloud_config: config,
                ..KubeletArguments::default()
            },
            logs,
            proxy,
            api_server: api_server
                .ok_or_else(|| missing("URL of the API server", "--api-server"))?,
        }))
    }
}

/// What files say.
#[derive(Debug, Default)]
struct Found {
    platform: Option<String>,
    api_server: Option<String>,
    vxlan_port: Option<u16>,
    /// The Proxy.
    proxy: Option<Value>,
}

impl Found {
    fn read(objects: &Objects) -> anyhow::Result<Self> {
        let mut found = Self::default();
        if let Some(infrastructure) = of_cluster(objects, CONFIGURATION, "Infrastructure")? {
            let status: Option<InfrastructureStatus> =
                member(&infrastructure.object, "/status", &infrastructure.at)?;
            let status = status.unwrap_or_default();
            found.platform = status.platform_status.map(|platform| platform.type_);
            found.api_server = Some(status.api_server_internal_uri);
        }
        let proxy = of_cluster(objects, CONFIGURATION, "Proxy")?;
        found.proxy = proxy.map(|proxy| proxy.object.clone());
        if let Some(network) = of_cluster(objects, OPERATORS, "Network")? {
            const PORT: &str = "/spec/defaultNetwork/ovnKubernetesConfig/hybridOverlayConfig/hybridOverlayVXLANPort";
            found.vxlan_port = member(&network.object, PORT, &network.at)?;
        }
        Ok(found)
    }
}

/// What stands at `pointer`; `None` when there is nothing.
fn member<T: DeserializeOwned>(
    object: &Value,
    pointer: &str,
    at: &impl std::fmt::Display,
) -> anyhow::Result<Option<T>> {
    let value = object.pointer(pointer).cloned().unwrap_or_default();
    let field = pointer.trim_start_matches('/').replace('/', ".");
    serde_json::from_value(value)
        .map_err(|error| anyhow::anyhow!("{at}, field `{field}` is wrong, correct it: {error}"))
}

/// Services in start order with their commands, for people. Values of variables are left out.
fn text(metadata: &ObjectMeta, manifest: &Manifest) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let mut text =
        format!("ConfigMap {} in namespace {}\n", name(&metadata.name), name(&metadata.namespace));
    for service in manifest.start_order() {
        let mut about =
            vec![if service.bootstrap { "bootstrap" } else { "needs a node" }.to_owned()];
        if !service.dependencies.is_empty() {
            let needs: Vec<&str> = service.dependencies.iter().map(ServiceName::as_str).collect();
            about.push(format!("after {}", needs.join(", ")));
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{} ({})\n  {}", service.name, about.join("; "), service.command);
        for variable in &service.node_variables_in_command {
            let _ = writeln!(text, "  {} = {}", variable.name, variable.node_object_json_path);
        }
        for script in &service.powershell_pre_scripts {
            let value = if script.variable_name.is_empty() { "run" } else { &script.variable_name };
            let _ = writeln!(text, "  {value} = {}", script.path);
        }
    }
    let set: Vec<&str> = manifest.environment().keys().map(String::as_str).collect();
    if !set.is_empty() {
        let _ = writeln!(text, "\nvariables: {}", set.join(", "));
    }
    text
}
