//! A request that would be approved, broken in one place: the rule for that place decides.

use jiff::SignedDuration;
use rcgen::{
    Attribute, CustomExtension, DnType, DnValue, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    SanType,
};
use wmco_csr::{Kind, MachineFacts, Outcome, Verdict};

use crate::fixture::{INSTANCE, IPV4, NODE, World, node, strings};

use Kind::{KubeletClient, KubeletServing, Wicd};

const ALL: [Kind; 3] = [KubeletClient, KubeletServing, Wicd];

#[track_caller]
fn check(kinds: &[Kind], breaks: impl Fn(&mut World), verdict: &str, rule: &str) {
    for kind in kinds {
        let mut world = World::new(*kind);
        breaks(&mut world);
        world.check(verdict, rule);
    }
}

#[track_caller]
fn check_asked(kinds: &[Kind], breaks: impl Fn(&mut World), verdict: &str, rule: &str) {
    check(
        kinds,
        |world| {
            breaks(world);
            world.ask();
        },
        verdict,
        rule,
    );
}

#[test]
fn nothing_broken_is_approved() {
    check(&ALL, |_| {}, "approve", "");
}

#[test]
fn every_kind_of_key_that_rings_can_make_is_approved() {
    for algorithm in [&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        check_asked(&ALL, |w| w.key = KeyPair::generate_for(algorithm).unwrap(), "approve", "");
    }
}

#[test]
fn approval_names_exactly_what_was_looked_at() {
    let world = World::new(Wicd);
    let Verdict::Approve(approval) = world.decide().into_verdict() else { panic!("not approved") };
    let found = (approval.name(), approval.uid(), approval.resource_version(), approval.kind());
    assert_eq!(found, ("csr-1", Some("uid-1"), Some("17"), Wicd));
}

#[test]
fn decided_before() {
    for condition in ["Approved", "Denied", "Failed"] {
        check(&ALL, |w| w.condition(condition), "ignore", "undecided");
    }
}

#[test]
fn issued_before() {
    let issue = |w: &mut World| {
        let certificate = k8s_openapi::ByteString(b"pem".to_vec());
        w.csr.status.get_or_insert_default().certificate = Some(certificate);
    };
    check(&ALL, issue, "ignore", "undecided");
}

#[test]
fn other_signer() {
    let signers = ["", "kubernetes.io/legacy-unknown", "kubernetes.io/kubelet-serving2"];
    for signer in signers {
        check(&ALL, |w| w.csr.spec.signer_name = signer.to_owned(), "ignore", "signer");
    }
}

#[test]
fn signer_of_another_kind() {
    let signer = |name: &str| format!("kubernetes.io/{name}");
    let serving = |w: &mut World| w.csr.spec.signer_name = signer("kubelet-serving");
    let client = |w: &mut World| w.csr.spec.signer_name = signer("kube-apiserver-client-kubelet");
    let shared = |w: &mut World| w.csr.spec.signer_name = signer("kube-apiserver-client");
    check(&[KubeletClient], serving, "refuse", "requester");
    check(&[KubeletServing], client, "ignore", "renewal");
    check(&[KubeletClient, KubeletServing], shared, "ignore", "common-name");
    check(&[Wicd], serving, "ignore", "common-name");
}

#[test]
fn too_large() {
    check(&ALL, |w| w.csr.spec.request.0.resize(16 * 1024 + 1, b'\n'), "refuse", "size");
}

#[test]
fn not_pem() {
    check(&ALL, |w| w.csr.spec.request.0.insert(0, b'x'), "refuse", "pem");
}

#[test]
fn not_a_request() {
    check(&ALL, |w| w.set_der(&[0x30, 0x00]), "refuse", "pkcs10");
}

#[test]
fn unreadable_through_the_shared_signer_is_anybodys() {
    let by_user = |w: &mut World| w.csr.spec.username = Some("jane".to_owned());
    for (breaks, rule) in [
        (Box::new(|w: &mut World| w.csr.spec.request.0.clear()) as Box<dyn Fn(&mut World)>, "pem"),
        (Box::new(|w: &mut World| w.set_der(&[0x30, 0x00])), "pkcs10"),
        (Box::new(|w: &mut World| w.csr.spec.request.0.resize(99_999, b'\n')), "size"),
    ] {
        let both = |w: &mut World| {
            by_user(w);
            breaks(w);
        };
        check(&[Wicd], both, "ignore", rule);
    }
}

