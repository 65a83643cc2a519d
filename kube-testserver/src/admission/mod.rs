//! Admission: checks of a write after authorization that may change or refuse it, in addition to the kind's own
//! rules.

pub(crate) mod node_restriction;

use serde_json::Value;

use super::auth::escalation;
use super::call::{Call, Operation};
use super::error::{ApiError, Result};
#[cfg(feature = "admission-policy")]
use super::policy;
use super::state::State;
use super::{csr, kinds};

/// Admission that may change the object (`before` is `None` for a create).
///
/// # Errors
/// Usually 403.
pub(crate) fn mutate(
    state: &State,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: &mut Value,
) -> Result<()> {
    node_restriction::admit(&state.store, call, operation, before, Some(object))?;
    if operation == Operation::Create && call.resource.is("", "nodes") {
        kinds::new_taints(object);
    }
    if operation == Operation::Create && call.resource.is("", "pods") {
        kinds::admit_pod(&state.store, call, object)?;
    }
    if operation == Operation::Update && call.resource.is("", "pods") && call.subresource.is_empty()
    {
        kinds::tolerate(object);
    }
    escalation::admit(&state.store, call, operation, before, Some(object))
}

/// Admission that may only refuse or warn. `object` is `None` for a delete.
///
/// # Errors
/// Usually 403 or 422.
pub(crate) fn validate(
    state: &mut State,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: Option<&Value>,
) -> Result<()> {
    if operation == Operation::Delete {
        node_restriction::admit(&state.store, call, operation, before, object)?;
        may_delete(call)?;
    }
    if call.resource.is("certificates.k8s.io", "certificatesigningrequests") {
        csr::admit(&state.store, call, operation, before, object)?;
    }
    #[cfg(feature = "admission-policy")]
    {
        let write = policy::Write { call, operation, before, object };
        let warnings = policy::admit(&state.store, write)?;
        state.warnings.extend(warnings);
    }
    Ok(())
}

/// Refuses to delete the namespaces of the cluster itself.
///
/// # Errors
/// 403.
fn may_delete(call: &Call) -> Result<()> {
    let fixed = ["default", "kube-system", "kube-public"];
    if call.resource.is("", "namespaces") && fixed.contains(&call.name.as_str()) {
        return Err(ApiError::forbidden(call.subject(), "this namespace may not be deleted"));
    }
    Ok(())
}
