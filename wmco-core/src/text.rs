//! Text for places with limited size or character set.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

/// The start of `text`, at most `most_bytes` long.
///
/// ```
/// assert_eq!(wmco_core::text::cut("grün", 3), "gr");
/// ```
pub fn cut(text: &str, most_bytes: usize) -> &str {
    let end = (0..=most_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// `text` without all that stands before its last `@`, which may be a password.
///
/// ```
/// assert_eq!(wmco_core::text::without_user("https://bob:hush@a.test/x"), "[redacted]@a.test/x");
/// assert_eq!(wmco_core::text::without_user("a.test/x"), "a.test/x");
/// ```
pub fn without_user(text: &str) -> Cow<'_, str> {
    text.rsplit_once('@')
        .map_or(Cow::Borrowed(text), |(_, public)| Cow::Owned(format!("[redacted]@{public}")))
}

/// Foreign prose without what may be a secret: without users of URLs and of addresses, queries, and what follows a word of
/// HTTP's authorization.
///
/// ```
/// use wmco_core::text::without_secrets;
///
/// let text = "Get \"https://bob:hush@a.test/x?token=hush\": proxy bob:hush@b.test:3128 refused";
/// let told = "Get \"https://[redacted]@a.test/x?[redacted] proxy [redacted]@b.test:3128 refused";
/// assert_eq!(without_secrets(text), told);
/// assert_eq!(without_secrets("https://bob:hu sh@a.test/"), "https://[redacted]@a.test/");
/// assert_eq!(without_secrets("Authorization: Bearer hush"), "Authorization: Bearer [redacted]");
/// ```
pub fn without_secrets(text: &str) -> String {
    const REDACTED: &str = "[redacted]";
    // A password may have blanks.
    let mut parts = text.split("://");
    let mut urls = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', '?', '#', '"']).unwrap_or(part.len());
        let (authority, rest) = part.split_at(end);
        urls.extend(["://", &without_user(authority), rest]);
    }
    let mut is_secret = false;
    let words = urls.split(' ').map(|word| {
        let (before, url) =
            word.split_once("://").map_or(("", word), |(scheme, url)| (scheme, url));
        let hidden = match without_user(url).split_once('?') {
            Some((place, query)) if !query.is_empty() => format!("{place}?{REDACTED}"),
            _ => without_user(url).into_owned(),
        };
        let shown = match (is_secret, before) {
            (true, _) => REDACTED.to_owned(),
            (false, "") => hidden,
            (false, scheme) => format!("{scheme}://{hidden}"),
        };
        is_secret = ["basic", "bearer"].iter().any(|it| word.eq_ignore_ascii_case(it));
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Foreign text for a message: printable, without what may be a password, and no longer than `most_bytes` before
/// codes stand in place of letters.
///
/// ```
/// assert_eq!(wmco_core::text::harmless("bob:hush@a\n.test", 15), "[redacted]@a\\n.t");
/// ```
pub fn harmless(text: &str, most_bytes: usize) -> String {
    printable(cut(&without_user(text), most_bytes))
}

/// Replaces characters that a terminal would not print by their codes.
///
/// ```
/// assert_eq!(wmco_core::text::printable("\u{1b}[2J \"é\""), "\\u{1b}[2J \"é\"");
/// ```
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|letter| match letter {
            '\'' | '"' | '\\' => vec![letter],
            _ => letter.escape_debug().collect(),
        })
        .collect()
}

/// Whether a terminal obeys `letter` instead of showing it: control characters, separators of lines, and marks that turn
/// the direction of writing.
pub fn steers_terminals(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// `text` with codes in place of all that [`steers_terminals`], but for tabs and ends of lines.
///
/// ```
/// assert_eq!(wmco_core::text::for_terminals("a\tb\r\n\u{1b}[2J\u{202e}\r"), "a\tb\r\n\\u{1b}[2J\\u{202e}\\u{d}");
/// ```
pub fn for_terminals(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let ends_line = letter == '\n' || (letter == '\r' && letters.peek() == Some(&'\n'));
        if steers_terminals(letter) && !ends_line && letter != '\t' {
            safe.extend(letter.escape_unicode());
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// An error with its causes, on one line, without control characters: errors quote foreign text.
///
/// ```
/// use std::io::Error;
///
/// let error = Error::other(Error::other("no\n  route to \u{7}"));
/// assert_eq!(wmco_core::text::chain(&error), "no route to \\u{7}");
/// ```
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Most bytes of a [label](is_dns_label).
const DNS_LABEL_BYTES: usize = 63;

/// Whether the text can be the name of a namespace and of most other objects: a DNS label in lower case.
///
/// Source: "Object Names and IDs" in the Kubernetes documentation, RFC 1123 label names.
///
/// ```
/// use wmco_core::text::is_dns_label;
/// assert!(is_dns_label("kube-system"));
/// assert!(!is_dns_label("Kube") && !is_dns_label("a.b") && !is_dns_label("-a") && !is_dns_label(""));
/// ```
pub fn is_dns_label(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=DNS_LABEL_BYTES).contains(&text.len())
        && text.bytes().all(letter)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Most bytes of a [subdomain](is_dns_subdomain).
const DNS_SUBDOMAIN_BYTES: usize = 253;

/// Whether the text can be the name of an object: DNS labels in lower case, separated by dots.
///
/// Source: "Object Names and IDs" in the Kubernetes documentation, DNS subdomain names.
///
/// ```
/// use wmco_core::text::is_dns_subdomain;
/// assert!(is_dns_subdomain("wmco.v1.2.3-rc.1"));
/// assert!(!is_dns_subdomain("wmco.v1.2.3+1") && !is_dns_subdomain("a..b") && !is_dns_subdomain("A"));
/// ```
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= DNS_SUBDOMAIN_BYTES && text.split('.').all(is_dns_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the host\n  is lost")]
    struct Lost(#[source] std::fmt::Error);

    #[test]
    fn causes_follow_on_the_same_line() {
        let cause = std::fmt::Error;
        assert_eq!(chain(&Lost(cause)), format!("the host is lost: {cause}"));
        assert_eq!(chain(&cause), cause.to_string());
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(
            [cut("aä", 1), cut("aä", 2), cut("aä", 3), cut("aä", 9)],
            ["a", "a", "aä", "aä"]
        );
        assert_eq!((cut("ä", 1), cut("", 5)), ("", ""));
    }
}
