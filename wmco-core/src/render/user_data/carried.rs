//! Finds the keys that a machine accepts after it has run some user data.

use std::collections::BTreeSet;

use super::quoted::quoted;
use super::{CLOSE, OPEN};
use crate::authorized_key::AuthorizedKey;

/// The public keys in `user_data`, whoever wrote it: this crate in any version, the Go operator, or an
/// administrator.
///
/// Two user data texts with the same keys let the same users log in, so a difference in their bytes is no reason to
/// replace a Machine. Source: `docs/contract/user-data.md`, UD3 and UD4.
///
/// A key counts if it is on its own line in a quoted PowerShell text, as sshd would read it from the resulting
/// file. A key in a comment does not count, neither in the script nor in the quoted text. What the script does with
/// the text is not analyzed. Kinds of keys that the operator does not log in with are ignored.
///
/// # Guarantees
/// - Any text is accepted. The work is proportional to its length.
///
/// ```
/// use wmco_core::render::user_data_keys;
///
/// let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// assert_eq!(user_data_keys(&format!("Set-Content keys \"{key} me@home`n\"")).len(), 1);
/// assert!(user_data_keys(&format!("# Set-Content keys '{key}'")).is_empty());
/// ```
pub fn user_data_keys(user_data: &str) -> BTreeSet<AuthorizedKey> {
    let texts = quoted(script(user_data));
    texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.parse().ok()).collect()
}

/// The text between the tags; all of it if no line begins with the opening tag.
fn script(user_data: &str) -> &str {
    // The length is the same, so positions are those of `user_data`.
    let lower = user_data.to_ascii_lowercase();
    let begins_a_line = |at: usize| {
        let before = lower.get(..at).unwrap_or_default().trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    };
    let Some((at, _)) = lower.match_indices(OPEN).find(|(at, _)| begins_a_line(*at)) else {
        return user_data;
    };
    let start = at + OPEN.len();
    let length = lower.get(start..).and_then(|rest| rest.find(CLOSE));
    let end = length.map_or(user_data.len(), |length| start + length);
    user_data.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_key::tests::{ed25519, wire};

    fn ours() -> String {
        format!("ssh-ed25519 {}", ed25519())
    }

    fn other() -> String {
        format!("ssh-ed25519 {}", wire(&[b"ssh-ed25519", &[8; 32]]))
    }

    #[track_caller]
    fn check(user_data: &str, keys: &[String]) {
        let found = user_data_keys(user_data);
        let expected = keys.iter().map(|key| key.parse().unwrap()).collect();
        assert_eq!(found, expected, "{user_data}");
    }

    #[test]
    fn each_way_to_write_a_text_counts() {
        let key = ours();
        for text in [
            format!("Set-Content keys '{key}'"),
            format!("$key = \"{key}\n\"\n$key | Out-File keys -Encoding ascii"),
            format!("$key = \"{key} me@home`r`n\""),
            format!("$key = @'\r\n{key}\r\n'@\r\n"),
            format!("$key = @\"\n# mine\n\n{key}\n\"@"),
            format!("@('a', \u{2018}{key}\u{2019})"),
            format!("<powershell>'{key}'</powershell>\n<persist>true</persist>\n"),
            format!("<persist>true</persist>\r\n  <POWERSHELL>\n'{key}'"),
        ] {
            check(&text, std::slice::from_ref(&key));
        }
    }

    #[test]
    fn all_keys_count_once() {
        let (key, other) = (ours(), other());
        check(&format!("'{key}'\n'{key} again'\n\"{other}`n{key}\""), &[key, other]);
    }

    #[test]
    fn a_key_that_is_commented_out_does_not_count() {
        let key = ours();
        for text in [
            format!("# '{key}'"),
            format!("'a' #'{key}'"),
            format!("<# $key =\n'{key}' #>"),
            format!("<powershell>#'{key}'</powershell>"),
            format!("'# {key}'"),
            format!("@'\n  # {key}\n'@"),
        ] {
            check(&text, &[]);
        }
        check(&format!("'#'; '{key}'"), &[key]);
    }

    #[test]
    fn what_is_no_line_of_a_keys_file_does_not_count() {
        let key = ours();
        let (kind, base64) = key.split_once(' ').unwrap();
        for text in [
            String::new(),
            key.clone(),
            format!("'{kind}' '{base64}'"),
            format!("'{kind}{base64}'"),
            format!("'{kind} {base64}!'"),
            format!("'the key is {key}'"),
            format!("'{kind} {}'", &base64[..base64.len() - 4]),
            format!("'{key}"),
            format!("'{key}'\n<powershell>'a'</powershell>"),
            format!("<powershell>'a'</powershell>\n'{key}'"),
            "'ssh-dss AAAAB3NzaC1kc3MAAAABAQ=='".to_owned(),
        ] {
            check(&text, &[]);
        }
    }

    #[test]
    fn a_tag_inside_of_a_line_is_none() {
        let key = ours();
        check(&format!("Write-Output '<powershell>'\n'{key}'"), &[key]);
    }

    /// With quadratic work this would take hours, and be ended.
    #[test]
    fn a_long_text_takes_no_longer_than_it_is() {
        let key = ours();
        for (part, is_found) in [
            ("x<powershell>", true),
            ("''", true),
            ("'ssh-rsa '", true),
            ("``", true),
            ("@\"\n\"@", true),
            ("@'\n", false),
        ] {
            let long = part.repeat(8_000_000 / part.len());
            let keys = user_data_keys(&format!("{long}\n'{key}'"));
            assert_eq!(keys.len(), usize::from(is_found), "{part}");
        }
    }
}
