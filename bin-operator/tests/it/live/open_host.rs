//! Hosts on which others could exchange what the system runs.

use wmco_core::names::host::{MANIFEST_SCRIPTS, NETWORK_SCRIPT, SCRIPTS};
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::Files as _;

use super::scenery::{addresses, configure, is_finished, nodes, stage};

fn path(folder: &str, name: &str) -> WindowsPath {
    format!(r"{folder}\{name}").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_others_may_write_to_is_written_anew_and_closed() {
    let stage = stage(1).await;
    configure(&stage, &addresses(1)).await;
    let script = path(SCRIPTS, NETWORK_SCRIPT);
    let folder = script.parent().unwrap();
    let (_, host) = stage.hosts.iter().next().unwrap();
    let model = host.model();
    let right = model.snapshot().files;
    assert_eq!(right[&script].access, Access::Administrators);
    for open in [&script, &folder] {
        model.set_access(open, Access::Inherited).unwrap();
    }

    stage.hosts.reset_counts();
    configure(&stage, &addresses(1)).await;
    let counts = stage.hosts.counts().remove(0);
    let commands = counts.executions;
    // A probe and an apply; no pod notices it.
    assert_eq!((commands.len(), counts.restarts), (2, 0), "{commands:#?}");
    let now = model.snapshot().files;
    assert_eq!((&now[&script], &now[&folder]), (&right[&script], &right[&folder]));
    assert!(is_finished(&nodes(&stage)[0]), "{:?}", nodes(&stage));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_of_the_original_go_and_files_of_others_stay() {
    let stage = stage(1).await;
    let (_, host) = stage.hosts.iter().next().unwrap();
    let (theirs, mine) = (path(MANIFEST_SCRIPTS, NETWORK_SCRIPT), path(MANIFEST_SCRIPTS, "my.txt"));
    for file in [&theirs, &mine] {
        host.model().put_file(file, "from before");
    }
    configure(&stage, &addresses(1)).await;
    assert!(is_finished(&nodes(&stage)[0]), "{:?}", nodes(&stage));
    assert!(host.model().file(&theirs).is_none());
    assert!(host.model().file(&mine).is_some());
    assert!(host.model().file(&path(SCRIPTS, NETWORK_SCRIPT)).is_some());
    stage.shutdown().await;
}
