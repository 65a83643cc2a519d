//! Requests of a wrong form or with a weak key, built byte by byte around a right one.

use wmco_csr::pkcs10::{CertificationRequest, Fault, GeneralName};
use wmco_csr::{Kind, Rule};

use crate::fixture::World;

/// One DER element around its parts.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let mut element = vec![tag];
    match u16::try_from(length).unwrap().to_be_bytes() {
        [0, short @ ..=0x7f] => element.push(short),
        [0, long] => element.extend([0x81, long]),
        longer => element.extend([&[0x82], &longer[..]].concat()),
    }
    element.extend(content);
    element
}

fn oid(content: &[u8]) -> Vec<u8> {
    der(0x06, &[content])
}

const NULL: &[u8] = &[0x05, 0x00];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];

/// The parts of a request; none of them is signed.
struct Parts {
    version: Vec<u8>,
    subject: Vec<u8>,
    key: Vec<u8>,
    attributes: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
}

impl Parts {
    fn new() -> Self {
        let attribute = |kind: u8, text: &str| {
            let pair = [oid(&[0x55, 4, kind]), der(0x0c, &[text.as_bytes()])].concat();
            der(0x31, &[&der(0x30, &[&pair])])
        };
        let subject = [attribute(10, "system:nodes"), attribute(3, "system:node:win-7")].concat();
        Self {
            version: vec![0x02, 1, 0],
            subject: der(0x30, &[&subject]),
            key: rsa(2048, &[1, 0, 1]),
            attributes: vec![0xa0, 0],
            algorithm: der(0x30, &[&oid(RSA_SHA256), NULL]),
            signature: der(0x03, &[&[0; 257]]),
        }
    }

    fn der(&self) -> Vec<u8> {
        let info = [&*self.version, &*self.subject, &*self.key, &*self.attributes];
        der(0x30, &[&der(0x30, &info), &self.algorithm, &self.signature])
    }
}

/// An RSA key of so many bits, all of them set.
fn rsa(bits: usize, exponent: &[u8]) -> Vec<u8> {
    let mut modulus = vec![0xff; bits / 8];
    modulus.insert(0, if bits.is_multiple_of(8) { 0 } else { (1 << (bits % 8)) - 1 });
    let pair = der(0x30, &[&der(0x02, &[&modulus]), &der(0x02, &[exponent])]);
    let algorithm = der(0x30, &[&oid(RSA), NULL]);
    der(0x30, &[&algorithm, &der(0x03, &[&[0], &pair])])
}

/// The extension request with these extensions.
fn extensions(list: &[Vec<u8>]) -> Vec<u8> {
    let list = der(0x30, &[&list.concat()]);
    der(0x30, &[&oid(EXTENSION_REQUEST), &der(0x31, &[&list])])
}

fn extension(kind: u8, value: &[u8]) -> Vec<u8> {
    der(0x30, &[&oid(&[0x55, 0x1d, kind]), &der(0x04, &[value])])
}

#[track_caller]
fn refused(change: impl Fn(&mut Parts), fault: Fault) {
    let mut parts = Parts::new();
    change(&mut parts);
    let der = parts.der();
    let found = CertificationRequest::parse(&der).map_err(|error| error.fault);
    assert_eq!(found.err(), Some(fault));
}

#[track_caller]
fn read(change: impl Fn(&mut Parts)) {
    let mut parts = Parts::new();
    change(&mut parts);
    assert!(CertificationRequest::parse(&parts.der()).is_ok());
}

#[track_caller]
fn decided(change: impl Fn(&mut Parts), rule: Rule, detail: &str) {
    let mut parts = Parts::new();
    change(&mut parts);
    let mut world = World::new(Kind::KubeletClient);
    world.set_der(&parts.der());
    let decision = world.decide();
    let check = decision.checks().find(|check| check.rule == rule).unwrap();
    assert_eq!((decision.rule(), &*check.detail), (Some(rule), detail));
}

#[test]
fn parts_are_right_as_they_are() {
    read(|_| {});
    let right = Parts::new().der();
    let mut world = World::new(Kind::KubeletClient);
    world.set_der(&right);
    world.check("refuse", "signature");
}

