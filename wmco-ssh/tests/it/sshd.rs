//! Debian's OpenSSH server on a free loopback port, with its own keys and configuration.
//!
//! The test listens itself and starts one `sshd -i` per connection, so no port has to be guessed.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use wmco_core::host_key::HostKey;
use wmco_core::names::host::UPLOADED_AGENT;
use wmco_core::protocol::{AgentCommand, AgentLocation, FreshFolder, Verb};
use wmco_core::secret::Secret;
use wmco_ssh::{
    ConnectError, Credentials, Dialer, HostKeyPolicy, Options, PathStyle, PrivateKey, Route,
    Session, SshHost, Target, TcpDialer, Timeouts,
};

/// The server and its files; its drop removes them and ends its processes.
pub(crate) struct Sshd {
    folder: TempDir,
    address: SocketAddr,
    largest: Arc<AtomicU64>,
    processes: Processes,
    _stop: DropGuard,
}

/// Runs a tool; if it is missing or fails, the test fails and is never skipped.
pub(crate) fn tool(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("these tests need `{program}`, install openssh-server, openssl and gnupg: {error}")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

fn sshd() -> PathBuf {
    // It is not in the search path of ordinary users, and sshd must be started by its full path.
    ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .expect("these tests need OpenSSH's server: apt-get install openssh-server")
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Sshd {
    /// Starts a server with host keys of these kinds (`ssh-keygen -t`).
    pub(crate) async fn start(kinds: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // On a real host, an agent creates the staging folder.
        for name in ["root/C:/k/staging", "bin", "home"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let mut config = format!(
            "AuthorizedKeysFile {authorized}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             Subsystem sftp internal-sftp -d {start}\nSetEnv PATH={bin}:/usr/bin:/bin HOME={home}\n",
            authorized = at("authorized").display(),
            bin = at("bin").display(),
            start = at("home").display(),
            // Start-up files of the user's own shell have no effect.
            home = folder.path().display(),
        );
        for kind in kinds {
            let file = at(&format!("host_{kind}"));
            match kind.strip_prefix("ecdsa-sha2-nistp") {
                Some(bits) => keygen(&file, &["-t", "ecdsa", "-b", bits]),
                None => keygen(&file, &["-t", kind.trim_start_matches("ssh-")]),
            }
            writeln!(config, "HostKey {}", file.display()).unwrap();
        }
        std::fs::write(at("sshd_config"), config).unwrap();
        keygen(&at("client"), &["-t", "ed25519"]);
        std::fs::copy(at("client.pub"), at("authorized")).unwrap();
        // The server refuses to start as root without this folder.
        let _ = std::fs::create_dir("/run/sshd");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let largest = Arc::new(AtomicU64::new(u64::MAX));
        let processes = Processes::default();
        let serving =
            serve(listener, at("sshd_config"), Arc::clone(&largest), Arc::clone(&processes));
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self { folder, address, largest, processes, _stop: stop.drop_guard() }
    }

    /// Returns the number of connections that are still served, and of commands that still run for them.
    pub(crate) fn sessions(&self) -> usize {
        let mut processes = self.processes.lock().unwrap();
        processes.retain_mut(|process| process.0.try_wait().is_ok_and(|ended| ended.is_none()));
        let ours = self.folder.path().to_str().unwrap().as_bytes();
        let commands = std::fs::read_dir("/proc").unwrap().filter(|entry| {
            let line = std::fs::read(entry.as_ref().unwrap().path().join("cmdline"));
            line.is_ok_and(|line| line.windows(ours.len()).any(|part| part == ours))
        });
        // Server processes have the folder on their command lines, too.
        processes.len().max(commands.count())
    }

    /// Replaces a text in the configuration for all later connections.
    pub(crate) fn reconfigure(&self, what: &str, by: &str) {
        let file = self.path("sshd_config");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(what), "{what}: {text}");
        std::fs::write(&file, text.replace(what, by)).unwrap();
    }

    /// Limits the length of files on later connections.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        self.largest.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) const fn folder(&self) -> &TempDir {
        &self.folder
    }

    /// Adds a line to the configuration for all later connections.
    pub(crate) fn configure(&self, line: &str) {
        let file = self.path("sshd_config");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}{line}\n")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of `C:\` in the server's file system.
    pub(crate) fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// Returns the file for a Windows path.
    pub(crate) fn file(&self, path: &wmco_core::winpath::WindowsPath) -> PathBuf {
        PathBuf::from(format!("{}{}", self.root().display(), path.sftp()))
    }

    pub(crate) fn target(&self) -> Target {
        Target { address: self.address.ip().to_string(), port: self.address.port() }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            timeouts: Timeouts {
                connect: Duration::from_secs(30),
                authenticate: Duration::from_secs(30),
                ..Timeouts::default()
            },
            paths: PathStyle::Under(self.root().display().to_string()),
            ..Options::default()
        }
    }

    pub(crate) fn host_key(&self, kind: &str) -> HostKey {
        public_line(&self.path(&format!("host_{kind}.pub"))).parse().unwrap()
    }

    /// Returns all host keys.
    pub(crate) fn host_keys(&self) -> Vec<HostKey> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        names
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.starts_with("host_") && path.extension().is_some()
            })
            .map(|path| public_line(&path).parse().unwrap())
            .collect()
    }

    /// Returns the user and key that the server accepts.
    pub(crate) fn credentials(&self) -> Credentials {
        Credentials::new(user(), private_key(&self.path("client")))
    }

    /// Makes the server accept another key; returns the credentials for login.
    pub(crate) fn admit(&self, key: PrivateKey) -> Credentials {
        std::fs::write(self.path("authorized"), key.public().authorized_key()).unwrap();
        Credentials::new(user(), key)
    }

    /// Installs a shell script at the path to which a POSIX shell resolves the agent's Windows path.
    pub(crate) fn install_agent(&self, path: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let file = self.path("bin").join(path.replace('\\', ""));
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a POSIX shell find the program uploaded to `folder`.
    pub(crate) fn lead_to(&self, folder: FreshFolder) {
        let command = AgentCommand { agent: AgentLocation::Brought(folder), verb: Verb::Probe };
        let command = command.to_string().replace('\\', "");
        let name = command.split(' ').next().unwrap();
        let program = self.path("home").join(folder.to_string()).join(UPLOADED_AGENT);
        std::os::unix::fs::symlink(program, self.path("bin").join(name)).unwrap();
    }

    /// Returns the route for `credentials`; it accepts any host key.
    pub(crate) fn route(&self, credentials: &Credentials) -> Route {
        Route::new(self.target(), credentials.clone())
    }

    pub(crate) async fn connect(
        &self,
        credentials: &Credentials,
        policy: &HostKeyPolicy,
    ) -> Result<Session, ConnectError> {
        let route = self.route(credentials).host_key(policy.clone());
        Session::connect(&route, &TcpDialer, &self.options()).await
    }

    /// Connects with the accepted credentials.
    pub(crate) async fn host(&self, dialer: &dyn Dialer, options: &Options) -> SshHost {
        let session = Session::connect(&self.route(&self.credentials()), dialer, options).await;
        SshHost::new(session.expect("the server accepts this key"))
    }
}

