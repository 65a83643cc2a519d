//! Decides how many Machines a set creates, and which ones it deletes.

use std::cmp::Reverse;

use super::kinds::{DELETE_ANNOTATION, Machine};

/// The changes that bring a set to its number of Machines.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Scaling<'a> {
    pub(super) create: usize,
    /// Names of Machines.
    pub(super) delete: Vec<&'a str>,
}

/// Decides how a set gets from `machines` to `replicas` Machines. Machines in deletion do not count. Machines are
/// deleted in this order: with [`DELETE_ANNOTATION`], failed, then by `policy`; without one, by the random suffixes of
/// their names.
pub(super) fn scaling<'a>(
    replicas: usize,
    policy: Option<&str>,
    machines: &[&'a Machine],
) -> Scaling<'a> {
    let mut staying: Vec<_> =
        machines.iter().copied().filter(|machine| !machine.is_deleting()).collect();
    staying.sort_by_key(|machine| machine.name());
    let born = |machine: &Machine| machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
    match policy {
        Some("Oldest") => staying.sort_by_key(|machine| born(machine)),
        Some("Newest") => staying.sort_by_key(|machine| Reverse(born(machine))),
        _ => {}
    }
    staying.sort_by_key(|machine| (!is_named(machine), !has_failed(machine)));
    let surplus = staying.len().saturating_sub(replicas);
    let delete = staying.iter().take(surplus).map(|machine| machine.name()).collect();
    Scaling { create: replicas.saturating_sub(staying.len()), delete }
}

fn is_named(machine: &Machine) -> bool {
    let annotations = machine.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(DELETE_ANNOTATION)).is_some_and(|value| !value.is_empty())
}

fn has_failed(machine: &Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.error_reason.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(name: &str, second: u32, change: &Value) -> Machine {
        let mut object = json!({
            "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")},
            "spec": {},
        });
        json_patch::merge(&mut object, change);
        serde_json::from_value(object).unwrap()
    }

    #[track_caller]
    fn check(
        replicas: usize,
        policy: Option<&str>,
        change: &Value,
        create: usize,
        delete: &[&str],
    ) {
        // Ordered neither by name nor by age.
        let machines =
            [machine("b", 1, &json!({})), machine("c", 2, change), machine("a", 3, &json!({}))];
        let machines: Vec<_> = machines.iter().collect();
        let delete = delete.to_vec();
        assert_eq!(scaling(replicas, policy, &machines), Scaling { create, delete });
    }

    #[test]
    fn missing_ones_are_made() {
        check(5, None, &json!({}), 2, &[]);
    }

    #[test]
    fn the_right_number_stays() {
        check(3, None, &json!({}), 0, &[]);
    }

    #[test]
    fn without_a_policy_names_decide() {
        check(1, None, &json!({}), 0, &["a", "b"]);
    }

    #[test]
    fn the_oldest_goes_where_the_policy_says_so() {
        check(2, Some("Oldest"), &json!({}), 0, &["b"]);
    }

    #[test]
    fn the_newest_goes_where_the_policy_says_so() {
        check(1, Some("Newest"), &json!({}), 0, &["a", "c"]);
    }

    #[test]
    fn a_named_one_goes_first() {
        let named = json!({"metadata": {"annotations": {DELETE_ANNOTATION: "yes"}}});
        check(1, Some("Oldest"), &named, 0, &["c", "b"]);
    }

    #[test]
    fn a_failed_one_goes_before_healthy_ones() {
        check(2, Some("Oldest"), &json!({"status": {"errorReason": "CreateError"}}), 0, &["c"]);
    }

    #[test]
    fn one_that_is_being_deleted_does_not_count() {
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z"}});
        check(3, None, &deleting, 1, &[]);
    }
}
