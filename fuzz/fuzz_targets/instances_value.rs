//! Law: an entry of `windows-instances` is a host or one error.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/outside/instances.rs"]
mod law;

fuzz_target!(|text: &str| {
    law::an_entry_is_a_host_or_an_error(text);
});
