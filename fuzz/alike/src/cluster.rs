//! A random cluster: what an API server and hosts would tell, as text and JSON, so that both versions read it themselves.
//!
//! A host has a number, from which its addresses, its name, its key and its Machine follow. Most facts agree with each
//! other; `changes` make them disagree.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use after::names;
use serde_json::{Value, json};

use crate::rng::Rng;

const HOSTS: usize = 6;

/// What one pass goes by.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub entries: BTreeMap<String, String>,
    /// What names resolve to.
    pub names: BTreeMap<String, Option<Ipv4Addr>>,
    pub list_absent: bool,
    pub nodes: Vec<Value>,
    /// The ConfigMap of host keys.
    pub host_keys: BTreeMap<String, String>,
    pub host_names: BTreeMap<String, String>,
    pub never_contacted: BTreeSet<String>,
    /// Names of Nodes.
    pub claims: BTreeSet<String>,
    pub budget: usize,
    pub blocked: bool,
    pub most_removals: Option<usize>,
    pub confirmed: Option<usize>,
    pub machines: Vec<Value>,
    pub sets: Vec<Value>,
    /// None, one of two, or both while they are exchanged.
    pub keys: usize,
    /// Version of the user data, if they are right.
    pub user_data: Option<String>,
    /// Who was tried where; 0: accepted, 1: refused, 2: no answer.
    pub logins: Vec<(String, Ipv4Addr, usize)>,
}

pub fn any_host(rng: &mut Rng) -> usize {
    rng.below(HOSTS)
}

pub fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::from([10, 0, 0, host as u8 + 1])
}

pub fn other_ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::from([10, 0, 1, host as u8 + 1])
}

pub fn any_ip(rng: &mut Rng) -> Ipv4Addr {
    let host = any_host(rng);
    if rng.chance(75) { ip(host) } else { other_ip(host) }
}

pub fn name(host: usize) -> String {
    format!("win-{}", host + 1)
}

pub fn dns(host: usize) -> String {
    format!("{}.corp.test", name(host))
}

pub fn pin(host: usize) -> String {
    format!("SHA256:{host}")
}

pub fn machine(host: usize) -> String {
    format!("m-{}", host + 1)
}

pub fn created(minute: usize) -> String {
    format!("2026-01-01T00:{minute:02}:00Z")
}

pub fn set(name: &str, replicas: usize) -> Value {
    let value = json!({"userDataSecret": {"name": "windows-user-data"}});
    let labels = json!({(names::MACHINE_OS_LABEL): names::OS_ID_WINDOWS});
    json!({
        "metadata": {"name": name, "uid": format!("u-{name}")},
        "spec": {"replicas": replicas, "template": {
            "metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value}},
        }},
    })
}

