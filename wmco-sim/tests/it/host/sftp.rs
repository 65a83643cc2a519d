//! Tests files through an SFTP client.

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use russh_sftp::ser;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use wmco_core::winpath::WindowsPath;
use wmco_sim::host::{Fault, SimHost};

use super::client::{Client, host, host_with, within};

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

/// Returns bytes that depend on their offset.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

fn code(error: &Error) -> StatusCode {
    match error {
        Error::Status(status) => status.status_code,
        other => panic!("{other}"),
    }
}

fn content(host: &SimHost, at: &str) -> Option<Vec<u8>> {
    host.model().file(&path(at)).map(|bytes| bytes.to_vec())
}

#[tokio::test]
async fn a_file_is_written_read_and_counted() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    let bytes = pattern(700_000);
    within(async {
        sftp.create_dir("/C:/k").await.unwrap();
        let mut file = sftp.create("/C:/k/x").await.unwrap();
        file.write_all(&bytes).await.unwrap();
        file.shutdown().await.unwrap();
        assert_eq!(sftp.read("/C:/k/x").await.unwrap(), bytes);
        assert_eq!(sftp.metadata("/c:/K/X").await.unwrap().size, Some(700_000));
    })
    .await;
    assert_eq!(content(&host, r"C:\k\x"), Some(bytes));
    let counts = host.counts();
    assert_eq!((counts.sftp_sessions, counts.bytes_uploaded), (1, 700_000));
    assert!(counts.bytes_received > 700_000);
}

#[tokio::test]
async fn an_upload_goes_on_where_it_was_cut() {
    let (host, key) = host().await;
    host.model().put_file(&path(r"C:\k\x"), pattern(1000));
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    within(async {
        let mut file = sftp.open_with_flags("/C:/k/x", OpenFlags::WRITE).await.unwrap();
        file.seek(std::io::SeekFrom::Start(1000)).await.unwrap();
        file.write_all(&pattern(3000)[1000..]).await.unwrap();
        file.shutdown().await.unwrap();
        let mut file = sftp.open("/C:/k/x").await.unwrap();
        file.seek(std::io::SeekFrom::Start(2999)).await.unwrap();
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, pattern(3000)[2999..]);
    })
    .await;
    assert_eq!(content(&host, r"C:\k\x"), Some(pattern(3000)));
}

#[tokio::test]
async fn folders_are_made_listed_and_removed() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    within(async {
        assert_eq!(code(&sftp.create_dir("/C:/k/deep").await.unwrap_err()), StatusCode::NoSuchFile);
        sftp.create_dir("/C:/k").await.unwrap();
        assert_eq!(code(&sftp.create_dir("/C:/k").await.unwrap_err()), StatusCode::Failure);
        sftp.create_dir("/C:/k/deep").await.unwrap();
        host.model().put_file(&path(r"C:\k\a.txt"), "abc");
        let mut names: Vec<_> = sftp
            .read_dir("/C:/k")
            .await
            .unwrap()
            .map(|entry| (entry.file_name(), entry.metadata().is_dir(), entry.metadata().len()))
            .collect();
        names.sort();
        assert_eq!(names, [("a.txt".to_owned(), false, 3), ("deep".to_owned(), true, 0)]);
        assert_eq!(code(&sftp.remove_dir("/C:/k").await.unwrap_err()), StatusCode::Failure);
        sftp.remove_file("/C:/k/a.txt").await.unwrap();
        sftp.remove_dir("/C:/k/deep").await.unwrap();
        sftp.remove_dir("/C:/k").await.unwrap();
        assert!(!sftp.try_exists("/C:/k").await.unwrap());
        let missing = sftp.remove_file("/C:/k/a.txt").await.unwrap_err();
        assert_eq!(code(&missing), StatusCode::NoSuchFile);
    })
    .await;
}

#[tokio::test]
async fn a_session_starts_at_home() {
    let (host, key) = host_with(|builder| builder.user("core")).await;
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    assert_eq!(within(sftp.canonicalize(".")).await.unwrap(), "/C:/Users/core");
    assert_eq!(within(sftp.canonicalize("C:/k/")).await.unwrap(), "/C:/k");
}