#[test]
fn common_name_of_another_kind() {
    for name in ["", "win-7", "system:node", "system:node:", "System:Node:win-7", "jane"] {
        let rename = |w: &mut World| w.params.distinguished_name.push(DnType::CommonName, name);
        if name.is_empty() {
            // An empty string is no name at all.
            check_asked(&ALL, rename, "refuse", "pkcs10");
        } else {
            check_asked(&ALL, rename, "ignore", "common-name");
        }
    }
}

#[test]
fn no_common_name() {
    let drop = |w: &mut World| assert!(w.params.distinguished_name.remove(DnType::CommonName));
    check_asked(&ALL, drop, "ignore", "common-name");
}

#[test]
fn two_common_names() {
    let common_name = || DnType::CustomDnType(vec![2, 5, 4, 3]);
    check_asked(
        &ALL,
        |w| w.params.distinguished_name.push(common_name(), "system:node:win-8"),
        "refuse",
        "subject",
    );
}

#[test]
fn other_subject_attribute() {
    check_asked(
        &ALL,
        |w| w.params.distinguished_name.push(DnType::OrganizationalUnitName, "plant"),
        "refuse",
        "subject",
    );
}

#[test]
fn node_name_of_the_wrong_form() {
    let mut long = "a".repeat(250);
    long.push_str(".com");
    for name in [
        "WIN-7", "win-7.", ".win-7", "-win", "win-", "a-.b", "a.-b", "a..b", "a b", "a_b", "ü",
        "a\nb", &long,
    ] {
        let rename = |w: &mut World| {
            let kind =
                if w.csr.spec.signer_name.ends_with("client") { "wicd-node" } else { "node" };
            let name = DnValue::Utf8String(format!("system:{kind}:{name}"));
            w.params.distinguished_name.push(DnType::CommonName, name);
        };
        check_asked(&ALL, rename, "refuse", "node-name");
    }
}

#[test]
fn name_of_a_machine() {
    let machine = || MachineFacts { names: strings(&["WIN-7"]), ..MachineFacts::default() };
    let both = [KubeletClient, KubeletServing];
    check(&both, |w| w.machines.push(machine()), "ignore", "machine");
    check(&[Wicd], |w| w.machines.push(machine()), "approve", "");
    let alone = |w: &mut World| {
        w.machines.push(machine());
        w.policy.machine_approver = false;
    };
    check(&both, alone, "approve", "");
}

#[test]
fn address_of_a_machine() {
    let machine = || MachineFacts { addresses: vec![IPV4.into()], ..MachineFacts::default() };
    let both = [KubeletClient, KubeletServing];
    check(&both, |w| w.machines.push(machine()), "ignore", "machine");
}

#[test]
fn own_renewal_is_the_clusters() {
    let renew = |w: &mut World| w.csr.spec.username = Some("system:node:win-7".to_owned());
    check(&[KubeletClient], renew, "ignore", "renewal");
}

#[test]
fn linux_node() {
    let linux = |w: &mut World| w.nodes = vec![node(NODE, "linux", IPV4)];
    check(&[KubeletClient, KubeletServing], linux, "ignore", "node-os");
    check(&[Wicd], linux, "refuse", "node-os");
}

#[test]
fn node_without_an_operating_system() {
    let unlabelled = |w: &mut World| w.nodes[0].metadata.labels = None;
    check(&[KubeletServing], unlabelled, "ignore", "node-os");
    check(&[Wicd], unlabelled, "refuse", "node-os");
}

#[test]
fn no_such_instance() {
    let both = [KubeletClient, KubeletServing];
    check(&both, |w| w.instances.clear(), "ignore", "instance");
    for other in ["win-70", "win", "7", "in-7.plant.example.net", "plant", "xwin-7"] {
        let rename = |w: &mut World| {
            w.instances = vec![(other.to_owned(), Some(IPV4))];
            w.facts.hostnames = [(other.to_owned(), other.to_owned())].into();
        };
        check(&both, rename, "ignore", "instance");
    }
}

#[test]
fn two_such_instances() {
    let twin = |w: &mut World| {
        w.instances = vec![(IPV4.to_string(), None), ("192.0.2.8".to_owned(), None)];
        let hosts = w.instances.iter().map(|(address, _)| (address.clone(), "win-7".to_owned()));
        w.facts.hostnames = hosts.collect();
    };
    check(&[KubeletClient], twin, "refuse", "instance");
    // The Node says which of them it is on, as it did when it got its name.
    let at_work = |w: &mut World| {
        twin(w);
        w.facts.addresses = Some([(IPV4.to_string(), vec![IPV4.into()])].into());
    };
    check(&[KubeletServing], at_work, "approve", "");
}

