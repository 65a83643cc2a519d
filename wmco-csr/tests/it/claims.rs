//! Who owns a name: what people listed, before what hosts report and what the DNS says.

use std::net::Ipv4Addr;

use rcgen::DnType;
use wmco_csr::Kind::{KubeletClient, KubeletServing};
use wmco_csr::{NodeNames, Rule, Warning};

use crate::fixture::{World, node, strings};

const OWNER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const LIAR: &str = "10.0.0.5";

/// The instance that a request counts as, or what stands against all of them.
fn instance(world: &World) -> String {
    world.decide().detail(Rule::Instance).unwrap_or_default().into_owned()
}

/// A first request for `name`, with these hosts in the list and what they report.
fn client(name: &str, hosts: &[(&str, Option<Ipv4Addr>, &str)]) -> World {
    let mut world = World::new(KubeletClient);
    world.instances.clear();
    world.facts.hostnames.clear();
    for (address, ipv4, host_name) in hosts {
        world.instances.push(((*address).to_owned(), *ipv4));
        if !host_name.is_empty() {
            world.facts.hostnames.insert((*address).to_owned(), (*host_name).to_owned());
        }
    }
    let common_name = format!("system:node:{name}");
    world.params_change(|params| params.distinguished_name.push(DnType::CommonName, common_name));
    world
}

/// Finding: 10.0.0.5 reported `db-frontend` and was given the name that another entry is listed by.
#[test]
fn a_reported_name_does_not_outrank_the_listed_one() {
    for listed in ["db-frontend", "DB-Frontend.", "db-frontend.corp.example"] {
        for reported in ["db-frontend", "DB-FRONTEND"] {
            let world = client("db-frontend", &[(listed, Some(OWNER), ""), (LIAR, None, reported)]);
            world.check("approve", "");
            assert!(instance(&world).starts_with(listed), "{}", instance(&world));
        }
    }
}

/// The listed name is nobody else's even while it does not resolve.
#[test]
fn a_listed_name_that_does_not_resolve_stays_with_its_entry() {
    let world = client("db-frontend", &[("db-frontend", None, ""), (LIAR, None, "db-frontend")]);
    world.check("approve", "");
    assert!(instance(&world).starts_with("db-frontend"), "{}", instance(&world));
}

#[test]
fn a_reported_name_whose_dns_leads_to_another_entry_is_refused() {
    let mut world =
        client("db-frontend", &[("10.0.0.9", None, "win-9"), (LIAR, None, "db-frontend")]);
    world.facts.dns.forward.insert("db-frontend".to_owned(), vec![OWNER.into()]);
    world.check("refuse", "instance");
}

#[test]
fn a_reported_name_whose_dns_leads_to_a_node_is_refused() {
    let mut world = client("cp-1", &[(LIAR, None, "cp-1")]);
    world.nodes.push(node("cp-1.corp.example", "linux", OWNER));
    world.facts.dns.forward.insert("cp-1".to_owned(), vec![OWNER.into()]);
    world.check("refuse", "instance");
}

#[test]
fn a_full_name_that_leads_to_somebody_unknown_is_refused() {
    let mut world = client("files.corp.example", &[(LIAR, None, "files.corp.example")]);
    world.facts.dns.forward.insert("files.corp.example".to_owned(), vec![OWNER.into()]);
    world.check("refuse", "instance");
}

#[test]
fn two_reports_of_one_name_are_both_refused() {
    for other in ["web", "WEB", "web.corp.example"] {
        let world = client("web", &[("10.0.0.6", None, "web"), (LIAR, None, other)]);
        world.check("refuse", "instance");
        let warning = world.decide().warning().unwrap();
        assert!(names_both(&warning, "10.0.0.6", LIAR), "{warning:?}");
    }
}

#[test]
fn reverse_dns_and_a_report_of_one_name_are_both_refused() {
    let mut world = client("web", &[("10.0.0.6", None, ""), (LIAR, None, "web")]);
    let address = "10.0.0.6".parse().unwrap();
    world.facts.dns.reverse.insert(address, strings(&["web."]));
    world.check("refuse", "instance");
    let warning = world.decide().warning().unwrap();
    assert!(names_both(&warning, "10.0.0.6", LIAR), "{warning:?}");
}

fn names_both(warning: &Warning, one: &str, other: &str) -> bool {
    warning.message.contains(one) && warning.message.contains(other)
}

/// A host that is at work already keeps its certificates, whatever another one reports meanwhile.
#[test]
fn a_report_does_not_take_a_node_from_its_host() {
    let mut world = World::new(KubeletServing);
    world.instances = vec![("192.0.2.7".to_owned(), None), (LIAR.to_owned(), None)];
    world.facts.hostnames = [(LIAR.to_owned(), "win-7".to_owned())].into();
    world.check("wait", "instance");
}

