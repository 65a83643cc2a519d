//! What `wicd bootstrap`, `wicd cleanup` and the agent's steps of the same names do.
//!
//! Source: `spec/wicd.md`, sections 14, 15 and 23.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use crate::certs::{self, Bundle};
use crate::env;
use crate::manifest::Manifest;
use crate::services::{self, Desired, Failure, Scope, ScriptResults};
use crate::windows::{Windows, WindowsError};

/// The program that every container hangs on.
const SHIM: &str = "containerd-shim-runhcs-v1.exe";

/// Why services could not be brought up or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifecycleError {
    /// Certificates that we imported may still be trusted; all else is gone.
    #[error("imported certificates were not removed: {why}")]
    Roots {
        /// One line.
        why: String,
    },
    /// Some services are not as they should be; the others are.
    #[error("{}", .problems.join("; "))]
    Services {
        /// One line for each.
        problems: Vec<String>,
    },
    /// Windows did not do it.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}

/// What a cleanup came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cleaned {
    /// Whether anything was there to take away.
    pub changed: bool,
    /// Whether programs see variables or trusted roots that are gone until the host restarts.
    pub restart_needed: bool,
}

/// Sets the manifest's variables, so that they are in force from the next start of the host on, and
/// brings up its bootstrap services. Tells whether anything changed.
///
/// # Errors
/// [`LifecycleError`] with every service that does not run.
pub fn bootstrap(
    windows: &dyn Windows,
    manifest: &Manifest,
    now: Timestamp,
) -> Result<bool, LifecycleError> {
    let variables = env::reconcile(manifest, &env::observe(manifest, windows)?);
    let variables_changed = env::execute(&variables, manifest, windows)?;
    let desired = Desired { manifest, scope: Scope::Bootstrap };
    let settled = services::settle(windows, desired, None, &mut ScriptResults::new(), now)?;
    let waiting = settled.left.blocked.iter();
    let mut problems: Vec<String> = problems(&settled.failures)
        .chain(waiting.map(|blocked| format!("service {}: {}", blocked.service, blocked.reason)))
        .collect();
    if problems.is_empty() && !settled.left.steps.is_empty() {
        problems.push("the services do not settle, look at what else changes them".to_owned());
    }
    if problems.is_empty() {
        Ok(settled.changed || variables_changed)
    } else {
        Err(LifecycleError::Services { problems })
    }
}

/// Takes away every service of ours but the daemon's own, the variables that the manifests watch or that
/// we set, left-over containers, and then the certificates that we imported.
///
/// # Errors
/// [`LifecycleError`] with every service that is still there; certificates are then not touched. Or of the
/// record of certificates, when it cannot be read or is damaged.
pub fn cleanup(windows: &dyn Windows, manifests: &[Manifest]) -> Result<Cleaned, LifecycleError> {
    let mut changed = remove_services(windows, manifests)?;
    changed |= remove_roots(windows)?;
    let restart_needed = !windows.environment().changed_since_boot()?.is_empty()
        || windows.roots().changed_since_boot()?;
    Ok(Cleaned { changed, restart_needed })
}

/// Takes away every service of ours, the variables that the manifests watch or that we set, and left-over
/// containers; tells whether anything was there. The daemon's own service is left alone.
///
/// # Errors
/// [`LifecycleError`] with every service that is still there; the rest is then not touched.
pub(crate) fn remove_services(
    windows: &dyn Windows,
    manifests: &[Manifest],
) -> Result<bool, LifecycleError> {
    let plan = services::remove(manifests, &windows.services().list()?);
    // No script runs in such a plan, so the time does not matter.
    let mut done = services::execute(
        &plan,
        windows,
        &mut ScriptResults::new(),
        Timestamp::UNIX_EPOCH,
        &|| true,
    );
    // A service that is only marked is stopped, and goes when nobody looks at it any more.
    done.failures
        .retain(|failure| !matches!(failure.error, WindowsError::MarkedForDeletion { .. }));
    if !done.failures.is_empty() {
        return Err(LifecycleError::Services { problems: problems(&done.failures).collect() });
    }
    let mut changed = done.changed;
    changed |= env::clear(manifests, windows)?;
    if let Ok(shim) = format!(r"{}\{SHIM}", host::CONTAINERD).parse::<WindowsPath>() {
        changed |= windows.machine().end_processes(&BTreeSet::from([shim]))? > 0;
    }
    Ok(changed)
}

/// Takes away the certificates that we imported; tells whether any was there.
///
/// # Errors
/// [`LifecycleError::Roots`] when the record of them cannot be read or is damaged. What can be read of it is
/// removed all the same.
pub(crate) fn remove_roots(windows: &dyn Windows) -> Result<bool, LifecycleError> {
    let nothing = Bundle::default();
    let observed = certs::observe(&nothing, windows)?;
    let plan = certs::reconcile(&nothing, &observed);
    let changed = certs::execute(&plan, &nothing, &observed, windows)?;
    match observed.unknown.or_else(|| certs::damage(&observed.recorded)) {
        Some(why) => Err(LifecycleError::Roots { why }),
        None => Ok(changed),
    }
}

/// One line for each failed step.
pub(crate) fn problems(failures: &[Failure]) -> impl Iterator<Item = String> + '_ {
    failures.iter().map(|failure| {
        format!("cannot {} service {}: {}", failure.verb, failure.service, chain(&failure.error))
    })
}
