//! The web configuration of the metrics exporter, `windows-exporter-webconfig.yaml`.
//!
//! Source: `docs/contract/proxy-and-trust.md`, TRUST19; the exporter toolkit, "web configuration".

use std::fmt::Write as _;

use crate::names::{host, objects};
use crate::tls_profile::{TlsProfile, TlsVersion};

/// The exporter's web configuration, which it reads for each connection. Settings that no profile defines are left
/// to the exporter.
///
/// The paths have doubled separators like the original, which Windows treats as single ones.
pub fn web_config(profile: Option<&TlsProfile>) -> String {
    let path = |name| format!(r"{}\{name}", host::TLS_CERTIFICATES).replace('\\', r"\\");
    let certificate = path(objects::TLS_CERTIFICATE_KEY);
    let key = path(objects::TLS_PRIVATE_KEY_KEY);
    let mut text = format!("tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n");
    let Some(profile) = profile else { return text };
    let version = match profile.min_version {
        TlsVersion::Tls10 => "TLS10",
        TlsVersion::Tls11 => "TLS11",
        TlsVersion::Tls12 => "TLS12",
        TlsVersion::Tls13 => "TLS13",
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "  min_version: {version}");
    if !profile.cipher_suites.is_empty() {
        text.push_str("  cipher_suites:\n");
    }
    for suite in &profile.cipher_suites {
        let _ = writeln!(text, "  - {suite}");
    }
    if !profile.suits_http_2() {
        // With HTTP/2, the default, the exporter would not start again.
        text.push_str("http_server_config:\n  http2: false\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_two_files_stand_as_ever() {
        let text = web_config(None);
        assert_eq!(
            text,
            "tls_server_config:\n  cert_file: C:\\\\k\\\\tls\\\\certs\\\\tls.crt\n  \
             key_file: C:\\\\k\\\\tls\\\\certs\\\\tls.key\n"
        );
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(value["tls_server_config"]["cert_file"], r"C:\\k\\tls\\certs\\tls.crt");
    }

    #[test]
    fn a_profile_is_written_in_the_words_of_the_toolkit() {
        let cipher_suites =
            vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"];
        let profile = TlsProfile { min_version: TlsVersion::Tls12, cipher_suites };
        let text = web_config(Some(&profile));
        assert!(text.starts_with(&web_config(None)), "{text}");
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        let server = &value["tls_server_config"];
        assert_eq!(server["min_version"], "TLS12");
        assert_eq!(server["cipher_suites"], serde_json::json!(profile.cipher_suites));
        assert_eq!(value["http_server_config"], Value::Null);
        let profile = TlsProfile { min_version: TlsVersion::Tls13, cipher_suites: Vec::new() };
        assert!(web_config(Some(&profile)).ends_with("  min_version: TLS13\n"));
    }

    #[test]
    fn the_exporter_starts_with_ciphers_that_http_2_does_not_take() {
        let cipher_suites = vec!["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"];
        let profile = TlsProfile { min_version: TlsVersion::Tls12, cipher_suites };
        let value: Value = serde_saphyr::from_str(&web_config(Some(&profile))).unwrap();
        assert_eq!(value["http_server_config"]["http2"], false);
        assert_eq!(value["tls_server_config"]["cipher_suites"][0], profile.cipher_suites[0]);
    }
}
