//! Implements `wicd bootstrap`, `wicd cleanup` and the agent's steps of the same names.
//!
//! Source: `docs/contract/wicd.md`, WICD3, WICD15 and WICD80 to WICD83.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use crate::certs::{self, Bundle};
use crate::env;
use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::routes;
use crate::services::{self, Desired, Failure, Scope, ScriptResults};
use crate::windows::{Windows, WindowsError};

/// The program that runs each pod's containers.
const SHIM: &str = "containerd-shim-runhcs-v1.exe";

/// Why services could not be brought up or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifecycleError {
    /// Imported certificates may still be trusted; everything else is gone.
    #[error("imported certificates were not removed: {why}")]
    Roots {
        /// The reason, in one line.
        why: String,
    },
    /// Some services could not be brought up or removed.
    #[error("{}", .problems.join("; "))]
    Services {
        /// The problems, one line each.
        problems: Vec<String>,
    },
    /// A call to Windows failed.
    #[error(transparent)]
    Windows(#[from] WindowsError),
}

/// The result of a cleanup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cleaned {
    /// Whether there was anything to remove.
    pub changed: bool,
    /// Whether programs see removed variables or trusted roots until the host restarts.
    pub restart_needed: bool,
}

/// Sets the manifest's variables and trusts the roots of the CA bundle, so that both take effect at the same restart of the
/// host, and starts its bootstrap services. Returns whether anything changed.
///
/// # Errors
/// [`LifecycleError`] with every service that does not run.
pub fn bootstrap(
    windows: &dyn Windows,
    manifest: &Manifest,
    now: Timestamp,
) -> Result<bool, LifecycleError> {
    let variables = env::reconcile(manifest, &env::observe(manifest, Owner::ours(), windows)?);
    let variables_changed = env::execute(&variables, manifest, Owner::ours(), windows)?;
    let roots_changed = import_roots(windows);
    routes::restore(windows, manifest);
    let desired = Desired { manifest, scope: Scope::Bootstrap, owner: Owner::ours() };
    let settled = services::settle(windows, desired, None, &mut ScriptResults::new(), now)?;
    let waiting = settled.left.blocked.iter();
    let mut problems: Vec<String> = problems(&settled.failures)
        .chain(waiting.map(|blocked| format!("service {}: {}", blocked.service, blocked.reason)))
        .collect();
    if problems.is_empty() && !settled.left.steps.is_empty() {
        problems.push("the services do not settle, look at what else changes them".to_owned());
    }
    if problems.is_empty() {
        Ok(settled.changed || variables_changed || roots_changed)
    } else {
        Err(LifecycleError::Services { problems })
    }
}

/// Trusts the roots of the CA bundle, and returns whether any changed. What fails, the daemon tries again and tells.
fn import_roots(windows: &dyn Windows) -> bool {
    let Ok(path) = host::CA_BUNDLE.parse() else { return false };
    let bundle = Bundle::read(&path, windows.files());
    let observed = certs::observe(&bundle, Owner::ours(), windows);
    let changed = observed.and_then(|observed| {
        let plan = certs::reconcile(&bundle, &observed);
        certs::execute(&plan, &bundle, &observed, Owner::ours(), windows)
    });
    changed.unwrap_or_else(|error| {
        tracing::warn!(error = %chain(&error), "roots are not trusted yet");
        false
    })
}

/// Removes our services except the daemon's, variables that the manifests watch or that we set, left-over containers,
/// links to logs, and then the certificates that we imported.
///
/// # Errors
/// [`LifecycleError`] with every service that still exists; certificates are then not touched. Or of the record of
/// certificates, if it cannot be read or is damaged.
pub fn cleanup(windows: &dyn Windows, manifests: &[Manifest]) -> Result<Cleaned, LifecycleError> {
    let mut changed = remove_services(windows, manifests)?;
    changed |= remove_roots(windows)?;
    let restart_needed = !windows.environment().changed_since_boot()?.is_empty()
        || windows.roots().changed_since_boot()?;
    Ok(Cleaned { changed, restart_needed })
}

/// Removes our services except the daemon's, variables that the manifests watch or that we set, left-over containers,
/// and links to logs; returns whether there was anything to remove.
///
/// # Errors
/// [`LifecycleError`] with every service that still exists; the rest is then not touched.
pub(crate) fn remove_services(
    windows: &dyn Windows,
    manifests: &[Manifest],
) -> Result<bool, LifecycleError> {
    let plan = services::remove(Owner::ours(), manifests, &windows.services().list()?);
    // Such a plan runs no script, so the time does not matter.
    let mut done = services::execute(
        &plan,
        windows,
        &mut ScriptResults::new(),
        Timestamp::UNIX_EPOCH,
        &|| true,
    );
    // A service that is marked for deletion is stopped, and goes when the last handle to it is closed.
    done.failures
        .retain(|failure| !matches!(failure.error, WindowsError::MarkedForDeletion { .. }));
    if !done.failures.is_empty() {
        return Err(LifecycleError::Services { problems: problems(&done.failures).collect() });
    }
    let mut changed = done.changed;
    changed |= env::clear(manifests, &host::PROXY_VARIABLES, Owner::ours(), windows)?;
    if let Ok(shim) = format!(r"{}\{SHIM}", host::CONTAINERD).parse::<WindowsPath>() {
        changed |= windows.machine().end_processes(&BTreeSet::from([shim]))? > 0;
    }
    if let Ok(links) = host::LOG_LINKS.parse()
        && windows.files().kind(&links)?.is_some()
    {
        match windows.files().remove_tree(&links) {
            // A person who reads a log there must not delay a node's upgrade.
            Err(WindowsError::Locked { .. }) => {}
            removed => changed |= removed?,
        }
    }
    Ok(changed)
}

/// Removes the certificates that we imported; returns whether there were any.
///
/// # Errors
/// [`LifecycleError::Roots`] when their record cannot be read or is damaged. The readable part of a damaged record is
/// removed all the same.
pub(crate) fn remove_roots(windows: &dyn Windows) -> Result<bool, LifecycleError> {
    let nothing = Bundle::default();
    let observed = certs::observe(&nothing, Owner::ours(), windows)?;
    let plan = certs::reconcile(&nothing, &observed);
    let changed = certs::execute(&plan, &nothing, &observed, Owner::ours(), windows)?;
    match observed.unknown.clone().or_else(|| certs::damage(&observed)) {
        Some(why) => Err(LifecycleError::Roots { why }),
        None => Ok(changed),
    }
}

/// Renders each failed step as one line.
pub(crate) fn problems(failures: &[Failure]) -> impl Iterator<Item = String> + '_ {
    failures.iter().map(|failure| {
        format!("cannot {} service {}: {}", failure.verb, failure.service, chain(&failure.error))
    })
}
