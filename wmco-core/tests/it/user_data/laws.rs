//! Laws that hold for any text. The fuzz target asserts them, and so do tests of this crate.

use wmco_core::names::platforms;
use wmco_core::render::{user_data, user_data_keys};

/// Keys that are found can be carried on: user data with them carries them, and no others.
///
/// Returns how many there are.
pub(crate) fn keys_are_carried_on(text: &str) -> usize {
    let keys = user_data_keys(text);
    for key in &keys {
        for platform in platforms::ALL {
            let carried = user_data_keys(&user_data(platform, key, keys.first()));
            let expected = keys.first().into_iter().chain([key]).cloned().collect();
            assert_eq!(carried, expected, "on {platform}");
        }
    }
    keys.len()
}

/// A text whose every line is commented out carries no key.
pub(crate) fn comments_carry_no_key(text: &str) {
    let lines = text.split(['\n', '\r']).map(|line| format!("# {line}\n"));
    let keys = user_data_keys(&lines.collect::<String>());
    assert!(keys.is_empty(), "{keys:?}");
}
