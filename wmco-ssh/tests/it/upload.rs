//! Uploads to a real SFTP server.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::{staged_agent, staged_content};
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{
    Blob, HostAgent, HostError, Options, Session, SshHost, TcpDialer, UPLOAD_WINDOW_BYTES,
    UploadProgress, UploadSummary,
};

use crate::dialers::{Cutting, Silent};
use crate::sshd::Sshd;

/// Bytes that do not compress, always the same for a seed (xorshift).
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend(next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

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
async fn contents_arrive_and_are_not_sent_twice() {
    let server = Sshd::start(&["ed25519"]).await;
    let options = server.options();
    let host = server.host(&TcpDialer, &options).await;
    let contents = [Vec::new(), b"small".to_vec(), noise(70_000, 1), noise(3_000_000, 2)];
    let blobs: Vec<_> = contents.iter().map(|content| Blob::from_bytes(content.clone())).collect();

    let seen = Mutex::new(Vec::new());
    let summary =
        host.upload(&blobs, &|progress| seen.lock().unwrap().push(progress)).await.unwrap();
    assert_eq!(summary, UploadSummary { sent: 4, present: 0 });
    for (blob, content) in blobs.iter().zip(&contents) {
        check_staged(&server, blob, content).await;
    }
    let seen = seen.into_inner().unwrap();
    assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done));
    assert_eq!(seen.last().unwrap().done, seen.last().unwrap().total);

    let before = options.counters.snapshot();
    let again = host.upload(&blobs, &QUIET).await.unwrap();
    assert_eq!(again, UploadSummary { sent: 0, present: 4 });
    let after = options.counters.snapshot();
    assert_eq!(after.uploaded_bytes, before.uploaded_bytes);
    assert_eq!((after.sftp_sessions, after.connects), (1, 1), "one session for everything");
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
}

