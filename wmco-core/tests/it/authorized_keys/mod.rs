//! Exchanges of keys in files of any content.

mod laws;

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use wmco_core::names::host::USER_DATA_MARK;

use laws::{NEW, OLD};

/// Files of pieces that mean something, which plain random bytes would never hit.
fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        OLD,
        NEW,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHACAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
        "ssh-ed25519",
        "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
        "ecdsa-sha2-nistp256 AAAA",
        "ED25519 ",
        USER_DATA_MARK,
        "no-pty ",
        "command=\"",
        "\"",
        "\\",
        "#",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "\x0b",
        " ",
        "\t",
        "\u{FEFF}",
        "a",
    ];
    let piece = prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec());
    let byte = any::<u8>().prop_map(|byte| vec![byte]);
    vec(prop_oneof![20 => piece, 1 => byte], 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_file_of_keys_follows_the_laws(file in any_file()) {
        laws::exchanges_are_exact(&file);
    }
}

/// The corpus of the fuzz target. Every file of it can be exchanged, but the one that is in
/// UTF-16.
#[test]
fn the_corpus_of_key_files_follows_the_laws() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/exchange_keys");
    let mut refused = Vec::new();
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        if laws::exchanges_are_exact(&fs::read(&path).unwrap()) == 0 {
            refused.push(path.file_name().unwrap().to_owned());
        }
    }
    assert_eq!(refused, ["utf-16"]);
}
