//! Decides certificate requests by a custom policy, and prints every check.
//!
//! ```text
//! cargo run -p wmco-examples --example csr_policy
//! ```
//!
//! The cluster has one Windows host, whose nodes are bootstrapped by another service account than OpenShift's.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use wmco_csr::{Facts, Policy, Request, Verdict, View, decide};

const BOOTSTRAPPER: &str = "system:serviceaccount:windows:bootstrapper";

fn main() -> anyhow::Result<()> {
    let mut policy = Policy::new("windows");
    policy.bootstrapper.username = BOOTSTRAPPER.into();
    policy.bootstrapper.groups = vec!["system:serviceaccounts:windows".to_owned()];
    policy.machine_approver = false;
    policy.limits.kubelet_lifetime = SignedDuration::from_hours(90 * 24);

    let facts: Facts = serde_json::from_str(r#"{"hostnames": {"192.0.2.7": "WIN-7"}}"#)?;
    let mut view = View::new();
    view.set_instances([("192.0.2.7", None)], &facts);

    let year = 365 * 24 * 60 * 60;
    let requests = [
        ("of the host", request("win-7", BOOTSTRAPPER, None)?),
        ("for a year", request("win-7", BOOTSTRAPPER, Some(year))?),
        ("of a user", request("win-7", "jane", None)?),
        ("of another host", request("win-8", BOOTSTRAPPER, None)?),
    ];
    for (name, request) in requests {
        view.set_request(&request);
        let decision = decide(&Request::from(&request), &policy, &view, Timestamp::now());
        println!("--- {name}\n{decision}\n");
        if let Verdict::Approve(approval) = decision.into_verdict() {
            // The condition that a controller would write to the request's subresource `approval`.
            let condition = approval.condition(Timestamp::now());
            println!("{}\n", serde_json::to_string_pretty(&condition)?);
        }
    }
    Ok(())
}

/// Returns the request of a kubelet on `host` at its first start.
fn request(
    host: &str,
    username: &str,
    seconds: Option<i32>,
) -> anyhow::Result<CertificateSigningRequest> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{host}"));
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;

    let mut object = CertificateSigningRequest::default();
    object.metadata.name = Some(format!("csr-{host}"));
    object.spec.request = ByteString(pem.into_bytes());
    object.spec.signer_name = "kubernetes.io/kube-apiserver-client-kubelet".into();
    object.spec.usages = Some(vec!["digital signature".to_owned(), "client auth".to_owned()]);
    object.spec.expiration_seconds = seconds;
    object.spec.username = Some(username.to_owned());
    object.spec.groups = Some(vec!["system:serviceaccounts:windows".to_owned()]);
    Ok(object)
}
