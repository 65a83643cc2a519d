//! The TLS versions and ciphers that the cluster requires of its servers.
//!
//! [`TlsProfile::of_cluster`] reads `spec.tlsSecurityProfile` and `spec.tlsAdherence` of the APIServer `cluster`.
//! Cipher suites have the names of the IANA registry, as in Go, and are among those that Go can be configured with:
//! a Go program refuses a list with any other suite.
//!
//! Source: `docs/contract/proxy-and-trust.md`, TRUST15 to TRUST17; OpenShift's API reference,
//! "APIServer [config.openshift.io/v1]"; Go's `crypto/tls`, `CipherSuites`.

use std::fmt;

use serde_json::Value;

use crate::limits;
use crate::members::{Misshapen, Shape, UnknownMember, misshapen, unknown_members};
use crate::text::{cut, harmless};

/// A version of TLS.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    /// 1.0.
    Tls10,
    /// 1.1.
    Tls11,
    /// 1.2.
    Tls12,
    /// 1.3.
    Tls13,
}

/// TLS requirements of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsProfile {
    /// The oldest accepted version.
    pub min_version: TlsVersion,
    /// Names of the cipher suites in order; empty for the program's own choice. Suites of TLS 1.3 cannot be
    /// configured, so the list is empty if that is the oldest version.
    pub cipher_suites: Vec<&'static str>,
}

/// The profile of the cluster, and its invalid parts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadProfile {
    /// The profile; `None` if the cluster requires none of us.
    pub profile: Option<TlsProfile>,
    /// Ignored parts.
    pub findings: Vec<TlsFinding>,
}

/// An ignored part of the APIServer object.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TlsFinding {
    /// An unknown adherence.
    Adherence(String),
    /// A member of another type.
    Misshapen(Misshapen),
    /// An unknown type of profile.
    Type(String),
    /// A member that nobody reads.
    Unknown(UnknownMember),
    /// A custom profile without content.
    NoCustom,
    /// The content of a profile beside no type.
    NoType,
    /// Ciphers that are unknown, or that Go cannot be configured with; at least one.
    Ciphers(Vec<String>),
    /// No usable cipher is left.
    NoCipher,
    /// An unknown version.
    Version(String),
}

/// Names in OpenSSL and in the IANA registry, in the order of preference of OpenShift's profiles.
const CIPHERS: [(&str, &str); 13] = [
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
    ("TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    ("ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    ("ECDHE-ECDSA-AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    ("ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
];

/// Number of [`CIPHERS`] in the profile `Intermediate`; `Old` has all.
const INTERMEDIATE: usize = 9;

/// The members of `spec.tlsSecurityProfile`.
const PROFILE: Shape = Shape::Object(&[
    ("type", Shape::Any),
    ("old", Shape::Any),
    ("intermediate", Shape::Any),
    ("modern", Shape::Any),
    (
        "custom",
        Shape::Object(&[("ciphers", Shape::List(&Shape::Any)), ("minTLSVersion", Shape::Any)]),
    ),
]);

/// The members of the APIServer's `spec`.
const SPEC: Shape = Shape::Object(&[
    ("additionalCORSAllowedOrigins", Shape::Any),
    ("audit", Shape::Any),
    ("clientCA", Shape::Any),
    ("encryption", Shape::Any),
    ("servingCerts", Shape::Any),
    (ADHERENCE, Shape::Any),
    (SECURITY_PROFILE, PROFILE),
]);

/// Members that count here.
const ADHERENCE: &str = "tlsAdherence";
const SECURITY_PROFILE: &str = "tlsSecurityProfile";

/// Members in `spec` about TLS that are unknown or of another type, and an unknown type of profile.
fn findings_in(spec: &Value) -> Vec<TlsFinding> {
    let is_ours = |unknown: &UnknownMember| {
        let right = unknown.right.as_deref().unwrap_or_default();
        unknown.path.starts_with(SECURITY_PROFILE)
            || right == ADHERENCE
            || right == SECURITY_PROFILE
    };
    let unknown = unknown_members(spec, &SPEC).into_iter().filter(is_ours);
    let wrong = misshapen(spec, &SPEC).into_iter().filter(|wrong| !wrong.path.is_empty());
    let named = match spec.pointer("/tlsSecurityProfile/type").unwrap_or(&Value::Null) {
        Value::Null => None,
        Value::String(name) => {
            let is_known = ["", "Old", "Intermediate", "Modern", "Custom"].contains(&name.as_str());
            (!is_known).then(|| name.clone())
        }
        other => Some(other.to_string()),
    };
    wrong
        .map(TlsFinding::Misshapen)
        .chain(unknown.map(TlsFinding::Unknown))
        .chain(named.map(TlsFinding::Type))
        .collect()
}

/// The findings that matter where no profile is asked for: it may be asked for under a wrong name.
fn misspelt(findings: Vec<TlsFinding>) -> Vec<TlsFinding> {
    let is_adherence = |finding: &TlsFinding| matches!(finding, TlsFinding::Unknown(unknown) if unknown.right.as_deref() == Some(ADHERENCE));
    findings.into_iter().filter(is_adherence).collect()
}

/// Whether a custom profile has a member.
fn says_something(custom: &Value) -> bool {
    custom.as_object().is_none_or(|members| !members.values().all(Value::is_null))
        && !custom.is_null()
}

/// Whether the profile in `spec` has a member besides its type.
fn has_content(spec: &Value) -> bool {
    let members = spec.get(SECURITY_PROFILE).and_then(Value::as_object);
    let known = ["old", "intermediate", "modern", "custom"];
    members.is_some_and(|members| {
        known.iter().any(|name| members.get(*name).is_some_and(|value| !value.is_null()))
            && members.get("type").is_none_or(|kind| kind.is_null() || kind == "")
    })
}

impl TlsFinding {
    /// The field of the APIServer object.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Adherence(_) => "spec.tlsAdherence",
            Self::Ciphers(_)
            | Self::Misshapen(_)
            | Self::NoCipher
            | Self::NoCustom
            | Self::NoType
            | Self::Type(_)
            | Self::Unknown(_)
            | Self::Version(_) => "spec.tlsSecurityProfile",
        }
    }
}

