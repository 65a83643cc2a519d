//! Law: an agent's report ends with a probe, or is an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/outside/report.rs"]
mod law;

fuzz_target!(|output: &str| {
    law::a_report_ends_with_a_probe(output);
});
