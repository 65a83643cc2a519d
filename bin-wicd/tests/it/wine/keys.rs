//! Keys that the real program exchanges in a file on a disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use wmco_core::names::host;
use wmco_core::protocol::{HostStep, ReportLine, read_report};
use wmco_services::windows::TEMPORARY_SUFFIX;

use super::Wine;
use crate::bench::{Bench as _, plan};
use crate::cluster::Cluster;

const OLD: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const NEW: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// Has the program exchange keys; the error if it did not.
async fn exchange(wine: &Wine, add: &[&str], remove: &[&str]) -> Option<String> {
    let keys = |lines: &[&str]| lines.iter().map(|line| line.parse().unwrap()).collect();
    let step = HostStep::EnsureAuthorizedKeys { add: keys(add), remove: keys(remove) };
    let (place, text) = plan(vec![step]);
    wine.windows.write(place.as_str(), &text);
    let output = wine.windows.run(&format!("{} apply {place}", host::AGENT)).await;
    let lines = read_report(&String::from_utf8_lossy(&output.stdout));
    let lines = lines.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    lines.into_iter().find_map(|line| match line {
        ReportLine::Failed { error, .. } | ReportLine::Refused { error } => Some(error),
        ReportLine::Started { .. }
        | ReportLine::Progress { .. }
        | ReportLine::Done { .. }
        | ReportLine::Probed(_) => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_exchanged_and_other_lines_stay() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    let (place, rest) =
        (wine.windows.path(host::AUTHORIZED_KEYS), "# j\u{f6}rg\r\n\r\nssh-dss A\n");
    let mark = format!("{}0123\r\n", host::USER_DATA_MARK);
    wine.windows.write(host::AUTHORIZED_KEYS, format!("{rest}{OLD}\r\n{mark}").as_bytes());
    for (remove, keys) in [(&[][..], format!("{OLD}\r\n{NEW}\r\n")), (&[OLD], format!("{NEW}\r\n"))]
    {
        assert_eq!(exchange(&wine, &[NEW], remove).await, None);
        assert_eq!(fs::read_to_string(&place).unwrap(), format!("{rest}{keys}{mark}"));
    }
    fs::remove_file(&place).unwrap();
    assert_eq!(exchange(&wine, &[NEW], &[OLD]).await, None);
    assert_eq!(fs::read_to_string(&place).unwrap(), format!("{NEW}\r\n"));
    let beside = wine.windows.path(&format!("{}{TEMPORARY_SUFFIX}", host::AUTHORIZED_KEYS));
    assert!(!beside.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_others_may_have_written_are_not_closed_in() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    wine.windows.write(host::AUTHORIZED_KEYS, OLD.as_bytes());
    let place = wine.windows.path(host::AUTHORIZED_KEYS);
    // Wine shows the file's mode as its list of who may.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = exchange(&wine, &[NEW], &[]).await;
    assert!(refused.is_some_and(|error| error.contains("icacls.exe")));
    assert_eq!(fs::read_to_string(&place).unwrap(), OLD);
}
