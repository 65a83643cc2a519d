use proptest::prelude::*;

use super::*;
use crate::fake::{Call, FakeWindows, Fault};

/// PEM text of a new self-signed certificate.
fn new_pem(name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}

fn pass(desired: &Bundle, host: &FakeWindows) -> Result<bool, WindowsError> {
    let observed = observe(host)?;
    execute(&reconcile(desired, &observed), desired, &observed, host)
}

fn host() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    host.with_tree(|tree| tree.make_folders(&host::ROOT.parse().unwrap()));
    host
}

#[test]
fn comments_are_passed_over_and_order_does_not_matter() {
    let (a, b) = (new_pem("a"), new_pem("b"));
    let one = Bundle::parse(format!("# a\n{a}\n\n# b\n{b}").as_bytes());
    let other = Bundle::parse(format!("{b}{a}{a}").as_bytes());
    assert_eq!(one, other);
    assert_eq!((one.certificates.len(), one.problems.len()), (2, 0));
    assert_eq!(Bundle::parse(one.to_pem().as_bytes()), one);
}

#[test]
fn what_cannot_be_read_is_reported_and_removes_nothing() {
    let (a, b) = (new_pem("a"), new_pem("b"));
    let host = host();
    pass(&Bundle::parse(format!("{a}{b}").as_bytes()), &host).unwrap();
    let before = host.snapshot();
    let cut = b.get(..b.len() / 2).unwrap();
    for text in [
        format!("{a}{cut}"),
        format!("{a}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ] {
        let damaged = Bundle::parse(text.as_bytes());
        assert_eq!(damaged.problems.len(), 1, "{:?}", damaged.problems);
        pass(&damaged, &host).unwrap();
        assert_eq!(host.snapshot(), before);
    }
}

#[test]
fn a_root_that_was_there_before_is_never_ours() {
    let host = host();
    let text = new_pem("a");
    let bundle = Bundle::parse(text.as_bytes());
    host.roots().add(bundle.certificates.values().next().unwrap()).unwrap();
    let before = host.snapshot();
    assert!(!pass(&bundle, &host).unwrap());
    assert!(!pass(&Bundle::default(), &host).unwrap());
    assert_eq!(host.snapshot(), before);
}

#[test]
fn what_somebody_took_away_comes_back() {
    let host = host();
    let bundle = Bundle::parse(new_pem("a").as_bytes());
    pass(&bundle, &host).unwrap();
    let wanted = host.snapshot();
    host.roots().remove(*bundle.certificates.keys().next().unwrap()).unwrap();
    assert!(pass(&bundle, &host).unwrap());
    assert_eq!(host.snapshot(), wanted);
}

#[test]
fn plans_read_well() {
    let bundle = Bundle {
        certificates: BTreeMap::from([(Sha256::of(b"1"), vec![1])]),
        problems: vec!["certificate 2 of the bundle is damaged".to_owned()],
    };
    insta::assert_snapshot!(reconcile(&bundle, &Observed::default()), @r"
    record-certificates (1 in all), because certificates are about to be added
    add-certificate 6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b, because it is wanted and not in the store
    passed over: certificate 2 of the bundle is damaged
    then restart the host
    ");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever is wanted on the way and wherever it is cut, the store ends with what it had before
    /// and what is wanted last, and nothing else.
    #[test]
    fn converges(rounds in proptest::collection::vec((0..8_u8, 0..6_usize), 1..5), last in 0..8_u8) {
        let pems = [new_pem("a"), new_pem("b"), new_pem("c")];
        let bundle = |mask: u8| {
            let text: String = pems.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, p)| p.as_str()).collect();
            Bundle::parse(text.as_bytes())
        };
        let host = host();
        let before = host.snapshot();
        for (mask, cut) in rounds {
            host.cut_after(cut);
            let _ = pass(&bundle(mask), &host);
            host.heal();
        }
        let wanted = bundle(last);
        pass(&wanted, &host).unwrap();
        let goal: BTreeSet<Sha256> = before.roots.iter().copied().chain(wanted.certificates.keys().copied()).collect();
        prop_assert_eq!(&host.snapshot().roots, &goal);
        prop_assert!(reconcile(&wanted, &observe(&host).unwrap()).steps.is_empty());
        pass(&Bundle::default(), &host).unwrap();
        prop_assert_eq!(host.snapshot().roots, before.roots);
        prop_assert_eq!(host.file(&record_file()), None);
    }
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_changes_nothing() {
    let host = host();
    let (old, new) =
        (Bundle::parse(new_pem("a").as_bytes()), Bundle::parse(new_pem("b").as_bytes()));
    pass(&old, &host).unwrap();
    let before = host.snapshot();
    host.fail(Call::FilesOpen, host::IMPORTED_CERTIFICATES, 1, Fault::Locked);
    let observed = observe(&host).unwrap();
    let plan = reconcile(&new, &observed);
    assert!(plan.problems[0].starts_with("the record of imported certificates cannot be read"));
    execute(&plan, &new, &observed, &host).unwrap();
    assert_eq!(host.snapshot(), before);
    // Later it can be read.
    assert!(pass(&new, &host).unwrap());
}
