//! What happens to a cluster between two passes: what people, kubelets, the Machine API and workers do.

use std::net::Ipv4Addr;

use after::names;
use serde_json::{Map, Value, json};

use crate::cluster::{
    Cluster, any_host, any_ip, created, dns, machine, name, named, owned_by, owner, pin, set,
};
use crate::rng::Rng;

type Change = fn(&mut Cluster, &mut Rng);

const CHANGES: [Change; 24] = [
    unlist,
    |it, rng| it.list(any_host(rng), rng),
    break_entry,
    resolve_otherwise,
    lose_node,
    |it, rng| it.add_node(any_host(rng), rng.chance(30), rng),
    show_address,
    claim_origin,
    relabel,
    mark,
    ready,
    version,
    give_up,
    delete_node,
    |it, rng| it.add_record(any_host(rng), rng.chance(30), rng),
    damage_record,
    change_record,
    report_name,
    contact,
    claim,
    setting,
    change_machine,
    change_set,
    log_in,
];

impl Cluster {
    /// One thing happens.
    pub fn change(&mut self, rng: &mut Rng) {
        rng.pick(&CHANGES)(self, rng);
    }

    /// Some of what was decided is carried out.
    pub fn follow(&mut self, told: &str, rng: &mut Rng) {
        for line in told.lines() {
            if let Some(change) = line.strip_prefix("change ") {
                self.put_on_record(change, rng);
            } else if let Some(keys) = line.strip_prefix("forgotten ") {
                if rng.chance(50) {
                    keys.split('"')
                        .skip(1)
                        .step_by(2)
                        .for_each(|key| drop(self.host_keys.remove(key)));
                }
                break;
            } else {
                self.work(line, rng);
            }
        }
        if rng.chance(40) {
            self.sets_make_machines(rng);
        }
        if rng.chance(8) {
            self.logins.clear();
        }
    }

    fn work(&mut self, line: &str, rng: &mut Rng) {
        let node = between(line, "(node ", ")");
        if line.contains("with a disruption permit") {
            let node = self.nodes.iter_mut().find(|it| Some(named(it)) == node);
            if let Some(node) = node.filter(|_| rng.chance(60)) {
                node["metadata"]["labels"][names::UPGRADING_LABEL] = "true".into();
                if rng.chance(80) {
                    node["spec"]["unschedulable"] = true.into();
                    node["metadata"]["annotations"][names::CORDONED_ANNOTATION] =
                        "by-operator".into();
                }
            }
        } else if line.contains(": replace") {
            let name = between(line, "machine ", ":").unwrap_or_default();
            if rng.chance(35) {
                self.machines.retain(|it| named(it) != name);
            } else if let Some(it) = self.machines.iter_mut().find(|it| named(it) == name) {
                delete(it);
            }
        } else if rng.chance(15) {
            self.claims.extend(node.map(str::to_owned));
        }
    }

    fn put_on_record(&mut self, told: &str, rng: &mut Rng) {
        let Some((address, change)) = told.split_once(": ").filter(|_| rng.chance(70)) else {
            return;
        };
        let key = format!("{address}_host");
        let record = self.host_keys.get(&key).map(|text| serde_json::from_str(text));
        let mut record: Map<String, Value> = record.and_then(Result::ok).unwrap_or_default();
        let mut note = |field: &str, value: Value| drop(record.insert(field.to_owned(), value));
        if change.starts_with("ToReplace") {
            note("replacementMachineSet", between(change, "set: \"", "\"").into());
            if let Some(count) = between(change, "count: ", ",") {
                let newest = between(change, "newest: ", " }");
                let count: usize = count.parse().unwrap_or_default();
                note("machinesBefore", json!({"count": count, "newest": newest}));
            }
        } else if change.starts_with("ToKeep") {
            record.remove("replacementMachineSet");
            record.remove("machinesBefore");
        } else if change.starts_with("RemovalConfirmed") {
            note("removalConfirmed", change.contains("true").into());
        } else if change.starts_with("Adopted") {
            note("node", between(change, "node: \"", "\"").into());
            note("ipv4", address.into());
            note("username", "sealed".into());
        }
        self.host_keys.insert(key, Value::Object(record).to_string());
    }

    fn sets_make_machines(&mut self, rng: &mut Rng) {
        for set in self.sets.clone() {
            let is_of = |it: &&Value| owner(it) == named(&set) && !is_deleted(it);
            let count = self.machines.iter().filter(is_of).count() as u64;
            let host = any_host(rng);
            let is_there = self.machines.iter().any(|it| named(it) == machine(host));
            if is_there || count >= set["spec"]["replicas"].as_u64().unwrap_or(1) {
                continue;
            }
            self.add_machine(host, rng);
            let Some(made) = self.machines.last_mut() else { continue };
            made["metadata"]["ownerReferences"] = owned_by(named(&set));
            made["metadata"]["creationTimestamp"] = created(20 + rng.below(30)).into();
            made["metadata"]["uid"] = format!("u-{host}-{}", rng.below(1_000)).into();
            if rng.chance(60) {
                self.add_node(host, true, rng);
            }
        }
    }

