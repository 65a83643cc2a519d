//! Restarts that steps make necessary.

use std::sync::LazyLock;

use super::*;
use crate::certs::{self, Bundle};

/// PEM text of a root, the same in the whole process.
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
    let observed = certs::observe(&bundle, host).unwrap();
    let plan = certs::reconcile(&bundle, &observed);
    assert!(certs::execute(&plan, &bundle, &observed, host).unwrap());
}

/// `spec/wicd.md`, section 23.3, row 26.
#[test]
fn row_26_whoever_removes_roots_is_told_that_a_restart_is_due() {
    let host = fresh();
    let first = host.snapshot().roots;
    apply(&host, &join(&host));
    import(&host);
    host.machine().restart().unwrap();
    let look = |steps: &[HostStep]| probed(&apply(&host, steps)).reboot.clone();
    assert_eq!(look(&[]), BTreeSet::new());
    // An upgrade neither takes them away nor restarts the host for them.
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
