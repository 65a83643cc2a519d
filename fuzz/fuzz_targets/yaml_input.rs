//! Law: a file of cluster objects is no more than it says.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../bin-operator/tests/it/outside/law.rs"]
mod law;

fuzz_target!(|bytes: &[u8]| {
    law::a_file_is_no_more_than_it_says(bytes);
});
