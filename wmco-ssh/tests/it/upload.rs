//! Uploads to a real SFTP server, and over a slow line.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use wmco_core::digest::Sha256;
use wmco_core::limits;
use wmco_core::names::host;
use wmco_core::protocol::staged_content;
use wmco_core::winpath::WindowsPath;
use wmco_sim::host::Fault;
use wmco_ssh::{Blob, HostAgent, HostError, Options, TcpDialer, UploadProgress};

use crate::backend::{Backend as _, Sim};
use crate::conformance::noise;
use crate::dialers::Silent;
use crate::sshd::Sshd;

const QUIET: fn(UploadProgress) = |_| {};

async fn check_staged(server: &Sshd, blob: &Blob, content: &[u8]) {
    let staged = std::fs::read(server.file(&staged_content(blob.digest()))).unwrap();
    assert_eq!(staged.len() as u64, blob.packed().await.unwrap().length());
    assert_eq!(zstd::decode_all(staged.as_slice()).unwrap(), content);
}

fn staging_names(server: &Sshd) -> Vec<String> {
    let folder = server.file(&host::STAGING.parse().unwrap());
    let names = std::fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn what_we_make_is_ours_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let blob = Blob::from_bytes("token");
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    let path = server.file(&staged_content(blob.digest()));
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[tokio::test]
async fn new_session_keys_in_between_do_no_harm() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("RekeyLimit 256K");
    let host = server.host(&TcpDialer, &server.options()).await;
    let content = noise(4_000_000, 13);
    let blob = Blob::from_bytes(content.clone());
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
}

#[tokio::test]
async fn a_dead_peer_is_noticed_without_any_request() {
    let server = Sshd::start(&["ed25519"]).await;
    let mut options = server.options();
    options.timeouts.keep_alive = Duration::from_millis(50);
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let host = server.host(&Silent(Arc::clone(&left)), &options).await;
    left.store(0, std::sync::atomic::Ordering::Relaxed);
    crate::hostile::all_closed(&options).await;
    assert!(host.is_closed());
}

/// A server may have carried out the last writes before a cut in any order.
#[tokio::test]
async fn a_hole_near_the_end_of_a_part_is_filled() {
    let server = Sshd::start(&["ed25519"]).await;
    let (options, content) = (server.options(), noise(9_000_000, 14));
    let blob = Blob::from_bytes(content.clone());
    let host = server.host(&TcpDialer, &options).await;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    let path = server.file(&staged_content(blob.digest()));
    let mut part = std::fs::read(&path).unwrap()[..6_000_000].to_vec();
    let in_flight = limits::UPLOAD_BLOCK_BYTES * limits::UPLOAD_BLOCKS_IN_FLIGHT;
    let hole = 6_000_000 - in_flight;
    part[hole..hole + 64].fill(0);
    std::fs::remove_file(&path).unwrap();
    let digits = &blob.packed().await.unwrap().digest().to_string()[..16];
    std::fs::write(format!("{}.{digits}.part", path.display()), part).unwrap();
    let before = options.counters.snapshot().uploaded_bytes;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
    let sent = options.counters.snapshot().uploaded_bytes - before;
    assert!(sent < 6_000_000, "it was continued: {sent}");
}

#[tokio::test]
async fn a_network_that_goes_silent_is_noticed() {
    let server = Sshd::start(&["ed25519"]).await;
    let mut options = server.options();
    options.timeouts.upload_stall = Duration::from_millis(300);
    options.timeouts.request = Duration::from_millis(300);
    let host = server.host(&Silent(Arc::new(AtomicU64::new(1_000_000))), &options).await;
    let error = host.upload(&[Blob::from_bytes(noise(4_000_000, 9))], &QUIET).await.unwrap_err();
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
    assert!(host.is_closed(), "a connection in an unknown state is not used again");
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0, "the connection's task has ended");
}

/// Waiting behind the writes of other files does not count as silence.
#[tokio::test]
async fn a_slow_line_is_not_a_silent_one() {
    let server = Sim::start().await;
    let mut options = server.options();
    options.timeouts.upload_stall = Duration::from_secs(4);
    options.timeouts.request = Duration::from_secs(4);
    let host = server.connect(&options).await;
    // A window takes twice the permitted silence of a server.
    let window = limits::UPLOAD_BLOCK_BYTES * limits::UPLOAD_BLOCKS_IN_FLIGHT;
    server.host.set_fault(Fault::Slow { bytes_per_second: window as u64 / 8 });
    let blobs = [20, 21].map(|seed| Blob::from_bytes(noise(window * 3 / 4, seed)));
    host.upload(&blobs, &QUIET).await.unwrap();
    for blob in &blobs {
        assert!(server.content(&staged_content(blob.digest())).is_some());
    }
}

