//! User data: the script of a new cloud machine that lets the operator log in.

mod carried;
mod quoted;
#[cfg(test)]
mod tests;

use crate::authorized_key::AuthorizedKey;
use crate::digest::Sha256;
use crate::names::{host, platforms};

pub use carried::user_data_keys;

/// The script of every machine, with placeholders `{{NAME}}`.
const SCRIPT: &str = include_str!("script.ps1");

/// An additional script for machines of AWS.
const ROUTES: &str = include_str!("routes.ps1");

/// Opening tag of the script, for clouds whose agent requires it.
const OPEN: &str = "<powershell>";

/// Closing tag of the script.
const CLOSE: &str = "</powershell>";

/// Makes the agent run the script at each start of the machine.
const PERSIST: &str = "\n<persist>true</persist>\n";

/// User data for a machine on `platform` that accepts `key` and, during a key exchange, `next`.
///
/// `platform` is one of [`platforms`](crate::names::platforms); unknown platforms get the most common form. The
/// text is the value of [`USER_DATA_KEY`](crate::names::objects::USER_DATA_KEY) before encoding.
///
/// The script does this in order: if the login user [`host::ADMINISTRATOR`] is disabled, set a random password and
/// enable it; install the SSH server; add firewall rules for kubelet, exporter and SSH; set up the service; allow
/// keys but no passwords; write [`host::AUTHORIZED_KEYS`] and its access rights; restart the service if its
/// configuration changed; on AWS add routes to the cloud's own services. Source: `docs/contract/user-data.md`, UD6
/// to UD8.
///
/// # Guarantees
/// - ASCII, and shorter than [`USER_DATA_BYTES`](crate::limits::USER_DATA_BYTES).
/// - A second run on the same machine changes nothing, whatever keys its file has by then: exchanged keys survive a
///   restart, see [`host::USER_DATA_MARK`].
/// - [`user_data_keys`] finds exactly `key` and `next` in it.
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
/// Ok::<(), wmco_core::authorized_key::BadAuthorizedKey>(())
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
