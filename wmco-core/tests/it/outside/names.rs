//! A law of file names that an SFTP server lists.

use wmco_core::names::host::STAGING;
use wmco_core::protocol::FreshFolder;
use wmco_core::winpath::WindowsPath;

/// A name that is taken for a file of a folder leads to that file only, and only our own spelling is
/// the name of a folder of ours.
pub(crate) fn listed_names_stay_in_their_folder(name: &str) {
    if let Ok(folder) = name.parse::<FreshFolder>() {
        assert_eq!(folder.to_string(), name);
    }
    let staging: WindowsPath = STAGING.parse().expect("a path");
    let Ok(file) = staging.join(name) else { return };
    if file.parent().as_ref() != Some(&staging) {
        return;
    }
    let on_wire = file.sftp();
    let last = on_wire.strip_prefix("/C:/k/staging/").expect("it is in the folder");
    assert!(!last.contains(['/', '\\', ':', '\0']), "{on_wire}");
    // Windows drops dots and blanks at the end of a name.
    assert!(!last.is_empty() && !last.ends_with(['.', ' ']), "{on_wire}");
    assert_eq!(file.as_str().parse::<WindowsPath>().as_ref(), Ok(&file));
}
