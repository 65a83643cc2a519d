//! Uploads and removals over SFTP.

use std::sync::Mutex;

use wmco_core::names::host;
use wmco_core::protocol::staged_content;
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{Blob, HostAgent, HostError, Route, Session, SshHost, TcpDialer, UploadProgress};

use super::{QUIET, noise};
use crate::backend::Backend;
use crate::proxy::{Network, Proxy};

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

async fn check_staged<B: Backend>(server: &B, blob: &Blob, content: &[u8]) {
    let staged = server.content(&staged_content(blob.digest())).expect("it is there");
    assert_eq!(staged.len() as u64, blob.packed().await.unwrap().length());
    assert_eq!(zstd::decode_all(staged.as_slice()).unwrap(), content);
}

/// Creates the part file of a blob; returns its path.
async fn part<B: Backend>(server: &B, blob: &Blob, content: &[u8]) -> WindowsPath {
    let digits = blob.packed().await.unwrap().digest().to_string();
    let path = path(&format!("{}.{}.part", staged_content(blob.digest()), &digits[..16]));
    server.put(&path, content);
    path
}

pub(super) async fn contents_arrive<B: Backend>() {
    let server = B::start().await;
    let options = server.options();
    let host = server.connect(&options).await;
    let contents = [Vec::new(), b"small".to_vec(), noise(70_000, 1), noise(3_000_000, 2)];
    let blobs: Vec<_> = contents.iter().map(|content| Blob::from_bytes(content.clone())).collect();

    let seen = Mutex::new(Vec::new());
    let note = |progress| seen.lock().unwrap().push(progress);
    host.upload(&blobs, &note).await.unwrap();
    for (blob, content) in blobs.iter().zip(&contents) {
        check_staged(&server, blob, content).await;
    }
    assert_eq!(server.names(&path(host::STAGING)).len(), 4, "no part is left");
    let seen = seen.into_inner().unwrap();
    assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done));
    assert_eq!(seen.last().unwrap().done, seen.last().unwrap().total);

    let counts = options.counters.snapshot();
    assert_eq!((counts.sftp_sessions, counts.connects), (1, 1), "one session for everything");
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
}