#[test]
fn other_versions() {
    refused(|p| p.version = vec![0x02, 1, 1], Fault::Expected("version 0"));
    refused(|p| p.version = vec![0x02, 2, 0, 0], Fault::Expected("version 0"));
    refused(|p| p.version.clear(), Fault::Expected("a version"));
}

#[test]
fn lengths_that_are_not_shortest() {
    refused(|p| p.version = vec![0x02, 0x81, 1, 0], Fault::Length);
    refused(|p| p.version = vec![0x02, 0x82, 0, 1, 0], Fault::Length);
    let long = [&[0xa0, 0x82, 0, 0x80][..], &[0; 0x80]].concat();
    refused(|p| p.attributes.clone_from(&long), Fault::Length);
    refused(|p| p.attributes = vec![0xa0, 0x80, 0, 0], Fault::Length);
    refused(|p| p.attributes = vec![0xa0, 0x83, 0, 0, 0], Fault::Length);
}

#[test]
fn data_behind_and_data_missing() {
    refused(|p| p.attributes.extend([5, 0]), Fault::Trailing);
    refused(|p| p.signature.extend([5, 0]), Fault::Trailing);
    refused(|p| p.attributes.clear(), Fault::Expected("attributes"));
    refused(|p| p.signature.clear(), Fault::Expected("a bit string"));
    refused(|p| p.signature[2] = 0xff, Fault::Truncated);
}

#[test]
fn signature_of_some_bits() {
    refused(|p| p.signature = vec![0x03, 2, 1, 0], Fault::Expected("a bit string of whole bytes"));
    refused(|p| p.signature = vec![0x03, 0], Fault::Expected("a bit string of whole bytes"));
}

/// What an unknown attribute holds is not looked into: that it is there is reason enough.
#[test]
fn unknown_attribute_of_any_form() {
    let challenge = der(0x30, &[&oid(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 7]), &[0x31, 0]]);
    let change = |p: &mut Parts| p.attributes = der(0xa0, &[&challenge]);
    decided(change, Rule::Extensions, "asks for a challenge password");
}

/// A subject of one relative name with these attributes.
fn relative_name(attributes: &[(u8, &str)]) -> Vec<u8> {
    let pair = |(kind, text): &(u8, &str)| {
        der(0x30, &[&oid(&[0x55, 4, *kind]), &der(0x0c, &[text.as_bytes()])])
    };
    let pairs: Vec<_> = attributes.iter().map(pair).collect();
    der(0x30, &[&der(0x31, &[&pairs.concat()])])
}

/// Every reader sees the same attributes, as long as they are in the order of DER.
#[test]
fn relative_names_of_several_attributes() {
    let (nodes, name) = ((10, "system:nodes"), (3, "system:node:win-7"));
    let mut parts = Parts::new();
    parts.subject = relative_name(&[nodes, name]);
    let bytes = parts.der();
    assert!(crate::laws::reads_like_the_oracle(&bytes));
    let request = CertificationRequest::parse(&bytes).unwrap();
    let subject = request.subject();
    assert_eq!(subject.common_name(), Some(name.1));
    assert_eq!(subject.organization(), Some(nodes.1));
    let fault = Fault::Expected("attributes of a relative name in order");
    refused(|p| p.subject = relative_name(&[name, nodes]), fault);
    refused(|p| p.subject = relative_name(&[nodes, nodes]), fault);
    refused(|p| p.subject = relative_name(&[]), Fault::Expected("a name attribute"));
    let masters = (10, "system:nodez");
    let two = |p: &mut Parts| p.subject = relative_name(&[nodes, masters, name]);
    let detail = "[\"system:nodes\", \"system:nodez\"], not system:nodes alone";
    decided(two, Rule::Organization, detail);
}

/// So the signer reads it, and so it stands in the certificate.
#[test]
fn address_of_ipv4_written_as_one_of_ipv6() {
    let mapped = [&[0; 10][..], &[0xff, 0xff, 192, 0, 2, 7]].concat();
    let names = der(0x30, &[&der(0x87, &[&mapped])]);
    let mut parts = Parts::new();
    parts.attributes = der(0xa0, &[&extensions(&[extension(17, &names)])]);
    let bytes = parts.der();
    assert!(crate::laws::reads_like_the_oracle(&bytes));
    let request = CertificationRequest::parse(&bytes).unwrap();
    let names: Vec<_> = request.extensions().alternative_names().unwrap().iter().collect();
    assert_eq!(names, [GeneralName::Ip([192, 0, 2, 7].into())]);
}

