//! Law: keys that are found in any text can be carried on, and none is found in comments.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-core/tests/it/user_data/laws.rs"]
mod laws;

fuzz_target!(|text: &str| {
    laws::keys_are_carried_on(text);
    laws::comments_carry_no_key(text);
});
