//! Debian's containerd in its own folder, and its client. Both fail if they are not installed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wmco_core::secret::Secret;

use super::upstream::{Authority, Upstream};

/// For a busy machine; a start takes a tenth of a second.
const START: Duration = Duration::from_secs(60);

/// Plugins that pulls do not need, or that would change the system.
const DISABLED: [&str; 9] = [
    "io.containerd.grpc.v1.cri",
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.restart",
    "io.containerd.runtime.v1.linux",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.overlayfs",
    "io.containerd.snapshotter.v1.zfs",
];

/// A running containerd; its drop stops it and removes its files.
pub(super) struct Containerd {
    folder: TempDir,
    process: Child,
}

/// Stops the process before the folder is removed.
impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Containerd {
    pub(super) async fn start(authority: &Authority) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
        let owner = std::fs::metadata(folder.path()).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = {DISABLED:?}\n\
             [grpc]\naddress = {:?}\nuid = {}\ngid = {}\n",
            at("root"),
            at("state"),
            at("socket"),
            owner.uid(),
            owner.gid(),
        );
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("containerd")
            .args(["--config", &at("config.toml")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("install containerd, these tests are about it");
        let mut containerd = Self { folder, process };
        let begin = Instant::now();
        while !containerd.answers() {
            let log = std::fs::read_to_string(containerd.path("log")).unwrap();
            let ended = containerd.process.try_wait().unwrap();
            assert!(ended.is_none() && begin.elapsed() < START, "{ended:?}: {log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        containerd
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn client(&self) -> Command {
        let mut command = Command::new("ctr");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.arg("--address").arg(self.path("socket")).stdin(Stdio::null());
        command
    }

    fn answers(&self) -> bool {
        let output = self.client().arg("version").output();
        output.expect("install containerd, its client `ctr` comes with it").status.success()
    }

    /// Pulls `image` with these files, whose paths consist of a folder and a name.
    pub(super) async fn pull(
        &self,
        files: &BTreeMap<String, Secret>,
        image: &str,
        upstream: &Upstream,
    ) -> Output {
        let hosts = tempfile::tempdir_in(self.folder.path()).unwrap();
        for (path, text) in files {
            let (folder, name) = path.split_once('\\').unwrap();
            let folder = hosts.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), text.expose()).unwrap();
        }
        let proxy = format!("http://{}", upstream.address);
        let mut command = self.client();
        command
            .env("HTTP_PROXY", &proxy)
            .env("HTTPS_PROXY", &proxy)
            .env("SSL_CERT_FILE", self.path("ca.pem"))
            .env("SSL_CERT_DIR", hosts.path())
            .args(["images", "pull", "--snapshotter", "native", "--platform", "linux/amd64"])
            .arg("--hosts-dir")
            .arg(hosts.path())
            .arg(image);
        tokio::process::Command::from(command).output().await.unwrap()
    }
}