impl TlsProfile {
    /// Reads the requirements of the APIServer object; none without it. Unusable parts are ignored and reported, so
    /// that a server always has a profile that works.
    ///
    /// ```
    /// use serde_json::json;
    /// use wmco_core::tls_profile::{TlsProfile, TlsVersion};
    ///
    /// let modern = json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Modern"}});
    /// let read = TlsProfile::of_cluster(Some(&modern));
    /// assert_eq!(read.profile.map(|profile| profile.min_version), Some(TlsVersion::Tls13));
    /// ```
    pub fn of_cluster(spec: Option<&Value>) -> ReadProfile {
        let text = |pointer| spec?.pointer(pointer)?.as_str();
        let mut findings = spec.map(findings_in).unwrap_or_default();
        match spec.and_then(|spec| spec.get("tlsAdherence")).unwrap_or(&Value::Null) {
            Value::Null => return ReadProfile { profile: None, findings: misspelt(findings) },
            Value::String(adherence) => match adherence.as_str() {
                "" | "LegacyAdheringComponentsOnly" => {
                    return ReadProfile { profile: None, findings: misspelt(findings) };
                }
                "StrictAllComponents" => {}
                other => findings.push(TlsFinding::Adherence(other.to_owned())),
            },
            other => findings.push(TlsFinding::Adherence(other.to_string())),
        }
        let custom = spec.and_then(|spec| spec.pointer("/tlsSecurityProfile/custom"));
        let (profile, more) = match text("/tlsSecurityProfile/type") {
            Some("Old") => (Self::old(), Vec::new()),
            Some("Modern") => (Self::modern(), Vec::new()),
            Some("Custom") => match custom.filter(|custom| says_something(custom)) {
                Some(custom) => Self::custom(custom),
                None => (Self::intermediate(), vec![TlsFinding::NoCustom]),
            },
            Some("") | None if spec.is_some_and(has_content) => {
                (Self::intermediate(), vec![TlsFinding::NoType])
            }
            Some(_) | None => (Self::intermediate(), Vec::new()),
        };
        findings.extend(more);
        ReadProfile { profile: Some(profile), findings }
    }

