//! Uploads over a network that fails at any byte: 500 cuts of OpenSSH and 125 of a simulated host, the same in each
//! run.

use std::collections::BTreeMap;
use std::time::Duration;

use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::staged_content;
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{
    Blob, HostAgent, Options, Route, Session, SshHost, TcpDialer, Timeouts, UploadProgress,
};

use crate::backend::{Backend, Sim};
use crate::chaos::{becomes, tasks};
use crate::conformance::noise;
use crate::proxy::{Network, Proxy};
use crate::sshd::Sshd;

/// Cuts per test; several tests run side by side.
const CUTS: u64 = 125;

/// Most bytes before a cut: about half of a tree and several windows.
const LATEST: u64 = 600_000;

/// Unacknowledged writes in these tests: few, so that the window is small compared with the files.
const WRITES: usize = 2;

/// Pseudo-random numbers, the same for each seed.
struct Draws(std::vec::IntoIter<u8>);

impl Draws {
    fn next(&mut self) -> u64 {
        let bytes: Vec<u8> = self.0.by_ref().take(8).collect();
        u64::from_le_bytes(bytes.try_into().unwrap())
    }
}

/// Contents of different sizes and their names on the host.
struct Tree {
    blobs: Vec<Blob>,
    /// Expected content of each final name; no other names may exist.
    files: BTreeMap<String, Sha256>,
    bytes: u64,
}

impl Tree {
    async fn new(seed: u64) -> Self {
        let mut tree = Self { blobs: Vec::new(), files: BTreeMap::new(), bytes: 0 };
        for (number, size) in [750_000, 0, 700, 150_000, 31_000, 40_000, 5_000].iter().enumerate() {
            let blob = Blob::from_bytes(noise(*size, seed * 100 + number as u64));
            let packed = blob.packed().await.unwrap();
            let name = staged_content(blob.digest()).file_name().to_owned();
            tree.files.insert(name, packed.digest());
            tree.bytes += packed.length();
            tree.blobs.push(blob);
        }
        tree
    }

    /// Counts the files under final names, and checks that each is complete.
    fn whole<B: Backend>(&self, server: &B) -> usize {
        let staging: WindowsPath = host::STAGING.parse().unwrap();
        let mut whole = 0;
        for name in server.names(&staging) {
            if let Some(digest) = self.files.get(&name) {
                let content = server.content(&staging.join(&name).unwrap()).unwrap();
                assert_eq!(Sha256::of(&content), *digest, "half a file as {name}");
                whole += 1;
            } else {
                let part = name.strip_suffix(".part").unwrap_or_else(|| panic!("{name}"));
                assert!(self.files.keys().any(|file| part.starts_with(file.as_str())), "{name}");
            }
        }
        whole
    }

    /// Whether the complete content is staged.
    fn has<B: Backend>(&self, server: &B, blob: &Blob) -> bool {
        let path = staged_content(blob.digest());
        let wanted = self.files.get(path.file_name());
        server.content(&path).is_some_and(|content| Some(&Sha256::of(&content)) == wanted)
    }

    fn is_all_there_is<B: Backend>(&self, server: &B) {
        assert_eq!(self.whole(server), self.files.len());
        let staging: WindowsPath = host::STAGING.parse().unwrap();
        if B::STOPS_WHEN_CUT {
            assert_eq!(server.names(&staging).len(), self.files.len(), "a part is left");
        }
    }
}

/// Runs an attempt over a network that may fail; returns whether it succeeded.
async fn attempt<B: Backend>(server: &B, tree: &Tree, options: &Options, cut_after: u64) -> bool {
    let proxy = Proxy::start(&server.target(), Network::cut_after(cut_after)).await;
    let route = Route::new(proxy.target(), server.credentials());
    let session = match Session::connect(&route, &TcpDialer, options).await {
        Ok(session) => session,
        Err(error) => {
            assert_eq!(error.verb(), "dropped", "{error}");
            return false;
        }
    };
    let host = SshHost::new(session);
    let quiet: fn(UploadProgress) = |_| {};
    // The contents that an agent would not report and the operator would send.
    let missing: Vec<Blob> =
        tree.blobs.iter().filter(|blob| !tree.has(server, blob)).cloned().collect();
    let result = host.upload(&missing, &quiet).await;
    if let Err(error) = &result {
        assert_eq!(error.verb(), "dropped", "{error}");
        assert!(host.is_closed());
    }
    host.close().await;
    result.is_ok()
}