#[tokio::test]
async fn what_the_server_refuses_names_the_path() {
    let server = Sshd::start(&["ed25519"]).await;
    // A file at the folder's path.
    std::fs::remove_dir_all(server.root().join("C:/k")).unwrap();
    std::fs::write(server.root().join("C:/k"), "").unwrap();
    let host = server.host(&TcpDialer, &server.options()).await;
    let error = host.upload(&[Blob::from_bytes("x")], &QUIET).await.unwrap_err();
    assert!(error.to_string().contains("/C:/k"), "{error}");
    assert!(!host.is_closed(), "the connection is still good");
}

#[tokio::test]
async fn many_hosts_at_once_share_the_permits() {
    let server = Sshd::start(&["ed25519"]).await;
    let options = Options { uploads: Arc::new(tokio::sync::Semaphore::new(2)), ..server.options() };
    let blob = Blob::from_bytes(noise(500_000, 10));
    let mut tasks = tokio::task::JoinSet::new();
    let server = Arc::new(server);
    for number in 0..8 {
        let (server, mut options, blob) = (Arc::clone(&server), options.clone(), blob.clone());
        // Each host has its own disk.
        let root = server.root().join(format!("host{number}"));
        std::fs::create_dir_all(root.join("C:/k/staging")).unwrap();
        options.paths = wmco_ssh::PathStyle::Under(root.display().to_string());
        tasks.spawn(async move {
            let host = server.host(&TcpDialer, &options).await;
            let busy = options.uploads.clone();
            let most = Mutex::new(2);
            let note = |_| {
                let mut most = most.lock().unwrap();
                *most = (*most).min(busy.available_permits());
            };
            host.upload(std::slice::from_ref(&blob), &note).await.unwrap();
            assert!(*most.lock().unwrap() < 2, "a permit is held while bytes are sent");
            root.join(format!("C:/k/staging/{}.zst", blob.digest())).exists()
        });
    }
    let there = tasks.join_all().await;
    assert_eq!(there, [true; 8]);
    assert_eq!(options.uploads.available_permits(), 2);
}

#[tokio::test]
async fn a_file_of_ours_is_packed_once_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (path, cache) = (folder.path().join("payload"), folder.path().join("cache"));
    let content = noise(400_000, 12);
    std::fs::write(&path, &content).unwrap();
    let digest = Sha256::of(&content);
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let blob = Blob::from_file(&path, digest, &cache);
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;

    // A compressed form of other content from an earlier run is not trusted.
    let kept = cache.join(format!("{digest}.zst"));
    std::fs::write(&kept, zstd::encode_all(&b"another"[..], 3).unwrap()).unwrap();
    let packed = Blob::from_file(&path, digest, &cache).packed().await.unwrap();
    assert_eq!(packed.digest(), blob.packed().await.unwrap().digest());

    // A later process uses the compressed form, even without the file itself.
    std::fs::remove_file(&path).unwrap();
    let later = Blob::from_file(&path, digest, &cache).packed().await.unwrap();
    assert_eq!(later.digest(), blob.packed().await.unwrap().digest());

    // But it uses neither a damaged one nor another file.
    std::fs::write(&kept, "damaged").unwrap();
    std::fs::write(&path, "another").unwrap();
    let error = Blob::from_file(&path, digest, &cache).packed().await.unwrap_err();
    assert!(error.to_string().contains("restore it"), "{error}");
}

#[tokio::test]
async fn leftovers_go_and_strange_names_stay() {
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let blob = Blob::from_bytes("x");
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    let staging: WindowsPath = host::STAGING.parse().unwrap();
    let root: WindowsPath = host::ROOT.parse().unwrap();
    let agent: WindowsPath = host::AGENT.parse().unwrap();
    std::fs::write(server.file(&agent), "agent").unwrap();
    std::fs::write(server.file(&staging).join("b.part"), "").unwrap();
    let strange = server.file(&staging).join("a b; rm");
    std::fs::write(&strange, "").unwrap();
    let link = server.file(&staging).join("link");
    std::os::unix::fs::symlink(server.path("authorized"), &link).unwrap();

    let folders = [staging.clone(), root.clone()];
    let kept = host.remove_leftovers(std::slice::from_ref(&agent), &folders).await.unwrap();
    assert_eq!(kept, folders);
    assert_eq!(staging_names(&server).len(), 2, "what we cannot have made stays");
    assert!(!server.file(&agent).exists());

    std::fs::remove_file(&strange).unwrap();
    std::fs::remove_file(&link).unwrap();
    assert_eq!(host.remove_leftovers(&[agent], &folders).await.unwrap(), []);
    assert!(!server.file(&root).exists());
    assert_eq!(host.remove_leftovers(&[], &folders).await.unwrap(), [], "absent is fine");
}
