//! Law: objects of any shape become files that containerd can read.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/registries/laws.rs"]
mod laws;

fuzz_target!(|objects: &[u8]| {
    laws::objects_become_files(objects);
});
