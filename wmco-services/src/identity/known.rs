//! Finds the nodes named in the certificates on a host.

use wmco_core::names::{self, host};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::{Certificate, Store};
use crate::limits;
use crate::windows::Files;

/// Returns the nodes named in certificates on a host, valid or not: in the kubelet's, then in the daemon's in `folder`,
/// each once; and one line for each certificate that cannot be read.
pub fn known_nodes(files: &dyn Files, folder: &WindowsPath) -> (Vec<String>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let kubelets = || {
        let path = host::KUBELET_CLIENT_CERTIFICATE.parse().ok();
        path.map_or(Ok(None), |path| files.read(&path, limits::CERTIFICATE_BYTES))
    };
    let daemons = || {
        let stored = Store { folder }.load(files)?;
        Ok(stored.map(|text| text.expose().to_vec()))
    };
    let all = [
        ("kubelet", names::NODE_USER_PREFIX, kubelets()),
        ("daemon", names::WICD_USER_PREFIX, daemons()),
    ];
    for (whose, prefix, text) in all {
        let certificate = match text {
            Ok(None) => continue,
            Ok(Some(text)) => Certificate::leaf(&text).map_err(|error| chain(&error)),
            Err(error) => Err(chain(&error)),
        };
        match certificate {
            Ok(certificate) => found.extend(certificate.node_after(prefix).map(str::to_owned)),
            Err(why) => problems.push(format!("the {whose}'s certificate tells no node: {why}")),
        }
    }
    found.dedup();
    (found, problems)
}