    /// Whether a Go server can use HTTP/2 with it; otherwise a server with HTTP/2 enabled does not start.
    ///
    /// Source: RFC 9113, section 9.2.2.
    pub fn suits_http_2(&self) -> bool {
        const ASKED_FOR: [&str; 2] =
            ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];
        self.cipher_suites.is_empty()
            || self.cipher_suites.iter().any(|suite| ASKED_FOR.contains(suite))
    }

    fn old() -> Self {
        let cipher_suites = CIPHERS.iter().map(|(_, iana)| *iana).collect();
        Self { min_version: TlsVersion::Tls10, cipher_suites }
    }

    fn intermediate() -> Self {
        let cipher_suites = CIPHERS.iter().take(INTERMEDIATE).map(|(_, iana)| *iana).collect();
        Self { min_version: TlsVersion::Tls12, cipher_suites }
    }

    const fn modern() -> Self {
        Self { min_version: TlsVersion::Tls13, cipher_suites: Vec::new() }
    }

    fn custom(custom: &Value) -> (Self, Vec<TlsFinding>) {
        let mut findings = Vec::new();
        let min_version = match custom.get("minTLSVersion").and_then(Value::as_str) {
            None | Some("") => TlsVersion::Tls12,
            Some(text) => TlsVersion::of_openshift(text).unwrap_or_else(|| {
                findings.push(TlsFinding::Version(text.to_owned()));
                TlsVersion::Tls12
            }),
        };
        let asked = custom.get("ciphers").and_then(Value::as_array);
        let is_asked = asked.is_some();
        let asked = asked.map_or(&[][..], Vec::as_slice);
        let (mut cipher_suites, mut unknown) = (Vec::new(), Vec::new());
        for cipher in asked {
            let name = cipher.as_str().map_or_else(|| cipher.to_string(), str::to_owned);
            match CIPHERS.iter().find(|(openssl, iana)| name == *openssl || name == *iana) {
                Some((_, iana)) if cipher_suites.contains(iana) => {}
                Some((_, iana)) => cipher_suites.push(*iana),
                None => unknown.push(name),
            }
        }
        if !unknown.is_empty() {
            findings.push(TlsFinding::Ciphers(unknown));
        }
        // Those of TLS 1.3 cannot be chosen.
        if min_version == TlsVersion::Tls13 {
            cipher_suites.clear();
        } else if cipher_suites.is_empty() && is_asked {
            findings.push(TlsFinding::NoCipher);
        }
        (Self { min_version, cipher_suites }, findings)
    }
}

impl TlsVersion {
    fn of_openshift(text: &str) -> Option<Self> {
        match text {
            "VersionTLS10" => Some(Self::Tls10),
            "VersionTLS11" => Some(Self::Tls11),
            "VersionTLS12" => Some(Self::Tls12),
            "VersionTLS13" => Some(Self::Tls13),
            _ => None,
        }
    }
}

