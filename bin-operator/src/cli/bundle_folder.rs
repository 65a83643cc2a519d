//! The folder of a bundle.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Most bytes of one file; a bundle that a ConfigMap takes is smaller.
const FILE_BYTES: u64 = 16 << 20;

/// The files of the bundle in `folder`, by paths in it with `/`.
///
/// # Errors
/// Names the path that cannot be read.
pub(super) fn bundle_files(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for part in ["", "manifests", "metadata"] {
        let inside = folder.join(part);
        if !part.is_empty() && !inside.is_dir() {
            continue;
        }
        let entries = fs::read_dir(&inside)
            .with_context(|| format!("cannot read the folder {}", inside.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read {}", inside.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            let name = match (part, is_file) {
                ("", true) if name == "Dockerfile" => name,
                ("", _) => continue,
                (_, true) => format!("{part}/{name}"),
                (_, false) => {
                    bail!("{} is no file, and a bundle holds files alone", path.display())
                }
            };
            files.insert(name, text(&path)?);
        }
    }
    Ok(files)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let bytes = fs::metadata(path).with_context(cannot)?.len();
    if bytes > FILE_BYTES {
        bail!("{} has {bytes} bytes, more than a bundle may have", path.display());
    }
    fs::read_to_string(path).with_context(cannot)
}
