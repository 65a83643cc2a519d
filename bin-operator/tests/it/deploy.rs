//! The manifests for a real cluster say what the code says.

use serde_json::Value;
use wmco_core::cluster::rbac;
use wmco_core::names::objects;

#[test]
fn the_daemons_rights_are_those_of_the_code() {
    let text = include_str!("../../../deploy/wicd-rights.yaml");
    let mut written: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mut coded = rbac::shipped(objects::DEFAULT_NAMESPACE);
    for objects in [&mut written, &mut coded] {
        objects.sort_by_key(|object| (object["kind"].to_string(), object["metadata"].to_string()));
    }
    assert_eq!(written, coded);
}
