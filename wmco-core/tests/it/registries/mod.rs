//! Files for containerd from objects of any shape.

mod laws;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_follows_the_law() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/registries");
    let mut read = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        laws::objects_become_files(&fs::read(entry.unwrap().path()).unwrap());
        read += 1;
    }
    assert!(read > 1);
}
