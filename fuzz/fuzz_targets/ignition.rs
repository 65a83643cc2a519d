//! Law: little of a rendered MachineConfig is taken over, whatever it says.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/outside/ignition.rs"]
mod law;

fuzz_target!(|text: &str| {
    law::little_is_taken_over(text);
});