#[tokio::test]
async fn what_we_make_is_ours_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let blob = Blob::from_bytes("token");
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    let path = server.file(&staged_content(blob.digest()));
    for path in [path.as_path(), path.parent().unwrap()] {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
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
async fn folders_removed_on_the_same_connection_are_made_again() {
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let blob = Blob::from_bytes("x");
    for _ in 0..2 {
        assert_eq!(host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap().sent, 1);
        let folders = [host::STAGING.parse().unwrap(), host::ROOT.parse().unwrap()];
        assert_eq!(host.remove_leftovers(&[], &folders).await.unwrap(), []);
    }
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

#[tokio::test]
async fn the_agent_is_sent_as_it_is() {
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let content = noise(100_000, 3);
    let agent = Blob::from_bytes(content.clone());
    host.upload_agent(&agent, &QUIET).await.unwrap();
    assert_eq!(std::fs::read(server.file(&staged_agent(agent.digest()))).unwrap(), content);
}

/// Whatever is cut, the next attempt goes on, and the cuts cost no more than a window each.
#[tokio::test]
async fn cuts_at_any_byte_cost_a_window_at_most() {
    let server = Sshd::start(&["ed25519"]).await;
    let options = server.options();
    let content = noise(6_000_000, 4);
    let blob = Blob::from_bytes(content.clone());
    let length = blob.packed().await.unwrap().length();
    let mut cuts = 0;
    for (round, draw) in noise(80, 5).chunks(2).enumerate() {
        // Some cuts hit the handshake or the login, most the upload.
        let bytes = 1_000 * u64::from(draw[0]) + 37_000 * u64::from(draw[1] % 64) + round as u64;
        let dialer = Cutting(bytes);
        let route = server.route(&server.credentials());
        let session = Session::connect(&route, &dialer, &options).await;
        let Ok(session) = session else { continue };
        let host = SshHost::new(session);
        match host.upload(std::slice::from_ref(&blob), &QUIET).await {
            Ok(_) => break,
            Err(error) => {
                assert_eq!(error.verb(), "dropped", "{error}");
                assert!(host.is_closed());
                assert!(!server.file(&staged_content(blob.digest())).exists());
                cuts += 1;
            }
        }
    }
    assert!(cuts >= 3, "only {cuts} cuts hit the upload");
    let host = server.host(&TcpDialer, &options).await;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
    assert_eq!(staging_names(&server).len(), 1, "no part is left");
    let sent = options.counters.snapshot().uploaded_bytes;
    assert!(sent <= length + cuts * UPLOAD_WINDOW_BYTES, "{sent} bytes for {length}, {cuts} cuts");
}

#[tokio::test]
async fn a_resumed_upload_does_not_start_anew() {
    let server = Sshd::start(&["ed25519"]).await;
    let options = server.options();
    let blob = Blob::from_bytes(noise(8_000_000, 6));
    let length = blob.packed().await.unwrap().length();
    let host = server.host(&Cutting(7_000_000), &options).await;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap_err();
    let before = options.counters.snapshot().uploaded_bytes;
    let host = server.host(&TcpDialer, &options).await;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    let resent = options.counters.snapshot().uploaded_bytes - before;
    assert!(resent < length / 2, "{resent} of {length}");
}

#[tokio::test]
async fn a_wrong_file_under_the_final_name_is_replaced() {
    let server = Sshd::start(&["ed25519"]).await;
    let content = noise(50_000, 7);
    let blob = Blob::from_bytes(content.clone());
    let path = server.file(&staged_content(blob.digest()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "cut short").unwrap();
    let host = server.host(&TcpDialer, &server.options()).await;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
}

#[tokio::test]
async fn a_part_that_is_too_long_is_written_anew() {
    let server = Sshd::start(&["ed25519"]).await;
    let content = noise(50_000, 8);
    let blob = Blob::from_bytes(content.clone());
    let payload = blob.packed().await.unwrap();
    let path = server.file(&staged_content(blob.digest()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let part = format!("{}.{}.part", path.display(), &payload.digest().to_string()[..16]);
    std::fs::write(part, vec![0; 60_000]).unwrap();
    let host = server.host(&TcpDialer, &server.options()).await;
    host.upload(std::slice::from_ref(&blob), &QUIET).await.unwrap();
    check_staged(&server, &blob, &content).await;
}

/// A server may have carried out the last writes before a cut in any order.
#[tokio::test]
async fn a_hole_near_the_end_of_a_part_is_filled() {
    let server = Sshd::start(&["ed25519"]).await;
    let agent = Blob::from_bytes(noise(5_000_000, 14));
    let mut part = noise(5_000_000, 14)[..3_000_000].to_vec();
    let hole = 3_000_000 - usize::try_from(UPLOAD_WINDOW_BYTES / 2).unwrap();
    part[hole..hole + 64].fill(0);
    let path = server.file(&staged_agent(agent.digest()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let digits = &agent.digest().to_string()[..16];
    std::fs::write(format!("{}.{digits}.part", path.display()), part).unwrap();
    let options = server.options();
    let host = server.host(&TcpDialer, &options).await;
    host.upload_agent(&agent, &QUIET).await.unwrap();
    assert_eq!(Sha256::of(&std::fs::read(path).unwrap()), agent.digest());
    assert!(options.counters.snapshot().uploaded_bytes < 4_000_000, "it was continued");
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

#[tokio::test]
async fn what_the_server_refuses_names_the_path() {
    let server = Sshd::start(&["ed25519"]).await;
    // A file where the folder should be.
    std::fs::create_dir(server.root().join("C:")).unwrap();
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
        // Each host has a disk of its own.
        let root = server.root().join(format!("host{number}"));
        std::fs::create_dir(&root).unwrap();
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
async fn a_dropped_upload_ends_its_connection() {
    let server = Sshd::start(&["ed25519"]).await;
    let options = server.options();
    let host = server.host(&TcpDialer, &options).await;
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
    assert_eq!(options.counters.snapshot().open, 0);
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

    // Of an earlier run, a compressed form of another content is not trusted.
    let kept = cache.join(format!("{digest}.zst"));
    std::fs::write(&kept, zstd::encode_all(&b"another"[..], 3).unwrap()).unwrap();
    let packed = Blob::from_file(&path, digest, &cache).packed().await.unwrap();
    assert_eq!(packed.digest(), blob.packed().await.unwrap().digest());

    // A later process finds the compressed form, even if the file itself is gone.
    std::fs::remove_file(&path).unwrap();
    let later = Blob::from_file(&path, digest, &cache).packed().await.unwrap();
    assert_eq!(later.digest(), blob.packed().await.unwrap().digest());

    // But not a damaged one, nor another file.
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
