//! Restarts that steps require.

use std::sync::LazyLock;

use super::*;
use crate::certs::{self, Bundle};
use crate::owner::Owner;

/// Returns the PEM text of a root, the same for the whole process.
fn root() -> &'static str {
    static ROOT: LazyLock<String> = LazyLock::new(|| {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["root".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().pem()
    });
    &ROOT
}

/// Imports a root, as the daemon does.
pub(super) fn import(host: &FakeWindows) {
    let bundle = Bundle::parse(root().as_bytes());
    let observed = certs::observe(&bundle, Owner::ours(), host).unwrap();
    let plan = certs::reconcile(&bundle, &observed);
    assert!(certs::execute(&plan, &bundle, &observed, Owner::ours(), host).unwrap());
}

/// `docs/contract/wicd.md`, WICD15.
#[test]
fn removing_roots_reports_a_due_restart() {
    let host = fresh();
    let first = host.snapshot().roots;
    apply(&host, &join(&host));
    import(&host);
    host.machine().restart().unwrap();
    let look = |steps: &[HostStep]| probed(&apply(&host, steps)).reboot.clone();
    assert_eq!(look(&[]), BTreeSet::new());
    // An upgrade neither removes them nor restarts the host for them.
    let services = |manifest: ServicesData| {
        [
            HostStep::RemoveDaemon,
            HostStep::RemoveServices { manifests: vec![manifest.clone()] },
            HostStep::Bootstrap { manifest },
        ]
    };
    assert_eq!(look(&services(manifest())), BTreeSet::new());
    assert_ne!(host.snapshot().roots, first);
    let reasons = BTreeSet::from([RebootReason::Environment, RebootReason::Roots]);
    assert_eq!(look(&leave()), reasons);
    assert_eq!(host.snapshot().roots, first);
    host.machine().restart().unwrap();
    assert_eq!(look(&[]), BTreeSet::new());
}

/// A shell in the folder, or a program that reads a log there, prevents its removal.
#[test]
fn whoever_reads_a_log_holds_up_no_upgrade() {
    let host = fresh();
    apply(&host, &join(&host));
    let log = path(r"C:\k\logs\kubelet.log");
    host.put_file(&log, "a line");
    host.set_locked(&log, true);
    let services = [
        HostStep::RemoveDaemon,
        HostStep::RemoveServices { manifests: vec![manifest()] },
        HostStep::Bootstrap { manifest: manifest() },
    ];
    assert_eq!(error(&apply(&host, &services)), None);
    host.set_locked(&log, false);
    apply(&host, &services);
    assert_eq!(host.kind(&path(host::LOG_LINKS)).unwrap(), None);
}