#[test]
fn instance_listed_twice_is_one() {
    let twin = |w: &mut World| {
        w.instances.push((IPV4.to_string(), None));
        w.facts.hostnames.insert(IPV4.to_string(), "win-7".to_owned());
    };
    check(&[KubeletClient, KubeletServing], twin, "approve", "");
}

#[test]
fn node_exists() {
    let exists = |w: &mut World| w.nodes = vec![node(NODE, "windows", IPV4)];
    check(&[KubeletClient], exists, "ignore", "node-absent");
}

#[test]
fn node_does_not_exist() {
    let gone = |w: &mut World| w.nodes.clear();
    check(&[KubeletServing, Wicd], gone, "wait", "node");
    let too_late = |w: &mut World| {
        w.nodes.clear();
        w.later = SignedDuration::from_mins(5);
    };
    check(&[KubeletServing, Wicd], too_late, "refuse", "node");
}

#[test]
fn other_requester() {
    for username in [
        "",
        "jane",
        "system:anonymous",
        "system:node:win-8",
        "system:node:WIN-7",
        "system:wicd-node:win-8",
        "system:wicd-node:",
        "system:wicd-nodes-win-7",
        "system:serviceaccount:default:windows-instance-config-daemon",
        "system:serviceaccount:windows-operator:windows-instance-config-daemon2",
    ] {
        let ask = |w: &mut World| w.csr.spec.username = Some(username.to_owned());
        check(&ALL, ask, "refuse", "requester");
    }
}

#[test]
fn wicd_renews_as_itself() {
    let renew = |w: &mut World| w.csr.spec.username = Some("system:wicd-node:win-7".to_owned());
    check(&[Wicd], renew, "approve", "");
}

#[test]
fn group_missing() {
    for missing in 0..2 {
        let leave = |w: &mut World| {
            w.csr.spec.groups.as_mut().unwrap().remove(missing);
        };
        check(&[KubeletClient, KubeletServing], leave, "refuse", "groups");
    }
}

#[test]
fn token_of_another_node() {
    let bind = |w: &mut World, node: &str| {
        let claim = ("authentication.kubernetes.io/node-name".to_owned(), strings(&[node]));
        w.csr.spec.extra = Some([claim].into());
    };
    check(&[Wicd], |w| bind(w, "win-8"), "refuse", "token-node");
    check(&[Wicd], |w| bind(w, "win-7"), "approve", "");
}

#[test]
fn other_organization() {
    for name in ["system:masters", "System:nodes", "system:nodes "] {
        let rename =
            |w: &mut World| w.params.distinguished_name.push(DnType::OrganizationName, name);
        check_asked(&ALL, rename, "refuse", "organization");
    }
    let drop =
        |w: &mut World| assert!(w.params.distinguished_name.remove(DnType::OrganizationName));
    check_asked(&ALL, drop, "refuse", "organization");
}

#[test]
fn two_organizations() {
    let organization = || DnType::CustomDnType(vec![2, 5, 4, 10]);
    check_asked(
        &ALL,
        |w| w.params.distinguished_name.push(organization(), "system:masters"),
        "refuse",
        "organization",
    );
}

/// The right one last, where a reader that keeps the last would see it.
#[test]
fn two_organizations_in_the_other_order() {
    let order = |w: &mut World| {
        let own = w.params.distinguished_name.get(&DnType::OrganizationName).unwrap().clone();
        assert!(w.params.distinguished_name.remove(DnType::OrganizationName));
        let masters = DnType::CustomDnType(vec![2, 5, 4, 10]);
        w.params.distinguished_name.push(masters, "system:masters");
        w.params.distinguished_name.push(DnType::OrganizationName, own);
    };
    check_asked(&ALL, order, "refuse", "organization");
}

#[test]
fn other_usages() {
    for usages in [
        &[][..],
        &["digital signature"],
        &["client auth"],
        &["digital signature", "key encipherment"],
        &["client auth", "client auth"],
        &["digital signature", "client auth", "client auth"],
        &["digital signature", "client auth", "server auth"],
        &["digital signature", "client auth", "cert sign"],
        &["digital signature", "key encipherment", "client auth", "any"],
        &["Digital Signature", "client auth"],
        &["digital signature", "server auth", "server auth"],
    ] {
        let ask = |w: &mut World| w.csr.spec.usages = Some(strings(usages));
        check(&ALL, ask, "refuse", "usages");
    }
    let serving = |w: &mut World| {
        w.csr.spec.usages = Some(strings(&["digital signature", "server auth"]));
    };
    check(&[KubeletClient, Wicd], serving, "refuse", "usages");
}

#[test]
fn key_encipherment_is_optional() {
    check(
        &ALL,
        |w| w.csr.spec.usages.as_mut().unwrap().insert(0, "key encipherment".to_owned()),
        "approve",
        "",
    );
}

