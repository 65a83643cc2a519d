//! Effects of a lying server on us: an error in time, and bounded memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wmco_core::limits;
use wmco_core::names::host;
use wmco_core::protocol::AgentLocation;
use wmco_ssh::{
    Blob, ConnectError, HostAgent, HostError, NoReport, Options, ProbeOutcome, Stage, Timeouts,
    UploadProgress,
};

use crate::conformance::noise;
use crate::hostile::{all_closed, check_memory};
use crate::liar::{Liar, Lie, Seen, kind};

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// Short limits where a time-out is the expected answer to `lie`, and long ones where it is another error.
fn options(lie: Lie) -> Options {
    let limit = match lie {
        Lie::WrongIds | Lie::Drip | Lie::Silence | Lie::NoEnd => Duration::from_millis(500),
        // All writes that are permitted are sent meanwhile, which tests count.
        Lie::SilentWrites => Duration::from_secs(3),
        _ => LONG,
    };
    let timeouts = Timeouts { connect: LONG, authenticate: LONG, ..Timeouts::default() };
    Options {
        timeouts: Timeouts { probe: limit, request: limit, upload_stall: limit, ..timeouts },
        ..Options::default()
    }
}

const QUIET: fn(UploadProgress) = |_| {};

/// Uploads several blocks to a liar; returns the error and the requests, and checks that nothing is left open.
async fn upload(lie: Lie) -> (HostError, Arc<Mutex<Seen>>) {
    upload_of(&[Blob::from_bytes(noise(6_000_000, 31))], lie).await
}

async fn upload_of(blobs: &[Blob], lie: Lie) -> (HostError, Arc<Mutex<Seen>>) {
    let (server, options) = (Liar::start(lie).await, options(lie));
    let host = server.connect(&options).await.unwrap();
    let uploading = host.upload(blobs, &QUIET);
    let error = tokio::time::timeout(3 * LONG, uploading).await.expect("in time").unwrap_err();
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
    check_memory();
    (error, Arc::clone(&server.seen))
}

async fn probe(lie: Lie) -> Result<ProbeOutcome, HostError> {
    let (server, options) = (Liar::start(lie).await, options(lie));
    let host = server.connect(&options).await.unwrap();
    let probing = tokio::time::timeout(3 * LONG, host.probe(AgentLocation::Installed));
    let outcome = probing.await.expect("in time");
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
    check_memory();
    outcome
}

#[tokio::test]
async fn a_login_that_is_never_answered() {
    let (server, mut options) = (Liar::start(Lie::SilentLogin).await, options(Lie::SilentLogin));
    options.timeouts.authenticate = Duration::from_millis(300);
    let connecting = tokio::time::timeout(LONG, server.connect(&options));
    let error = connecting.await.expect("in time").unwrap_err();
    let stage = Stage::Authenticate;
    assert!(matches!(error, ConnectError::TimedOut { stage: at, .. } if at == stage), "{error}");
    all_closed(&options).await;
}

#[tokio::test]
async fn a_handle_that_is_none() {
    let (error, seen) = upload(Lie::OkWithoutHandle).await;
    assert!(matches!(error, HostError::Sftp { doing: "opening", .. }), "{error}");
    assert_eq!(seen.lock().unwrap().count(kind::WRITE), 0);
}

#[tokio::test]
async fn answers_to_other_requests() {
    let (error, _) = upload(Lie::WrongIds).await;
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
}

/// Also tests pipelining: all permitted writes are sent before the first answer.
#[tokio::test]
async fn writes_that_are_never_acknowledged() {
    let (error, seen) = upload(Lie::SilentWrites).await;
    assert!(matches!(error, HostError::TimedOut { doing: "uploading", .. }), "{error}");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.count(kind::WRITE), limits::UPLOAD_BLOCKS_IN_FLIGHT);
    assert_eq!(seen.count(kind::RENAME), 0);
}

/// Files overlap and share the window; none continues after another has timed out.
#[tokio::test]
async fn writes_of_many_files_that_are_never_acknowledged() {
    let blobs: Vec<_> =
        (0..8).map(|seed| Blob::from_bytes(noise(1_200_000, 2 * seed + 1))).collect();
    let (error, seen) = upload_of(&blobs, Lie::SilentWrites).await;
    assert!(matches!(error, HostError::TimedOut { doing: "uploading", .. }), "{error}");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.count(kind::OPEN), blobs.len());
    assert_eq!(seen.count(kind::WRITE), limits::UPLOAD_BLOCKS_IN_FLIGHT);
    assert_eq!(seen.count(kind::RENAME), 0);
}

