//! Parses PEM bundles strictly: text that may have been a certificate and cannot be parsed is a problem.
//!
//! Usual parsers skip what they cannot parse. Here a skipped certificate would no longer be trusted, so a malformed
//! line of a block is a problem.
//!
//! Source: `docs/contract/wicd.md`, WICD67; RFC 7468, section 3.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wmco_core::digest::Sha256;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::limits;
use crate::windows::Files;

/// First line of a certificate's block.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// Last line of a certificate's block.
const END: &str = "-----END CERTIFICATE-----";

/// Label in both lines.
const CERTIFICATE: &[u8] = b"CERTIFICATE";

/// UTF-8 byte order mark, which some editors write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Certificates of a PEM bundle.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bundle {
    /// DER form by its SHA-256.
    pub certificates: BTreeMap<Sha256, Vec<u8>>,
    /// Parts that could not be parsed, one line each. With any, nothing is removed.
    pub problems: Vec<String>,
}

impl Bundle {
    /// Parses a bundle. Text between the blocks is ignored, but text without any block is a problem; only white space
    /// is an empty bundle.
    ///
    /// Damage inside a block that yields another readable certificate is not detected: only checking its signature
    /// would show it.
    pub fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let lines = || text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
        let mut reader = Reader::default();
        for (place, line) in lines().enumerate() {
            reader.read(place + 1, line);
        }
        reader.finish(text, lines().next(), lines().next_back())
    }

    /// The bundle in the file at `path`; without one that can be read it is empty, with a problem.
    pub fn read(path: &WindowsPath, files: &dyn Files) -> Self {
        let unread = |problem| Self { problems: vec![problem], ..Self::default() };
        match files.read(path, limits::BUNDLE_BYTES) {
            Ok(Some(text)) => Self::parse(&text),
            Ok(None) => unread(format!("the CA bundle {path} is not there")),
            Err(error) => unread(format!("the CA bundle cannot be read: {}", chain(&error))),
        }
    }

    /// Digest of the certificates, independent of their order and of other text.
    ///
    /// ```
    /// use wmco_services::certs::Bundle;
    ///
    /// let bundle = |text: &str| Bundle::parse(text.as_bytes()).digest();
    /// assert_eq!(bundle(""), bundle("\n"));
    /// ```
    pub fn digest(&self) -> Sha256 {
        let mut digests = String::new();
        for sha256 in self.certificates.keys() {
            digests.push_str(&sha256.to_string());
            digests.push('\n');
        }
        Sha256::of(digests.as_bytes())
    }

    /// Renders the certificates as PEM.
    pub fn to_pem(&self) -> String {
        self.certificates.values().map(|der| pem(der)).collect()
    }
}

/// Renders a certificate as PEM.
pub(super) fn pem(der: &[u8]) -> String {
    let base64 = STANDARD.encode(der);
    let mut text = format!("{BEGIN}\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text + END + "\n"
}

/// A block whose last line has not been read yet.
struct Block<'a> {
    label: &'a [u8],
    base64: Vec<u8>,
}

/// Parses the lines of a bundle.
#[derive(Default)]
struct Reader<'a> {
    bundle: Bundle,
    /// Number of blocks that have begun.
    blocks: usize,
    open: Option<Block<'a>>,
}

impl<'a> Reader<'a> {
    fn problem(&mut self, what: &str) {
        let number = self.blocks;
        self.bundle.problems.push(format!("block {number} of the bundle {what}"));
    }

    fn read(&mut self, number: usize, line: &'a [u8]) {
        if let Some(label) = label(line, b"-----BEGIN ") {
            self.cut();
            self.blocks += 1;
            self.open = Some(Block { label, base64: Vec::new() });
        } else if let Some(label) = label(line, b"-----END ") {
            match self.open.take() {
                Some(block) if block.label == label => self.close(&block),
                Some(_) => self.problem("has different labels in its first and last line"),
                None => self.bundle.problems.push(format!(
                    "line {number} of the bundle ends a block whose first line is missing or damaged"
                )),
            }
        } else if let Some(block) = &mut self.open {
            block.base64.extend_from_slice(line);
        }
    }

    /// Reports an open block as truncated.
    fn cut(&mut self) {
        if self.open.take().is_some() {
            self.problem("is cut before its last line");
        }
    }

    fn close(&mut self, block: &Block<'_>) {
        let Ok(der) = STANDARD.decode(&block.base64) else {
            return self.problem("is not base64");
        };
        if block.label != CERTIFICATE {
            self.problem("is no certificate");
        } else if X509Certificate::from_der(&der).is_ok_and(|(rest, _)| rest.is_empty()) {
            self.bundle.certificates.insert(Sha256::of(&der), der);
        } else {
            self.problem("holds a damaged certificate");
        }
    }

    fn finish(mut self, text: &[u8], first: Option<&'a [u8]>, last: Option<&'a [u8]>) -> Bundle {
        self.cut();
        let part = |line: Option<&'a [u8]>| line.filter(|line| !line.is_empty());
        let ends = part(first)
            .is_some_and(|line| END.as_bytes().ends_with(line) && line.len() < END.len());
        let begins = part(last)
            .is_some_and(|line| BEGIN.as_bytes().starts_with(line) && line.len() < BEGIN.len());
        let problem = if text.contains(&0) {
            "the bundle is no plain text, save it as UTF-8"
        } else if ends {
            "the first line of the bundle is cut"
        } else if begins {
            "the last line of the bundle is cut"
        } else if self.blocks == 0 && !text.trim_ascii().is_empty() {
            "the bundle is not empty and holds no certificate, save it as PEM"
        } else {
            return self.bundle;
        };
        self.bundle.problems.push(problem.to_owned());
        self.bundle
    }
}

/// Returns the label in the first or last line of a block.
fn label<'a>(line: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(start)?.strip_suffix(b"-----")
}
