//! First contact: what the real program does with a root that somebody made before us, and where it takes
//! its libraries from.

use std::fs;
use std::path::PathBuf;

use wmco_core::names::host;
use wmco_core::protocol::{FreshFolder, Probe, ReportLine, ServiceRunState, read_report};
use wmco_core::winpath::WindowsPath;

use super::Wine;
use super::windows::program;
use crate::bench::{Bench as _, manifest};
use crate::cluster::Cluster;

const VERSION: &str = "1.2.3-a1b2c3d";

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

/// Brings the agent as the operator does, and asks it. The user's name is one that no path of ours holds.
async fn brought(wine: &Wine) -> Probe {
    let folder = FreshFolder::from_random([0xC5; 16]);
    let agent = format!(r"C:\users\josé\{folder}\{}", host::UPLOADED_AGENT);
    wine.windows.install("wicd", &agent);
    let output = wine.windows.run(&format!("{agent} probe")).await;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines = read_report(&text).unwrap_or_else(|error| panic!("{error}: {text} {errors}"));
    match lines.into_iter().last() {
        Some(ReportLine::Probed(probe)) => *probe,
        other => panic!("{other:?}"),
    }
}

/// The one folder in which something was put into quarantine.
fn quarantine(wine: &Wine) -> PathBuf {
    let mut found = fs::read_dir(wine.windows.path(host::QUARANTINE)).unwrap();
    let folder = found.next().unwrap().unwrap().path();
    assert!(found.next().is_none());
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_was_planted_is_moved_away_as_a_whole() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    for at in [r"C:\k\version.dll", r"C:\k\cni\a name of theirs.dll", r"C:\k\staging\x.zst"] {
        wine.windows.write(at, b"planted");
    }
    let probe = brought(&wine).await;
    assert_eq!(probe.agent.installed, None);
    let found = &probe.state.unwrap().quarantined[0];
    assert!(found.things > 3 && found.folder.is_within(&path(host::QUARANTINE)), "{found:?}");
    let moved = quarantine(&wine).join("k");
    for name in ["version.dll", "cni/a name of theirs.dll", "staging/x.zst"] {
        assert_eq!(fs::read(moved.join(name)).unwrap(), b"planted", "{name}");
    }
    let mut left: Vec<String> = fs::read_dir(wine.windows.path(host::ROOT))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["quarantine", "staging", "wmco-state.json"]);
    let staged = fs::read_dir(wine.windows.path(host::STAGING)).unwrap();
    let staged: Vec<Vec<u8>> = staged.map(|f| fs::read(f.unwrap().path()).unwrap()).collect();
    assert!(staged == [fs::read(program("wicd")).unwrap()], "our agent waits for its work");
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_a_node_that_is_taken_over_run_on() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    cluster.publish(VERSION, &manifest());
    assert!(wine.bootstrap(VERSION).await);
    for at in [r"C:\k\version.dll", r"C:\k\cni\config\00-first.conf", r"C:\k\notes.txt"] {
        wine.windows.write(at, b"planted");
    }
    let before = wine.moves();
    let probe = brought(&wine).await;
    assert_eq!(wine.moves(), before);
    let runs = |name: &str| probe.services[name].state == ServiceRunState::Running;
    assert!(runs("containerd") && runs("kubelet"));
    assert!(probe.files[&path(r"C:\k\kubelet.exe")].doubted, "it is to be written anew");
    assert_eq!(probe.agent.installed, None, "what lies there is not believed");
    let moved = quarantine(&wine);
    for name in ["version.dll", "cni/config/00-first.conf"] {
        assert_eq!(fs::read(moved.join(name)).unwrap(), b"planted", "{name}");
    }
    assert!(!wine.windows.path(r"C:\k\version.dll").exists());
    assert!(wine.windows.path(r"C:\k\notes.txt").exists(), "nobody runs it");
}

/// The program's load configuration, which Windows reads before any code of it runs: libraries that it is
/// linked with come from the system's folder. Wine does not heed it, so this is all that can be shown here.
///
/// Source: Microsoft's PE format, "Optional Header Data Directories".
#[test]
fn libraries_beside_the_program_are_not_looked_for() {
    const SYSTEM_FOLDER_ONLY: u16 = 0x800;
    let exe = fs::read(program("wicd")).unwrap();
    let half = |at: usize| u16::from_le_bytes(exe[at..at + 2].try_into().unwrap());
    let number = |at: usize| u32::from_le_bytes(exe[at..at + 4].try_into().unwrap());
    let header = number(60) as usize;
    let optional = header + 24;
    assert_eq!(half(optional), 0x20B, "a program for 64-bit Windows");
    let directory = optional + 112 + 10 * 8;
    let (address, size) = (number(directory), number(directory + 4));
    assert_ne!(address, 0, "the linker left it out, run scripts/load-flags.sh");
    let table = optional + usize::from(half(header + 20));
    let sections = (0..usize::from(half(header + 6))).map(|number| table + 40 * number);
    let place = sections
        .filter(|at| (number(at + 12)..number(at + 12) + number(at + 8)).contains(&address))
        .map(|at| (address - number(at + 12) + number(at + 20)) as usize)
        .next()
        .expect("it lies in a section");
    assert_eq!((number(place), size), (112, 112));
    assert_eq!(half(place + 78), SYSTEM_FOLDER_ONLY);
}
