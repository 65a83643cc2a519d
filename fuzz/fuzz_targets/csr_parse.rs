//! Law: what we can read as a request, `x509-parser` reads as the same request.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-csr/tests/it/laws.rs"]
#[allow(dead_code, reason = "each target asserts one of the laws")]
mod laws;

fuzz_target!(|der: &[u8]| {
    laws::reads_like_the_oracle(der);
});
