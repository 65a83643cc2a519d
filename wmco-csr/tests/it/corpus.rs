//! Replays the corpora of the fuzz targets, so that they are held without a sanitizer as well.

use std::fs::DirEntry;
use std::path::Path;

use crate::laws;

/// Calls `law` with each file of the target's corpus and returns the names of those that it found
/// good, and of the others.
fn replay(target: &str, law: impl Fn(&[u8]) -> bool) -> (Vec<String>, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap().map(Result::unwrap);
    let (good, others): (Vec<_>, Vec<_>) =
        files.partition(|file| law(&std::fs::read(file.path()).unwrap()));
    let names = |files: Vec<DirEntry>| {
        files.iter().map(|file| file.file_name().into_string().unwrap()).collect()
    };
    (names(good), names(others))
}

#[test]
fn parse_corpus_holds() {
    let (good, others) = replay("csr_parse", laws::reads_like_the_oracle);
    assert!(good.len() >= 5 && others.len() >= 5, "{good:?} can be read, {others:?} cannot");
}

/// The names of files tell what becomes of them.
#[test]
fn decide_corpus_holds() {
    let (good, others) = replay("csr_decide", laws::approves_only_what_it_should);
    let approved = |name: &String| name.starts_with("approved-");
    assert!(good.len() >= 3 && good.iter().all(approved), "{good:?} are approved");
    assert!(others.len() >= 3 && !others.iter().any(approved), "{others:?} are not");
}
