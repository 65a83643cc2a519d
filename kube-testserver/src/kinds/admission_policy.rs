//! ValidatingAdmissionPolicies and their bindings: what [`policy`] decides.

use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::policy;

use super::Strategy;

/// Both kinds.
#[derive(Debug)]
pub(super) enum AdmissionPolicies {
    Policies,
    Bindings,
}

impl Strategy for AdmissionPolicies {
    fn default(&self, object: &mut Value) {
        match self {
            Self::Policies => policy::default_policy(object),
            Self::Bindings => policy::default_binding(object),
        }
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        match self {
            Self::Policies => policy::validate_policy(object),
            Self::Bindings => policy::validate_binding(object),
        }
    }
}
