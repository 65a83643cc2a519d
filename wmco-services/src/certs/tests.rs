use std::collections::BTreeMap;

use proptest::prelude::*;

use wmco_core::names::host;

use super::*;
use crate::fake::{Call, FakeWindows, Fault};

/// Returns the PEM text of a new self-signed certificate.
fn new_pem(name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}

fn pass(desired: &Bundle, host: &FakeWindows) -> Result<bool, WindowsError> {
    let observed = observe(desired, Owner::ours(), host)?;
    execute(&reconcile(desired, &observed), desired, &observed, Owner::ours(), host)
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
    let key = b.replace("CERTIFICATE", "PRIVATE KEY");
    let texts = [
        format!("{a}{cut}"),
        format!("{a}{cut}{a}"),
        format!("{a}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        format!("{a}{}", b.replacen("-----BEGIN", "----BEGIN", 1)),
        format!("{a}{}", b.replace("END CERTIFICATE", "END CERTIFICAT")),
        format!("{a}-----END CERTIFICATE-----\n"),
        format!("{a}-----BEGIN CERT"),
        format!("{a}-"),
        format!("E-----\n{a}"),
        format!("{a}{key}"),
        "# nothing but a comment\n".to_owned(),
        "<html>not found</html>".to_owned(),
    ];
    let utf16: Vec<u8> =
        format!("\u{feff}{a}{b}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in texts.into_iter().map(String::into_bytes).chain([utf16]) {
        let damaged = Bundle::parse(&text);
        let text = String::from_utf8_lossy(&text);
        assert_eq!(damaged.problems.len(), 1, "{:?} in {text}", damaged.problems);
        pass(&damaged, &host).unwrap();
        assert_eq!(host.snapshot(), before, "{text}");
    }
}

#[test]
fn a_bundle_that_is_really_empty_removes_what_was_imported() {
    for text in ["", " \r\n\n", "\u{feff}\n"] {
        let host = host();
        let before = host.snapshot();
        pass(&Bundle::parse(new_pem("a").as_bytes()), &host).unwrap();
        assert!(pass(&Bundle::parse(text.as_bytes()), &host).unwrap());
        assert_eq!(host.snapshot(), before);
    }
}

#[test]
fn line_ends_and_indents_of_editors_are_fine() {
    let (a, b) = (new_pem("a"), new_pem("b"));
    let plain = Bundle::parse(format!("{a}{b}").as_bytes());
    let indented = format!("  {}", format!("{a}{b}").replace('\n', " \r\n  "));
    assert_eq!(Bundle::parse(format!("\u{feff}{indented}").as_bytes()), plain);
    assert_eq!(Bundle::parse(format!("{a}{b}").replace('\n', "\r").as_bytes()), plain);
}

/// Returns a host whose record a person or an interrupted write has damaged, with one readable certificate that is no
/// longer desired.
fn with_damaged_record(text: impl Fn(&str) -> String) -> (FakeWindows, Bundle, Vec<u8>) {
    let host = host();
    let old = new_pem("a");
    let old_bundle = Bundle::parse(old.as_bytes());
    pass(&old_bundle, &host).unwrap();
    let record = text(&old).into_bytes();
    host.put_file(&Owner::ours().roots_record, record.clone());
    (host, old_bundle, record)
}

#[test]
fn a_damaged_record_is_only_added_to() {
    let lost = new_pem("lost");
    let cut = lost.get(..lost.len() / 2).unwrap().to_owned();
    let (host, old, record) = with_damaged_record(|old| format!("{old}{cut}"));
    let new = Bundle::parse(new_pem("b").as_bytes());
    assert!(pass(&new, &host).unwrap());
    let roots = host.snapshot().roots;
    assert!(new.certificates.keys().all(|sha256| roots.contains(sha256)));
    assert!(!old.certificates.keys().any(|sha256| roots.contains(sha256)));
    let text = host.file(&Owner::ours().roots_record).unwrap();
    assert!(text.starts_with(&record));
    let observed = observe(&new, Owner::ours(), &host).unwrap();
    assert!(new.certificates.keys().all(|s| observed.recorded.certificates.contains_key(s)));
    // The record stays damaged and is reported, but needs no further step.
    let again = reconcile(&new, &observed);
    assert!(again.steps.is_empty() && again.problems.len() == 1, "{again}");
    assert!(again.problems[0].contains("imported-certs.pem is damaged"), "{again}");
    // A certificate that was added later is removed as usual.
    assert!(pass(&Bundle::default(), &host).unwrap());
    assert!(host.file(&Owner::ours().roots_record).unwrap().starts_with(&record));
    let roots = host.snapshot().roots;
    assert!(!new.certificates.keys().any(|sha256| roots.contains(sha256)));
}

#[test]
fn a_cleanup_with_a_damaged_record_says_so() {
    let (host, old, record) =
        with_damaged_record(|old| format!("{old}-----END CERTIFICATE-----\n"));
    let error = crate::lifecycle::cleanup(&host, &[]).unwrap_err().to_string();
    assert!(error.contains("imported-certs.pem is damaged"), "{error}");
    let roots = host.snapshot().roots;
    assert!(!old.certificates.keys().any(|sha256| roots.contains(sha256)));
    assert_eq!(host.file(&Owner::ours().roots_record).as_deref(), Some(&record));
}

/// Returns a bundle of three certificates with comments, and the range of each block without its last line end.
fn commented() -> (String, Vec<(Sha256, std::ops::Range<usize>)>) {
    let mut text = String::from("# of somebody\n");
    let mut blocks = Vec::new();
    for name in ["a", "b", "c"] {
        let pem = new_pem(name);
        text = format!("{text}\n# {name}\n");
        let start = text.len();
        text.push_str(&pem);
        let sha256 = *Bundle::parse(pem.as_bytes()).certificates.keys().next().unwrap();
        blocks.push((sha256, start..start + pem.trim_end().len()));
    }
    (text + "# the end\n", blocks)
}

/// Returns the roots of `blocks` that are removed when the bundle becomes `after`.
fn removed(before: &str, after: &[u8], blocks: &[(Sha256, std::ops::Range<usize>)]) -> Vec<Sha256> {
    let host = host();
    pass(&Bundle::parse(before.as_bytes()), &host).unwrap();
    pass(&Bundle::parse(after), &host).unwrap();
    let roots = host.snapshot().roots;
    blocks.iter().map(|(sha256, _)| *sha256).filter(|sha256| !roots.contains(sha256)).collect()
}

proptest! {
    /// A changed byte removes nothing. Only within base64 it may yield another readable certificate, which is then
    /// taken as it is.
    #[test]
    fn another_byte_removes_nothing(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (text, blocks) = commented();
        let at = at.index(text.len());
        let mut after = text.clone().into_bytes();
        after[at] = byte;
        let removed = removed(&text, &after, &blocks);
        let in_base64 = |place: &std::ops::Range<usize>| {
            let block = &text[place.clone()];
            let first = place.start + block.find('\n').unwrap();
            let last = place.start + block.rfind('\n').unwrap();
            (first + 1..last).contains(&at) && byte.is_ascii_graphic()
        };
        let own = blocks.iter().filter(|(_, place)| in_base64(place)).map(|(sha256, _)| *sha256);
        let own: Vec<Sha256> = own.collect();
        prop_assert!(removed.iter().all(|sha256| own.contains(sha256)), "{removed:?} of {own:?}");
    }

    /// Whichever part of a truncated bundle is left, certificates in that part are not removed; and none at all if the
    /// cut goes through a certificate.
    #[test]
    fn a_cut_removes_nothing_that_is_left(at in any::<prop::sample::Index>(), rest in any::<bool>()) {
        let (text, blocks) = commented();
        let at = at.index(text.len());
        let (left, kept) = if rest { (&text[at..], at..text.len()) } else { (&text[..at], 0..at) };
        let removed = removed(&text, left.as_bytes(), &blocks);
        let through = blocks.iter().any(|(_, place)| place.start < at && at < place.end);
        // Text that begins with the end of a comment, or is empty, may be intended.
        let whole = |place: &std::ops::Range<usize>| kept.start <= place.start && place.end <= kept.end;
        let stays = |(sha256, place): &(Sha256, std::ops::Range<usize>)| {
            !removed.contains(sha256) || !(through || whole(place))
        };
        prop_assert!(blocks.iter().all(stays), "{removed:?} after a cut at {at}");
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
    /// Whatever is desired in between and wherever a pass is interrupted, the store ends with its original content and
    /// the last desired certificates, and nothing else.
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
        prop_assert!(reconcile(&wanted, &observe(&wanted, Owner::ours(), &host).unwrap()).steps.is_empty());
        pass(&Bundle::default(), &host).unwrap();
        prop_assert_eq!(host.snapshot().roots, before.roots);
        prop_assert_eq!(host.file(&Owner::ours().roots_record), None);
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
    let observed = observe(&new, Owner::ours(), &host).unwrap();
    let plan = reconcile(&new, &observed);
    assert!(plan.problems[0].starts_with("the record of imported certificates cannot be read"));
    execute(&plan, &new, &observed, Owner::ours(), &host).unwrap();
    assert_eq!(host.snapshot(), before);
    // Later it can be read.
    assert!(pass(&new, &host).unwrap());
}

#[test]
fn a_root_that_windows_refuses_is_told_and_holds_nothing_back() {
    let host = host();
    let (old, both) =
        (Bundle::parse(new_pem("a").as_bytes()), [new_pem("b"), new_pem("c")].concat());
    let both = Bundle::parse(both.as_bytes());
    pass(&old, &host).unwrap();
    host.machine().restart().unwrap();
    let (refused, good) =
        (*both.certificates.keys().next().unwrap(), *both.certificates.keys().nth(1).unwrap());
    host.refuse_root(refused);
    assert!(pass(&both, &host).unwrap());
    let roots = host.snapshot().roots;
    assert!(roots.contains(&good) && !roots.contains(&refused));
    assert!(!old.certificates.keys().any(|sha256| roots.contains(sha256)));
    // The problem is reported again, but the certificate is neither retried nor a reason for another restart.
    host.machine().restart().unwrap();
    let again = reconcile(&both, &observe(&both, Owner::ours(), &host).unwrap());
    let problem = format!("certificate {refused} of the bundle is refused by Windows, replace it");
    assert_eq!(again, Plan { problems: vec![problem], ..Plan::default() });
}

#[test]
fn a_root_that_cannot_be_added_now_holds_back_no_other() {
    let host = host();
    let both = Bundle::parse([new_pem("a"), new_pem("b")].concat().as_bytes());
    let first = *both.certificates.keys().next().unwrap();
    host.fail(Call::RootsAdd, &first.to_string(), 1, Fault::AccessDenied);
    pass(&both, &host).unwrap_err();
    let missing = |host: &FakeWindows| {
        let roots = host.snapshot().roots;
        both.certificates.keys().filter(|sha256| !roots.contains(sha256)).count()
    };
    assert_eq!(missing(&host), 1);
    pass(&both, &host).unwrap();
    assert_eq!(missing(&host), 0);
}
