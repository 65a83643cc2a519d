//! User data carries the keys that it was given, and reading the keys of any text ends well.

mod laws;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::collection::vec;
use proptest::prelude::*;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::limits;
use wmco_core::names::platforms;
use wmco_core::render::{user_data, user_data_keys};

/// A key of the one kind whose bytes may be any, for texts that are put together.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn line(algorithm: &str, fields: &[&[u8]]) -> String {
    let all = [algorithm.as_bytes()].into_iter().chain(fields.iter().copied());
    let wire = all.flat_map(|field| {
        let length = u32::try_from(field.len()).unwrap().to_be_bytes();
        [&length, field].concat()
    });
    format!("{algorithm} {}", BASE64_STANDARD.encode(wire.collect::<Vec<_>>()))
}

fn any_key() -> impl Strategy<Value = AuthorizedKey> {
    let ed25519 = any::<[u8; 32]>().prop_map(|key| line("ssh-ed25519", &[&key]));
    let curves = prop::sample::select(vec!["nistp256", "nistp384", "nistp521"]);
    let ecdsa = (curves, vec(any::<u8>(), 1..140)).prop_map(|(curve, point)| {
        line(&format!("ecdsa-sha2-{curve}"), &[curve.as_bytes(), &point])
    });
    let rsa = (vec(any::<u8>(), 1..9), vec(any::<u8>(), 256..2050))
        .prop_map(|(exponent, modulus)| line("ssh-rsa", &[&exponent, &modulus]));
    prop_oneof![ed25519, ecdsa, rsa].prop_map(|line| line.parse().unwrap())
}

/// Texts of pieces that mean something, which plain random text would never hit.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = [
        KEY,
        "'",
        "''",
        "\"",
        "`",
        "`n",
        "#",
        "<#",
        "#>",
        "@'\n",
        "\n'@",
        "@\"\r\n",
        "\n\"@",
        "\n",
        "\r",
        " ",
        "<powershell>",
        "</powershell>",
        "ssh-rsa ",
        "$(",
        ")",
        "\u{2019}",
        "\u{201c}",
        "a",
    ];
    vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn user_data_carries_the_keys_that_it_was_given(
        key in any_key(),
        next in prop::option::of(any_key()),
        platform in prop::sample::select(platforms::ALL.to_vec()),
    ) {
        let text = user_data(platform, &key, next.as_ref());
        prop_assert!(text.is_ascii());
        prop_assert!(text.len() <= limits::USER_DATA_BYTES, "{} bytes", text.len());
        let expected: BTreeSet<_> = [Some(key), next].into_iter().flatten().collect();
        prop_assert_eq!(user_data_keys(&text), expected);
    }

    #[test]
    fn any_text_follows_the_laws(text in any_text()) {
        laws::keys_are_carried_on(&text);
        laws::comments_carry_no_key(&text);
    }
}

/// The corpus of the fuzz target.
#[test]
fn the_corpus_follows_the_laws() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/user_data_keys");
    let mut with_keys = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        with_keys += usize::from(laws::keys_are_carried_on(&text) > 0);
        laws::comments_carry_no_key(&text);
    }
    assert_eq!(with_keys, 5);
}
