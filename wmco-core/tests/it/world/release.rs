//! What one release of the operator wants on a host.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::digest::Sha256;
use wmco_core::names::{self, host};
use wmco_core::node::{self, DesiredFile};
use wmco_core::protocol::{Access, ServicesData};
use wmco_core::winpath::WindowsPath;

/// All services of a node, in start order; the first two are bootstrap services.
pub(crate) const SERVICES: [&str; 4] =
    [host::CONTAINERD_SERVICE, host::KUBELET_SERVICE, "hybrid-overlay-node", "kube-proxy"];

/// A release of the operator: 1, 2, 3, ...
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Release(pub(crate) u8);

impl Release {
    pub(crate) fn version(self) -> String {
        format!("{}.0.0", self.0)
    }

    pub(crate) fn of_version(version: &str) -> Self {
        Self(version.split('.').next().unwrap().parse().unwrap())
    }

    pub(crate) fn agent(self) -> Sha256 {
        Sha256::of(format!("agent {}", self.0).as_bytes())
    }

    /// Whether its nodes go through a proxy, which needs variables and thus a restart.
    pub(crate) fn has_proxy(self) -> bool {
        self.0 % 3 == 2
    }

    /// Whether its nodes trust roots of the cluster, which needs a restart, too.
    pub(crate) fn has_roots(self) -> bool {
        self.0 % 4 > 1
    }

    /// Digest of these roots.
    pub(crate) fn roots(self) -> Sha256 {
        Sha256::of(&[u8::from(self.has_roots())])
    }

    /// The services ConfigMap; only the release and the edition are in it, the model knows the rest.
    pub(crate) fn manifest(self, edition: u8) -> ServicesData {
        let data = [("release", self.0), ("edition", edition)];
        ServicesData(data.map(|(key, value)| (key.to_owned(), value.to_string())).into())
    }

    /// The release and the edition in a services ConfigMap.
    pub(crate) fn of_manifest(manifest: &ServicesData) -> (Self, u8) {
        (Self(manifest.0["release"].parse().unwrap()), manifest.0["edition"].parse().unwrap())
    }

    /// The files: one that stays, one that changes with every other release, two live ones, of which
    /// one has another name in each release, and two for administrators only, of which one is live.
    pub(crate) fn files(self) -> &'static BTreeMap<WindowsPath, DesiredFile> {
        static FILES: LazyLock<Vec<BTreeMap<WindowsPath, DesiredFile>>> =
            LazyLock::new(|| (0..=u8::MAX).map(|number| Release(number).new_files()).collect());
        &FILES[usize::from(self.0)]
    }

    fn new_files(self) -> BTreeMap<WindowsPath, DesiredFile> {
        let place = |access, path: String, content: String, live| {
            let sha256 = Sha256::of(content.as_bytes());
            (path.parse().unwrap(), DesiredFile { sha256, access, live })
        };
        let file = |path, content, live| place(Access::Inherited, path, content, live);
        let secret = |path, live| place(Access::Administrators, path, "secret".into(), live);
        let mirror = format!(r"{}\r{}.example\hosts.toml", host::REGISTRIES, self.0);
        [
            file(format!(r"{}\containerd.exe", host::CONTAINERD), "containerd".into(), false),
            file(r"C:\k\kubelet.exe".into(), format!("kubelet {}", self.0 / 2), false),
            file(host::KUBELET_CA.into(), format!("ca {}", self.0), true),
            file(mirror, "mirror".into(), true),
            secret(format!(r"{}\{}", host::SCRIPTS, host::NETWORK_SCRIPT), true),
            secret(host::CLOUD_CONFIG.into(), false),
        ]
        .into()
    }

    /// What it wants of every host.
    pub(crate) fn wanted(self, edition: u8) -> node::Release {
        node::Release {
            version: self.version(),
            agent: self.agent(),
            files: self.files().clone(),
            daemon_arguments: vec!["controller".into(), format!("--release={}", self.0)],
            manifest: self.manifest(edition),
            roots: self.roots(),
            bootstrap_services: SERVICES[..2].iter().map(|name| (*name).to_owned()).collect(),
            known_manifests: vec![self.manifest(edition)],
            vxlan_port: None,
            cluster: ClusterIdentity::new("ours"),
            drain_timeout: super::DRAIN_TIMEOUT,
        }
    }
}

/// Labels that the operator puts on its nodes.
pub(crate) fn labels() -> BTreeMap<String, String> {
    [
        (names::BYOH_LABEL.to_owned(), names::TRUE.to_owned()),
        (names::WORKER_LABEL.to_owned(), String::new()),
    ]
    .into()
}