#[tokio::test]
async fn a_server_that_quits() {
    let (error, seen) = upload(Lie::Quits).await;
    assert!(matches!(error, HostError::Dropped { .. }), "no time-out is needed: {error}");
    assert_eq!(seen.lock().unwrap().count(kind::WRITE), 1);
}

#[tokio::test]
async fn writes_that_are_acknowledged_and_lost() {
    let (error, seen) = upload(Lie::LostWrites).await;
    assert!(matches!(error, HostError::Sftp { doing: "writing all of", .. }), "{error}");
    assert_eq!(seen.lock().unwrap().count(kind::RENAME), 0, "no half file gets its final name");
}

#[tokio::test]
async fn parts_longer_than_anything() {
    let (error, seen) = upload(Lie::LongParts).await;
    assert!(matches!(error, HostError::Sftp { doing: "writing all of", .. }), "{error}");
    assert_eq!(seen.lock().unwrap().count(kind::RENAME), 0);
}

#[tokio::test]
async fn packets_that_are_none() {
    for lie in [Lie::HugePacket, Lie::UnknownPacket] {
        let (error, _) = upload(lie).await;
        assert!(matches!(error, HostError::Dropped { .. }), "{lie:?}: {error}");
    }
    let (error, _) = upload(Lie::WrongKind).await;
    assert!(matches!(error, HostError::Dropped { .. } | HostError::Sftp { .. }), "{error}");
}

#[tokio::test]
async fn answers_byte_by_byte_and_no_answers() {
    for lie in [Lie::Drip, Lie::Silence] {
        let (error, _) = upload(lie).await;
        assert!(matches!(error, HostError::TimedOut { .. }), "{lie:?}: {error}");
    }
}

#[tokio::test]
async fn messages_are_cut_and_cleaned() {
    let (error, _) = upload(Lie::LongMessage).await;
    let HostError::Sftp { source, .. } = &error else { panic!("{error}") };
    let text = source.to_string();
    assert!(text.len() < 300 && text.contains("no ") && !text.contains('\x1b'), "{text}");
}

#[tokio::test]
async fn listed_names_lead_nowhere() {
    let (server, options) = (Liar::start(Lie::EndlessNames).await, options(Lie::EndlessNames));
    let host = server.connect(&options).await.unwrap();
    let folders = [host::STAGING.parse().unwrap()];
    host.remove_leftovers(&[], &folders).await.unwrap();
    let seen = server.seen.lock().unwrap();
    assert!(seen.count(kind::READDIR) < 5_000, "it is not read to the end");
    assert_eq!(seen.paths, Vec::<String>::new(), "none of these names is one of ours");
    check_memory();
}

#[tokio::test]
async fn output_without_end() {
    for lie in [Lie::EndlessErrors, Lie::EndlessLine] {
        let error = probe(lie).await.unwrap_err();
        assert!(matches!(error, HostError::TooMuchOutput { .. }), "{lie:?}: {error}");
    }
}

#[tokio::test]
async fn commands_that_end_in_strange_ways() {
    let error = probe(Lie::NoStatus).await.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
    let error = probe(Lie::NoEnd).await.unwrap_err();
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
    let outcome = probe(Lie::No).await.unwrap();
    let ProbeOutcome::NoReport(NoReport::NoAgent { status: 1, .. }) = outcome else {
        panic!("{outcome:?}")
    };
}

/// Round trips: an upload of many files takes a few, and none per block.
#[tokio::test]
async fn requests_are_few() {
    let (server, options) = (Liar::start(Lie::No).await, options(Lie::No));
    let host = server.connect(&options).await.unwrap();
    let blobs: Vec<_> = (0..26).map(|seed| Blob::from_bytes(noise(20_000, 2 * seed + 1))).collect();
    host.upload(&blobs, &QUIET).await.unwrap();
    let seen = server.seen.lock().unwrap();
    let per_file = [kind::STAT, kind::OPEN, kind::WRITE, kind::CLOSE, kind::RENAME];
    let counts = per_file.map(|kind| seen.count(kind));
    // No file is checked: the agent has reported what exists.
    assert_eq!(counts, [0, 26, 26, 26, 26]);
}
