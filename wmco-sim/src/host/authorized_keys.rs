//! The authorized keys file of a host.

use russh::keys::PublicKey;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::{FakeWindows, Tree};

/// Reads the current keys in the file. Like sshd, ignores other lines, and a whole file that others may write to.
pub(super) fn read(model: &FakeWindows) -> impl Iterator<Item = PublicKey> {
    let is_closed = |tree: &mut Tree| !tree.others_may_write(&path());
    let file = model.with_tree(is_closed).then(|| model.file(&path())).flatten();
    let text = file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let keys: Vec<_> = text
        .unwrap_or_default()
        .lines()
        .filter_map(|line| PublicKey::from_openssh(line.trim()).ok())
        .collect();
    keys.into_iter()
}

/// Replaces the content of the file with `keys`.
pub(super) fn write(model: &FakeWindows, keys: &[PublicKey]) {
    let lines = keys.iter().filter_map(|key| key.to_openssh().ok());
    model.put_file(&path(), lines.map(|line| line + "\n").collect::<String>());
}

#[expect(clippy::expect_used, reason = "a constant path")]
fn path() -> WindowsPath {
    host::AUTHORIZED_KEYS.parse().expect("a constant path is valid")
}