#[test]
fn alternative_names_of_the_wrong_kind() {
    let email = || SanType::Rfc822Name("a@b.example".try_into().unwrap());
    let uri = || SanType::URI("https://b.example/".try_into().unwrap());
    let dns = || SanType::DnsName(NODE.try_into().unwrap());
    for name in [email, uri] {
        let add = |w: &mut World| w.params.subject_alt_names.push(name());
        check_asked(&ALL, add, "refuse", "name-kinds");
    }
    let add = |w: &mut World| w.params.subject_alt_names.push(dns());
    check_asked(&[KubeletClient, Wicd], add, "refuse", "name-kinds");
    let drop = |w: &mut World| w.params.subject_alt_names.clear();
    check_asked(&[KubeletServing], drop, "refuse", "name-kinds");
}

#[test]
fn alternative_name_of_somebody_else() {
    for name in ["win-8", "*.plant.example.net", "192.0.2.7", "win-8.", "kubernetes.default.svc"] {
        let add = |w: &mut World| {
            let name = SanType::DnsName(name.try_into().unwrap());
            w.params.subject_alt_names.push(name);
        };
        check_asked(&[KubeletServing], add, "refuse", "addresses");
    }
    let add = |w: &mut World| {
        w.params.subject_alt_names.push(SanType::IpAddress([192, 0, 2, 8].into()));
    };
    check_asked(&[KubeletServing], add, "refuse", "addresses");
}

#[test]
fn young_node_may_still_get_its_addresses() {
    let young = |w: &mut World| {
        w.nodes[0].metadata.creation_timestamp = w.csr.metadata.creation_timestamp.clone();
        w.params.subject_alt_names.push(SanType::DnsName("win-7.cloud".try_into().unwrap()));
    };
    check_asked(&[KubeletServing], young, "wait", "addresses");
}

/// Its entry and its host name say which host it is, but the kubelet asks for the Node's addresses.
#[test]
fn name_of_the_instance_that_the_node_lacks() {
    let name = || SanType::DnsName(INSTANCE.to_uppercase().try_into().unwrap());
    let lacks = |w: &mut World| w.params.subject_alt_names.push(name());
    check_asked(&[KubeletServing], lacks, "refuse", "addresses");
    let has = |w: &mut World| {
        lacks(w);
        let address = serde_json::json!({"type": "InternalDNS", "address": INSTANCE});
        let addresses = w.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
        addresses.push(serde_json::from_value(address).unwrap());
    };
    check_asked(&[KubeletServing], has, "approve", "");
}

/// An address is no host name, even if the instance is listed under it.
#[test]
fn address_as_a_host_name() {
    let listed = |w: &mut World| {
        w.instances = vec![(IPV4.to_string(), None)];
        w.facts.hostnames = [(IPV4.to_string(), NODE.to_owned())].into();
    };
    check(&[KubeletServing], listed, "approve", "");
    let asked = |w: &mut World| {
        listed(w);
        let name = IPV4.to_string();
        w.params.subject_alt_names.push(SanType::DnsName(name.try_into().unwrap()));
    };
    check_asked(&[KubeletServing], asked, "refuse", "addresses");
}

#[test]
fn node_of_another_host() {
    let moved = |w: &mut World| w.nodes = vec![node(NODE, "windows", [192, 0, 2, 9].into())];
    check(&[KubeletServing], moved, "refuse", "node-address");
}

#[test]
fn instance_that_does_not_resolve_is_no_reason_to_refuse() {
    let lost = |w: &mut World| w.instances[0].1 = None;
    check(&ALL, lost, "approve", "");
}

#[test]
fn other_extension() {
    let add = |w: &mut World| {
        let extension = CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 0x00]);
        w.params.custom_extensions.push(extension);
    };
    check_asked(&ALL, add, "refuse", "extensions");
}

#[test]
fn other_attribute() {
    let add = |w: &mut World| {
        let attribute = Attribute {
            oid: &[1, 2, 840, 113_549, 1, 9, 7],
            values: vec![0x31, 0x04, 0x0c, 0x02, b'h', b'i'],
        };
        let request = w.params.serialize_request_with_attributes(&w.key, vec![attribute]);
        w.set_der(request.unwrap().der());
    };
    check(&ALL, add, "refuse", "extensions");
}

#[test]
fn lifetime_out_of_bounds() {
    for seconds in [-1, 0, 599, i32::MAX] {
        let ask = |w: &mut World| w.csr.spec.expiration_seconds = Some(seconds);
        check(&ALL, ask, "refuse", "lifetime");
    }
    check(&[Wicd], |w| w.csr.spec.expiration_seconds = Some(86_400), "refuse", "lifetime");
    check(&ALL, |w| w.csr.spec.expiration_seconds = Some(3_600), "approve", "");
}

