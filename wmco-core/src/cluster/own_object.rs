//! Which object an action is about.

use std::fmt;

use super::Action;
use super::rbac::{BindingKind, RBAC_GROUP};
use crate::digest::Sha256;
use crate::names::monitoring::{EXPORTER, SERVICE_MONITOR};
use crate::names::objects;

/// An object of the operator's own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnObject {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace; `None` for cluster scope.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl fmt::Display for OwnObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl Action {
    /// The object, for an operator in `namespace`.
    pub fn object(&self, namespace: &str) -> OwnObject {
        let core = |kind, name: &str| OwnObject {
            group: "",
            version: "v1",
            kind,
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        match self {
            Self::CreateServices { name, .. }
            | Self::ReplaceServices { name, .. }
            | Self::DeleteServices { name } => core("ConfigMap", name),
            Self::CreateToken | Self::DeleteToken => core("Secret", objects::WICD),
            Self::CreateTrustedCa | Self::LabelTrustedCa => {
                core("ConfigMap", objects::TRUSTED_CA_CONFIG_MAP)
            }
            Self::CreateBinding(kind) | Self::DeleteBinding { kind, .. } => {
                let is_namespaced = *kind == BindingKind::RoleBinding;
                OwnObject {
                    group: RBAC_GROUP,
                    version: "v1",
                    kind: if is_namespaced { "RoleBinding" } else { "ClusterRoleBinding" },
                    namespace: is_namespaced.then(|| namespace.to_owned()),
                    name: kind.name().to_owned(),
                }
            }
            Self::CreateServiceMonitor | Self::ChangeServiceMonitor { .. } => {
                let (group, version, kind) = SERVICE_MONITOR;
                OwnObject { group, version, kind, ..core(kind, EXPORTER) }
            }
            Self::CreateUserData { namespace, .. }
            | Self::ChangeUserData { namespace, .. }
            | Self::ReplaceUserData { namespace, .. } => OwnObject {
                namespace: Some(namespace.clone()),
                ..core("Secret", objects::USER_DATA_SECRET)
            },
        }
    }

    /// Identifies what the object is to be, as far as that changes.
    pub fn wanted(&self) -> Sha256 {
        match self {
            Self::CreateServices { data, .. } | Self::ReplaceServices { data, .. } => data.digest(),
            Self::CreateUserData { text, .. } | Self::ChangeUserData { text, .. } => {
                Sha256::of(text.expose())
            }
            Self::ReplaceUserData { data, .. } => {
                let text = data.get(objects::USER_DATA_KEY);
                Sha256::of(text.map_or(&[], |text| text.expose()))
            }
            Self::DeleteServices { .. }
            | Self::CreateToken
            | Self::DeleteToken
            | Self::CreateTrustedCa
            | Self::LabelTrustedCa
            | Self::CreateBinding(_)
            | Self::DeleteBinding { .. }
            | Self::CreateServiceMonitor
            | Self::ChangeServiceMonitor { .. } => Sha256::of(&[]),
        }
    }

    /// Whether it leaves the object as it should be, so that it is due again only if somebody else changes it.
    pub const fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::DeleteServices { .. } | Self::DeleteToken | Self::DeleteBinding { .. }
        )
    }
}
