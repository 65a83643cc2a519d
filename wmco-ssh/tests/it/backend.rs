//! The two servers of the conformance suite behind a common trait.

use std::time::Duration;

use russh::keys::PublicKey as WirePublicKey;
use tempfile::TempDir;
use wmco_core::digest::Sha256;
use wmco_core::host_key::HostKey;
use wmco_core::protocol::{AgentLocation, FreshFolder, staged_agent};
use wmco_core::winpath::WindowsPath;
use wmco_sim::host::{AgentFile, AgentNature, Fault, HostKeyKind, SimHost};
use wmco_ssh::{
    Blob, Credentials, Options, PrivateKey, Route, Session, SshHost, Target, TcpDialer,
};

use crate::sshd::{Sshd, keygen, private_key};

/// Kinds of host keys, by the SSH names of their algorithms.
pub(crate) const HOST_KEYS: [&str; 5] =
    ["ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-ed25519", "ssh-rsa"];

/// Host name in every report.
pub(crate) const HOST_NAME: &str = "winhost";

/// The behaviour of a program at an agent's path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// Probes, and carries out a plan of a single step, optionally followed by a restart.
    Work,
    /// Reports this protocol version.
    OtherProtocol(u32),
    /// Writes an error and exits with this status.
    Fail(u32),
    /// Prints text that is no report.
    Garbage,
    /// Prints nothing.
    Nothing,
    /// Prints this many bytes that are no report.
    Talk(u64),
    /// Never ends.
    Hang,
}

/// A server on loopback with its own disk.
pub(crate) trait Backend: Sized {
    /// Whether nothing serves a connection any more once it was cut. OpenSSH's processes may still open the part of a
    /// file that the next connection has finished meanwhile; the agent sweeps it.
    const STOPS_WHEN_CUT: bool;

    /// Starts a server with host keys of these kinds, see [`HOST_KEYS`].
    async fn with_host_keys(kinds: &[&str]) -> Self;

    fn target(&self) -> Target;

    fn options(&self) -> Options;

    /// Returns the user and a key that the server accepts.
    fn credentials(&self) -> Credentials;

    /// Makes the server accept only this key; returns the credentials for login.
    fn admit(&self, key: PrivateKey) -> Credentials;

    fn host_keys(&self) -> Vec<HostKey>;

    /// Installs a program at a path.
    fn install(&self, path: &WindowsPath, does: Does);

    fn put(&self, path: &WindowsPath, content: &[u8]);

    fn content(&self, path: &WindowsPath) -> Option<Vec<u8>>;

    /// Returns a program for upload.
    fn program(&self, does: Does) -> Blob;

    /// Returns the name of a new folder to which a program can be uploaded and from which it runs.
    fn fresh_folder(&self) -> FreshFolder;

    /// Creates a file below the login user's home.
    fn put_home(&self, below: &str, content: &[u8]);

    /// Returns everything below the login user's home, sorted.
    fn home(&self) -> Vec<String>;

    /// Returns the names in a folder, sorted.
    fn names(&self, folder: &WindowsPath) -> Vec<String>;

    /// Prevents later connections from removing this file.
    fn protect(&self, path: &WindowsPath);

    /// Limits files to about this many bytes on later connections; `None` removes the limit.
    fn set_room(&self, bytes: Option<u64>);

    /// Returns the folder for files of test tools.
    fn scratch(&self) -> &TempDir;

    /// Starts a server with one host key.
    async fn start() -> Self {
        Self::with_host_keys(&["ssh-ed25519"]).await
    }

    fn route(&self) -> Route {
        Route::new(self.target(), self.credentials())
    }

    async fn connect(&self, options: &Options) -> SshHost {
        let session = Session::connect(&self.route(), &TcpDialer, options).await;
        SshHost::new(session.expect("the server accepts this key"))
    }

    async fn host(&self) -> SshHost {
        self.connect(&self.options()).await
    }

