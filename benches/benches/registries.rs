//! Mirrors: what an ImageTagMirrorSet with many mirrors of one source becomes. Eight times as many mirrors
//! are to take about eight times as long.

#![allow(missing_docs)] // of functions that criterion's macros generate
#![allow(clippy::expect_used)] // a bench without its input has nothing to say

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use wmco_core::registries::{MirrorSetFacts, RegistryInputs, configure};

fn files(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hosts.toml");
    group.sample_size(10);
    for count in [1_250_u32, 10_000] {
        let mirrors: Vec<String> = (0..count).map(|number| format!("m{number}.test/p/x")).collect();
        let set = json!({
            "kind": "ImageTagMirrorSet",
            "metadata": {"name": "many"},
            "spec": {"imageTagMirrors": [{"source": "a.test/x", "mirrors": mirrors}]},
        });
        let sets = [MirrorSetFacts::of(&set).expect("it is a mirror set")];
        let inputs = RegistryInputs { mirror_sets: &sets, ..RegistryInputs::default() };
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| configure(black_box(&inputs)).files());
        });
    }
    group.finish();
}

criterion_group!(benches, files);
criterion_main!(benches);
