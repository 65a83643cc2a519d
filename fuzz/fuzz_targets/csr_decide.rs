//! Law: approved if and only if every check passed, the signature is right and all names fit.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-csr/tests/it/laws.rs"]
#[allow(dead_code, reason = "each target asserts one of the laws")]
mod laws;

fuzz_target!(|pem: &[u8]| {
    laws::pem_is_canonical(pem);
    laws::approves_only_what_it_should(pem);
});