    /// Starts a server with a program at an agent's staged path, and connects.
    async fn host_with(does: Does) -> (Self, SshHost, AgentLocation) {
        let server = Self::start().await;
        let agent = server.stage(does);
        let host = server.host().await;
        (server, host, agent)
    }

    /// Installs a program at an agent's staged path.
    fn stage(&self, does: Does) -> AgentLocation {
        let digest = Sha256::of(format!("{does:?}").as_bytes());
        self.install(&staged_agent(digest), does);
        AgentLocation::Staged(digest)
    }

    /// Generates a key of this kind with `ssh-keygen` and these arguments.
    fn new_key(&self, arguments: &[&str]) -> PrivateKey {
        let file = self.scratch().path().join(format!("key{}", arguments.join("")));
        if !file.exists() {
            keygen(&file, arguments);
        }
        private_key(&file)
    }
}

impl Backend for Sshd {
    const STOPS_WHEN_CUT: bool = false;

    async fn with_host_keys(kinds: &[&str]) -> Self {
        Self::start(kinds).await
    }

    fn target(&self) -> Target {
        self.target()
    }

    fn options(&self) -> Options {
        self.options()
    }

    fn credentials(&self) -> Credentials {
        self.credentials()
    }

    fn admit(&self, key: PrivateKey) -> Credentials {
        self.admit(key)
    }

    fn host_keys(&self) -> Vec<HostKey> {
        self.host_keys()
    }

    fn install(&self, path: &WindowsPath, does: Does) {
        self.install_agent(path.as_str(), &crate::scripts::script(self, does));
    }