/// The name of an object, and the MachineSet that owns it.
pub fn named(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn owner(machine: &Value) -> &str {
    machine["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default()
}

impl Cluster {
    pub fn random(rng: &mut Rng) -> Self {
        let mut it = Self { keys: 1, user_data: Some("7".to_owned()), ..Self::default() };
        it.budget = 1 + rng.below(3);
        if rng.chance(35) {
            it.keys = if rng.chance(60) { 3 } else { rng.below(4) };
        }
        if rng.chance(8) {
            it.user_data = None;
        }
        it.blocked = rng.chance(8);
        it.list_absent = rng.chance(4);
        if rng.chance(15) {
            it.most_removals = Some(rng.below(3));
            it.confirmed = rng.chance(50).then(|| rng.below(4));
        }
        for name in ["s", "t"] {
            if rng.chance(80) {
                it.sets.push(set(name, 1 + rng.below(3)));
            }
        }
        let is_calm = rng.chance(40);
        for host in 0..HOSTS {
            if rng.chance(80) {
                it.add_host(host, is_calm, rng);
            }
        }
        if is_calm {
            it.calm(rng);
        }
        it
    }

    fn add_host(&mut self, host: usize, is_calm: bool, rng: &mut Rng) {
        let is_made = rng.chance(if is_calm { 75 } else { 35 });
        if is_made {
            self.add_machine(host, rng);
        } else if rng.chance(75) {
            self.list(host, rng);
        }
        if rng.chance(75) {
            self.add_node(host, is_made, rng);
        }
        if rng.chance(70) {
            self.add_record(host, is_made, rng);
        }
        if rng.chance(60) {
            let address = self.address_of(host, is_made, rng);
            self.host_names.insert(address, name(host));
        }
    }

    /// MachineSets that are whole, and hosts of them that do not let us in.
    fn calm(&mut self, rng: &mut Rng) {
        for node in &mut self.nodes {
            if rng.chance(85) {
                node["status"]["conditions"][0]["status"] = "True".into();
                node["metadata"]["annotations"][names::VERSION_ANNOTATION] = "2.0.0".into();
            }
        }
        for machine in &mut self.machines {
            machine["status"]["phase"] = "Running".into();
            if rng.chance(90) {
                let number = named(machine).replace("m-", "");
                machine["status"]["nodeRef"] =
                    json!({"name": format!("win-{number}"), "uid": format!("n-{number}")});
            }
        }
        for set in &mut self.sets {
            let count = self.machines.iter().filter(|machine| owner(machine) == named(set)).count();
            if rng.chance(85) {
                set["spec"]["replicas"] = count.into();
            }
        }
        let share = *rng.pick(&[30, 60, 100]);
        for machine in &self.machines {
            let at = machine["status"]["addresses"][0]["address"].as_str().unwrap_or_default();
            if let Ok(at) = at.parse()
                && rng.chance(share)
            {
                let result = if rng.chance(75) { 1 } else { 2 };
                self.logins.push((format!("{}_machine", named(machine)), at, result));
            }
        }
        if rng.chance(50) {
            self.logins.push(("other".to_owned(), Ipv4Addr::new(10, 0, 9, 9), 0));
        }
    }

    fn address_of(&self, host: usize, is_made: bool, rng: &mut Rng) -> String {
        if is_made {
            return format!("{}_machine", machine(host));
        }
        let own = [ip(host).to_string(), other_ip(host).to_string(), dns(host), name(host)];
        let listed = own.iter().find(|address| self.entries.contains_key(*address));
        listed.filter(|_| rng.chance(90)).unwrap_or(&own[0]).clone()
    }

    pub fn list(&mut self, host: usize, rng: &mut Rng) {
        let address = match rng.below(10) {
            0 => dns(host),
            1 => other_ip(host).to_string(),
            2 => name(host),
            _ => ip(host).to_string(),
        };
        if address.parse::<Ipv4Addr>().is_err() {
            self.names.insert(address.clone(), rng.chance(80).then(|| ip(host)));
        }
        let mut value = if rng.chance(6) { "username=" } else { "username=core" }.to_owned();
        if rng.chance(20) {
            value += &format!("\nport={}", 22 + rng.below(50));
        }
        if rng.chance(10) {
            let another = any_host(rng);
            let also =
                [name(another), any_ip(rng).to_string(), dns(another), other_ip(host).to_string()];
            value += &format!("\nnames={}", rng.pick(&also));
        }
        self.entries.insert(address, value);
    }

    pub fn add_node(&mut self, host: usize, is_made: bool, rng: &mut Rng) {
        if self.nodes.iter().any(|node| named(node) == name(host)) {
            return;
        }
        let mut labels = json!({(names::OS_LABEL): names::OS_WINDOWS});
        let mut notes = json!({});
        if is_made {
            let machine = format!("openshift-machine-api/{}", machine(host));
            notes[names::MACHINE_ANNOTATION] = machine.into();
        } else {
            labels[names::BYOH_LABEL] = "true".into();
            if rng.chance(80) {
                notes[names::INSTANCE_ANNOTATION] = self.address_of(host, false, rng).into();
            }
        }
        if rng.chance(85) {
            let version = if rng.chance(70) { "2.0.0" } else { "1.0.0" };
            notes[names::VERSION_ANNOTATION] = version.into();
            notes[names::DESIRED_VERSION_ANNOTATION] = version.into();
        }
        if rng.chance(70) {
            notes[names::USERNAME_ANNOTATION] = "sealed".into();
        }
        if rng.chance(30) {
            notes[names::HOST_KEY_ANNOTATION] = pin(host).into();
        }
        let mut addresses = vec![
            json!({"type": "InternalIP", "address": ip(host)}),
            json!({"type": "Hostname", "address": name(host)}),
        ];
        if rng.chance(15) {
            addresses.push(json!({"type": "InternalIP", "address": other_ip(host)}));
        }
        let ready = if rng.chance(80) { "True" } else { "False" };
        self.nodes.push(json!({
            "metadata": {"name": name(host), "uid": format!("n-{}", host + 1), "resourceVersion": "1",
                "labels": labels, "annotations": notes},
            "spec": {},
            "status": {"addresses": addresses, "conditions": [{"type": "Ready", "status": ready}]},
        }));
    }

    pub fn add_record(&mut self, host: usize, is_made: bool, rng: &mut Rng) {
        let address = self.address_of(host, is_made, rng);
        let mut record = json!({});
        let fields = [
            ("ipv4", 92, ip(host).to_string()),
            ("username", 80, "sealed".to_owned()),
            ("node", if is_made { 0 } else { 75 }, name(host)),
            ("hostName", 75, name(host).to_uppercase()),
            ("pinned", 80, pin(host)),
            ("machine", if is_made { 80 } else { 0 }, format!("u-{}", host + 1)),
            ("replacementMachineSet", if is_made { 8 } else { 0 }, "s".to_owned()),
        ];
        for (field, percent, value) in fields {
            if rng.chance(percent) {
                record[field] = value.into();
            }
        }
        let [from, to] = crate::keys();
        match rng.below(8) {
            0 => record["acceptedKey"] = from.into(),
            1 => record["acceptedKey"] = to.into(),
            2 => {
                record["acceptedKey"] = to.into();
                record["removedKey"] = from.into();
            }
            _ => {}
        }
        if rng.chance(60) {
            let (count, newest) = (1 + rng.below(3), created(rng.below(12)));
            record["machinesBefore"] = json!({"count": count, "newest": newest});
        }
        if rng.chance(70) {
            self.host_keys.insert(address.clone(), pin(host));
        }
        self.host_keys.insert(format!("{address}_host"), record.to_string());
    }

    pub fn add_machine(&mut self, host: usize, rng: &mut Rng) {
        if self.machines.iter().any(|it| named(it) == machine(host)) {
            return;
        }
        let set = if rng.chance(75) { "s" } else { "t" };
        let mut labels = json!({(names::MACHINE_OS_LABEL): names::OS_ID_WINDOWS});
        if rng.chance(4) {
            labels[names::IGNORE_LABEL] = "true".into();
        }
        let mut metadata = json!({
            "name": machine(host), "uid": format!("u-{}", host + 1), "labels": labels,
            "creationTimestamp": created(rng.below(12)),
        });
        if rng.chance(92) {
            metadata["ownerReferences"] = owned_by(set);
        }
        let phase = if rng.chance(75) { "Running" } else { "Provisioned" };
        let mut status =
            json!({"phase": phase, "addresses": [{"type": "InternalIP", "address": ip(host)}]});
        if rng.chance(80) {
            status["nodeRef"] = json!({"name": name(host), "uid": format!("n-{}", host + 1)});
        }
        self.machines.push(json!({"metadata": metadata, "status": status}));
    }
}

pub fn owned_by(set: &str) -> Value {
    json!([{"kind": "MachineSet", "name": set, "uid": format!("u-{set}"), "controller": true}])
}
