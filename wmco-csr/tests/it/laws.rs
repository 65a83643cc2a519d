//! Laws that hold for any bytes. The fuzz targets assert them, and so do tests of this crate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_csr::pkcs10::{Attribute, GeneralName};
use wmco_csr::{
    CertificationRequest, ClusterFacts, Facts, MachineFacts, NodeIdentity, Outcome, Policy,
    Reference, Request, Verdict, View,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName as TheirName, ParsedExtension};
use x509_parser::prelude::FromDer;

/// What we can read as a request, `x509-parser` reads as the same request.
///
/// Things of unknown kinds, whose presence alone is a reason to refuse, are not looked into by us;
/// there `x509-parser` may be stricter.
///
/// Returns whether it can be read.
pub(crate) fn reads_like_the_oracle(der: &[u8]) -> bool {
    let Ok(ours) = CertificationRequest::parse(der) else { return false };
    let unknown = ours.extensions().unknown().or(ours.subject().other());
    let (rest, theirs) = match X509CertificationRequest::from_der(der) {
        Ok(read) => read,
        Err(_) if unknown.is_some() => return false,
        Err(error) => panic!("it is readable: {error}"),
    };
    assert!(rest.is_empty(), "it reads to the end");
    let info = &theirs.certification_request_info;
    assert_eq!(ours.signed(), info.raw);
    assert_eq!(ours.key_info(), info.subject_pki.raw);
    assert_eq!(ours.signature(), theirs.signature_value.as_ref());

    let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        value.as_str().expect("a name is text").to_owned()
    };
    let common_names: Vec<_> = info.subject.iter_common_name().map(text).collect();
    let organizations: Vec<_> = info.subject.iter_organization().map(text).collect();
    let (mut our_names, mut our_organizations) = (Vec::new(), Vec::new());
    for attribute in ours.subject().attributes() {
        match attribute {
            Attribute::CommonName(name) => our_names.push(name),
            Attribute::Organization(name) => our_organizations.push(name),
            Attribute::Other(_) => {}
        }
    }
    assert_eq!(our_names, common_names);
    assert_eq!(our_organizations, organizations);
    assert_eq!(ours.subject().attributes().count(), info.subject.iter_attributes().count());
    assert_eq!(ours.subject().common_name().is_some(), common_names.len() == 1);
    assert_eq!(ours.subject().organization().is_some(), organizations.len() == 1);

    let extensions: Vec<_> = theirs.requested_extensions().into_iter().flatten().collect();
    let names = extensions.iter().find_map(|extension| match extension {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    let ours: Option<Vec<_>> =
        ours.extensions().alternative_names().map(|names| names.iter().collect());
    assert_eq!(ours.as_ref().map(Vec::len), names.map(Vec::len));
    for (ours, theirs) in ours.iter().flatten().zip(names.into_iter().flatten()) {
        match (ours, theirs) {
            (GeneralName::Dns(ours), TheirName::DNSName(theirs))
            | (GeneralName::Email(ours), TheirName::RFC822Name(theirs))
            | (GeneralName::Uri(ours), TheirName::URI(theirs)) => assert_eq!(ours, theirs),
            (GeneralName::Ip(ours), TheirName::IPAddress(theirs)) => {
                assert_eq!(Some(*ours), address(theirs));
            }
            (GeneralName::Other(_), TheirName::DNSName(_) | TheirName::IPAddress(_)) => {
                panic!("{theirs:?} is known to us")
            }
            (GeneralName::Other(_), _) => {}
            (ours, theirs) => panic!("{ours:?} is {theirs:?}"),
        }
    }
    true
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(|octets| Ipv4Addr::from(octets).into());
    let sixteen = |_| <[u8; 16]>::try_from(octets).map(|o| Ipv6Addr::from(o).to_canonical());
    four.or_else(sixteen).ok()
}

/// One PEM text for one request: what is accepted is what an encoder writes.
///
/// Returns the DER bytes, if there are any.
pub(crate) fn pem_is_canonical(text: &[u8]) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let der = wmco_csr::pem::decode(text).ok()?;
    let body = base64::engine::general_purpose::STANDARD.encode(&der);
    let lines: Vec<_> = body
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).expect("base64 is ASCII"))
        .collect();
    let (begin, end) = ("BEGIN CERTIFICATE REQUEST", "END CERTIFICATE REQUEST");
    let canonical = format!("-----{begin}-----\n{}\n-----{end}-----\n", lines.join("\n"));
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    let block = &text[..=end.expect("it has a block")];
    let canonical = canonical.trim_end();
    let exact = [canonical.replace('\n', "\r\n").as_bytes(), canonical.as_bytes()]
        .iter()
        .any(|canonical| block.ends_with(canonical));
    assert!(exact, "{:?}", String::from_utf8_lossy(text));
    Some(der)
}