    fn put(&self, path: &WindowsPath, content: &[u8]) {
        let file = self.file(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    fn content(&self, path: &WindowsPath) -> Option<Vec<u8>> {
        std::fs::read(self.file(path)).ok()
    }

    fn program(&self, does: Does) -> Blob {
        Blob::from_bytes(format!("#!/bin/sh\n{}\n", crate::scripts::script(self, does)))
    }

    fn fresh_folder(&self) -> FreshFolder {
        let folder = random_folder();
        self.lead_to(folder);
        folder
    }

    fn put_home(&self, below: &str, content: &[u8]) {
        let file = self.path("home").join(below);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    fn home(&self) -> Vec<String> {
        let home = self.path("home");
        let mut found = Vec::new();
        let mut folders = vec![home.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(&home).unwrap().to_str().unwrap().to_owned());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn names(&self, folder: &WindowsPath) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.file(folder)) else { return Vec::new() };
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn protect(&self, _: &WindowsPath) {
        // File modes do not restrict a server that runs as root.
        self.reconfigure("internal-sftp", "internal-sftp -P remove");
    }

    fn set_room(&self, bytes: Option<u64>) {
        self.limit_files(bytes);
    }

    fn scratch(&self) -> &TempDir {
        self.folder()
    }
}

/// A simulated host, and a key that it accepts.
pub(crate) struct Sim {
    pub(crate) host: SimHost,
    scratch: TempDir,
    key: PrivateKey,
}

impl Sim {
    /// Builds a host with these settings.
    pub(crate) async fn build(
        settings: impl FnOnce(wmco_sim::host::SimHostBuilder) -> wmco_sim::host::SimHostBuilder,
    ) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("client");
        keygen(&file, &["-t", "ed25519"]);
        let key = private_key(&file);
        let builder = SimHost::builder()
            .host_name(HOST_NAME)
            .authorized_key(wire(&key))
            .restart_delay(Duration::from_millis(20))
            .restart_duration(Duration::from_millis(20));
        let host = settings(builder).start().await.unwrap();
        // On a real host, an agent creates it.
        let staging = wmco_core::names::host::STAGING.parse().unwrap();
        host.model().with_tree(|tree| tree.make_folders(&staging));
        Self { host, scratch, key }
    }
}

impl Backend for Sim {
    const STOPS_WHEN_CUT: bool = true;

    async fn with_host_keys(kinds: &[&str]) -> Self {
        let kinds: Vec<_> = kinds
            .iter()
            .map(|kind| match *kind {
                "ecdsa-sha2-nistp256" => HostKeyKind::EcdsaP256,
                "ecdsa-sha2-nistp384" => HostKeyKind::EcdsaP384,
                "ecdsa-sha2-nistp521" => HostKeyKind::EcdsaP521,
                "ssh-ed25519" => HostKeyKind::Ed25519,
                "ssh-rsa" => HostKeyKind::Rsa,
                other => panic!("unknown kind {other}"),
            })
            .collect();
        Self::build(|builder| builder.host_keys(&kinds)).await
    }

    fn target(&self) -> Target {
        let address = self.host.ssh_address();
        Target { address: address.ip().to_string(), port: address.port() }
    }

    fn options(&self) -> Options {
        Options::default()
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(self.host.user(), self.key.clone())
    }

    fn admit(&self, key: PrivateKey) -> Credentials {
        self.host.authorize_only([wire(&key)]);
        Credentials::new(self.host.user(), key)
    }

    fn host_keys(&self) -> Vec<HostKey> {
        let wire = |key: &WirePublicKey| HostKey::from_wire(&key.to_bytes().unwrap()).unwrap();
        self.host.host_keys().iter().map(wire).collect()
    }

    fn install(&self, path: &WindowsPath, does: Does) {
        self.put(path, &agent_file(does));
    }

    fn program(&self, does: Does) -> Blob {
        Blob::from_bytes(agent_file(does))
    }

    fn fresh_folder(&self) -> FreshFolder {
        random_folder()
    }

    fn put_home(&self, below: &str, content: &[u8]) {
        let home = format!(r"C:\Users\{}", self.host.user());
        let path = format!(r"{home}\{}", below.replace('/', "\\"));
        self.put(&path.parse().unwrap(), content);
    }

    fn home(&self) -> Vec<String> {
        let home: WindowsPath = format!(r"C:\Users\{}", self.host.user()).parse().unwrap();
        let start = home.as_str().len() + 1;
        let below = |path: &WindowsPath| path.as_str()[start..].replace('\\', "/");
        self.host.model().with_tree(|tree| tree.below(&home).map(|(path, _)| below(path)).collect())
    }

    fn put(&self, path: &WindowsPath, content: &[u8]) {
        self.host.model().put_file(path, content);
    }

    fn content(&self, path: &WindowsPath) -> Option<Vec<u8>> {
        self.host.model().file(path).map(|bytes| bytes.to_vec())
    }

    fn names(&self, folder: &WindowsPath) -> Vec<String> {
        self.host.model().with_tree(|tree| {
            tree.children(folder).map(|(path, _)| path.file_name().to_owned()).collect()
        })
    }

    fn protect(&self, path: &WindowsPath) {
        self.host.model().set_locked(path, true);
    }

    fn set_room(&self, bytes: Option<u64>) {
        match bytes {
            Some(after_bytes) => self.host.set_fault(Fault::DiskFull { after_bytes }),
            None => self.host.clear_fault(Fault::DiskFull { after_bytes: 0 }),
        }
    }

    fn scratch(&self) -> &TempDir {
        &self.scratch
    }
}

fn agent_file(does: Does) -> Vec<u8> {
    let nature = match does {
        Does::Work => AgentNature::Real,
        Does::OtherProtocol(number) => AgentNature::Protocol(number),
        Does::Fail(code) => AgentNature::Failing(code),
        Does::Garbage => AgentNature::Garbage,
        Does::Nothing => AgentNature::Silent,
        Does::Talk(bytes) => AgentNature::Talking(bytes),
        Does::Hang => AgentNature::Hanging,
    };
    AgentFile::new("1.0.0").nature(nature).bytes()
}

fn random_folder() -> FreshFolder {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    FreshFolder::from_random(random)
}

fn wire(key: &PrivateKey) -> WirePublicKey {
    WirePublicKey::from_openssh(&key.public().authorized_key()).unwrap()
}
