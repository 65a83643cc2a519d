//! A Windows that Wine runs, with a file system, a registry and a Service Control Manager of its own.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use wicd_wine::hands::{Answer, Order};

use crate::cluster::until;

/// Libraries and programs: ours instead of Wine's, and none of those that only a desktop needs.
const OVERRIDES: &str =
    "mscoree,mshtml,winemenubuilder.exe=d;bcryptprimitives,powershell.exe,dism.exe=n";

/// Where a stand-in for a file of Windows goes, below its system folder.
const STAND_INS: [(&str, &str); 2] =
    [("powershell.exe", "WindowsPowerShell/v1.0/powershell.exe"), ("dism.exe", "dism.exe")];

/// Where Wine keeps the registry.
const REGISTRY: [&str; 3] = ["system.reg", "user.reg", "userdef.reg"];

/// A running Windows. It ends, with every process, when it is dropped.
pub(crate) struct Windows {
    folder: TempDir,
    hands: Mutex<Option<Hands>>,
}

/// The program that does what a person would.
struct Hands {
    _child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// Cargo's folder, where `scripts/wine.sh` leaves what it makes.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Set by who has just run `scripts/wine.sh`. Each test would run it again, and wait for any other cargo.
const MADE: &str = "WINE_IS_MADE";

/// Set to the path of another build of the daemon, for example what `make wicd` makes.
pub(crate) const WICD: &str = "WICD_EXE";

/// A program that `scripts/wine.sh` made, which is run first.
pub(crate) fn program(name: &str) -> PathBuf {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        if std::env::var_os(MADE).is_some() {
            return;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/wine.sh");
        let made = Plain::new(script).env("CARGO_TARGET_DIR", target()).output().unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "scripts/wine.sh failed, `make setup` may help: {said}");
    });
    match std::env::var_os(WICD) {
        Some(other) if name == "wicd" => other.into(),
        _ => target().join("x86_64-pc-windows-gnu/debug").join(format!("{name}.exe")),
    }
}

impl Windows {
    /// A copy of the empty Windows, with our stand-ins, started.
    pub(crate) async fn start() -> Self {
        let dism = program("dism");
        let wine = target().join("wine");
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(&wine).unwrap();
        // Windows' own files are only linked: nobody writes into them, and they are many.
        let from = wine.join("windows/.");
        let copied = Plain::new("cp").arg("-al").arg(from).arg(folder.path()).status().unwrap();
        assert!(copied.success());
        // But Wine does write into a registry that has several names.
        for name in REGISTRY {
            let place = folder.path().join(name);
            fs::remove_file(&place).unwrap();
            fs::copy(wine.join("windows").join(name), place).unwrap();
        }
        // Who died and left its Windows behind is found by this.
        fs::write(folder.path().join("owner"), std::process::id().to_string()).unwrap();
        let windows = Self { folder, hands: Mutex::default() };
        let system = windows.path(r"C:\windows\system32");
        for (name, place) in STAND_INS {
            link(&dism.with_file_name(name), &system.join(place));
        }
        link(&wine.join("bcryptprimitives.dll"), &system.join("bcryptprimitives.dll"));
        windows.boot().await;
        windows
    }

    /// Where a file of this Windows is. It takes over the case of letters.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let below = path.strip_prefix(r"C:\").unwrap();
        self.folder.path().join("drive_c").join(below.replace('\\', "/"))
    }

    /// Writes a file and the folders above it.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    /// Puts a program there.
    pub(crate) fn install(&self, name: &str, path: &str) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        link(&program(name), &place);
    }

    /// Puts a copy of a program there that is a program of its own: Wine gives processes of all names of
    /// one file the same name.
    pub(crate) fn install_copy(&self, name: &str, path: &str) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(program(name), place).unwrap();
    }

    /// The environment in which all of this Windows runs, and nothing else of ours.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        vec![
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", folder.clone()),
            ("WINEPREFIX", folder),
            ("WINEARCH", "win64".to_owned()),
            ("WINEDEBUG", "-all".to_owned()),
            ("WINEDLLOVERRIDES", OVERRIDES.to_owned()),
        ]
    }

    fn wine(&self) -> Command {
        let mut command = Command::new("wine");
        command.env_clear().envs(self.environment()).current_dir(self.path(r"C:\windows"));
        command
    }

    /// Runs a command line to its end. Its output goes to files: some process of Wine's own may keep a
    /// pipe open for ever.
    pub(crate) async fn run(&self, command: &str) -> Output {
        let (mut stdout, mut stderr) =
            (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut wine = self.wine();
        wine.args(command.split(' ')).stdin(Stdio::null());
        wine.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
        let status = wine.status().await.unwrap();
        let written = |file: &mut File| {
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        };
        Output { status, stdout: written(&mut stdout), stderr: written(&mut stderr) }
    }

    /// Starts the host; services that start with it are started.
    async fn boot(&self) {
        let mut command = self.wine();
        command.arg(program("hands")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        *self.hands.lock().await = Some(Hands { _child: child, orders, answers });
        // The first program starts Windows' own services, and they hold its output open for ever. That
        // must not be one whose output is read to its end. They may still be starting when it runs.
        until("Windows' own services answer", async || {
            matches!(self.person(&Order::Services).await, Answer::Services(s) if !s.is_empty())
        })
        .await;
    }

    /// Switches the host off and on. What the registry keeps only while Windows runs is gone.
    pub(crate) async fn reboot(&self) {
        *self.hands.lock().await = None;
        self.power_off();
        self.boot().await;
    }

    fn power_off(&self) {
        // Whatever is not running any more needs no end.
        let _ = Plain::new("wineserver").arg("-k").env_clear().envs(self.environment()).status();
    }

    /// Does what a person at the host would.
    pub(crate) async fn person(&self, order: &Order) -> Answer {
        let mut hands = self.hands.lock().await;
        let hands = hands.as_mut().unwrap();
        let line = format!("{}\n", serde_json::to_string(order).unwrap());
        hands.orders.write_all(line.as_bytes()).await.unwrap();
        let answer = hands.answers.next_line().await.unwrap();
        serde_json::from_str(&answer.expect("the hands program ended")).unwrap()
    }

    /// Processes of this Windows whose command line has `words`, by the number that Linux gives them.
    pub(crate) fn processes(&self, words: &[&str]) -> Vec<u32> {
        let ours = format!("WINEPREFIX={}", self.folder.path().display());
        let is_ours = |process: &Path| {
            let read = |file| fs::read(process.join(file)).unwrap_or_default();
            let environment = read("environ");
            let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
            environment.split(|byte| *byte == 0).any(|entry| entry == ours.as_bytes())
                && words.iter().all(|word| line.contains(word))
        };
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let number =
            |path: &PathBuf| std::str::from_utf8(path.file_name()?.as_bytes()).ok()?.parse().ok();
        entries.filter(|path| is_ours(path)).filter_map(|path| number(&path)).collect()
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.power_off();
    }
}

/// Links a file over another, without writing through a link that is there.
fn link(from: &Path, to: &Path) {
    let _ = fs::remove_file(to);
    fs::hard_link(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}
