//! Properties of user input in the services ConfigMap. Fuzz targets assert them for any bytes, these tests for the
//! targets' corpora.

mod manifest;
mod node_path;

use std::fs;
use std::path::Path;

/// Asserts `law` for each input in the corpus of the fuzz target `target`.
fn corpus_follows(target: &str, law: fn(&str)) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut read = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        law(&String::from_utf8_lossy(&fs::read(entry.unwrap().path()).unwrap()));
        read += 1;
    }
    assert!(read > 1, "the corpus of {target} is empty");
}

#[test]
fn manifests_follow_their_law() {
    corpus_follows("services_manifest", manifest::a_manifest_reads_as_it_was_written);
}

#[test]
fn node_paths_follow_their_law() {
    corpus_follows("node_path", node_path::a_path_gives_a_text_of_the_node);
}
