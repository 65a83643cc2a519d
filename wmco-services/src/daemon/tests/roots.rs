//! Variables and roots share one restart.

use wmco_core::winpath::WindowsPath;

use super::*;

const BUNDLE: &str = r"C:\k\ca-bundle.crt";

/// Returns the PEM text of a new self-signed certificate.
fn new_pem(name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}

/// Returns a configured node on which the roots of `text` are in force and released.
fn configured(text: &str) -> World {
    let mut world = World::new();
    world.place(text);
    world.release(text);
    world.settle(&manifest(None));
    assert_eq!((world.version(), world.imported()), (Some(VERSION), certificates(text)));
    world.restarts = 0;
    world
}

fn certificates(text: &str) -> usize {
    Bundle::parse(text.as_bytes()).certificates.len()
}

impl World {
    fn place(&self, text: &str) {
        self.host.put_file(&BUNDLE.parse().unwrap(), text);
    }

    fn release(&mut self, text: &str) {
        let digest = Bundle::parse(text.as_bytes()).digest().to_string();
        self.annotations.insert(names::ROOTS_ANNOTATION.to_owned(), digest);
        self.annotations.remove(names::VERSION_ANNOTATION);
    }

    fn pass_with_bundle(&mut self, manifest: &Manifest) -> Plan {
        let (node, bundle) = (self.node(), BUNDLE.parse::<WindowsPath>().unwrap());
        let desired = Desired { node: Some(&node), manifest: ManifestState::Read(manifest) };
        let context = context(&self.host, Some(&bundle));
        let pass = pass(context, desired, &mut self.results, NOW).unwrap();
        self.annotations.extend(pass.annotations.clone());
        pass.plan
    }

    fn settle(&mut self, manifest: &Manifest) {
        for _ in 0..8 {
            let _ = self.pass_with_bundle(manifest);
            self.operate();
        }
    }

    /// Returns the number of roots beyond those of Windows.
    fn imported(&self) -> usize {
        self.host.snapshot().roots.len() - World::new().host.snapshot().roots.len()
    }
}

#[test]
fn roots_that_are_not_released_are_left_alone() {
    let (old, new) = (new_pem("old"), new_pem("new"));
    let mut world = configured(&old);
    for text in [new.clone(), format!("{old}{new}"), String::new()] {
        world.place(&text);
        world.settle(&manifest(None));
        assert_eq!((world.restarts, world.imported(), world.version()), (0, 1, Some(VERSION)));
    }
    // Services of a node with an unreleased bundle are still managed.
    world.host.set_service_state(&"overlay".parse().unwrap(), ServiceRunState::Stopped);
    world.settle(&manifest(None));
    let overlay = world.host.snapshot().services[&"overlay".parse().unwrap()].1;
    assert_eq!(overlay, ServiceRunState::Running);
    // A bundle that is reverted before its release has no effect.
    world.place(&old);
    world.settle(&manifest(None));
    assert_eq!((world.restarts, world.imported()), (0, 1));
}

#[test]
fn a_node_is_not_marked_before_its_roots_are_released() {
    let mut world = configured("");
    world.place(&new_pem("new"));
    world.annotations.remove(names::VERSION_ANNOTATION);
    world.settle(&manifest(None));
    assert_eq!(world.version(), None);
    let plan = world.pass_with_bundle(&manifest(None));
    assert!(matches!(plan.next, Next::Await { what: Awaited::Release, .. }), "{plan}");
    assert!(plan.to_string().contains("not released for this node yet"), "{plan}");
}

#[test]
fn other_variables_and_other_roots_cost_one_restart() {
    let (old, new) = (new_pem("old"), new_pem("new"));
    let mut world = configured(&old);
    let text = format!("{old}{new}");
    world.place(&text);
    world.release(&text);
    world.settle(&manifest(Some("http://proxy:3128")));
    assert_eq!((world.restarts, world.imported(), world.version()), (1, 2, Some(VERSION)));
    world.place(&old);
    world.release(&old);
    world.settle(&manifest(None));
    assert_eq!((world.restarts, world.imported(), world.version()), (2, 1, Some(VERSION)));
}

#[test]
fn the_same_roots_in_another_text_cost_none() {
    let (one, other) = (new_pem("one"), new_pem("other"));
    let mut world = configured(&format!("{one}{other}"));
    world.place(&format!("# b\n{other}\n\n# a\n{one}{one}"));
    // The annotation is set again, since these roots are the released ones.
    world.annotations.remove(names::VERSION_ANNOTATION);
    world.settle(&manifest(None));
    assert_eq!((world.restarts, world.version()), (0, Some(VERSION)));
}
