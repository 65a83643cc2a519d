//! Private keys in the forms in which people store them, made by OpenSSH and OpenSSL.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;
use wmco_core::secret::Secret;
use wmco_ssh::{KeyError, PrivateKey};

use crate::sshd::{keygen, tool};

/// A key as OpenSSH writes it, and the line of its public half.
fn key(folder: &TempDir, arguments: &[&str]) -> (String, String) {
    let file = folder.path().join(arguments.join("-"));
    keygen(&file, arguments);
    let line = fs::read_to_string(file.with_extension("pub")).unwrap();
    let line = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    (fs::read_to_string(file).unwrap(), line.trim_end().to_owned())
}

fn parse(bytes: impl AsRef<[u8]>) -> Result<PrivateKey, KeyError> {
    PrivateKey::parse(&Secret::new(bytes.as_ref().to_vec()))
}

#[track_caller]
fn refusal(bytes: impl AsRef<[u8]>) -> String {
    parse(bytes).expect_err("it is no key of ours").to_string()
}

fn utf16(mark: [u8; 2], text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    mark.into_iter().chain(text.encode_utf16().flat_map(unit)).collect()
}

fn utf16_plain(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

/// What `openssl` writes.
fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let file = folder.join("openssl.pem");
    // Before the other arguments: a length comes last.
    let mut all = vec![arguments[0], "-out", file.to_str().unwrap()];
    all.extend(&arguments[1..]);
    tool("openssl", &all);
    fs::read_to_string(file).unwrap()
}

#[test]
fn whole_keys_are_read_however_they_were_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (text, line) = key(&folder, &["-t", "ed25519"]);
    let encrypted = openssl(
        folder.path(),
        &["genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:hush"],
    );
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let stored: Vec<(&str, Vec<u8>)> = vec![
        ("a mark in front", [b"\xef\xbb\xbf", text.as_bytes()].concat()),
        (
            "utf-16, little end first",
            utf16([0xff, 0xfe], &text.replace('\n', "\r\n"), u16::to_le_bytes),
        ),
        ("utf-16, big end first", utf16([0xfe, 0xff], &text, u16::to_be_bytes)),
        ("utf-16 without a mark", utf16_plain(&text, u16::to_le_bytes)),
        ("utf-16 without a mark, big end first", utf16_plain(&text, u16::to_be_bytes)),
        ("lines that were folded", text.replace('\n', " ").into_bytes()),
        ("line ends that were escaped", text.replace('\n', "\\r\\n").into_bytes()),
        (
            "line ends that were escaped, and one that was not",
            format!("{}\n", text.replace('\n', "\\n")).into_bytes(),
        ),
        ("line ends that were escaped twice", text.replace('\n', "\\\\n").into_bytes()),
        ("a text in quotation marks", format!("\"{}\"", text.trim_end()).into_bytes()),
        ("a certificate before it", format!("{certificate}{text}").into_bytes()),
        ("an encrypted one after it", format!("{text}{encrypted}").into_bytes()),
        ("a comment that is no utf-8", [b"# J\xfcrg\n", text.as_bytes()].concat()),
    ];
    for (how, bytes) in stored {
        let key = parse(bytes).unwrap_or_else(|error| panic!("{how}: {error}"));
        assert_eq!(key.public().authorized_key(), line, "{how}");
    }
}

#[test]
fn what_is_no_key_of_ours_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (text, _) = key(&folder, &["-t", "ed25519"]);
    let putty = "PuTTY-User-Key-File-3: ssh-ed25519\n";
    let wide = utf16([0xff, 0xfe], &text, u16::to_le_bytes);
    for encoded in [
        STANDARD.encode(&text),
        STANDARD.encode(STANDARD.encode(&text)),
        STANDARD
            .encode(&text)
            .as_bytes()
            .chunks(76)
            .map(String::from_utf8_lossy)
            .collect::<Vec<_>>()
            .join("\n"),
        STANDARD.encode(putty),
        STANDARD.encode(wide),
    ] {
        assert!(refusal(encoded).contains("base64 once too often"));
    }
    for dashes in ["\u{2013}\u{2013}", "----", "\u{2014}"] {
        let told = refusal(text.replace("-----", dashes));
        assert!(told.contains("damaged begin line"), "{dashes}: {told}");
    }
    let headless: String = text.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert!(refusal(headless).contains("text without a begin line"));
    assert!(refusal([0, 159, 146, 150]).contains("binary data"));
    let parameters = openssl(folder.path(), &["dsaparam", "1024"]);
    let file = folder.path().join("parameters");
    fs::write(&file, parameters).unwrap();
    let dsa = openssl(folder.path(), &["genpkey", "-paramfile", file.to_str().unwrap()]);
    assert!(refusal(dsa).starts_with("dsa keys are not supported"));
    let x25519 = openssl(folder.path(), &["genpkey", "-algorithm", "x25519"]);
    assert!(refusal(x25519).starts_with("x25519 keys are not supported"));
}

