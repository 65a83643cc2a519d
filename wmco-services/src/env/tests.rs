use std::collections::BTreeMap;

use proptest::prelude::*;
use wmco_core::names::host;

use super::*;
use crate::fake::{Call, FakeWindows, Fault};
use crate::manifest::Parts;

fn manifest(set: &[(&str, &str)], watched: &[&str]) -> Manifest {
    let text = |text: &&str| (*text).to_owned();
    Manifest::new(Parts {
        environment: set.iter().map(|(name, value)| (text(name), text(value))).collect(),
        watched: watched.iter().map(text).collect(),
        ..Parts::default()
    })
    .unwrap()
}

fn host() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    host.with_tree(|tree| tree.make_folders(&host::ROOT.parse().unwrap()));
    host
}

/// Runs one pass.
fn go(host: &FakeWindows, desired: &Manifest) -> String {
    let plan = reconcile(desired, &observe(desired, Owner::ours(), host).unwrap());
    execute(&plan, desired, Owner::ours(), host).unwrap();
    plan.to_string()
}

/// A plan without steps while a change is not in force.
const RESTART: &str = "then restart the host\n";

/// Returns the names of the variables that are set.
fn left(host: &FakeWindows) -> String {
    host.snapshot().environment.into_keys().collect::<Vec<_>>().join(" ")
}

