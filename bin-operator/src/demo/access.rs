//! Keeps the authorizers' decisions about operators on stages, for a comparison with their rights.

use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use anyhow::Context as _;
use kube_testserver::TestServer;
use serde_json::json;

/// Environment variable with a folder; a file for each stage that was shut down is written into it.
pub const ACCESS_FOLDER: &str = "WMCO_ACCESS_FOLDER";

/// Writes what the authorizers said to `user`, a line of JSON for each decision, if somebody wants to know.
pub(super) fn keep(cluster: &TestServer, user: &str) -> anyhow::Result<()> {
    let Some(folder) = env::var_os(ACCESS_FOLDER).map(PathBuf::from) else { return Ok(()) };
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("{:016x}.jsonl", getrandom::u64()?));
    let mut file =
        fs::File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
    for it in cluster.access_decisions().into_iter().filter(|it| it.user == user) {
        let line = json!({
            "verb": it.verb, "group": it.group, "resource": it.resource,
            "namespace": it.namespace, "name": it.name, "allowed": it.allowed,
        });
        writeln!(file, "{line}").with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