/// Generates a key without passphrase with `ssh-keygen`.
pub(crate) fn keygen(file: &Path, arguments: &[&str]) {
    let mut all = vec!["-q", "-N", "", "-C", "", "-f", file.to_str().unwrap()];
    all.extend(arguments);
    tool("ssh-keygen", &all);
}

pub(crate) fn private_key(file: &Path) -> PrivateKey {
    PrivateKey::parse(&Secret::new(std::fs::read(file).unwrap())).unwrap()
}

/// Returns the base64 part of a public key file.
pub(crate) fn public_line(file: &Path) -> String {
    let line = std::fs::read_to_string(file).unwrap();
    line.split(' ').nth(1).unwrap().trim().to_owned()
}

/// Processes of all connections that have not ended, and some that have.
type Processes = Arc<Mutex<Vec<Process>>>;

/// A server process that ends with its socket, or on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server process for each connection.
async fn serve(
    listener: TcpListener,
    config: PathBuf,
    largest: Arc<AtomicU64>,
    processes: Processes,
) {
    /// Unit of the limit in a POSIX shell.
    const BLOCK: u64 = 512;
    let program = sshd();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let socket = socket.into_std().unwrap();
        socket.set_nonblocking(false).unwrap();
        let input: OwnedFd = socket.into();
        let output = input.try_clone().unwrap();
        let largest = largest.load(Ordering::Relaxed);
        let start = match largest {
            u64::MAX => "exec \"$@\"".to_owned(),
            // A write beyond the limit fails without ending the server.
            bytes => format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", bytes / BLOCK),
        };
        let process = Command::new("/bin/sh")
            .args(["-c", &start, "sh"])
            .arg(&program)
            .args(["-i", "-e", "-f"])
            .arg(&config)
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut processes = processes.lock().unwrap();
        processes.retain_mut(|process| process.0.try_wait().is_ok_and(|ended| ended.is_none()));
        processes.push(Process(process));
    }
}
