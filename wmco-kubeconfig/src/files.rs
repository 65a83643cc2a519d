//! Kubeconfig files: which ones, their text, and the paths in them.

use std::ffi::OsString;
use std::io;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use kube::config::{Kubeconfig, KubeconfigError as Kube};

use super::KubeconfigError;

/// The files that a `KUBECONFIG` lists, or else the one in the home folder.
pub(super) fn listed(variable: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let paths = variable.map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
    let mut paths = paths.unwrap_or_default();
    paths.retain(|path| !path.as_os_str().is_empty());
    if paths.is_empty() {
        paths.extend(home.map(|home| home.join(".kube").join("config")));
    }
    paths
}

/// All files as one, in which the first to say something wins. Missing ones are skipped, as kubectl does; `None`
/// where no file exists.
///
/// # Errors
/// [`KubeconfigError::Files`] names the file that is wrong.
pub(super) fn read(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, KubeconfigError> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        let wrong = |source| KubeconfigError::Files {
            files: path.display().to_string(),
            source: Box::new(source),
        };
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::debug!(path = %path.display(), "there is no such kubeconfig");
                continue;
            }
            Err(error) => return Err(wrong(KubeconfigError::Read(error))),
        };
        let mut next = parse(&bytes).map_err(wrong)?;
        next.current_context = next.current_context.filter(|name| !name.is_empty());
        make_absolute(&mut next, path.parent().unwrap_or_else(|| Path::new("")));
        merged = Some(match merged {
            Some(first) => first.merge(next).map_err(|_| wrong(KubeconfigError::Merge))?,
            None => next,
        });
    }
    Ok(merged)
}

/// A kubeconfig in YAML or JSON, in UTF-8 or with the mark of UTF-16. Paths in it are left as they are.
///
/// # Errors
/// [`KubeconfigError::Yaml`] with the place that is wrong, and no word of the text.
pub fn parse(bytes: &[u8]) -> Result<Kubeconfig, KubeconfigError> {
    let text = decoded(bytes).ok_or(KubeconfigError::Yaml { line_and_column: None })?;
    Kubeconfig::from_yaml(&text).map_err(|error| match error {
        // What the parser says shows the lines around, and what stands there.
        Kube::Parse(error) => KubeconfigError::Yaml {
            line_and_column: error.location().map(|place| (place.line(), place.column())),
        },
        _ => KubeconfigError::Merge,
    })
}

fn decoded(bytes: &[u8]) -> Option<String> {
    let utf_16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks();
        let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// Paths in a kubeconfig are relative to its folder; a program's only where it is no mere name.
fn make_absolute(kubeconfig: &mut Kubeconfig, folder: &Path) {
    let clusters = kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut());
    let authorities = clusters.map(|cluster| &mut cluster.certificate_authority);
    let users = kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut());
    let of_users = users.flat_map(|user| {
        let program = user.exec.as_mut().map(|exec| &mut exec.command);
        let program =
            program.filter(|it| it.as_ref().is_some_and(|it| it.contains(MAIN_SEPARATOR)));
        [&mut user.client_certificate, &mut user.client_key, &mut user.token_file]
            .into_iter()
            .chain(program)
    });
    for path in authorities.chain(of_users).flatten().filter(|path| !path.is_empty()) {
        if let Some(absolute) = folder.join(&*path).to_str() {
            absolute.clone_into(path);
        }
    }
}