/// Wherever the cuts are, the tree is right in the end, no final name ever holds an incomplete file, and each cut costs
/// a window at most.
async fn cut_again_and_again<B: Backend>(seed: u64) {
    let mut draws = Draws(noise(1 << 16, seed).into_iter());
    let mut all = 0;
    let mut trees = 0;
    while all < CUTS {
        let server = B::start().await;
        let options = Options { writes_in_flight: WRITES, ..server.options() };
        let tree = Tree::new(seed * 1000 + trees).await;
        let mut cuts = 0;
        while !attempt(&server, &tree, &options, draws.next() % LATEST).await {
            tree.whole(&server);
            cuts += 1;
        }
        tree.is_all_there_is(&server);
        let sent = options.counters.snapshot().uploaded_bytes;
        let most = tree.bytes + cuts * options.upload_window_bytes();
        assert!(sent <= most, "seed {seed}, tree {trees}: {sent} bytes, not {most}, {cuts} cuts");
        assert_eq!(options.counters.snapshot().open, 0);
        all += cuts;
        trees += 1;
    }
    assert!(trees > 5, "{all} cuts in {trees} trees are not cuts of uploads");
}

#[tokio::test]
async fn cuts_cost_a_window_at_most() {
    cut_again_and_again::<Sshd>(1).await;
}

#[tokio::test]
async fn other_cuts_do_too() {
    cut_again_and_again::<Sshd>(2).await;
}

#[tokio::test]
async fn and_others() {
    cut_again_and_again::<Sshd>(3).await;
}

#[tokio::test]
async fn and_the_last_of_500() {
    cut_again_and_again::<Sshd>(4).await;
}

#[tokio::test]
async fn cuts_of_a_simulated_host_cost_no_more() {
    cut_again_and_again::<Sim>(5).await;
}

/// Cuts an upload that sends more than the server's window, so that the sender waits for room that never comes. No
/// time-out ends this test.
async fn full_window(through_jump_host: bool) {
    let (server, jump) = (Sshd::start(&["ed25519"]).await, Sshd::start(&["ed25519"]).await);
    let first = if through_jump_host { &jump } else { &server };
    let far = Network { one_way: Duration::from_millis(20), ..Network::default() };
    let proxy = Proxy::start(&first.target(), far).await;
    let near = Route { target: proxy.target(), ..first.route(&first.credentials()) };
    let route =
        if through_jump_host { server.route(&server.credentials()).via(near) } else { near };
    let long = Duration::from_secs(3600);
    let mut options = Options { writes_in_flight: 256, ..server.options() };
    options.timeouts =
        Timeouts { keep_alive: long, upload_stall: long, request: long, ..options.timeouts };
    let host = SshHost::new(Session::connect(&route, &TcpDialer, &options).await.unwrap());

    // More files than are open at a time, so that some begin after the cut.
    let blobs: Vec<_> = (0..6).map(|seed| Blob::from_bytes(noise(2_500_000, 60 + seed))).collect();
    let cut = |progress: UploadProgress| {
        if progress.done > 0 {
            proxy.cut_all();
        }
    };
    let uploading = tokio::time::timeout(Duration::from_secs(300), host.upload(&blobs, &cut));
    let error = uploading.await.expect("the cut is noticed").unwrap_err();
    assert_eq!(error.verb(), "dropped", "{error}");
    drop((host, proxy));
    // The listeners of the two servers.
    becomes("tasks", 2, tasks).await;
    assert_eq!(options.counters.snapshot().open, 0);
}

#[tokio::test]
async fn a_cut_is_noticed_while_the_window_is_full() {
    full_window(false).await;
}

#[tokio::test]
async fn a_cut_of_a_jump_host_is_noticed_while_the_window_is_full() {
    full_window(true).await;
}
