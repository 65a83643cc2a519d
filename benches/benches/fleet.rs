//! Measures a pass over the whole fleet, as a table: the best of many rounds for 1,000 and for 10,000 Windows nodes
//! beside as many Linux nodes, and the factor between the two. Work in proportion to the nodes has a factor of 10 in
//! instructions, as `valgrind --tool=callgrind` counts them. Its factor in time is that of the first row, which decides
//! nothing: data of 1,000 nodes fits into processor caches, data of 10,000 does not.
//!
//! `cargo bench -p wmco-benches --bench fleet`

#![allow(clippy::print_stdout)] // it prints, or has nothing to say

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use jiff::Timestamp;
use wmco_benches::fleet::Fleet;
use wmco_benches::machines::MachineFleet;
use wmco_core::digest::Sha256;
use wmco_core::fleet::{host_names, nodes_of, reconcile};
use wmco_core::host_record::KnownHosts;
use wmco_core::instances::{Resolutions, parse};
use wmco_core::login_keys::LoginKeys;
use wmco_core::node::{InstanceInputs, Login};
use wmco_core::preview::preview;
use wmco_core::reach::reach;

const SIZES: [u32; 2] = [1_000, 10_000];
const ROUNDS: usize = 15;

/// Returns the fewest milliseconds of `work`.
fn best(work: impl Fn()) -> f64 {
    let round = |()| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64() * 1e3
    };
    (0..ROUNDS).map(|_| round(())).fold(f64::INFINITY, f64::min)
}

fn main() {
    let fleets = SIZES.map(Fleet::of);
    let row = |label: &str, work: &dyn Fn(&Fleet)| {
        let [small, large] = [&fleets[0], &fleets[1]].map(|fleet| best(|| work(fleet)));
        println!("{label:<34}{small:>9.2} ms{large:>9.2} ms{:>8.1} x", large / small);
    };
    let [small, large] = SIZES;
    println!("{:<34}{small:>9}   {large:>9}", "Windows nodes, and as many Linux");
    row("a look at all Nodes and records", &|fleet| {
        let _ = black_box(fleet.look());
    });
    row("reconcile, nothing to do", &|fleet| {
        drop(black_box(reconcile(&fleet.desired(), &fleet.observed())));
    });
    row("reconcile, all leave", &|fleet| {
        drop(black_box(reconcile(&fleet.nobody_wanted(), &fleet.observed())));
    });
    row("reconcile, all claim a permit", &|fleet| {
        drop(black_box(reconcile(&fleet.desired(), &fleet.all_claim())));
    });
    row("reconcile, the way to every host", &|fleet| {
        for assignment in &fleet.assignments().instances {
            drop(black_box(reach(assignment, fleet.observed().hosts, |_| None)));
        }
    });
    row("inputs of all workers", &|fleet| {
        let (observed, release) = (fleet.observed(), &fleet.release);
        let keys = LoginKeys::one(Sha256::of(b"key"));
        let login =
            Login { keys: &keys, rotation: None, username: Some("sealed"), decrypt: &|_| None };
        for assignment in &fleet.assignments().instances {
            drop(black_box(InstanceInputs::of(assignment, release, observed.hosts, login)));
        }
    });
    row("a whole pass", &|fleet| {
        let _ = black_box(fleet.pass());
    });
    row("preview of all plans", &|fleet| {
        let (assignments, observed) = (fleet.assignments(), fleet.observed());
        let (desired, now) = (fleet.desired(), Timestamp::UNIX_EPOCH);
        drop(black_box(preview(&assignments, &desired, &observed, &fleet.release, now)));
    });
    row("nodes of listed hosts", &|fleet| {
        drop(black_box(nodes_of(&fleet.entries, fleet.nodes())));
    });
    row("names of hosts", &|fleet| {
        let (dns, reported) = (Resolutions::default(), BTreeMap::new());
        drop(black_box(host_names(&fleet.entries, &dns, &reported, fleet.observed().hosts)));
    });
    row("reading of entries", &|fleet| {
        drop(black_box(parse(&fleet.listed, &Resolutions::default())));
    });
    row("reading of keys and records", &|fleet| {
        drop(black_box(KnownHosts::read(&fleet.host_keys)));
    });
    let fleets = SIZES.map(MachineFleet::of);
    let row = |label: &str, work: &dyn Fn(&MachineFleet)| {
        let [small, large] = [&fleets[0], &fleets[1]].map(|fleet| best(|| work(fleet)));
        println!("{label:<34}{small:>9.2} ms{large:>9.2} ms{:>8.1} x", large / small);
    };
    println!("{:<34}{small:>9}   {large:>9}", "Machines of one MachineSet");
    row("reconcile, nothing to do", &|fleet| {
        drop(black_box(reconcile(&fleet.desired(), &fleet.observed())));
    });
    row("reconcile, all refuse our key", &|fleet| {
        let _ = black_box(fleet.all_refuse());
    });
}