/// The creator of our folders decides who may write there, and that is the agent.
pub(super) async fn an_upload_makes_no_folder<B: Backend>() {
    let server = B::start().await;
    let host = server.host().await;
    let folders = [path(host::STAGING), path(host::ROOT)];
    assert_eq!(host.remove_leftovers(&[], &folders).await.unwrap(), []);
    let error = host.upload(&[Blob::from_bytes("x")], &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::Sftp { doing: "opening", .. }), "{error}");
    assert!(server.names(&path(r"C:\")).iter().all(|name| name != "k"));
}

/// Name and length prove nothing: content that the agent does not report as staged is sent.
pub(super) async fn a_file_of_the_right_name_and_size_is_replaced<B: Backend>() {
    let server = B::start().await;
    let content = noise(50_000, 7);
    let blob = Blob::from_bytes(content.clone());
    let length = usize::try_from(blob.packed().await.unwrap().length()).unwrap();
    for planted in [noise(length, 8), b"cut short".to_vec()] {
        server.put(&staged_content(blob.digest()), &planted);
        server.host().await.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
        check_staged(&server, &blob, &content).await;
    }
}

pub(super) async fn a_part_that_is_too_long_is_written_anew<B: Backend>() {
    let server = B::start().await;
    let content = noise(50_000, 8);
    let blob = Blob::from_bytes(content.clone());
    part(&server, &blob, &noise(60_000, 9)).await;
    server.host().await.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
}

pub(super) async fn a_cut_upload_goes_on<B: Backend>() {
    let server = B::start().await;
    let options = server.options();
    let content = noise(20_000_000, 6);
    let blob = Blob::from_bytes(content.clone());
    let length = blob.packed().await.unwrap().length();
    let proxy = Proxy::start(&server.target(), Network::cut_after(15_000_000)).await;
    let route = Route::new(proxy.target(), server.credentials());
    let host = SshHost::new(Session::connect(&route, &TcpDialer, &options).await.unwrap());
    let error = host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
    assert_eq!(server.content(&staged_content(blob.digest())), None);
    host.close().await;
    server.connect(&options).await.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
    let sent = options.counters.snapshot().uploaded_bytes;
    assert!(sent <= length + options.upload_window_bytes(), "{sent} of {length}");
}

pub(super) async fn a_file_in_a_folders_place_is_named<B: Backend>() {
    let server = B::start().await;
    let host = server.host().await;
    let folders = [path(host::STAGING), path(host::ROOT)];
    host.remove_leftovers(&[], &folders).await.unwrap();
    server.put(&path(host::ROOT), b"");
    let error = host.upload(&[Blob::from_bytes("x")], &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::Sftp { .. }), "{error}");
    assert!(error.to_string().contains("/C:/k"), "{error}");
    assert!(!host.is_closed(), "the connection is still good");
}

pub(super) async fn a_protected_file_is_named<B: Backend>() {
    let server = B::start().await;
    let blob = Blob::from_bytes(noise(50_000, 22));
    let staged = staged_content(blob.digest());
    server.put(&staged, b"held by a program");
    server.protect(&staged);
    let host = server.host().await;
    let error = host.upload(&[blob], &QUIET).await.unwrap_err();
    let HostError::Sftp { path, source, .. } = &error else { panic!("{error}") };
    assert!(path.ends_with(staged.file_name()), "{path}");
    assert!(source.to_string().to_lowercase().contains("permission denied"), "{source}");
    assert!(!host.is_closed(), "the connection is still good");
    assert_eq!(server.content(&staged).unwrap(), b"held by a program");
}

pub(super) async fn a_full_disk_is_told_and_cleared_up<B: Backend>() {
    let server = B::start().await;
    server.set_room(Some(1_000_000));
    let content = noise(3_000_000, 23);
    let blob = Blob::from_bytes(content.clone());
    let host = server.host().await;
    let error = host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::Sftp { doing: "writing", .. }), "{error}");
    assert!(!host.is_closed(), "the connection is still good");
    assert!(server.names(&path(host::STAGING)).is_empty(), "its space is given back");
    host.close().await;
    server.set_room(None);
    server.host().await.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
}

pub(super) async fn leftovers_go<B: Backend>() {
    let server = B::start().await;
    let host = server.host().await;
    let blob = Blob::from_bytes("x");
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    let (agent, stranger) = (path(host::AGENT), path(r"C:\k\theirs.txt"));
    server.put(&agent, b"agent");
    server.put(&stranger, b"");
    part(&server, &blob, b"a part").await;
    let (files, folders) = ([agent.clone()], [path(host::STAGING), path(host::ROOT)]);
    let kept = host.remove_leftovers(&files, &folders).await.unwrap();
    assert_eq!(kept, [path(host::ROOT)], "it holds something that is not ours");
    assert_eq!(server.names(&path(host::ROOT)), ["theirs.txt"]);
    let kept = host.remove_leftovers(&[agent, stranger], &folders).await.unwrap();
    assert_eq!(kept, []);
    assert!(server.names(&path(host::ROOT)).is_empty());
    assert_eq!(host.remove_leftovers(&[], &folders).await.unwrap(), [], "absent is fine");
}

pub(super) async fn a_dropped_upload_ends_its_connection<B: Backend>() {
    let server = B::start().await;
    let options = server.options();
    let host = server.connect(&options).await;
    let blob = Blob::from_bytes(noise(8_000_000, 11));
    let (told, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let note = move |progress: UploadProgress| {
        let _ = told.send(progress.done);
    };
    tokio::select! {
        _ = host.upload(std::slice::from_ref(&blob), &note) => panic!("it was too quick"),
        _ = begun.recv() => {}
    }
    assert!(host.is_closed());
    host.close().await;
    let counts = options.counters.snapshot();
    assert_eq!((counts.open, counts.uploading), (0, 0));
}