#[tokio::test]
async fn a_path_without_a_slash_in_front_lies_at_home_and_is_made_once() {
    let (host, key) = host_with(|builder| builder.user("core")).await;
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(raw(&client)).await;
    let nothing = FileAttributes::empty;
    within(sftp.mkdir("fresh", nothing())).await.unwrap();
    let again = within(sftp.mkdir("fresh", nothing())).await.unwrap_err();
    assert_eq!(code(&again), StatusCode::Failure);
    let new = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
    within(sftp.open("fresh/wicd.exe", new, nothing())).await.unwrap();
    let again = within(sftp.open("fresh/wicd.exe", new, nothing())).await.unwrap_err();
    assert_eq!(code(&again), StatusCode::Failure);
    let file = r"C:\Users\core\fresh\wicd.exe".parse().unwrap();
    assert!(host.model().file(&file).is_some());
}

async fn raw(client: &Client) -> RawSftpSession {
    let channel = client.handle.channel_open_session().await.unwrap();
    channel.request_subsystem(true, "sftp").await.unwrap();
    let raw = RawSftpSession::new(channel.into_stream());
    raw.init().await.unwrap();
    raw
}

#[tokio::test]
async fn only_the_posix_rename_replaces() {
    let (host, key) = host().await;
    host.model().put_file(&path(r"C:\k\new"), "new");
    host.model().put_file(&path(r"C:\k\old"), "old");
    let client = within(Client::connect(&host, &key)).await;
    let raw = within(raw(&client)).await;
    let refused = within(raw.rename("/C:/k/new", "/C:/k/old")).await.unwrap_err();
    assert_eq!(code(&refused), StatusCode::Failure);
    let names = ser::to_bytes(&("/C:/k/new", "/C:/k/old")).unwrap().to_vec();
    within(raw.extended("posix-rename@openssh.com", names)).await.unwrap();
    assert_eq!(content(&host, r"C:\k\old"), Some(b"new".to_vec()));
    assert_eq!(content(&host, r"C:\k\new"), None);
    within(raw.rename("/C:/k/old", "/C:/k/free")).await.unwrap();
    assert_eq!(content(&host, r"C:\k\free"), Some(b"new".to_vec()));
}

#[tokio::test]
async fn flags_of_open_are_kept() {
    let (host, key) = host().await;
    host.model().put_file(&path(r"C:\k\x"), "abc");
    let client = within(Client::connect(&host, &key)).await;
    let raw = within(raw(&client)).await;
    let none = FileAttributes::empty;
    within(async {
        let exclusive = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        assert!(raw.open("/C:/k/x", exclusive, none()).await.is_err());
        assert!(raw.open("/C:/k/y", OpenFlags::WRITE, none()).await.is_err());
        let handle = raw.open("/C:/k/x", OpenFlags::READ, none()).await.unwrap().handle;
        let refused = raw.write(handle, 0, b"z".to_vec()).await.unwrap_err();
        assert_eq!(code(&refused), StatusCode::PermissionDenied);
        let append = OpenFlags::WRITE | OpenFlags::APPEND;
        let handle = raw.open("/C:/k/x", append, none()).await.unwrap().handle;
        raw.write(handle, 0, b"def".to_vec()).await.unwrap();
    })
    .await;
    assert_eq!(content(&host, r"C:\k\x"), Some(b"abcdef".to_vec()));
}

#[tokio::test]
async fn a_full_disk_stops_an_upload_until_there_is_room() {
    let (host, key) = host().await;
    host.model().put_file(&path(r"C:\k\x"), "");
    let client = within(Client::connect(&host, &key)).await;
    let raw = within(raw(&client)).await;
    let handle = within(raw.open("/C:/k/x", OpenFlags::WRITE, FileAttributes::empty())).await;
    let handle = handle.unwrap().handle;
    host.set_fault(Fault::DiskFull { after_bytes: 10 });
    within(async {
        raw.write(handle.clone(), 0, vec![1; 10]).await.unwrap();
        let full = raw.write(handle.clone(), 10, vec![1; 1]).await.unwrap_err();
        assert_eq!(code(&full), StatusCode::Failure);
        host.clear_faults();
        raw.write(handle, 10, vec![1; 1]).await.unwrap();
    })
    .await;
    assert_eq!(content(&host, r"C:\k\x"), Some(vec![1; 11]));
}

#[tokio::test]
async fn a_running_program_cannot_be_written_to() {
    let (host, key) = host().await;
    let program = path(r"C:\k\run.exe");
    host.model().put_file(&program, "old");
    host.model().add_process(program);
    let client = within(Client::connect(&host, &key)).await;
    let sftp = within(client.sftp()).await;
    let refused = within(sftp.create("/C:/k/run.exe")).await.err().unwrap();
    assert_eq!(code(&refused), StatusCode::PermissionDenied);
    assert_eq!(content(&host, r"C:\k\run.exe"), Some(b"old".to_vec()));
}
