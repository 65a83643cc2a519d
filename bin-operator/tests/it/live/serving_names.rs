//! Hosts whose Nodes show more than one address, or are called otherwise than their hosts, get their certificates.

use std::net::IpAddr;

use serde_json::Value;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::parse_x509_certificate;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use wmco_core::names::platforms;

use super::scenery::{addresses, is_finished, listed, nodes, until};

const PUBLIC: &str = "203.0.113.7";
const IPV6: &str = "2001:db8::7";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Requests for serving certificates, with their verdicts.
fn serving_requests(stage: &Stage) -> Vec<std::sync::Arc<Value>> {
    let mut all = stage.cluster.objects("certificates.k8s.io", "certificatesigningrequests", "");
    all.retain(|request| request["spec"]["signerName"] == "kubernetes.io/kubelet-serving");
    all
}

/// The addresses in the certificate that was issued for a request.
fn issued_addresses(request: &Value) -> Option<Vec<IpAddr>> {
    use base64::Engine as _;
    let text = request["status"]["certificate"].as_str()?;
    let pem = base64::prelude::BASE64_STANDARD.decode(text).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
    let (_, certificate) = parse_x509_certificate(&pem.contents).unwrap();
    let mut found = Vec::new();
    for extension in certificate.extensions() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
            found.extend(names.general_names.iter().filter_map(|name| match name {
                GeneralName::IPAddress(bytes) => match bytes.len() {
                    4 => <[u8; 4]>::try_from(*bytes).ok().map(IpAddr::from),
                    _ => <[u8; 16]>::try_from(*bytes).ok().map(IpAddr::from),
                },
                _ => None,
            }));
        }
    }
    found.sort_unstable();
    Some(found)
}

/// W-34 and W-35: the host tells its IPv6 address, and its entry the public one, of which the host does not know.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_a_public_and_an_ipv6_address_gets_a_serving_certificate_with_both() {
    let mut list = listed(&addresses(1));
    for value in list.values_mut() {
        *value = format!("{value}\nnames={PUBLIC}");
    }
    let ipv6 = IPV6.parse().unwrap();
    let stage = Stage::start(&list, |_, host| host.ipv6(ipv6).cloud_address(address(PUBLIC)));
    let stage = stage.await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let node = until(|| nodes(&stage).into_iter().find(|node| is_finished(node))).await;
    for shown in [PUBLIC, IPV6] {
        let addresses = node["status"]["addresses"].as_array().unwrap();
        assert!(addresses.iter().any(|it| it["address"] == shown), "{node}");
    }
    let mut expected = vec![address("10.9.8.1"), address(PUBLIC), address(IPV6)];
    expected.sort_unstable();
    let issued = || serving_requests(&stage).iter().find_map(|request| issued_addresses(request));
    assert_eq!(until(issued).await, expected);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// W-36: its network has a domain of its own and no reverse zone, so its metadata alone tells how its Node is called.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_node_has_the_name_of_its_metadata_joins() {
    let list = listed(&addresses(1));
    let stage = Stage::start_on(platforms::AWS, &list, |_, host| {
        host.firmware("Amazon EC2").metadata_name("ip-10-9-8-1.corp.example.")
    });
    let stage = stage.await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let node = until(|| nodes(&stage).into_iter().find(|node| is_finished(node))).await;
    assert_eq!(node["metadata"]["name"], "ip-10-9-8-1.corp.example");
    let issued = || serving_requests(&stage).iter().find_map(|request| issued_addresses(request));
    assert_eq!(until(issued).await, [address("10.9.8.1")]);
    running.stop().await.unwrap();
    stage.shutdown().await;
}
