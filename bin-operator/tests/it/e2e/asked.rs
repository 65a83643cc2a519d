//! What the environment asks for.

use super::support::asked::{ANY_CLUSTER, Asked, HOSTS, Refusal, Request, asked};

fn of(variables: &[(&str, &str)]) -> Result<Request, Refusal> {
    asked(|name| {
        let set = variables.iter().find(|(variable, _)| *variable == name);
        set.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn without_an_api_server_nothing_is_run_and_it_is_said_what_to_set() {
    for nothing in [&[][..], &[("KUBECONFIG", ""), ("KUBEBUILDER_ASSETS", "")]] {
        let refusal = of(nothing).unwrap_err();
        assert_eq!(refusal, Refusal::NothingAsked);
        let text = refusal.to_string();
        assert!(text.contains("KUBECONFIG") && text.contains("KUBEBUILDER_ASSETS"), "{text}");
    }
}

#[test]
fn what_is_started_here_outweighs_a_cluster() {
    let asked = of(&[("KUBECONFIG", "/a"), ("KUBEBUILDER_ASSETS", "/b")]).unwrap();
    assert_eq!(asked, Request { api: Asked::Assets("/b".into()), hosts: 5 });
}

#[test]
fn a_cluster_may_be_named_by_several_files() {
    let asked = of(&[("KUBECONFIG", "/a::/b"), (HOSTS, "7")]).unwrap();
    let paths = vec!["/a".into(), "/b".into()];
    assert_eq!(asked, Request { api: Asked::Cluster { paths, any: false }, hosts: 7 });
}

#[test]
fn any_cluster_is_used_for_a_clear_yes_only() {
    let any = |value| match of(&[("KUBECONFIG", "/a"), (ANY_CLUSTER, value)]).map(|it| it.api) {
        Ok(Asked::Cluster { any, .. }) => Ok(any),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => Err(refusal.to_string()),
    };
    assert_eq!(any("yes"), Ok(true));
    assert_eq!(any("no"), Ok(false));
    assert_eq!(any(""), Ok(false));
    let text = any("1").unwrap_err();
    assert_eq!(text, r#"E2E_ANY_CLUSTER is "1", set it to yes or no or leave it out"#);
}

#[test]
fn hosts_are_counted_from_one_to_the_most() {
    for wrong in ["0", "201", "many"] {
        let text = of(&[("KUBECONFIG", "/a"), (HOSTS, wrong)]).unwrap_err().to_string();
        assert!(text.contains("a number from 1 to 200"), "{text}");
    }
}
