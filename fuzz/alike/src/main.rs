//! Compares what two versions of the planner decide about the same random clusters: `alike SEED CLUSTERS [REWORDED]`. In the
//! file REWORDED are texts of the version before, each on a line followed by one with the text of now.
//!
//! A cluster lives for some passes, each planner with a memory of its own, and changes between them. All that a pass tells
//! is compared as text. A difference ends the life of its cluster. The first one is printed with all of its cluster, then
//! how many there are of each kind: the lines that only one of both tells, without numbers.

mod changes;
mod cluster;
mod rng;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use cluster::Cluster;
use rng::Rng;

/// Passes in the life of a cluster.
const PASSES: usize = 14;

/// One version, by the name of its crate. Where its interface is another one, this is written out for each.
macro_rules! planner {
    ($version:ident) => {
        mod $version {
            use std::collections::BTreeSet;
            use std::fmt::Write as _;
            use std::time::Duration;

            use $version::facts::{MachineFacts, MachineSetFacts, NodeFacts};
            use $version::fleet::{
                Desired, LoginResult, LoginTry, Memory, Observed, Patience, RemovalGuard,
            };
            use $version::host_record::KnownHosts;
            use $version::instances::{Resolutions, Unresolved, parse};
            use $version::login_keys::{KeyRotation, LoginKeys};
            use $version::machines::Machines;

            use crate::cluster::Cluster;

            const KEY: &str =
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4";

            pub struct Planner(Memory);

            fn rotation() -> KeyRotation {
                let key = |last: char| format!("{KEY}{last}").parse().unwrap();
                KeyRotation { from: key('f'), to: key('e') }
            }

            #[allow(dead_code)] // one version is enough
            pub fn keys() -> [String; 2] {
                let KeyRotation { from, to } = rotation();
                [from, to].map(|key| key.hash().to_string())
            }

            fn login_keys(number: usize) -> Option<LoginKeys> {
                match number {
                    0 => None,
                    1 => Some(LoginKeys::one(rotation().from.hash())),
                    2 => Some(LoginKeys::one(rotation().to.hash())),
                    _ => Some(LoginKeys::rotating(rotation())),
                }
            }

            impl Planner {
                pub fn new(patience: Duration) -> Self {
                    let (refused, unanswered) = (patience, patience);
                    Self(Memory::new(Patience { refused, unanswered }))
                }

                pub fn pass(&mut self, it: &Cluster, now: Duration) -> String {
                    let mut names = Resolutions::default();
                    for (name, at) in &it.names {
                        names.insert(name, at.ok_or(Unresolved::NoSuchName));
                    }
                    let entries = parse(&it.entries, &names);
                    let node = |json: &serde_json::Value| {
                        NodeFacts::from(
                            &serde_json::from_value::<k8s_openapi::api::core::v1::Node>(
                                json.clone(),
                            )
                            .unwrap(),
                        )
                    };
                    let nodes: Vec<_> = it.nodes.iter().map(node).collect();
                    let (machines, sets) = (it.machines.iter(), it.sets.iter());
                    let machines = Machines::read(
                        machines.map(MachineFacts::of),
                        sets.map(MachineSetFacts::of),
                        "AWS",
                    );
                    let hosts = KnownHosts::read(&it.host_keys);
                    let keys = login_keys(it.keys);
                    for (instance, at, result) in &it.logins {
                        let Some(keys) = &keys else { continue };
                        let login = LoginTry { at: *at, keys: LoginKeys::id(&keys.offered(None)) };
                        let result = match result {
                            0 => LoginResult::Accepted,
                            1 => LoginResult::Refused,
                            _ => LoginResult::Unanswered,
                        };
                        self.0.logged_in(instance, login, result, &(now..now));
                    }
                    let names = it.host_names.iter();
                    let names =
                        names.map(|(at, name)| (at.clone(), BTreeSet::from([name.clone()])));
                    let desired = Desired {
                        entries: (!it.list_absent).then_some(&entries),
                        machines: &machines,
                        version: "2.0.0",
                        budget: it.budget,
                        blocked: it.blocked,
                        guard: RemovalGuard { most: it.most_removals, confirmed: it.confirmed },
                        keys: keys.as_ref(),
                    };
                    let observed = Observed {
                        claims: &it.claims,
                        right_user_data: it.user_data.as_deref(),
                        hosts: &hosts,
                        host_names: &names.collect(),
                        never_contacted: &it.never_contacted,
                        ..Observed::new(&nodes)
                    };
                    let out = self.0.pass(&desired, &observed, now);
                    let mut told = String::new();
                    for one in &out.instances {
                        let entry = one.instance.map(|it| &it.address);
                        let _ =
                            writeln!(told, "{one}; {:?} {entry:?} {}", one.formerly, one.confirmed);
                    }
                    for (address, change) in &out.changes {
                        let _ = writeln!(told, "change {address}: {change:?}");
                    }
                    let _ = writeln!(told, "forgotten {:?}", out.forgotten_keys);
                    let _ = writeln!(told, "{:?} {:?}", out.confirmation_used, out.rotation);
                    let _ =
                        writeln!(told, "{:?} {:?} {:?}", out.replacing, out.disrupted, out.waiting);
                    for notice in &out.notices {
                        let (topic, patience) = (notice.topic(), notice.patience());
                        let _ =
                            writeln!(told, "{notice}; {topic:?} {patience:?} {}", notice.reason());
                    }
                    let json = serde_json::to_string(&out).unwrap();
                    drop(out);
                    let _ = writeln!(told, "{json}\n{:?}", self.0.wake_at(now));
                    told
                }
            }
        }
    };
}

