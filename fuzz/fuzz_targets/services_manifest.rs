//! Law: a services ConfigMap is refused, or reads as it was written.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-services/tests/it/outside/manifest.rs"]
mod law;

fuzz_target!(|text: &str| {
    law::a_manifest_reads_as_it_was_written(text);
});
