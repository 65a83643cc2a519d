//! Replays the corpora of the fuzz targets, so that they are held without a sanitizer as well.

use std::path::Path;

use crate::laws;

/// Calls `law` with each file of the target's corpus and returns how many it found good.
fn replay(target: &str, law: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap();
    let results: Vec<_> =
        files.map(|file| law(&std::fs::read(file.unwrap().path()).unwrap())).collect();
    (results.iter().filter(|good| **good).count(), results.len())
}

#[test]
fn parse_corpus_holds() {
    let (good, all) = replay("csr_parse", laws::reads_like_the_oracle);
    assert!(good >= 5 && all - good >= 5, "{good} of {all} can be read");
}

#[test]
fn decide_corpus_holds() {
    let (good, all) = replay("csr_decide", laws::approves_only_what_it_should);
    assert!(good >= 3 && all - good >= 3, "{good} of {all} are approved");
}
