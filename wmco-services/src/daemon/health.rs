//! Checks whether running services work.
//!
//! The state `Running` only means that a process answered the Service Control Manager once. The kubelet also has a
//! health endpoint, whose port its configuration file sets.
//!
//! Source: Kubernetes documentation, `KubeletConfiguration`, fields `healthzPort` and
//! `healthzBindAddress`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::Value;
use wmco_core::names::host;
use wmco_core::protocol::ServiceRunState;
use wmco_core::winpath::WindowsPath;

use crate::limits;
use crate::windows::{HttpRequest, Service, Windows, WindowsError};

/// Port of the kubelet's health endpoint by default.
const DEFAULT_PORT: u16 = 10_248;

/// Path of the kubelet's health endpoint.
const PATH: &str = "/healthz";

/// Returns one line for each running service whose health endpoint does not report success.
pub(super) fn observe(
    windows: &dyn Windows,
    services: &[Service],
) -> Result<Vec<String>, WindowsError> {
    let kubelet = services.iter().find(|service| {
        service.name.as_str().eq_ignore_ascii_case(host::KUBELET_SERVICE)
            && service.state == ServiceRunState::Running
    });
    let Some(file) = kubelet.and_then(|kubelet| config_file(&kubelet.config.command)) else {
        return Ok(Vec::new());
    };
    let Some(text) = windows.files().read(&file, limits::JSON_BYTES)? else {
        return Ok(Vec::new());
    };
    let Some(address) = endpoint(&text) else { return Ok(Vec::new()) };
    let request = HttpRequest { method: "GET", address, path: PATH, headers: &[] };
    let answer = windows.machine().http(&request, limits::HEALTH)?;
    let says = match answer.map(|answer| answer.status) {
        Some(200) => return Ok(Vec::new()),
        Some(code) => format!("answers {code}"),
        None => "does not answer".to_owned(),
    };
    Ok(vec![format!("service {} runs, but http://{address}{PATH} {says}", host::KUBELET_SERVICE)])
}

/// Returns the configuration file named on a kubelet's command line.
fn config_file(command: &str) -> Option<WindowsPath> {
    let mut words = command.split_whitespace().map(|word| word.trim_matches('"'));
    while let Some(word) = words.next() {
        if let Some(file) = word.strip_prefix("--config=") {
            return file.parse().ok();
        }
        if word == "--config" {
            return words.next()?.parse().ok();
        }
    }
    None
}

/// Returns the health endpoint of a kubelet with this configuration; `None` if it has none.
fn endpoint(config: &[u8]) -> Option<SocketAddr> {
    let config: Value = serde_json::from_slice(config).unwrap_or_default();
    let port = match config.get("healthzPort") {
        Some(port) => u16::try_from(port.as_u64()?).ok().filter(|port| *port > 0)?,
        None => DEFAULT_PORT,
    };
    let address = config.get("healthzBindAddress").and_then(Value::as_str);
    let address = address.and_then(|text| text.parse::<IpAddr>().ok());
    let address = address.filter(|address| !address.is_unspecified());
    Some(SocketAddr::new(address.unwrap_or(Ipv4Addr::LOCALHOST.into()), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeWindows;
    use crate::windows::{ServiceConfig, ServiceManager as _, StartType};

    const FILE: &str = r"C:\k\kubelet.conf";

    /// Returns the report on a kubelet in `state` whose endpoint answers with `status`.
    fn seen(state: ServiceRunState, status: Option<u16>) -> Vec<String> {
        let host = FakeWindows::new("winhost");
        let config = ServiceConfig {
            command: format!("kubelet.exe --config={FILE} --more"),
            description: String::new(),
            dependencies: Vec::new(),
            start: StartType::Manual,
            recovery: None,
        };
        host.add_service(&"Kubelet".parse().unwrap(), &config, state);
        host.put_file(&FILE.parse().unwrap(), r#"{"healthzPort": 4711}"#);
        host.set_http_status(4711, status);
        observe(&host, &host.list().unwrap()).unwrap()
    }

    #[test]
    fn a_kubelet_that_answers_is_well() {
        assert!(seen(ServiceRunState::Running, Some(200)).is_empty());
    }

    #[test]
    fn a_kubelet_that_answers_500_or_nothing_is_not() {
        let expected = "service kubelet runs, but http://127.0.0.1:4711/healthz answers 500";
        assert_eq!(seen(ServiceRunState::Running, Some(500)), [expected]);
        assert_eq!(seen(ServiceRunState::Running, None).len(), 1);
    }

    #[test]
    fn a_kubelet_that_does_not_run_is_not_asked() {
        assert!(seen(ServiceRunState::Stopped, None).is_empty());
    }

    #[test]
    fn the_configuration_says_where() {
        let at = |config: &str| endpoint(config.as_bytes()).map(|address| address.to_string());
        assert_eq!(at("{}").as_deref(), Some("127.0.0.1:10248"));
        assert_eq!(at(r#"{"healthzPort": 0}"#), None);
        let everywhere = r#"{"healthzBindAddress": "0.0.0.0", "healthzPort": 1}"#;
        assert_eq!(at(everywhere).as_deref(), Some("127.0.0.1:1"));
        let one = r#"{"healthzBindAddress": "10.0.0.9"}"#;
        assert_eq!(at(one).as_deref(), Some("10.0.0.9:10248"));
        assert_eq!(config_file(r#"kubelet "--config" C:\k\x"#).unwrap().as_str(), r"C:\k\x");
        assert_eq!(config_file("kubelet --configs=x --config"), None);
    }
}
