//! What the objects in files say of the cluster as a whole.

use serde::de::DeserializeOwned;
use serde_json::Value;
use wmco_core::names::machine_api::INFRASTRUCTURE_KIND;
use wmco_csr::ClusterFacts;

use crate::input::{self, CONFIGURATION, InputError, Located, Objects};
use crate::openshift::{self, InfrastructureStatus, NetworkSpec};

/// What the cluster says of itself, and nothing that is only assumed.
pub(super) fn cluster_facts(objects: &Objects) -> Result<ClusterFacts, InputError> {
    let status: Option<InfrastructureStatus> = part(objects, INFRASTRUCTURE_KIND, "status")?;
    let network: Option<NetworkSpec> = part(objects, "Network", "spec")?;
    Ok(openshift::cluster_facts(status.as_ref(), network.as_ref()))
}

/// The Infrastructure in the input.
pub(super) fn infrastructure(objects: &Objects) -> Result<Option<&Located<Value>>, InputError> {
    input::of_cluster(objects, CONFIGURATION, INFRASTRUCTURE_KIND)
}

/// Whether the input tells the platform and the addresses of the API server and the ingress: an Infrastructure that nobody
/// filled in does not.
pub(super) fn tells_infrastructure(objects: &Objects) -> Result<bool, InputError> {
    let status = infrastructure(objects)?.and_then(|it| it.object.get("status")?.as_object());
    Ok(status.is_some_and(|status| !status.is_empty()))
}

/// A part of the one object of a kind in OpenShift's configuration.
fn part<T: DeserializeOwned>(
    objects: &Objects,
    kind: &'static str,
    part: &str,
) -> Result<Option<T>, InputError> {
    let found = input::of_cluster(objects, CONFIGURATION, kind)?;
    let part = found.and_then(|other| Some((&other.at, other.object.get(part)?)));
    let typed = part.map(|(at, part)| input::typed(at.clone(), part.clone()));
    Ok(typed.transpose()?.map(|located| located.object))
}