/// For any request text, in a cluster where its node would be welcome, as that of an entry and as that of
/// a Machine: approved if and only if
/// every check passed, and then the signature is right and the names are those of the node.
///
/// Returns whether it was approved as one of the kinds.
pub(crate) fn approves_only_what_it_should(pem: &[u8]) -> bool {
    const NODE: &str = "win-7";
    const IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
    let groups = |groups: &[&str]| groups.iter().map(|&g| g.to_owned()).collect::<Vec<_>>();
    let policy = Policy::new("windows-operator");
    let bootstrap_groups = policy.bootstrapper.groups.clone();
    let node_groups = groups(&["system:nodes", "system:authenticated"]);
    let client = groups(&["digital signature", "client auth"]);
    let server = groups(&["digital signature", "server auth"]);
    let kinds = [
        (
            "kubernetes.io/kube-apiserver-client-kubelet",
            policy.bootstrapper.username.as_str(),
            &bootstrap_groups,
            &client,
            "system:node:win-7",
        ),
        (
            "kubernetes.io/kubelet-serving",
            "system:node:win-7",
            &node_groups,
            &server,
            "system:node:win-7",
        ),
        (
            "kubernetes.io/kube-apiserver-client",
            policy.wicd.as_str(),
            &node_groups,
            &client,
            "system:wicd-node:win-7",
        ),
    ];
    let reference = Reference { name: NODE.to_owned(), uid: String::new() };
    let machine = |has_node: bool| MachineFacts {
        name: "m-1".to_owned(),
        names: vec![NODE.to_owned()],
        addresses: vec![IPV4.into()],
        node: has_node.then(|| reference.clone()),
        host: Some(Ok(IPV4)),
    };
    let mut any = false;
    let hosts = kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    for ((signer, username, groups, usages, common_name), is_machine) in hosts {
        let mut view = View::new();
        let services = Some(Vec::new());
        let addresses = ClusterAddresses { services, ..ClusterAddresses::default() };
        view.set_cluster(ClusterFacts { addresses, ..ClusterFacts::default() });
        if is_machine {
            view.set_machines([machine(usages == &server)]);
        } else {
            view.set_instances([(NODE, Some(IPV4))], &Facts::default());
        }
        if usages == &server || signer.ends_with("-client") {
            let os = Some("windows".to_owned());
            let (addresses, names) = (vec![IPV4.into()], vec![NODE.to_owned()]);
            let facts = NodeIdentity { os, addresses, names, ..NodeIdentity::default() };
            view.set_node_identity(NODE, facts);
        }
        let request = Request {
            name: "fuzz",
            signer,
            username,
            groups,
            usages,
            pem,
            expiration_seconds: Some(3600),
            ..Request::default()
        };
        view.set_request(request);
        let decision = wmco_csr::decide(&request, &policy, &view, Timestamp::UNIX_EPOCH);
        let approved = matches!(decision.verdict(), Verdict::Approve(_));
        let clean = decision.checks().all(|check| check.outcome == Outcome::Pass);
        assert_eq!(approved, clean, "{decision}");
        assert_eq!(decision.rule().is_none(), approved, "{decision}");
        let lines = decision.to_string().lines().count();
        assert_eq!(lines, 4 + decision.checks().count(), "one line each: {decision}");
        if approved {
            let der = pem_is_canonical(pem).expect("approved texts are PEM");
            let (_, theirs) = X509CertificationRequest::from_der(&der).expect("and PKCS#10");
            theirs.verify_signature().expect("and signed");
            let subject = &theirs.certification_request_info.subject;
            let names: Vec<_> = subject.iter_common_name().map(|n| n.as_str().ok()).collect();
            assert_eq!(names, [Some(common_name)]);
            let parsed = CertificationRequest::parse(&der).expect("we could read it before");
            let names = parsed.extensions().alternative_names();
            let mut names = names.into_iter().flat_map(|names| names.iter());
            assert!(names.all(|name| match name {
                GeneralName::Dns(name) => name.eq_ignore_ascii_case(NODE),
                GeneralName::Ip(ip) => ip == IPV4,
                _ => false,
            }));
        }
        any |= approved;
    }
    any
}