    fn some_address(&self, rng: &mut Rng) -> String {
        let host = any_host(rng);
        let listed: Vec<_> = self.entries.keys().collect();
        match rng.below(5) {
            0 => any_ip(rng).to_string(),
            1 => format!("{}_machine", machine(host)),
            2 => dns(host),
            _ if listed.is_empty() => any_ip(rng).to_string(),
            _ => (*rng.pick(&listed)).clone(),
        }
    }

    fn some_node(&mut self, rng: &mut Rng) -> Option<&mut Value> {
        let at = rng.below(self.nodes.len().max(1));
        self.nodes.get_mut(at)
    }

    fn some_machine(&mut self, rng: &mut Rng) -> Option<&mut Value> {
        let at = rng.below(self.machines.len().max(1));
        self.machines.get_mut(at)
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

fn is_deleted(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn delete(object: &mut Value) {
    object["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
}

/// Takes a member off, or sets it if it is not there.
fn toggle(object: &mut Value, member: &str, value: &str) -> bool {
    let Some(members) = object.as_object_mut() else { return false };
    let is_off = members.remove(member).is_none();
    if is_off {
        members.insert(member.to_owned(), value.into());
    }
    is_off
}

fn unlist(it: &mut Cluster, rng: &mut Rng) {
    let address = it.some_address(rng);
    it.entries.remove(&address);
}

fn break_entry(it: &mut Cluster, rng: &mut Rng) {
    let address = it.some_address(rng);
    if let Some(value) = it.entries.get_mut(&address) {
        *value = "username=".to_owned();
    }
}

fn resolve_otherwise(it: &mut Cluster, rng: &mut Rng) {
    if let Some(at) = it.names.values_mut().next() {
        *at = rng.chance(60).then(|| any_ip(rng));
    }
}

fn lose_node(it: &mut Cluster, rng: &mut Rng) {
    let gone = it.some_node(rng).map(|node| named(node).to_owned());
    it.nodes.retain(|node| Some(named(node)) != gone.as_deref());
}

fn show_address(it: &mut Cluster, rng: &mut Rng) {
    let shown = json!({"type": "InternalIP", "address": any_ip(rng)});
    let (is_added, is_none) = (rng.chance(40), rng.chance(15));
    let Some(node) = it.some_node(rng) else { return };
    match node["status"]["addresses"].as_array_mut() {
        Some(addresses) if is_added => addresses.push(shown),
        _ if is_none => node["status"]["addresses"] = json!([]),
        _ => node["status"]["addresses"] = json!([shown]),
    }
}

fn claim_origin(it: &mut Cluster, rng: &mut Rng) {
    let address = it.some_address(rng);
    if let Some(node) = it.some_node(rng) {
        toggle(&mut node["metadata"]["annotations"], names::INSTANCE_ANNOTATION, &address);
    }
}

fn relabel(it: &mut Cluster, rng: &mut Rng) {
    let (is_ours, is_linux) = (rng.chance(60), rng.chance(40));
    let Some(node) = it.some_node(rng) else { return };
    let labels = &mut node["metadata"]["labels"];
    if is_ours {
        toggle(labels, names::BYOH_LABEL, "true");
    } else {
        labels[names::OS_LABEL] = if is_linux { "linux" } else { names::OS_WINDOWS }.into();
    }
}

fn mark(it: &mut Cluster, rng: &mut Rng) {
    let by = *rng.pick(&[None, Some("by-operator"), Some("by-others")]);
    let Some(node) = it.some_node(rng) else { return };
    let is_marked = toggle(&mut node["metadata"]["labels"], names::UPGRADING_LABEL, "true");
    node["spec"]["unschedulable"] = (is_marked && by.is_some()).into();
    let by = by.filter(|_| is_marked);
    node["metadata"]["annotations"][names::CORDONED_ANNOTATION] = by.unwrap_or_default().into();
}

fn ready(it: &mut Cluster, rng: &mut Rng) {
    let Some(node) = it.some_node(rng) else { return };
    let status = &mut node["status"]["conditions"][0]["status"];
    *status = if *status == "True" { "False" } else { "True" }.into();
}

fn version(it: &mut Cluster, rng: &mut Rng) {
    let version = *rng.pick(&["1.0.0", "2.0.0"]);
    if let Some(node) = it.some_node(rng) {
        toggle(&mut node["metadata"]["annotations"], names::VERSION_ANNOTATION, version);
    }
}

fn give_up(it: &mut Cluster, rng: &mut Rng) {
    let times = rng.below(4);
    if let Some(node) = it.some_node(rng) {
        let text = format!("{times} 1970-01-01T00:00:00Z");
        node["metadata"]["annotations"][names::DRAIN_GIVEN_UP_ANNOTATION] = text.into();
    }
}

fn delete_node(it: &mut Cluster, rng: &mut Rng) {
    let is_another = rng.chance(50);
    match it.some_node(rng) {
        Some(node) if is_another => node["metadata"]["uid"] = "n-99".into(),
        Some(node) => delete(node),
        None => {}
    }
}

fn damage_record(it: &mut Cluster, rng: &mut Rng) {
    let keys: Vec<_> = it.host_keys.keys().cloned().collect();
    if keys.is_empty() {
        return;
    }
    let key = rng.pick(&keys);
    if key.ends_with("_host") && rng.chance(30) {
        it.host_keys.insert(key.clone(), "{".to_owned());
    } else {
        it.host_keys.remove(key);
    }
}

fn change_record(it: &mut Cluster, rng: &mut Rng) {
    let keys: Vec<_> = it.host_keys.keys().filter(|key| key.ends_with("_host")).cloned().collect();
    if keys.is_empty() {
        return;
    }
    let key = rng.pick(&keys);
    let Ok(mut record) = serde_json::from_str::<Map<String, Value>>(&it.host_keys[key]) else {
        return;
    };
    let field = *rng.pick(&["pinned", "ipv4", "node", "hostName", "username"]);
    let value = match field {
        "pinned" => pin(any_host(rng)),
        "ipv4" => any_ip(rng).to_string(),
        _ => name(any_host(rng)),
    };
    record.remove(field);
    if rng.chance(60) {
        record.insert(field.to_owned(), value.into());
    }
    it.host_keys.insert(key.clone(), Value::Object(record).to_string());
}

fn report_name(it: &mut Cluster, rng: &mut Rng) {
    let address = it.some_address(rng);
    if rng.chance(60) {
        it.host_names.insert(address, name(any_host(rng)));
    } else {
        it.host_names.remove(&address);
    }
}

fn contact(it: &mut Cluster, rng: &mut Rng) {
    let address = it.some_address(rng);
    if it.entries.contains_key(&address) && !it.never_contacted.remove(&address) {
        it.never_contacted.insert(address);
    }
}

fn claim(it: &mut Cluster, rng: &mut Rng) {
    let node = name(any_host(rng));
    if !it.claims.remove(&node) {
        it.claims.insert(node);
    }
}

fn setting(it: &mut Cluster, rng: &mut Rng) {
    match rng.below(7) {
        0 => it.budget = 1 + rng.below(3),
        1 => it.blocked = rng.chance(30),
        2 => it.list_absent = rng.chance(25),
        3 => it.most_removals = rng.chance(50).then(|| rng.below(3)),
        4 => it.confirmed = rng.chance(40).then(|| rng.below(4)),
        5 => it.keys = if rng.chance(50) { 3 } else { rng.below(4) },
        _ => it.user_data = rng.chance(75).then(|| rng.pick(&["7", "8"]).to_string()),
    }
}

fn change_machine(it: &mut Cluster, rng: &mut Rng) {
    let (host, ip, number) = (any_host(rng), any_ip(rng), rng.below(9));
    let phase = *rng.pick(&["Running", "Provisioned", "Provisioning", "Failed", "Deleting"]);
    let what = rng.below(8);
    if what == 0 {
        return it.add_machine(host, rng);
    }
    if what == 1 {
        let gone = it.some_machine(rng).map(|machine| named(machine).to_owned());
        return it.machines.retain(|machine| Some(named(machine)) != gone.as_deref());
    }
    let Some(machine) = it.some_machine(rng) else { return };
    match what {
        2 => delete(machine),
        3 => machine["status"]["addresses"] = json!([{"type": "InternalIP", "address": ip}]),
        4 => {
            let node = json!({"name": name(host), "uid": format!("n-{}", host + 1)});
            machine["status"]["nodeRef"] = if number == 0 { Value::Null } else { node };
        }
        5 => machine["status"]["phase"] = phase.into(),
        6 => drop(toggle(&mut machine["metadata"]["labels"], names::IGNORE_LABEL, "true")),
        _ => machine["metadata"]["uid"] = format!("u-5{number}").into(),
    }
}

fn change_set(it: &mut Cluster, rng: &mut Rng) {
    let Some(one) = it.sets.first_mut() else { return it.sets.push(set("s", 2)) };
    match rng.below(4) {
        0 => drop(it.sets.remove(0)),
        1 => one["spec"]["replicas"] = rng.below(4).into(),
        2 => {
            let labels = &mut one["spec"]["template"]["spec"]["metadata"]["labels"];
            *labels = json!({(names::IGNORE_LABEL): "true"});
        }
        _ => one["spec"]["replicas"] = 2.into(),
    }
}

/// The hosts of some instances answer, as they will for a while.
fn log_in(it: &mut Cluster, rng: &mut Rng) {
    let at = |object: &Value| object["status"]["addresses"][0]["address"].as_str()?.parse().ok();
    let made = it.machines.iter();
    let made = made.filter_map(|it| Some((format!("{}_machine", named(it)), at(it)?)));
    let listed =
        it.entries.keys().filter_map(|it| Some((it.clone(), it.parse::<Ipv4Addr>().ok()?)));
    let all: Vec<_> = made.chain(listed).collect();
    for _ in 0..rng.below(4).min(all.len()) {
        let (instance, at) = rng.pick(&all).clone();
        let result = *rng.pick(&[0, 1, 1, 1, 2]);
        it.logins.retain(|(other, ..)| *other != instance);
        it.logins.push((instance, at, result));
    }
}