#[test]
fn strings_of_other_types() {
    let fault = Fault::Expected("a non-empty UTF8String or PrintableString");
    for text in [&[0x16, 1, b'a'][..], &[0x14, 1, b'a'], &[0x1e, 2, 0, b'a'], &[0x0c, 0]] {
        let pair = der(0x30, &[&oid(&[0x55, 4, 3]), text]);
        refused(|p| p.subject = der(0x30, &[&der(0x31, &[&pair])]), fault);
    }
    for text in [&[0x13, 1, b'@'][..], &[0x13, 1, b'*'], &[0x13, 1, 0], &[0x0c, 1, 0xff]] {
        let pair = der(0x30, &[&oid(&[0x55, 4, 3]), text]);
        refused(|p| p.subject = der(0x30, &[&der(0x31, &[&pair])]), fault);
    }
}

#[test]
fn identifiers_that_are_not_shortest() {
    let fault = Fault::Expected("a canonical object identifier");
    for content in [&[][..], &[0x80, 1], &[0x55, 0x80, 3], &[0x55, 0x84]] {
        refused(|p| p.algorithm = der(0x30, &[&oid(content)]), fault);
    }
}

#[test]
fn repeated_extension() {
    let names = |name: &[u8]| extension(17, &der(0x30, &[&der(0x82, &[name])]));
    let twice = extensions(&[names(b"a"), names(b"b")]);
    refused(|p| p.attributes = der(0xa0, &[&twice]), Fault::Repeated("an extension"));
    let once = extensions(&[names(b"a")]);
    read(|p| p.attributes = der(0xa0, &[&once]));
    refused(|p| p.attributes = der(0xa0, &[&once, &once]), Fault::Repeated("an attribute"));
}

#[test]
fn many_extensions() {
    let many: Vec<_> = (0..17).map(|kind| extension(kind + 40, &[])).collect();
    refused(|p| p.attributes = der(0xa0, &[&extensions(&many)]), Fault::TooMany("extensions"));
    read(|p| p.attributes = der(0xa0, &[&extensions(&many[1..])]));
}

#[test]
fn extension_marked_as_by_default() {
    for (critical, right) in [(0xff, true), (0x00, false), (0x01, false)] {
        let names = der(0x04, &[&der(0x30, &[&[0x82, 1, b'a']])]);
        let marked = der(0x30, &[&oid(&[0x55, 0x1d, 17]), &[1, 1, critical], &names]);
        let attributes = der(0xa0, &[&extensions(&[marked])]);
        if right {
            read(|p| p.attributes.clone_from(&attributes));
        } else {
            refused(|p| p.attributes.clone_from(&attributes), Fault::Expected("TRUE or nothing"));
        }
    }
}

#[test]
fn alternative_names_of_a_wrong_form() {
    let with = |names: &[u8]| {
        let value = der(0x30, &[names]);
        let attributes = der(0xa0, &[&extensions(&[extension(17, &value)])]);
        move |p: &mut Parts| p.attributes.clone_from(&attributes)
    };
    refused(with(&[]), Fault::Expected("an alternative name"));
    refused(with(&[0x82, 1, 0x80]), Fault::Expected("ASCII in an alternative name"));
    refused(with(&[0x87, 3, 1, 2, 3]), Fault::Expected("an address of 4 or 16 bytes"));
    refused(with(&[0x89, 1, 1]), Fault::Expected("a known kind of alternative name"));
    refused(with(&[0x9f, 0x20, 1, 1]), Fault::LongTag);
    read(with(&[0x87, 4, 1, 2, 3, 4, 0x88, 1, 1]));
}