impl fmt::Display for TlsFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &String| harmless(text, limits::FINDING_TEXT_BYTES);
        f.write_str("apiserver cluster, field `spec.")?;
        match self {
            Self::Adherence(_) | Self::Misshapen(_) | Self::Unknown(_) => {}
            Self::Ciphers(_)
            | Self::NoCipher
            | Self::NoCustom
            | Self::NoType
            | Self::Type(_)
            | Self::Version(_) => {
                f.write_str(SECURITY_PROFILE)?;
            }
        }
        match self {
            Self::Adherence(text) => write!(
                f,
                "{ADHERENCE}` is `{}`, which is taken for StrictAllComponents; write that, or \
                 LegacyAdheringComponentsOnly",
                shown(text)
            ),
            Self::Misshapen(Misshapen { path, expected }) => {
                write!(f, "{path}` is not {expected}, so it is passed over; write it as {expected}")
            }
            Self::Type(text) => write!(
                f,
                ".type` is `{}`, so the profile Intermediate is used; write Old, Intermediate, Modern or Custom",
                shown(text)
            ),
            Self::Unknown(UnknownMember { path, right }) => {
                write!(f, "{path}` is read by nobody, so it does nothing; ")?;
                match right {
                    Some(right) => write!(f, "write `spec.{right}`"),
                    None => f.write_str("remove it"),
                }
            }
            Self::NoCustom => f.write_str(
                ".custom` is missing or empty, so the profile Intermediate is used; fill it or choose another type",
            ),
            Self::NoType => f.write_str(
                ".type` is missing, so the profile Intermediate is used; write Old, Intermediate, Modern or Custom",
            ),
            Self::Ciphers(names) => {
                let (told, more) = names.split_at(names.len().min(limits::FINDINGS_TOLD));
                let shown = |name: &String| {
                    format!("`{}`", cut(name, limits::FINDING_TEXT_BYTES).escape_debug())
                };
                let told: Vec<String> = told.iter().map(shown).collect();
                write!(f, ".custom.ciphers` names {}", told.join(", "))?;
                if !more.is_empty() {
                    write!(f, " and {} more", more.len())?;
                }
                f.write_str(", which Windows nodes cannot offer, so they are left out")
            }
            Self::NoCipher => f.write_str(
                ".custom.ciphers` names none that Windows nodes can offer, so they use their own choice",
            ),
            Self::Version(text) => write!(
                f,
                ".custom.minTLSVersion` is `{}`, so TLS 1.2 is used; write VersionTLS12 or VersionTLS13",
                cut(text, limits::FINDING_TEXT_BYTES).escape_debug()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(profile: &Value) -> ReadProfile {
        TlsProfile::of_cluster(Some(
            &json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": profile}),
        ))
    }

    fn custom(custom: &Value) -> (TlsProfile, Vec<TlsFinding>) {
        let read = read(&json!({"type": "Custom", "custom": custom}));
        (read.profile.unwrap(), read.findings)
    }

    #[test]
    fn who_is_not_asked_has_no_profile() {
        let modern = json!({"type": "Modern"});
        let with = |adherence: &Value| {
            let spec = json!({"tlsAdherence": adherence, "tlsSecurityProfile": modern});
            TlsProfile::of_cluster(Some(&spec))
        };
        assert_eq!(TlsProfile::of_cluster(None), ReadProfile::default());
        for quiet in [json!(null), json!(""), json!("LegacyAdheringComponentsOnly")] {
            assert_eq!(with(&quiet), ReadProfile::default(), "{quiet}");
        }
        for strict in ["StrictAllComponents", "SomethingNew"] {
            assert_eq!(with(&json!(strict)).profile, Some(TlsProfile::modern()), "{strict}");
        }
    }

    #[test]
    fn types_name_profiles_and_others_mean_intermediate() {
        assert_eq!(read(&json!({"type": "Old"})).profile.unwrap().min_version, TlsVersion::Tls10);
        for profile in
            [json!(null), json!({}), json!({"type": ""}), json!({"type": "Intermediate"})]
        {
            let read = read(&profile);
            assert_eq!((read.profile, read.findings), (Some(TlsProfile::intermediate()), vec![]));
        }
        assert_eq!(TlsProfile::intermediate().min_version, TlsVersion::Tls12);
        assert!(!TlsProfile::intermediate().cipher_suites.iter().any(|c| c.contains("CBC")));
    }

    #[test]
    fn what_is_no_profile_is_told_and_means_intermediate() {
        for (profile, expected) in [
            (json!(["Old"]), "field `spec.tlsSecurityProfile` is not an object"),
            (json!("Old"), "field `spec.tlsSecurityProfile` is not an object"),
            (json!({"type": "old"}), "field `spec.tlsSecurityProfile.type` is `old`"),
            (json!({"type": 7}), "field `spec.tlsSecurityProfile.type` is `7`"),
            (json!({"old": {}}), "field `spec.tlsSecurityProfile.type` is missing"),
            (json!({"type": "", "modern": {}}), "field `spec.tlsSecurityProfile.type` is missing"),
            (
                json!({"type": "Custom", "custom": {}}),
                "field `spec.tlsSecurityProfile.custom` is missing or empty",
            ),
            (
                json!({"type": "Custom", "custom": {"ciphers": null}}),
                "field `spec.tlsSecurityProfile.custom` is missing or empty",
            ),
            (json!({"typ": "Old"}), "field `spec.tlsSecurityProfile.typ`"),
            (json!({"type": "Custom", "Custom": {}}), "field `spec.tlsSecurityProfile.Custom`"),
        ] {
            let read = read(&profile);
            assert_eq!(read.profile, Some(TlsProfile::intermediate()), "{profile}");
            let texts: Vec<String> = read.findings.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains(expected)), "{profile}: {texts:?}");
        }
    }

    #[test]
    fn members_of_a_custom_profile_that_nobody_reads_are_told() {
        for (wrong, expected) in [
            (json!({"minTlsVersion": "VersionTLS13"}), ".custom.minTlsVersion` is read by nobody"),
            (json!({"cipher": []}), "write `spec.tlsSecurityProfile.custom.ciphers`"),
            (json!({"ciphers": "x"}), ".custom.ciphers` is not a list"),
            (json!([]), ".custom` is not an object"),
        ] {
            let (_, findings) = custom(&wrong);
            let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains(expected)), "{wrong}: {texts:?}");
        }
    }

    #[test]
    fn an_unknown_adherence_is_told() {
        let told = |spec: Value| {
            let read = TlsProfile::of_cluster(Some(&spec));
            (
                read.profile.is_some(),
                read.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            )
        };
        let (asked, texts) = told(json!({"tlsAdherence": "strictAllComponents"}));
        assert!(
            asked && texts[0].contains("field `spec.tlsAdherence` is `strictAllComponents`"),
            "{texts:?}"
        );
        let (asked, texts) = told(json!({"tlsAdherence": ["StrictAllComponents"]}));
        assert!(asked && texts[0].contains("field `spec.tlsAdherence` is `"), "{texts:?}");
        let (asked, texts) = told(json!({"tlsAdherance": "StrictAllComponents"}));
        assert!(!asked && texts[0].contains("write `spec.tlsAdherence`"), "{texts:?}");
        for quiet in ["StrictAllComponents", "LegacyAdheringComponentsOnly", ""] {
            assert_eq!(
                told(json!({"tlsAdherence": quiet, "audit": {}, "servingCerts": {}})).1,
                [""; 0]
            );
        }
    }

    #[test]
    fn ciphers_have_two_spellings_and_stand_once() {
        let (profile, findings) = custom(&json!({
            "minTLSVersion": "VersionTLS11",
            "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "ECDHE-ECDSA-CHACHA20-POLY1305"],
        }));
        assert_eq!(profile.min_version, TlsVersion::Tls11);
        let expected = [CIPHERS[4].1, CIPHERS[7].1];
        assert_eq!((profile.cipher_suites.as_slice(), findings), (&expected[..], vec![]));
    }

    #[test]
    fn what_cannot_be_used_is_told_and_the_rest_is() {
        let (profile, findings) = custom(&json!({
            "minTLSVersion": "TLS1.2", "ciphers": ["RC4-SHA", 7, "ECDHE-RSA-AES256-GCM-SHA384"],
        }));
        assert_eq!(profile.min_version, TlsVersion::Tls12);
        assert_eq!(profile.cipher_suites, ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]);
        let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("`TLS1.2`"), "{texts:?}");
        assert!(texts[1].contains("names `RC4-SHA`, `7`, which"), "{texts:?}");
        let (none, findings) = custom(&json!({"ciphers": ["RC4-SHA"]}));
        assert_eq!((none.cipher_suites.len(), findings.last()), (0, Some(&TlsFinding::NoCipher)));
        let (newest, findings) = custom(&json!({"minTLSVersion": "VersionTLS13", "ciphers": []}));
        assert_eq!((newest, findings), (TlsProfile::modern(), Vec::new()), "it has none to choose");
        let empty = read(&json!({"type": "Custom"}));
        assert_eq!(empty.profile, Some(TlsProfile::intermediate()));
        assert_eq!(empty.findings, [TlsFinding::NoCustom]);
    }

    /// Each finding is an Event.
    #[test]
    fn many_ciphers_that_cannot_be_used_are_one_finding() {
        let (_, findings) = custom(&json!({"ciphers": vec!["x".repeat(9999); 10_000]}));
        assert_eq!(findings.len(), 2);
        let text = findings[0].to_string();
        assert!(text.len() < 2000 && text.contains("and 9992 more"), "{text}");
    }

    #[test]
    fn http_2_asks_for_one_of_two_ciphers_before_tls_1_3() {
        for (version, ciphers, fits) in [
            ("VersionTLS12", json!(["ECDHE-RSA-CHACHA20-POLY1305"]), false),
            ("VersionTLS12", json!(["TLS_AES_128_GCM_SHA256"]), false),
            ("VersionTLS12", json!(["ECDHE-ECDSA-AES128-GCM-SHA256"]), true),
            ("VersionTLS12", json!([]), true),
            ("VersionTLS13", json!(["ECDHE-RSA-CHACHA20-POLY1305"]), true),
        ] {
            let (profile, _) = custom(&json!({"minTLSVersion": version, "ciphers": ciphers}));
            assert_eq!(profile.suits_http_2(), fits, "{version} {ciphers}");
        }
        for profile in [TlsProfile::old(), TlsProfile::intermediate(), TlsProfile::modern()] {
            assert!(profile.suits_http_2(), "{profile:?}");
        }
    }

    #[test]
    fn the_ciphers_of_the_newest_version_are_not_chosen() {
        let ciphers =
            json!({"minTLSVersion": "VersionTLS13", "ciphers": ["TLS_AES_128_GCM_SHA256"]});
        assert_eq!(custom(&ciphers), (TlsProfile::modern(), vec![]));
    }
}
