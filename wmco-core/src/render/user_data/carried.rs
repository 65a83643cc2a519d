//! Which keys a machine would let in after it ran some user data.

use std::collections::BTreeSet;

use super::quoted::quoted;
use super::{CLOSE, OPEN};
use crate::authorized_key::AuthorizedKey;

/// The public keys that `user_data` carries, whoever wrote it: this crate, in this or another version,
/// the Go operator, or a person.
///
/// Two user data texts with the same keys let the same people in, so a difference in their bytes is no
/// reason to make a machine anew. Source: `spec/operator.md`, section 14.
///
/// A key counts when it stands on a line of its own in a quoted PowerShell text, as sshd would read it
/// from the file that the text ends up in. One that is commented out does not, neither in the script
/// nor in the quoted text. What becomes of the text is not looked into. Kinds of keys that the operator
/// does not log in with are passed over.
///
/// # Guarantees
/// - The text may be anything. The work is proportional to its length.
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

/// What is between the tags; all of it if no line begins with the first one.
fn script(user_data: &str) -> &str {
    // The same length, so positions are those of `user_data`.
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
    use std::time::{Duration, Instant};

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

    /// Work that grows with the square of the length takes a minute and more.
    #[test]
    fn a_long_text_takes_no_longer_than_it_is() {
        let key = ours();
        let start = Instant::now();
        for (part, is_found) in [
            ("x<powershell>", true),
            ("''", true),
            ("'ssh-rsa '", true),
            ("``", true),
            ("@\"\n\"@", true),
            ("@'\n", false),
        ] {
            let long = part.repeat(4_000_000 / part.len());
            let keys = user_data_keys(&format!("{long}\n'{key}'"));
            assert_eq!(keys.len(), usize::from(is_found), "{part}");
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
