//! First contact with a host on which no file is trusted.

use wmco_core::names::host;
use wmco_core::protocol::{AgentLocation, FreshFolder, staged_agent};
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{
    Blob, HostAgent, HostError, NoReport, ProbeOutcome, Route, Session, SshHost, TcpDialer,
};

use super::{QUIET, noise};
use crate::backend::{Backend, Does, HOST_NAME};
use crate::proxy::{Network, Proxy};

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

async fn reports<B: Backend>(server: &B, host: &SshHost) {
    let (ours, folder) = (server.program(Does::Work), server.fresh_folder());
    let outcome = host.probe_with(&ours, folder, &QUIET).await.unwrap();
    let ProbeOutcome::Reported(probe) = outcome else { panic!("{outcome:?}") };
    assert_eq!(probe.host_name, HOST_NAME);
}

pub(super) async fn an_agent_is_brought_run_and_taken_back<B: Backend>() {
    let server = B::start().await;
    let options = server.options();
    let host = server.connect(&options).await;
    for _ in 0..2 {
        reports(&server, &host).await;
        assert_eq!(server.home(), Vec::<String>::new(), "it is taken back");
    }
    let counts = options.counters.snapshot();
    assert_eq!((counts.connects, counts.executions, counts.sftp_sessions), (1, 2, 1));
}

/// A local user has planted files at our paths, with the right names and sizes.
pub(super) async fn what_lay_there_before_us_is_not_run<B: Backend>() {
    let server = B::start().await;
    let ours = server.program(Does::Work);
    let planted = [path(host::AGENT), staged_agent(ours.digest())];
    for place in &planted {
        // If it ran, its output would be no report, and the outcome would show that.
        server.install(place, Does::Garbage);
        server.put(place, &noise(usize::try_from(ours.raw().await.unwrap().length()).unwrap(), 5));
    }
    let host = server.host().await;
    let outcome = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap();
    assert!(matches!(outcome, ProbeOutcome::Reported(_)), "{outcome:?}");
}

pub(super) async fn an_agent_that_fails_is_taken_back_too<B: Backend>() {
    let server = B::start().await;
    let host = server.host().await;
    let ours = server.program(Does::Fail(9));
    let outcome = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap();
    let ProbeOutcome::NoReport(NoReport::NoAgent { status: 9, errors }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(errors, "something went wrong");
    assert_eq!(server.home(), Vec::<String>::new());
}

pub(super) async fn a_folder_that_is_there_is_not_used<B: Backend>() {
    let server = B::start().await;
    let folder = server.fresh_folder();
    // It is not empty, so it is no left-over of our attempts.
    server.put_home(&format!("{folder}/theirs.dll"), b"theirs");
    let host = server.host().await;
    let error = host.probe_with(&server.program(Does::Work), folder, &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::Sftp { doing: "making folder", .. }), "{error}");
    assert_eq!(server.home(), [folder.to_string(), format!("{folder}/theirs.dll")]);
    assert!(!host.is_closed(), "the connection is still good");
}

pub(super) async fn an_agent_is_sent_whole_after_a_cut<B: Backend>() {
    let server = B::start().await;
    let options = server.options();
    let ours = Blob::from_bytes(noise(6_000_000, 6));
    let proxy = Proxy::start(&server.target(), Network::cut_after(4_000_000)).await;
    let route = Route::new(proxy.target(), server.credentials());
    let host = SshHost::new(Session::connect(&route, &TcpDialer, &options).await.unwrap());
    let error = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
    host.close().await;
    assert_eq!(server.home().len(), 2, "nobody could take it back: {:?}", server.home());

    let before = options.counters.snapshot().uploaded_bytes;
    let host = server.connect(&options).await;
    let outcome = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap();
    assert!(matches!(outcome, ProbeOutcome::NoReport(_)), "it is no program: {outcome:?}");
    let sent = options.counters.snapshot().uploaded_bytes - before;
    assert_eq!(sent, 6_000_000, "nothing is taken over from the first attempt");
    assert_eq!(server.home(), Vec::<String>::new(), "both are gone");
}

pub(super) async fn folders_of_cut_contacts_go_and_those_of_others_stay<B: Backend>() {
    let server = B::start().await;
    let host = server.host().await;
    for number in 0..20 {
        let left = FreshFolder::from_random([number; 16]);
        server.put_home(&format!("{left}/{}", host::UPLOADED_AGENT), b"half");
    }
    let theirs = FreshFolder::from_random([0xFF; 16]);
    for stays in [format!("{theirs}/notes.txt"), "wmco-notes/wicd.exe".into(), "wicd.exe".into()] {
        server.put_home(&stays, b"theirs");
    }
    let others = 5;
    reports(&server, &host).await;
    let left = server.home().len() - others;
    assert!(left < 20 * 2, "some are gone: {left}");
    for _ in 0..2 {
        reports(&server, &host).await;
    }
    assert_eq!(server.home().len(), others, "{:?}", server.home());
    assert!(server.home().contains(&format!("{theirs}/notes.txt")));
    let outcome = host.probe(AgentLocation::Installed).await.unwrap();
    assert!(matches!(outcome, ProbeOutcome::NoReport(_)), "nothing was installed: {outcome:?}");
}
