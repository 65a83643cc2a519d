//! The cluster's Infrastructure object.

use serde_json::Value;

use super::options::MachineSetOptions;
use super::platform::{Platform, UnknownPlatform};
use crate::names::machine_api::INFRASTRUCTURE_KIND;

/// The object [`CLUSTER`](crate::names::objects::CLUSTER) of kind [`INFRASTRUCTURE_KIND`].
///
/// Source: `docs/contract/machines.md`, MACH6 and MACH17.
///
/// ```
/// use serde_json::json;
/// use wmco_core::machine_set::{Infrastructure, MachineSetOptions, Platform};
///
/// let status = json!({"infrastructureName": "prod-x7k2p", "platformStatus": {"type": "Azure"}});
/// let object = json!({"kind": "Infrastructure", "status": status});
/// let infrastructure = Infrastructure::of(&object).expect("an Infrastructure");
/// let mut options = MachineSetOptions::default();
/// infrastructure.complete(&mut options);
/// assert_eq!(options.infrastructure.as_deref(), Some("prod-x7k2p"));
/// assert_eq!(infrastructure.platform(), Some(Ok(Platform::Azure)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Infrastructure<'a> {
    status: &'a Value,
}

impl<'a> Infrastructure<'a> {
    /// Wraps `object` if it is of that kind.
    pub fn of(object: &'a Value) -> Option<Self> {
        let kind = object.get("kind").and_then(Value::as_str);
        (kind == Some(INFRASTRUCTURE_KIND))
            .then(|| Self { status: object.get("status").unwrap_or(&Value::Null) })
    }

    /// The platform; `None` if the object has none.
    pub fn platform(self) -> Option<Result<Platform, UnknownPlatform>> {
        self.text("/platformStatus/type").map(str::parse)
    }

    /// Sets the values of the object in `options` that are not given yet.
    pub fn complete(self, options: &mut MachineSetOptions) {
        let aws = self.text("/platformStatus/aws/region");
        let gcp = self.text("/platformStatus/gcp/region");
        for (option, known) in [
            (&mut options.infrastructure, self.text("/infrastructureName")),
            (&mut options.project, self.text("/platformStatus/gcp/projectID")),
            (&mut options.region, aws.or(gcp)),
            (&mut options.resource_group, self.text("/platformStatus/azure/resourceGroupName")),
        ] {
            if option.is_none() {
                *option = known.map(str::to_owned);
            }
        }
    }

    fn text(self, at: &str) -> Option<&'a str> {
        self.status.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}