/// The Node's name on each platform: the host's short name, its full name, or what fits.
#[test]
fn a_first_label_is_derived_only_if_the_cluster_says_so() {
    use NodeNames::{FirstLabel, Full, FullOrShort, Unknown};
    let long = format!("win-1.{}.corp.example", "a".repeat(60));
    for (reported, short_on) in
        [("win-1.corp.example", &[FirstLabel][..]), (long.as_str(), &[FirstLabel, FullOrShort])]
    {
        for node_names in [FirstLabel, Full, FullOrShort, Unknown] {
            // By every source: as reported, as listed, by reverse DNS.
            let mut by_reverse = client("win-1", &[(LIAR, None, "")]);
            let address = LIAR.parse().unwrap();
            by_reverse.facts.dns.reverse.insert(address, strings(&[reported]));
            by_reverse.facts.hostnames.insert(LIAR.to_owned(), "other".to_owned());
            let worlds = [
                client("win-1", &[(LIAR, None, reported)]),
                client("win-1", &[(reported, Some(OWNER), "other")]),
                by_reverse,
            ];
            for mut world in worlds {
                world.cluster.node_names = node_names;
                if short_on.contains(&node_names) {
                    world.check("approve", "");
                } else {
                    world.check("ignore", "instance");
                }
            }
            let mut full = client(reported, &[(LIAR, None, reported)]);
            full.cluster.node_names = node_names;
            full.check("approve", "");
        }
    }
}

/// Whatever the platform, the first label of a listed name is not another host's to take.
#[test]
fn the_first_label_of_a_listed_name_is_nobody_elses() {
    let mut world = client(
        "db-frontend",
        &[("db-frontend.corp.example", Some(OWNER), ""), (LIAR, None, "db-frontend")],
    );
    world.cluster.node_names = NodeNames::Full;
    world.check("refuse", "instance");
    let warning = world.decide().warning().unwrap();
    assert!(names_both(&warning, "db-frontend.corp.example", LIAR), "{warning:?}");
}

#[test]
fn names_that_differ_by_case_are_one_name() {
    let world = client("web", &[("Web", Some(OWNER), ""), ("WEB", Some([10, 0, 0, 8].into()), "")]);
    world.check("refuse", "instance");
    let warning = world.decide().warning().unwrap();
    assert!(names_both(&warning, "Web", "WEB"), "{warning:?}");
    // Two spellings of one host are no conflict.
    client("web", &[("Web", Some(OWNER), ""), ("web.", Some(OWNER), "")]).check("approve", "");
}

/// While it is in doubt whose name it is, the request may be its owner's.
#[test]
fn a_request_for_a_disputed_name_is_never_denied() {
    let mut world = client("web", &[("10.0.0.6", None, "web"), (LIAR, None, "web")]);
    world.policy.deny = true;
    let wmco_csr::Verdict::Refuse(denial) = world.decide().into_verdict() else {
        panic!("refused")
    };
    assert!(denial.is_none());
}

/// What DNS says of a single label depends on who asks, so an address of nobody is no objection.
#[test]
fn a_short_name_that_leads_to_nobody_known_is_kept() {
    let mut world = client("web", &[(LIAR, None, "web")]);
    world.facts.dns.forward.insert("web".to_owned(), vec![OWNER.into()]);
    world.check("approve", "");
    // A service of that name is somebody.
    world.facts.dns.forward.insert("web".to_owned(), vec!["172.30.9.9".parse().unwrap()]);
    world.check("refuse", "instance");
    // So is another host that has it beside ours.
    world.instances.push(("10.0.0.9".to_owned(), None));
    world.facts.dns.forward.insert("web".to_owned(), vec![LIAR.parse().unwrap(), OWNER.into()]);
    world.check("refuse", "instance");
}

#[test]
fn a_name_that_leads_to_any_address_of_its_host_is_kept() {
    for name in ["web", "web.corp.example"] {
        let mut world = client(name, &[(LIAR, None, name)]);
        let second: std::net::IpAddr = [10, 9, 9, 9].into();
        world.facts.addresses = Some([(LIAR.to_owned(), vec![second])].into());
        for leads in
            [vec![LIAR.parse().unwrap()], vec![second], vec![second, LIAR.parse().unwrap()]]
        {
            world.facts.dns.forward.insert(name.to_owned(), leads);
            world.check("approve", "");
        }
    }
}

/// People learn of a host that claims what is not its own, even while nobody asks for a certificate.
#[test]
fn disputes_name_both_sides_and_what_to_do() {
    let world = client(
        "x",
        &[
            ("db-frontend", Some(OWNER), "DB-FRONTEND"),
            (LIAR, None, "db-frontend"),
            ("10.0.0.6", None, "web"),
            ("10.0.0.7", None, "web.corp.example"),
            ("10.0.0.8", None, "honest.corp.example"),
        ],
    );
    let disputes = world.view().disputes();
    let lines: Vec<_> = disputes.iter().map(|d| format!("{}: {}", d.name, d.message)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    db-frontend: 10.0.0.5 (by its host name) claims the name db-frontend, but that is entry db-frontend's; rename the host or correct the DNS
    web: 10.0.0.6 (by its host name) and 10.0.0.7 (by its host name) both claim the name web, rename one of the hosts or correct the DNS
    ");
}

#[test]
fn a_report_of_the_name_of_a_node_or_a_machine_is_told() {
    let mut world = client("x", &[(LIAR, None, "cp-1"), ("10.0.0.6", None, "m-1")]);
    world.nodes.push(node("cp-1", "linux", OWNER));
    let names = strings(&["m-1"]);
    world.machines.push(wmco_csr::MachineFacts { names, ..Default::default() });
    let disputes = world.view().disputes();
    let lines: Vec<_> = disputes.iter().map(|d| d.message.as_str()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    10.0.0.5 (by its host name) claims the name cp-1, but that is node cp-1's; rename the host or correct the DNS
    10.0.0.6 (by its host name) claims the name m-1, but that is a Machine's; rename the host or correct the DNS
    ");
}
