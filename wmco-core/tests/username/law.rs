//! A law of encrypted user names.

use wmco_core::secret::Secret;
use wmco_core::username::decrypt;

/// Without the key nobody makes a message that is read; the only one here is the Go operator's, whose
/// user is known. An error repeats nothing of the text.
pub(crate) fn no_name_is_forged(text: &str) {
    let read = |key: &str| decrypt(text, &Secret::new(key));
    match read("wmco-test-passphrase") {
        Ok(user) => assert_eq!(user, "Administrator"),
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error}"),
    }
    read("another passphrase").expect_err("it was encrypted with another key");
}
