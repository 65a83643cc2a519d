//! User data: what a new cloud machine runs so that the operator can log in.

mod carried;
mod quoted;
#[cfg(test)]
mod tests;

use crate::authorized_key::AuthorizedKey;
use crate::digest::Sha256;
use crate::names::{host, platforms};

pub use carried::user_data_keys;

/// What every machine runs, with `{{NAME}}` where something is filled in.
const SCRIPT: &str = include_str!("script.ps1");

/// What machines of AWS run after it.
const ROUTES: &str = include_str!("routes.ps1");

/// Stands in front of the script where the cloud's agent does not take it bare.
const OPEN: &str = "<powershell>";

/// Stands behind it.
const CLOSE: &str = "</powershell>";

/// Asks the agent to run the script at each start of the machine.
const PERSIST: &str = "\n<persist>true</persist>\n";

/// User data with which a machine on `platform` lets in `key` and, while keys are exchanged, `next`.
///
/// `platform` is one of [`platforms`](crate::names::platforms); unknown ones get what most get. The
/// text is the value of [`USER_DATA_KEY`](crate::names::objects::USER_DATA_KEY), before it is encoded.
///
/// It does, in this order: a random password and the user [`host::ADMINISTRATOR`] enabled where it is
/// the one to log in and disabled; the SSH server; firewall rules for kubelet, exporter and SSH; the
/// service; keys but no passwords; [`host::AUTHORIZED_KEYS`] and its rights; a restart of the service
/// if its configuration changed; on AWS routes to the cloud's own services. Source:
/// `spec/operator.md`, section 6.4 and 13, rows 27 and 28.
///
/// # Guarantees
/// - ASCII, and shorter than [`USER_DATA_BYTES`](crate::limits::USER_DATA_BYTES).
/// - A second run on the same machine changes nothing, whichever keys its file has by then: keys that
///   were exchanged outlive a restart, see [`host::USER_DATA_MARK`].
/// - [`user_data_keys`] finds `key` and `next` in it, and no other.
///
/// ```
/// use wmco_core::authorized_key::AuthorizedKey;
/// use wmco_core::names::platforms;
/// use wmco_core::render::{user_data, user_data_keys};
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key: AuthorizedKey = line.parse()?;
/// let text = user_data(platforms::AZURE, &key, None);
/// assert!(text.starts_with("<powershell>"));
/// assert!(user_data_keys(&text).contains(&key));
/// # Ok::<(), wmco_core::authorized_key::BadAuthorizedKey>(())
/// ```
pub fn user_data(platform: &str, key: &AuthorizedKey, next: Option<&AuthorizedKey>) -> String {
    let lines: Vec<String> = [Some(key), next.filter(|next| *next != key)]
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let mark = format!("{}{}", host::USER_DATA_MARK, Sha256::of(lines.join("\n").as_bytes()));
    let keys = lines.iter().map(|line| format!("        '{line}'")).collect::<Vec<_>>().join("\n");
    let routes = if platform == platforms::AWS { ROUTES } else { "" };
    let script = [
        ("ADMINISTRATOR", host::ADMINISTRATOR),
        ("AUTHORIZED_KEYS", host::AUTHORIZED_KEYS),
        ("AZURE_USER", host::AZURE_USER),
        ("CONTAINER_LOGS_RULE", host::CONTAINER_LOGS_RULE),
        ("EXPORTER_RULE", host::EXPORTER_RULE),
        ("KEYS", &keys),
        ("MARK", &mark),
        ("SSH_CAPABILITY", host::SSH_CAPABILITY),
        ("SSH_CONFIG", host::SSH_CONFIG),
        ("SSH_RULE", host::SSH_RULE),
        ("SSH_SERVICE", host::SSH_SERVICE),
    ]
    .iter()
    .fold(format!("{SCRIPT}{routes}"), |script, (name, text)| {
        script.replace(&format!("{{{{{name}}}}}"), text)
    });
    if platform == platforms::GCP { script } else { format!("{OPEN}{script}{CLOSE}{PERSIST}") }
}