planner!(before);
planner!(after);

/// The two keys of ours, as records tell of them.
fn keys() -> [String; 2] {
    after::keys()
}

/// The kind of a difference: the lines that one of both tells and the other one does not, without numbers.
fn kind([before, after]: &[String; 2]) -> BTreeSet<String> {
    let told = [("- ", before, after), ("+ ", after, before)];
    let lines = told.into_iter().flat_map(|(mark, text, other)| {
        // The JSON tells the same.
        let is_new =
            move |line: &&str| !line.starts_with('{') && !other.lines().any(|it| it == *line);
        text.lines().filter(is_new).map(move |line| format!("{mark}{}", without_numbers(line)))
    });
    lines.collect()
}

/// Each run of digits, and each hash, is one sign.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for sign in line.chars() {
        match sign {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            _ => out.push(sign),
        }
    }
    out
}

fn main() -> ExitCode {
    use std::time::Duration;
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next()?.parse::<usize>().ok();
    let (Some(seed), Some(clusters)) = (number(), number()) else {
        eprintln!("usage: alike SEED CLUSTERS [REWORDED]");
        return ExitCode::FAILURE;
    };
    let reworded = arguments.next().map(|file| std::fs::read_to_string(file).unwrap());
    let reworded: Vec<&str> = reworded.iter().flat_map(|text| text.lines()).collect();
    let now_called = |text: String| {
        reworded.chunks_exact(2).fold(text, |text, words| text.replace(words[0], words[1]))
    };
    let mut rng = Rng(seed as u64);
    let (mut seen, mut different) = (0, 0);
    let mut kinds: BTreeMap<BTreeSet<String>, usize> = BTreeMap::new();
    while seen < clusters {
        let mut cluster = Cluster::random(&mut rng);
        let patience = Duration::from_secs(50);
        let (mut before, mut after) =
            (before::Planner::new(patience), after::Planner::new(patience));
        let mut now = Duration::from_secs(1_000);
        for _ in 0..PASSES {
            seen += 1;
            let told = [now_called(before.pass(&cluster, now)), after.pass(&cluster, now)];
            if told[0] != told[1] {
                different += 1;
                if different == 1 {
                    println!("{cluster:#?}\n--- before\n{}\n--- after\n{}", told[0], told[1]);
                }
                *kinds.entry(kind(&told)).or_default() += 1;
                break;
            }
            cluster.follow(&told[0], &mut rng);
            for _ in 0..rng.below(4) {
                cluster.change(&mut rng);
            }
            now += Duration::from_secs(*rng.pick(&[1, 5, 60, 200, 301]));
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (lines, count) in kinds {
        println!("--- {count} times");
        lines.iter().for_each(|line| println!("{line}"));
    }
    println!("{seen} clusters, {different} of them decided otherwise");
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
