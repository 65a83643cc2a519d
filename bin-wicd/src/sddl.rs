//! Reads security descriptors in their text form (SDDL).
//!
//! Source: Windows documentation, "Security Descriptor String Format" and "ACE Strings".

/// Security descriptor that lets in administrators and the system only, for a file.
pub const ADMINISTRATORS_FILE: &str = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)";

/// The same for a folder and what is made in it.
pub const ADMINISTRATORS_FOLDER: &str = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/// Names of the built-in administrators and of the system, short and long.
const TRUSTED: [&str; 4] = ["BA", "SY", "S-1-5-32-544", "S-1-5-18"];

/// Whether only administrators and the system can read or open up what has this descriptor: it
/// belongs to one of them, takes nothing from the folder above, and allows nobody else anything.
///
/// ```
/// use bin_wicd::sddl::is_administrators_only;
///
/// assert!(is_administrators_only("O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"));
/// assert!(!is_administrators_only("O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)"));
/// ```
pub fn is_administrators_only(sddl: &str) -> bool {
    let (Some(owner), Some(list)) = (part(sddl, "O:"), part(sddl, "D:")) else { return false };
    let (flags, entries) = list.split_once('(').unwrap_or((list, ""));
    // Without any entry nobody gets in; with the flag instead of entries everybody does.
    TRUSTED.contains(&owner)
        && flags.contains('P')
        && !flags.contains("NO_ACCESS_CONTROL")
        && !entries.is_empty()
        && entries.split('(').all(|entry| is_harmless(entry.trim_end_matches(')')))
}

/// The text after `key` up to the next key.
fn part<'a>(sddl: &'a str, key: &str) -> Option<&'a str> {
    let rest = sddl.split_once(key)?.1;
    let end = ["O:", "G:", "D:", "S:"].iter().filter_map(|next| rest.find(next)).min();
    rest.get(..end.unwrap_or(rest.len()))
}

/// Whether an entry denies something, or allows something to administrators or the system.
fn is_harmless(entry: &str) -> bool {
    let mut fields = entry.split(';');
    match (fields.next(), fields.nth(4)) {
        (Some("D"), Some(_)) => true,
        (Some("A"), Some(who)) => TRUSTED.contains(&who),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_set_is_what_we_want() {
        assert!(is_administrators_only(ADMINISTRATORS_FILE));
        assert!(is_administrators_only(ADMINISTRATORS_FOLDER));
    }

    #[test]
    fn long_names_are_the_same_accounts() {
        assert!(is_administrators_only("O:S-1-5-18D:PAI(A;;0x1f01ff;;;S-1-5-32-544)(D;;FA;;;WD)"));
    }

    #[test]
    fn others_are_noticed() {
        for open in [
            "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)",
            "O:S-1-5-21-1-2-3-1001D:P(A;;FA;;;SY)(A;;FA;;;BA)",
            "O:BAD:(A;;FA;;;SY)(A;;FA;;;BA)",
            "O:BAD:P(OA;;FA;;;SY)",
            "O:BAD:PNO_ACCESS_CONTROL",
            "O:BAD:P",
            "D:P(A;;FA;;;SY)",
            "O:BA",
            "",
        ] {
            assert!(!is_administrators_only(open), "{open}");
        }
    }
}