#[test]
fn curves_of_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let sec1 =
        openssl(folder.path(), &["ecparam", "-name", "brainpoolP256r1", "-genkey", "-noout"]);
    let file = folder.path().join("brainpool");
    fs::write(&file, &sec1).unwrap();
    let pkcs8 =
        openssl(folder.path(), &["pkcs8", "-topk8", "-nocrypt", "-in", file.to_str().unwrap()]);
    for text in [sec1, pkcs8] {
        let told = refusal(&text);
        assert!(told.starts_with("ecdsa brainpoolP256r1 keys are not supported"), "{told}");
    }
}

/// The command that is told removes the passphrase.
#[test]
fn advice_about_passphrases_can_be_followed() {
    let folder = tempfile::tempdir().unwrap();
    let of = |algorithm: &[&str]| {
        let more = ["-aes256", "-pass", "pass:hush"];
        openssl(folder.path(), &[&["genpkey", "-algorithm"], algorithm, &more].concat())
    };
    for encrypted in [of(&["ed25519"]), of(&["RSA"])] {
        let told = refusal(&encrypted);
        let command = told.split('`').nth(1).unwrap();
        let file = folder.path().join("encrypted");
        fs::write(&file, &encrypted).unwrap();
        let mut words: Vec<&str> = command.split(' ').collect();
        for word in &mut words {
            match *word {
                "FILE" => *word = file.to_str().unwrap(),
                "NEW-FILE" => *word = "/dev/stdout",
                _ => {}
            }
        }
        words.extend(["-passin", "pass:hush"]);
        let output = std::process::Command::new(words[0]).args(&words[1..]).output().unwrap();
        parse(output.stdout).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}

/// The decoder takes every curve of this length for P-256.
#[test]
fn curves_that_are_spelled_out_count_when_they_are_p_256() {
    let folder = tempfile::tempdir().unwrap();
    let explicit = |curve: &str| {
        openssl(
            folder.path(),
            &["ecparam", "-name", curve, "-genkey", "-noout", "-param_enc", "explicit"],
        )
    };
    parse(explicit("prime256v1")).unwrap();
    let refused = refusal(explicit("secp256k1"));
    assert!(refused.starts_with("ecdsa with a curve other than"), "{refused}");
}

/// One bit of its private exponent: it would sign, and the host would be blamed.
#[test]
fn rsa_key_whose_parts_do_not_fit_is_damaged() {
    const KIND: &[u8] = b"\0\0\0\x07ssh-rsa";
    let folder = tempfile::tempdir().unwrap();
    let (text, line) = key(&folder, &["-t", "rsa", "-b", "2048"]);
    assert_eq!(parse(&text).unwrap().public().authorized_key(), line);
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let mut bytes = STANDARD.decode(body).unwrap();
    let kinds: Vec<usize> = bytes
        .windows(KIND.len())
        .enumerate()
        .filter_map(|(at, part)| (part == KIND).then_some(at))
        .collect();
    // Modulus, public exponent, private exponent.
    let after = |bytes: &[u8], at: usize| {
        let length = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        at + 4 + usize::try_from(length).unwrap()
    };
    let exponent = after(&bytes, after(&bytes, kinds[1] + KIND.len()));
    bytes[exponent + 40] ^= 1;
    let lines =
        STANDARD.encode(bytes).as_bytes().chunks(70).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let body = String::from_utf8(lines.join(&b'\n')).unwrap();
    let damaged =
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n");
    assert!(refusal(damaged).contains("damaged"));
}

/// As PuTTY and others write them: signed numbers, or without leading zeros.
#[test]
fn numbers_of_any_length_are_read_where_openssh_reads_them() {
    const CURVES: [(&[u8], usize); 3] = [
        (b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07", 32),
        (b"\x06\x05\x2b\x81\x04\x00\x22", 48),
        (b"\x06\x05\x2b\x81\x04\x00\x23", 66),
    ];
    for (curve, size) in CURVES {
        let sec1 =
            |number: &[u8]| sequence(&[&[2, 1, 1], &tagged(4, number), &tagged(0xa0, curve)]);
        let pkcs8 = |number: &[u8]| {
            let algorithm = sequence(&[b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01", curve]);
            sequence(&[&[2, 1, 0], &algorithm, &tagged(4, &sec1(number))])
        };
        let full: Vec<u8> = (0..size).map(|at| if at < 2 { 0 } else { 0x5a }).collect();
        let whole = parse(pem_of("EC PRIVATE KEY", &sec1(&full))).unwrap();
        for number in [&full[2..], &full[1..], &[&[0], &*full].concat()] {
            for file in
                [pem_of("EC PRIVATE KEY", &sec1(number)), pem_of("PRIVATE KEY", &pkcs8(number))]
            {
                let key = parse(file).unwrap_or_else(|error| panic!("{size}: {error}"));
                assert_eq!(key.public(), whole.public(), "{size}");
            }
        }
        let long = [&[1], &*full].concat();
        assert!(refusal(pem_of("EC PRIVATE KEY", &sec1(&long))).contains("damaged"));
    }
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
    [head, content.to_vec()].concat()
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

fn pem_of(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}
