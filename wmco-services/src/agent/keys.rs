//! The SSH keys with which administrators log in.

use std::collections::BTreeSet;

use wmco_core::authorized_key::{AuthorizedKey, exchange_keys};
use wmco_core::names::host;
use wmco_core::protocol::Access;

use super::{AgentError, known};
use crate::limits;
use crate::windows::{EntryKind, Windows};

/// Exchanges keys in the file that sshd reads for administrators, and restricts it to administrators.
///
/// A file that others may write to is refused, not closed: sshd ignores an open file, and would accept from then on the
/// keys that others wrote to it.
pub(super) fn exchange(
    windows: &dyn Windows,
    add: &BTreeSet<AuthorizedKey>,
    remove: &BTreeSet<AuthorizedKey>,
) -> Result<bool, AgentError> {
    let (files, file) = (windows.files(), known(host::AUTHORIZED_KEYS));
    let before = match files.kind(&file)? {
        None => None,
        Some(EntryKind::File) if files.others_may_write(&file)? => {
            return Err(AgentError::OpenKeys);
        }
        Some(EntryKind::File) => files.read(&file, limits::KEYS_BYTES)?,
        Some(EntryKind::Directory | EntryKind::Link) => return Err(AgentError::KeysAreNoFile),
    };
    let after = exchange_keys(before.as_deref().unwrap_or_default(), add, remove)?;
    let right = match before {
        None => after.is_empty(),
        Some(before) => before == after && files.access(&file)? == Access::Administrators,
    };
    if !right {
        files.write(&file, Access::Administrators, &mut after.as_slice())?;
    }
    Ok(!right)
}
