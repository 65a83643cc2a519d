//! A law of files with cluster objects.

use std::path::Path;

use bin_operator::input::Objects;
use wmco_core::limits;

/// Any bytes are as many objects as they can hold, or an error of one line.
pub(crate) fn a_file_is_no_more_than_it_says(bytes: &[u8]) {
    let mut objects = Objects::default();
    if let Err(error) = objects.add_file(Path::new("objects.yaml"), bytes.to_vec()) {
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
    let others: usize = objects.others.iter().map(|other| other.object.to_string().len()).sum();
    // Each byte of a text is at most six as JSON, and a node has at most a few signs around it.
    assert!(others <= 16 * (bytes.len() + limits::YAML_ALIAS_BYTES), "{others}");
    let read = objects.config_maps.len()
        + objects.nodes.len()
        + objects.secrets.len()
        + objects.requests.len()
        + objects.others.len();
    assert!(read <= bytes.len() + limits::YAML_ALIAS_NODES, "{read}");
}
