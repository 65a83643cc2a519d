//! The name that a cloud's metadata service gives the machine, which is the name of its kubelet there.
//!
//! The daemon starts the kubelet with it ([`services`](crate::services)), and the agent reports it beforehand, so that
//! the operator knows the name of the Node before there is one. Both ask here.
//!
//! Source: `docs/contract/services.md`, SVC44 and SVC45; `docs/contract/wicd.md`, WICD16.

use std::net::{IpAddr, SocketAddr};

use jiff::SignedDuration;
use wmco_core::text::chain;

use crate::scripts::METADATA_SERVICE;
use crate::windows::{HttpAnswer, HttpRequest, Machine};

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(METADATA_SERVICE), 80);

/// A cloud whose machines take the name of their kubelet from its metadata service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cloud {
    /// Amazon Web Services.
    Amazon,
    /// Google Cloud.
    Google,
}

impl Cloud {
    /// The cloud that made a machine, by the makers that its firmware names; `None` for all others, whose networks have
    /// another service at that address, or none.
    ///
    /// ```
    /// use wmco_services::metadata::Cloud;
    ///
    /// assert_eq!(Cloud::of("Amazon EC2, 1.0"), Some(Cloud::Amazon));
    /// assert_eq!(Cloud::of("Xen, 4.11.amazon"), Some(Cloud::Amazon));
    /// assert_eq!(Cloud::of("Google"), Some(Cloud::Google));
    /// assert_eq!(Cloud::of("Microsoft Corporation, American Megatrends"), None);
    /// ```
    #[must_use]
    pub fn of(firmware: &str) -> Option<Self> {
        let firmware = firmware.to_ascii_lowercase();
        let names = |maker| firmware.contains(maker);
        if names("amazon") {
            Some(Self::Amazon)
        } else if names("google") {
            Some(Self::Google)
        } else {
            None
        }
    }

    /// Asks for the name, with at most `limit` for each of up to two requests.
    ///
    /// # Errors
    /// The reason in one line, with what to do.
    pub fn host_name(self, machine: &dyn Machine, limit: SignedDuration) -> Result<String, String> {
        let answer = match self {
            Self::Amazon => amazon(machine, limit)?,
            Self::Google => {
                let path = "/computeMetadata/v1/instance/hostname";
                ask(machine, "GET", path, &[("Metadata-Flavor", "Google")], limit)?
            }
        };
        let answer = answer.ok_or(
            "the instance metadata service does not answer, check the route to 169.254.169.254",
        )?;
        match answer.status {
            200 => Ok(first_name(&answer.body).to_owned()),
            status => Err(format!(
                "the instance metadata service answers {status}, allow it in the instance's options"
            )),
        }
    }
}

/// Asks with a token, as some instances require, or without where the service offers none.
///
/// Source: AWS documentation, "Use the Instance Metadata Service".
fn amazon(machine: &dyn Machine, limit: SignedDuration) -> Result<Option<HttpAnswer>, String> {
    let lifetime = [("X-aws-ec2-metadata-token-ttl-seconds", "60")];
    let token = ask(machine, "PUT", "/latest/api/token", &lifetime, limit)?;
    let token = token.filter(|answer| answer.status == 200);
    let headers = token.iter().map(|token| ("X-aws-ec2-metadata-token", token.body.trim()));
    let headers: Vec<_> = headers.collect();
    ask(machine, "GET", "/latest/meta-data/local-hostname", &headers, limit)
}

fn ask(
    machine: &dyn Machine,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    limit: SignedDuration,
) -> Result<Option<HttpAnswer>, String> {
    let request = HttpRequest { method, address: ADDRESS, path, headers };
    machine.http(&request, limit).map_err(|error| chain(&error))
}

/// A machine in a network with several domains has a name in each; the cloud's controllers use the first, and no Node's
/// name ends with a dot.
fn first_name(body: &str) -> &str {
    body.split_whitespace().next().unwrap_or_default().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeWindows;
    use crate::limits;

    /// What is told of a service with this answer to requests for a name.
    fn told(cloud: Cloud, status: u16, body: &'static str) -> Result<String, String> {
        let host = FakeWindows::new("winhost");
        host.set_http(move |request| {
            let is_google = request.headers.contains(&("Metadata-Flavor", "Google"));
            match (request.method, request.path) {
                ("GET", "/computeMetadata/v1/instance/hostname") if is_google => {
                    Some(HttpAnswer { status, body: body.to_owned() })
                }
                ("GET", "/latest/meta-data/local-hostname") => {
                    Some(HttpAnswer { status, body: body.to_owned() })
                }
                _ => Some(HttpAnswer { status: 404, body: String::new() }),
            }
        });
        cloud.host_name(&host, limits::METADATA)
    }

    #[test]
    fn of_several_names_the_first_counts_without_its_last_dot() {
        for cloud in [Cloud::Amazon, Cloud::Google] {
            for body in [
                "a.corp.example",
                "a.corp.example.\n",
                "a.corp.example b.example",
                " a.corp.example. b.",
            ] {
                assert_eq!(told(cloud, 200, body).as_deref(), Ok("a.corp.example"), "{body}");
            }
        }
    }

    #[test]
    fn a_refusal_is_no_name() {
        for cloud in [Cloud::Amazon, Cloud::Google] {
            assert!(told(cloud, 403, "Forbidden").is_err_and(|why| why.contains("answers 403")));
        }
    }

    #[test]
    fn other_machines_are_asked_nothing() {
        for makers in ["", "Microsoft Corporation", "VMware, Inc.", "Nutanix", "Xen, 4.17"] {
            assert_eq!(Cloud::of(makers), None, "{makers}");
        }
    }
}
