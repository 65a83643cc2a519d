//! Reads the plan that the operator left on the host.

use serde::Deserialize;
use wmco_core::digest::Sha256;
use wmco_core::protocol::{HostPlan, PROTOCOL, staged_plan};
use wmco_core::winpath::WindowsPath;

use super::AgentError;
use crate::limits;
use crate::windows::Windows;

/// Reads the plan at `path` and deletes it, even an invalid one: it may hold proxy passwords.
pub(super) fn take(windows: &dyn Windows, path: &WindowsPath) -> Result<HostPlan, AgentError> {
    #[derive(Deserialize)]
    struct Head {
        protocol: u32,
    }
    let wrong = |problem| AgentError::Plan { path: path.clone(), problem };
    let content = windows.files().read(path, limits::JSON_BYTES);
    windows.files().remove_file(path)?;
    let content = content?.ok_or_else(|| wrong("is not there"))?;
    // The file's name holds the digest of its content, so a truncated or replaced plan is detected.
    if staged_plan(Sha256::of(&content)) != *path {
        return Err(wrong("is not what its name says"));
    }
    let head: Head = serde_json::from_slice(&content).map_err(|_| wrong("is no plan"))?;
    if head.protocol != PROTOCOL {
        return Err(AgentError::OtherProtocol { found: head.protocol, ours: PROTOCOL });
    }
    serde_json::from_slice(&content).map_err(|_| wrong("has steps that this agent does not know"))
}
