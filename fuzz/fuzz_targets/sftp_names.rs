//! Law: names that a server lists stay in their folder.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/outside/names.rs"]
mod law;

fuzz_target!(|name: &str| {
    law::listed_names_stay_in_their_folder(name);
});
