//! `render user-data`.

use std::fs;

use k8s_openapi::api::core::v1::Secret;
use tempfile::TempDir;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::names::{objects, platforms};
use wmco_core::render::{user_data, user_data_keys};

use crate::program::{Run, run};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const NEXT: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn key(line: &str) -> AuthorizedKey {
    line.parse().unwrap()
}

/// Runs the command with `-` for each key, or with these files, and other arguments.
fn render(platform: &str, keys: &[&str], more: &[&str], input: &str) -> Run {
    let platform = format!("--platform={platform}");
    let keys = keys.iter().flat_map(|key| ["--public-key", *key]);
    let arguments: Vec<_> = ["render", "user-data", &platform].into_iter().chain(keys).collect();
    run(&[&arguments, more].concat(), input)
}

/// A file with `content` in a folder of its own.
fn file(content: impl AsRef<[u8]>) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator.pub");
    fs::write(&path, content).unwrap();
    let name = path.to_str().unwrap().to_owned();
    (folder, name)
}

#[test]
fn each_platform_gets_its_own_and_case_does_not_matter() {
    for platform in platforms::ALL {
        let expected = user_data(platform, &key(KEY), None);
        for typed in [platform.to_owned(), platform.to_lowercase()] {
            let run = render(&typed, &["-"], &[], &format!("{KEY} me@home\n"));
            assert_eq!((run.status, run.out.as_str()), (0, expected.as_str()), "{}", run.err);
        }
    }
    render("Azur", &["-"], &[], KEY).is_refused(2, &["--platform", "use one of AWS, Azure, GCP"]);
}

#[test]
fn two_keys_stand_in_the_secret() {
    let (_folder, name) = file(format!("\u{feff}# next\r\n{NEXT} next@home\r\n"));
    let keys = ["-", name.as_str()];
    let expected = user_data(platforms::AWS, &key(KEY), Some(&key(NEXT)));
    assert_eq!(user_data_keys(&expected), [key(KEY), key(NEXT)].into());
    let json = render("AWS", &keys, &["-o", "json"], KEY).out;
    let namespace = ["-o", "yaml", "--namespace", objects::CLUSTER_API_NAMESPACE];
    let yaml = render("AWS", &keys, &namespace, KEY).out;
    let secrets: [(Secret, &str); 2] = [
        (serde_json::from_str(&json).unwrap(), "openshift-machine-api"),
        (serde_saphyr::from_str(&yaml).unwrap(), "openshift-cluster-api"),
    ];
    for (secret, namespace) in secrets {
        assert_eq!(secret.metadata.name.as_deref(), Some("windows-user-data"));
        assert_eq!(secret.metadata.namespace.as_deref(), Some(namespace));
        let data = secret.data.unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["userData"]);
        assert_eq!(String::from_utf8(data["userData"].0.clone()).unwrap(), expected);
    }
}

#[test]
fn wrong_keys_name_their_file_and_the_next_step() {
    for (content, next_step) in [
        ("", "give the public key file"),
        ("words", "does not begin with one of ssh-ed25519, "),
        ("ssh-ed25519 AAAA", "give the whole file"),
        (&format!("{KEY}\n{NEXT}\n"), "name a file for each"),
        ("-----BEGIN PUBLIC KEY-----\nMCow\n", "`ssh-keygen -i -m PKCS8 -f FILE` converts"),
    ] {
        let (_folder, name) = file(content);
        render("GCP", &[&name], &[], "").is_refused(1, &[&name, next_step]);
    }
    render("GCP", &["-"], &[], "words").is_refused(1, &["cannot use standard input as"]);
    let (_folder, name) = file(KEY);
    render("GCP", &[&name, "-"], &[], KEY).is_refused(1, &[&name, "the same key, leave one out"]);
}

#[test]
fn wrong_usage_is_told() {
    render("GCP", &[], &[], "").is_refused(2, &["--public-key <FILE>"]);
    render("GCP", &["-"; 3], &[], KEY).is_refused(2, &["once, or twice"]);
    render("GCP", &["-"; 2], &[], KEY).is_refused(2, &["can be read once"]);
    render("GCP", &["gone.pub"], &[], "").is_refused(2, &["cannot read gone.pub, check its name"]);
    // What is in the file is the answer, not the call.
    let (_folder, name) = file([0xff, 0xfe, 0x73]);
    render("GCP", &[&name], &[], "").is_refused(1, &["cannot use", &name]);
}

/// As `ssh-keygen -y` prints it for a key that was made on an old system.
#[test]
fn comment_that_is_no_utf8_is_no_part_of_the_key() {
    let (_folder, name) = file([KEY.trim_end().as_bytes(), b" J\xfcrg\n"].concat());
    let run = render("GCP", &[&name], &[], "");
    assert_eq!((run.status, run.err.as_str()), (0, ""));
}

/// Whatever is wrong with it besides.
#[test]
fn a_private_key_is_refused_and_not_printed() {
    let mark = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMw";
    let pem = |label: &str| format!("-----BEGIN {label}-----\n{mark}\n-----END {label}-----\n");
    for content in [
        pem("OPENSSH PRIVATE KEY"),
        pem("RSA PRIVATE KEY").replace('\n', "\r\n"),
        format!("{KEY}\n{}", pem("ENCRYPTED PRIVATE KEY")),
        format!("PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{mark}\n"),
    ] {
        let (_folder, name) = file(&content);
        for format in ["text", "json"] {
            let run = render("Azure", &[&name], &["-o", format], "");
            run.is_refused(1, &[&name, "private key", "`ssh-keygen -y -f FILE`"]);
            assert!(!run.err.contains(mark), "{}", run.err);
        }
    }
    // Without its first line nobody can tell, and it is not printed either.
    for content in [mark.to_owned(), format!("ssh-ed25519 {mark}")] {
        let run = render("Azure", &["-"], &[], &content);
        run.is_refused(1, &["standard input"]);
        assert!(!run.err.contains(mark), "{}", run.err);
    }
}