/// The signer would give a year, and the token that asks lies on every node.
#[test]
fn the_daemon_has_to_name_a_lifetime_and_kubelets_need_not() {
    check(&[Wicd], |w| w.csr.spec.expiration_seconds = None, "refuse", "lifetime");
    let kubelets = [KubeletClient, KubeletServing];
    check(&kubelets, |w| w.csr.spec.expiration_seconds = None, "approve", "");
}

#[test]
fn newer_request_for_the_same() {
    let newer = |w: &mut World| w.also_pending("csr-2", SignedDuration::ZERO);
    check(&ALL, newer, "ignore", "duplicate");
    let older = |w: &mut World| w.also_pending("csr-2", SignedDuration::from_secs(-1));
    check(&ALL, older, "approve", "");
    let of_somebody_else = |w: &mut World| {
        w.also_pending("csr-2", SignedDuration::from_secs(1));
        w.pending[0].spec.username = Some("jane".to_owned());
    };
    check(&ALL, of_somebody_else, "approve", "");
    let of_another_kind = |w: &mut World| {
        w.also_pending("csr-2", SignedDuration::from_secs(1));
        w.pending[0].spec.signer_name = "kubernetes.io/kube-apiserver-client-kubelet".to_owned();
    };
    check(&[KubeletServing], of_another_kind, "approve", "");
}

#[test]
fn too_many_newer_requests() {
    let flood = |w: &mut World, count: i64| {
        let own = std::mem::replace(&mut w.key, KeyPair::generate().unwrap());
        for number in 0..count {
            w.key = KeyPair::generate().unwrap();
            w.ask();
            w.also_pending(&format!("csr-{}", number + 2), SignedDuration::from_secs(number));
        }
        w.key = own;
        w.ask();
    };
    check(&ALL, |w| flood(w, 4), "approve", "");
    check(&ALL, |w| flood(w, 5), "refuse", "pending-limit");
    let for_one_key = |w: &mut World| {
        flood(w, 1);
        for number in 3..9 {
            let mut again = w.pending[0].clone();
            again.metadata.name = Some(format!("csr-{number}"));
            w.pending.push(again);
        }
    };
    check(&ALL, for_one_key, "approve", "");
    let by_somebody_else = |w: &mut World| {
        flood(w, 5);
        w.pending.iter_mut().for_each(|csr| csr.spec.username = Some("jane".to_owned()));
    };
    check(&ALL, by_somebody_else, "approve", "");
}

#[test]
fn signature_by_another_key() {
    let forge = |w: &mut World| {
        let mut der = w.der();
        let last = der.len() - 1;
        der[last] ^= 1;
        w.set_der(&der);
    };
    check(&ALL, forge, "refuse", "signature");
}

#[test]
fn content_changed_after_signing() {
    let change = |w: &mut World| {
        let mut der = w.der();
        while let Some(at) = der.windows(5).position(|part| part == b"win-7") {
            der[at + 4] = b'8';
        }
        w.set_der(&der);
        w.csr.spec.username = w.csr.spec.username.as_ref().map(|name| name.replace('7', "8"));
        let other = "win-8".to_owned();
        w.instances = vec![(other.clone(), Some(IPV4))];
        w.facts.addresses = Some([(other.clone(), vec![IPV4.into()])].into());
        w.facts.hostnames = [(other.clone(), other)].into();
        for node in &mut w.nodes {
            *node = crate::fixture::node("win-8", "windows", IPV4);
        }
    };
    check(&ALL, change, "refuse", "signature");
}

#[test]
fn refusal_names_all_faults_and_skips_the_signature() {
    let mut world = World::new(KubeletServing);
    world.csr.spec.usages = None;
    world.csr.spec.username = None;
    world.csr.spec.expiration_seconds = Some(1);
    let decision = world.decide();
    let with = |outcome: Outcome| {
        let checks = decision.checks().filter(move |check| check.outcome == outcome);
        checks.map(|check| check.rule.name()).collect::<Vec<_>>()
    };
    assert_eq!(with(Outcome::Fail), ["requester", "usages", "lifetime"]);
    assert_eq!(with(Outcome::Skipped), ["signature"]);
}

#[test]
fn wrong_beats_not_yet() {
    let both = |w: &mut World| {
        w.nodes.clear();
        w.csr.spec.usages = None;
    };
    check(&[KubeletServing, Wicd], both, "refuse", "usages");
}
