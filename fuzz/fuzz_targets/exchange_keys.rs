//! Law: in a file of any content keys are exchanged exactly, and nothing else is.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/authorized_keys/laws.rs"]
mod laws;

fuzz_target!(|file: &[u8]| {
    laws::exchanges_are_exact(file);
});
