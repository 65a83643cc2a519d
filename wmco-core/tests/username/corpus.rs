//! The law for the corpus of the fuzz target.

use std::fs;
use std::path::Path;

use crate::law;

#[test]
fn the_corpus_follows_the_law() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/username_message");
    let mut read = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        law::no_name_is_forged(&fs::read_to_string(entry.unwrap().path()).unwrap());
        read += 1;
    }
    assert!(read > 1, "the corpus is empty");
}