#[test]
fn weak_keys_are_refused_by_name() {
    let detail = "RSA-1024, not RSA-2048 to RSA-8192, P-256, P-384 or Ed25519";
    decided(|p| p.key = rsa(1024, &[1, 0, 1]), Rule::Key, detail);
    let detail = "RSA-2047, not RSA-2048 to RSA-8192, P-256, P-384 or Ed25519";
    decided(|p| p.key = rsa(2047, &[1, 0, 1]), Rule::Key, detail);
    let detail = "RSA-8200, not RSA-2048 to RSA-8192, P-256, P-384 or Ed25519";
    decided(|p| p.key = rsa(8200, &[1, 0, 1]), Rule::Key, detail);
}

#[test]
fn unsupported_keys_are_refused_by_name() {
    let key = |algorithm: &[u8], parameters: &[u8]| {
        let algorithm = der(0x30, &[&oid(algorithm), parameters]);
        der(0x30, &[&algorithm, &[0x03, 2, 0, 4]])
    };
    let rest = "not RSA-2048 to RSA-8192, P-256, P-384 or Ed25519";
    let curve = oid(&[0x2b, 0x81, 4, 0, 35]);
    decided(|p| p.key = key(EC, &curve), Rule::Key, &format!("P-521, {rest}"));
    let unknown = oid(&[0x2b, 0x81, 4, 0, 11]);
    decided(|p| p.key = key(EC, &unknown), Rule::Key, &format!("1.3.132.0.11, {rest}"));
    let parameters = der(0x30, &[&[2, 1, 1]]);
    let detail = format!("a curve without a name, {rest}");
    decided(|p| p.key = key(EC, &parameters), Rule::Key, &detail);
    let dsa = &[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1];
    decided(|p| p.key = key(dsa, &[]), Rule::Key, &format!("DSA, {rest}"));
    let own = &[0x88, 0x37, 3];
    decided(|p| p.key = key(own, NULL), Rule::Key, &format!("2.999.3, {rest}"));
}

#[test]
fn weak_and_foreign_algorithms_are_refused_by_name() {
    let algorithm = |content: &[u8], parameters: &[u8]| der(0x30, &[&oid(content), parameters]);
    let sha1 = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5];
    let detail = "RSA with SHA-1 is not accepted for RSA-2048";
    decided(|p| p.algorithm = algorithm(sha1, NULL), Rule::Algorithm, detail);
    let ecdsa = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    let detail = "ECDSA with SHA-256 is not accepted for RSA-2048";
    decided(|p| p.algorithm = algorithm(ecdsa, &[]), Rule::Algorithm, detail);
}

#[test]
fn keys_of_a_wrong_form() {
    let fault = Fault::Expected("an odd exponent, 3 to 2^31 - 1");
    for exponent in [&[1][..], &[2], &[0, 0x80, 0, 0, 1], &[1, 0, 0, 0, 1]] {
        refused(|p| p.key = rsa(2048, exponent), fault);
    }
    for exponent in [&[3][..], &[1, 0, 1], &[0x7f, 0xff, 0xff, 0xff]] {
        read(|p| p.key = rsa(2048, exponent));
    }
    let fault = Fault::Expected("an integer above zero, in its shortest form");
    for exponent in [&[][..], &[0], &[0, 3], &[0x80]] {
        refused(|p| p.key = rsa(2048, exponent), fault);
    }
    let point = |first: u8, length: usize| {
        let curve = oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
        let key = der(0x03, &[&[0, first], &vec![1; length - 1]]);
        der(0x30, &[&der(0x30, &[&oid(EC), &curve]), &key])
    };
    read(|p| p.key = point(4, 65));
    let fault = Fault::Expected("an uncompressed point of its curve");
    for (first, length) in [(4, 64), (4, 97), (2, 33), (3, 65)] {
        refused(|p| p.key = point(first, length), fault);
    }
}

#[test]
fn parameters_that_do_not_belong_there() {
    let fault = Fault::Expected("NULL as parameters of RSA");
    refused(|p| p.algorithm = der(0x30, &[&oid(RSA_SHA256)]), fault);
    refused(
        |p| p.algorithm = der(0x30, &[&oid(RSA_SHA256), &[5, 1, 0]]),
        Fault::Expected("an empty NULL"),
    );
    let ecdsa = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    refused(|p| p.algorithm = der(0x30, &[&oid(ecdsa), NULL]), Fault::Trailing);
}
