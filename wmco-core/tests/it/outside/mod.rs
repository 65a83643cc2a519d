//! Laws for what people, hosts and Linux nodes write. Fuzz targets assert them for any bytes, these
//! tests for the corpora of the targets.

mod ignition;
mod instances;
mod names;
mod report;

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
fn entries_follow_their_law() {
    corpus_follows("instances_value", instances::an_entry_is_a_host_or_an_error);
}

#[test]
fn ignition_documents_follow_their_law() {
    corpus_follows("ignition", ignition::little_is_taken_over);
}

#[test]
fn reports_follow_their_law() {
    corpus_follows("report_lines", report::a_report_ends_with_a_probe);
}

#[test]
fn listed_names_follow_their_law() {
    corpus_follows("sftp_names", names::listed_names_stay_in_their_folder);
}