#[test]
fn plans_name_variables_and_no_values() {
    let desired = manifest(&[("A", "new"), ("B", "word"), ("E", "")], &["A", "B", "C", "D"]);
    let observed = Observed {
        values: [("A", "old"), ("C", "left")].map(|(a, b)| (a.into(), b.into())).into(),
        ..Observed::default()
    };
    let plan = reconcile(&desired, &observed);
    insta::assert_snapshot!(plan, @r"
    record-variables (2 in all), because variables are about to be set
    set-variable A, because it has another value
    set-variable B, because it is not set
    remove-variable C, because it shall not be set
    then restart the host
    ");
    assert!(!serde_json::to_string(&plan).unwrap().contains("word"));
}

#[test]
fn a_change_that_a_crash_forgot_still_asks_for_a_restart() {
    let host = host();
    let desired = manifest(&[("A", "1"), ("B", "2")], &[]);
    host.fail(Call::EnvironmentSet, "B", 1, Fault::Other);
    let plan = reconcile(&desired, &observe(&desired, Owner::ours(), &host).unwrap());
    assert!(execute(&plan, &desired, Owner::ours(), &host).is_err());
    host.environment().set("B", "2").unwrap();
    let plan = reconcile(&desired, &observe(&desired, Owner::ours(), &host).unwrap());
    assert_eq!(plan, Plan { restart_needed: true, ..Plan::default() });
    host.machine().restart().unwrap();
    assert_eq!(
        reconcile(&desired, &observe(&desired, Owner::ours(), &host).unwrap()),
        Plan::default()
    );
}

// `docs/contract/wicd.md`, WICD60 and WICD62: names that a manifest sets and does not watch.

#[test]
fn what_was_set_once_goes_when_no_manifest_knows_it_any_more() {
    let host = host();
    go(&host, &manifest(&[("Once", "1"), ("KEPT", "2")], &[]));
    // Another release, another process: only the record has the name.
    let next = manifest(&[("KEPT", "2")], &[]);
    insta::assert_snapshot!(go(&host, &next), @r"
    remove-variable ONCE, because it shall not be set
    record-variables (1 in all), because it names values that are gone
    then restart the host
    ");
    assert_eq!(left(&host), "KEPT");
    go(&host, &manifest(&[], &[]));
    assert_eq!(
        (left(&host).as_str(), Record::read(&Owner::ours().variables_record, &host).unwrap()),
        ("", Record::default())
    );
}

#[test]
fn what_others_set_stays_also_when_a_manifest_wants_the_same() {
    let host = host();
    host.environment().set("A", "1").unwrap();
    host.environment().set("OTHER", "1").unwrap();
    go(&host, &manifest(&[("A", "1")], &[]));
    go(&host, &manifest(&[], &[]));
    assert_eq!(left(&host), "A OTHER");
}

#[test]
fn what_others_set_after_us_stays() {
    let host = host();
    go(&host, &manifest(&[("A", "1"), ("B", "1")], &[]));
    host.environment().set("A", "theirs").unwrap();
    go(&host, &manifest(&[("B", "2")], &[]));
    assert_eq!(left(&host), "A B");
    // A value that others set is not ours, even if it equals an earlier value of ours.
    host.environment().set("B", "1").unwrap();
    go(&host, &manifest(&[], &[]));
    assert_eq!(left(&host), "A B");
}

#[test]
fn a_change_that_died_before_it_was_made_takes_nothing_away() {
    let host = host();
    host.environment().set("A", "theirs").unwrap();
    let desired = manifest(&[("A", "1")], &[]);
    host.fail(Call::EnvironmentSet, "A", 1, Fault::Other);
    let plan = reconcile(&desired, &observe(&desired, Owner::ours(), &host).unwrap());
    assert!(execute(&plan, &desired, Owner::ours(), &host).is_err());
    go(&host, &manifest(&[], &[]));
    assert_eq!(left(&host), "A");
    assert_eq!(Record::read(&Owner::ours().variables_record, &host).unwrap(), Record::default());
}

#[test]
fn a_cleanup_takes_what_was_set_and_forgets_it() {
    let host = host();
    let before = host.snapshot();
    host.environment().set("OTHER", "1").unwrap();
    go(&host, &manifest(&[("once", "1"), ("HTTP_PROXY", "p")], &["WATCHED"]));
    host.environment().set("WATCHED", "1").unwrap();
    // Of another version, and never in force here.
    let known = [manifest(&[("OTHER", "2")], &["watched"])];
    assert!(clear(&known, &host::PROXY_VARIABLES, Owner::ours(), &host).unwrap());
    assert_eq!(left(&host), "OTHER");
    host.environment().remove("OTHER").unwrap();
    assert_eq!(host.snapshot(), before);
    assert!(!clear(&known, &host::PROXY_VARIABLES, Owner::ours(), &host).unwrap());
}

#[test]
fn a_name_in_two_spellings_is_one_variable() {
    let host = host();
    let plan = go(&host, &manifest(&[("Http_Proxy", "p")], &["HTTP_PROXY", "http_proxy"]));
    assert_eq!(plan.matches("set-variable").count(), 1, "{plan}");
    assert_eq!(go(&host, &manifest(&[("HTTP_PROXY", "p")], &[])), RESTART);
}

#[test]
fn a_damaged_record_holds_up_nothing() {
    let host = host();
    host.put_file(&host::VARIABLES_RECORD.parse().unwrap(), "{");
    let desired = manifest(&[("A", "1")], &["A"]);
    go(&host, &desired);
    assert!(Record::read(&Owner::ours().variables_record, &host).unwrap().is_ours("a", "1"));
}

// `docs/contract/wicd.md`, WICD61: the inherited value decides.

/// Returns whether a variable needs a restart: services inherit `inherited`, its value is `set` and should be `wanted`.
/// `changed` says whether the host records a change of it since its start.
fn needs_restart(
    inherited: Inherited,
    changed: bool,
    set: Option<&str>,
    wanted: Option<&str>,
) -> bool {
    let desired =
        manifest(&wanted.map(|value| ("A", value)).into_iter().collect::<Vec<_>>(), &["A"]);
    let observed = Observed {
        values: set.map(|value| ("A".to_owned(), value.to_owned())).into_iter().collect(),
        changed_since_boot: changed.then(|| "A".to_owned()).into_iter().collect(),
        inherited: [("A".to_owned(), inherited)].into(),
        boot: "this".to_owned(),
        record: Record::default(),
    };
    let plan = reconcile(&desired, &observed);
    assert!(plan.problems.is_empty());
    plan.restart_needed
}

/// Generates a test for each row: inherited, recorded change, set value, desired value, result.
macro_rules! rows {
    ($($name:ident: $inherited:expr, $changed:literal, $set:expr, $wanted:expr => $restart:literal;)*) => {
        $(#[test]
        fn $name() {
            assert_eq!(needs_restart($inherited, $changed, $set, $wanted), $restart);
        })*
    };
}

fn gets(value: &str) -> Inherited {
    Inherited::Value(value.to_owned())
}

rows! {
    what_is_in_force_needs_no_restart: gets("p"), false, Some("p"), Some("p") => false;
    a_value_set_by_others_first_needs_a_restart: Inherited::Nothing, false, Some("p"), Some("p") => true;
    a_value_changed_by_others_first_needs_a_restart: gets("old"), false, Some("p"), Some("p") => true;
    a_value_removed_by_others_first_needs_a_restart: gets("old"), false, None, None => true;
    a_value_that_is_set_now_needs_a_restart: Inherited::Nothing, false, None, Some("p") => true;
    a_value_that_goes_now_needs_a_restart: gets("old"), false, Some("old"), None => true;
    a_value_that_is_put_back_needs_no_restart: gets("p"), false, Some("theirs"), Some("p") => false;
    a_value_that_is_put_back_twice_needs_no_restart: gets("p"), true, Some("theirs"), Some("p") => false;
    a_value_of_others_that_no_service_got_needs_no_restart: Inherited::Nothing, true, Some("theirs"), None => false;
    values_are_compared_exactly: gets("p "), false, Some("p"), Some("p") => true;
    case_of_values_counts: gets("P"), false, Some("p"), Some("p") => true;
    an_empty_value_is_none: gets(""), false, None, None => false;
    an_empty_wanted_value_is_none: Inherited::Nothing, false, None, Some("") => false;
    unknown_and_nothing_changed: Inherited::Unknown, false, Some("p"), Some("p") => false;
    unknown_and_changed_before: Inherited::Unknown, true, Some("p"), Some("p") => true;
    unknown_and_changed_now: Inherited::Unknown, false, None, Some("p") => true;
}

#[test]
fn a_change_of_somebody_else_is_seen_by_the_service_alone() {
    let host = host();
    host.change_variable("HTTP_PROXY", Some("p"));
    let desired = manifest(&[("http_proxy", "p")], &["HTTP_PROXY"]);
    assert_eq!(go(&host, &desired), "");
    let service = host.running_as_service();
    assert!(go(&service, &desired).ends_with(RESTART));
    host.machine().restart().unwrap();
    // Everything is in force, so nothing has to be recorded any more.
    assert_eq!(
        go(&service, &desired),
        "record-variables (0 in all), because it tells of restarts\n"
    );
    assert_eq!(go(&service, &desired), "");
    assert_eq!(Record::read(&Owner::ours().variables_record, &host).unwrap(), Record::default());
}

#[test]
fn a_program_that_sets_it_back_does_not_restart_the_host_again_and_again() {
    let host = host();
    let service = host.running_as_service();
    let desired = manifest(&[("HTTP_PROXY", "p")], &[]);
    go(&service, &desired);
    for boot in 0..3 {
        host.machine().restart().unwrap();
        go(&service, &desired);
        for change in 0..3 {
            host.change_variable("HTTP_PROXY", Some("theirs"));
            let plan = go(&service, &desired);
            assert!(
                plan.contains("set-variable") && !plan.contains(RESTART),
                "{boot} {change} {plan}"
            );
            // The operator runs another process and does not restart the host either.
            assert!(host.environment().changed_since_boot().unwrap().is_empty());
        }
    }
}

#[test]
fn a_restart_that_did_not_help_is_reported_and_not_asked_for_again() {
    let host = host();
    let service = host.running_as_service();
    host.give_services("HTTP_PROXY", Some("of its own"));
    let asks = |proxy: &str| {
        let plan = go(&service, &manifest(&[("HTTP_PROXY", proxy)], &[]));
        (
            plan.contains(RESTART),
            plan.contains("note: services get another value of variable HTTP_PROXY"),
        )
    };
    // The request stays until the restart.
    assert_eq!([asks("p"), asks("p")], [(true, false); 2]);
    for _ in 0..3 {
        host.machine().restart().unwrap();
        // A process of the operator in between keeps the record.
        go(&host, &manifest(&[("HTTP_PROXY", "p")], &[]));
        assert_eq!([asks("p"), asks("p")], [(false, true); 2]);
    }
    // A new value justifies another restart.
    assert_eq!(asks("q"), (true, false));
    host.machine().restart().unwrap();
    assert_eq!(asks("q"), (false, true));
    host.give_services("HTTP_PROXY", Some("q"));
    assert_eq!(asks("q"), (false, false));
}

/// Names that the property's manifests watch.
const WATCHED: [&str; 2] = ["A", "B"];

/// Generates variables; only watched ones may be empty.
fn any_variables() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("[A-D]", "[a-b ]{0,2}", 0..4).prop_map(|mut variables| {
        variables.retain(|name, value| WATCHED.contains(&name.as_str()) || !value.is_empty());
        variables
    })
}

proptest! {
    /// Whatever the start, the interruptions and the earlier manifests, the host ends with exactly the variables of the
    /// manifest and those that are neither watched nor set by us.
    #[test]
    fn converges(
        start in any_variables(),
        releases in proptest::collection::vec(any_variables(), 1..4),
        cuts in proptest::collection::vec(0..5_usize, 0..6),
    ) {
        let host = host();
        for (name, value) in &start {
            host.environment().set(name, value).unwrap();
        }
        host.clear_changes();
        let release = |set: &BTreeMap<String, String>| {
            let watched = WATCHED.map(str::to_owned).to_vec();
            Manifest::new(Parts { environment: set.clone(), watched, ..Parts::default() }).unwrap()
        };
        for (set, cut) in releases.iter().flat_map(|set| cuts.iter().map(move |cut| (set, *cut))) {
            host.cut_after(cut);
            let desired = release(set);
            let plan = reconcile(&desired, &observe(&desired, Owner::ours(), &host).unwrap());
            let _ = execute(&plan, &desired, Owner::ours(), &host);
            host.heal();
        }
        let last = releases.last().unwrap();
        go(&host, &release(last));
        let log = host.changes().into_iter();
        let set_by_us: BTreeSet<String> =
            log.filter(|(call, _)| *call == Call::EnvironmentSet).map(|(_, name)| name).collect();
        let mut goal = start;
        goal.retain(|name, _| !WATCHED.contains(&name.as_str()) && !set_by_us.contains(name));
        let wanted = last.iter().filter(|(_, value)| !value.is_empty());
        goal.extend(wanted.map(|(name, value)| (name.clone(), value.clone())));
        prop_assert_eq!(host.snapshot().environment, goal);
    }

    /// Whatever others do to variables, and in whatever order our programs run, services finally inherit the desired
    /// values after at most one restart, or a problem is reported.
    #[test]
    fn services_get_what_is_wanted_or_people_are_told(
        events in proptest::collection::vec((0..6_usize, "[A-C]", "[ab]?"), 0..16),
        last in any_variables(),
    ) {
        let host = host();
        let service = host.running_as_service();
        let release = |set: BTreeMap<String, String>| {
            let watched = WATCHED.map(str::to_owned).to_vec();
            Manifest::new(Parts { environment: set, watched, ..Parts::default() }).unwrap()
        };
        for (event, name, value) in events {
            let one = || release(BTreeMap::from([(name.clone(), value.clone())]));
            match event {
                0 => host.change_variable(&name, Some(value.as_str()).filter(|v| !v.is_empty())),
                1 => host.machine().restart().unwrap(),
                2 => drop(go(&host, &one())),
                3 => drop(go(&service, &one())),
                4 => host.give_services(&name, Some(&value)),
                _ => drop(go(&service, &release(last.clone()))),
            }
        }
        let desired = release(last);
        let mut restarts = 0;
        let told = loop {
            let plan = reconcile(&desired, &observe(&desired, Owner::ours(), &service).unwrap());
            execute(&plan, &desired, Owner::ours(), &service).unwrap();
            if !plan.restart_needed {
                break plan.problems.join(" ");
            }
            restarts += 1;
            prop_assert!(restarts <= 1, "{plan}");
            host.machine().restart().unwrap();
        };
        for name in WATCHED.iter().copied().chain(desired.environment().keys().map(String::as_str)) {
            let got = match service.environment().inherited(name).unwrap() {
                Inherited::Value(value) => value,
                Inherited::Nothing | Inherited::Unknown => String::new(),
            };
            let wanted = desired.environment().get(name).cloned().unwrap_or_default();
            prop_assert!(got == wanted || told.contains(&format!("variable {name} ")), "{told}");
        }
        prop_assert_eq!(go(&service, &desired).contains(RESTART), false);
    }
}
