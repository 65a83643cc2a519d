//! Reads PEM bundles strictly: whatever may have been a certificate and cannot be read is a problem.
//!
//! The usual readers pass over what they do not understand. Here a certificate that is passed over is
//! one that is no longer trusted, so a line of a block that is not as it should be is told.
//!
//! Source: `spec/wicd.md`, section 23.5, row 34; RFC 7468, section 3.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wmco_core::digest::Sha256;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The line before a certificate.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// The line after it.
const END: &str = "-----END CERTIFICATE-----";

/// The label in both.
const CERTIFICATE: &[u8] = b"CERTIFICATE";

/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Certificates of a PEM bundle.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bundle {
    /// DER form by its SHA-256.
    pub certificates: BTreeMap<Sha256, Vec<u8>>,
    /// One line for each piece that could not be read. While there is any, nothing is removed.
    pub problems: Vec<String>,
}

impl Bundle {
    /// Reads a bundle. Text between the blocks is passed over, but text without any block is a
    /// problem; only white space is an empty bundle.
    ///
    /// Damage inside a block that leaves another readable certificate is not seen: only its signature
    /// would tell.
    pub fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let lines = || text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
        let mut reader = Reader::default();
        for (place, line) in lines().enumerate() {
            reader.read(place + 1, line);
        }
        reader.finish(text, lines().next(), lines().next_back())
    }

    /// A bundle of which nothing is known, because of `problem`.
    pub fn unread(problem: String) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// PEM text of the certificates.
    pub fn to_pem(&self) -> String {
        self.certificates.values().map(|der| pem(der)).collect()
    }
}

/// PEM text of one certificate.
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

/// A block whose end has not come yet.
struct Block<'a> {
    label: &'a [u8],
    base64: Vec<u8>,
}

/// Goes through the lines of a bundle.
#[derive(Default)]
struct Reader<'a> {
    bundle: Bundle,
    /// Blocks that have begun.
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

    /// Notes a block that did not end.
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

/// The label in the first or last line of a block.
fn label<'a>(line: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(start)?.strip_suffix(b"-----")
}
