//! Reads security descriptors in their text form (SDDL).
//!
//! Source: Windows documentation, "Security Descriptor String Format" and "ACE Strings".

/// Security descriptor that lets in administrators and the system only, for a file.
pub const ADMINISTRATORS_FILE: &str = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)";

/// The same for a folder and what is made in it.
pub const ADMINISTRATORS_FOLDER: &str = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/// Names of the built-in administrators and of the system, short and long.
const TRUSTED: [&str; 4] = ["BA", "SY", "S-1-5-32-544", "S-1-5-18"];

/// Name of the built-in user of that name, who cannot leave the administrators.
const ADMINISTRATOR: &str = "LA";

/// Rights that change nothing: to read data, extended attributes, attributes and the descriptor, to run,
/// to wait, and generic ones to read and to run.
const READS: u32 = 0xA012_00A9;

/// Names of such rights.
const READ_NAMES: [&[u8]; 5] = [b"FR", b"FX", b"GR", b"GX", b"RC"];

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

/// Whether anybody but administrators, the system and the user `own` (a text form of a security
/// identifier) can change what has this descriptor, or give himself the right to.
///
/// sshd asks the same of a file of keys. Whatever is not understood counts as a right to write.
///
/// ```
/// use bin_wicd::sddl::others_may_write;
///
/// let own = "S-1-5-21-1-2-3-1000";
/// assert!(!others_may_write("O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;0x1200a9;;;AU)", own));
/// assert!(others_may_write("O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;0x1301bf;;;AU)", own));
/// ```
pub fn others_may_write(sddl: &str, own: &str) -> bool {
    let (Some(owner), Some(list)) = (part(sddl, "O:"), part(sddl, "D:")) else { return true };
    let (flags, entries) = list.split_once('(').unwrap_or((list, ""));
    let trusts = |who: &str| who == own || who == ADMINISTRATOR || TRUSTED.contains(&who);
    let only_reads = |entry: &str| {
        let mut fields = entry.split(';');
        match (fields.next(), fields.nth(1), fields.nth(2)) {
            (Some("D"), Some(_), Some(_)) => true,
            (Some("A"), Some(rights), Some(who)) => trusts(who) || reads(rights),
            _ => false,
        }
    };
    let entries = entries.split('(').filter(|entry| !entry.is_empty());
    !trusts(owner)
        || flags.contains("NO_ACCESS_CONTROL")
        || !entries.map(|entry| entry.trim_end_matches(')')).all(only_reads)
}

/// Whether rights are those to read or to run a file, by bits or by short names.
fn reads(rights: &str) -> bool {
    match rights.strip_prefix("0x") {
        Some(bits) => u32::from_str_radix(bits, 16).is_ok_and(|bits| bits & !READS == 0),
        None => rights.as_bytes().chunks(2).all(|name| READ_NAMES.contains(&name)),
    }
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

    const OWN: &str = "S-1-5-21-1-2-3-1000";

    #[test]
    fn readers_do_not_write() {
        for closed in [
            ADMINISTRATORS_FILE,
            "O:LAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;AU)",
            "O:SYD:P(A;;FRFX;;;BU)(A;;GRGX;;;WD)(A;;RC;;;WD)(D;;FA;;;WD)(A;;FA;;;LA)",
            "O:S-1-5-21-1-2-3-1000D:(A;;FA;;;S-1-5-21-1-2-3-1000)(A;;FR;;;WD)",
            "O:BAD:P",
        ] {
            assert!(!others_may_write(closed, OWN), "{closed}");
        }
    }

    #[test]
    fn writers_are_noticed() {
        for open in [
            "O:S-1-5-21-1-2-3-1001D:P(A;;FA;;;SY)",
            "O:BAD:(A;;FA;;;WD)",
            "O:BAD:(A;;FRFW;;;BU)",
            "O:BAD:(A;;0x1200ab;;;BU)",
            "O:BAD:(A;;0x1300a9;;;BU)",
            "O:BAD:(A;;WD;;;BU)",
            "O:BAD:(A;;0xx;;;BU)",
            "O:BAD:(A;;FR;;;BU)(A;;FA;;;S-1-5-21-1-2-3-1001)",
            "O:BAD:(OA;;FR;;;BU)",
            "O:BAD:(XA;;FA;;;BA;(a))",
            "O:BAD:NO_ACCESS_CONTROL",
            "O:BA",
            "D:P(A;;FA;;;SY)",
            "",
        ] {
            assert!(others_may_write(open, OWN), "{open}");
        }
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
