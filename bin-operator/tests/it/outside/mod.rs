//! A law of files that people give to commands. The fuzz target asserts it for any bytes, this test for
//! its corpus.

mod law;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_follows_the_law() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/yaml_input");
    let mut read = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        law::a_file_is_no_more_than_it_says(&fs::read(entry.unwrap().path()).unwrap());
        read += 1;
    }
    assert!(read > 1, "the corpus is empty");
}
