//! Law: no encrypted user name is forged without its key.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/username/law.rs"]
mod law;

fuzz_target!(|text: &str| {
    law::no_name_is_forged(text);
});
