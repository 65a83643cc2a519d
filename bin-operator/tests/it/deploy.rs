//! The manifests for a real cluster say what the code says.

use serde_json::{Value, json};
use wmco_core::cluster::rbac;
use wmco_core::names::objects;

#[test]
fn the_daemons_rights_are_those_of_the_code() {
    let text = include_str!("../../../deploy/wicd-rights.yaml");
    let mut written: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let shipped = rbac::shipped(objects::DEFAULT_NAMESPACE);
    let mut coded = vec![
        json!(shipped.account),
        json!(shipped.role),
        json!(shipped.cluster_roles[0]),
        json!(shipped.cluster_roles[1]),
        json!(shipped.certificates_binding),
    ];
    for objects in [&mut written, &mut coded] {
        objects.sort_by_key(|object| (object["kind"].to_string(), object["metadata"].to_string()));
    }
    assert_eq!(written, coded);
}
