//! Names of MachineSets that Kubernetes, the cloud and Windows accept.

use super::platform::Platform;
use crate::limits::{COMPUTER_NAME_BYTES, LABEL_VALUE_BYTES, MACHINE_SUFFIX_BYTES};

/// Default name of a MachineSet on platforms where computers have their Machines' names.
pub(super) const SHORT_NAME: &str = "winworker";

/// Why a MachineSet cannot have its name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A character is not allowed, or not at its place.
    #[error("name {name:?} breaks RFC 1123: {rule}; write for example `{instead}`")]
    Characters {
        /// The name.
        name: String,
        /// The platform's rule.
        rule: &'static str,
        /// A similar valid name.
        instead: String,
    },
    /// The names of the Machines would be too long for computer names.
    #[error(
        "name {name:?} has {} characters and may have {most} on {platform}: Machines are called NAME-xxxxx, \
         {}; write for example `{instead}`",
        .name.len(), limit_of(*.platform)
    )]
    Computer {
        /// The name.
        name: String,
        /// The platform, where computers have their Machines' names.
        platform: Platform,
        /// Length limit of the name.
        most: usize,
        /// A similar valid name.
        instead: String,
    },
    /// The name is too long for the value of a label.
    #[error(
        "name {name:?} has {} characters and may have {LABEL_VALUE_BYTES}, for it is a label of the \
         Machines; write for example `{instead}`",
        .name.len()
    )]
    Label {
        /// The name.
        name: String,
        /// A similar valid name.
        instead: String,
    },
}

/// Why names of Machines are limited on `platform`. Only the NetBIOS name of a computer is that short; its DNS name may
/// be longer, but both are made of one name.
fn limit_of(platform: Platform) -> String {
    if platform == Platform::Azure {
        format!(
            "and Azure makes no computer with Windows whose name has more than {COMPUTER_NAME_BYTES} characters, \
             the length of a NetBIOS name"
        )
    } else {
        format!(
            "and so are their computers, of whose name Windows keeps {COMPUTER_NAME_BYTES} characters as the NetBIOS \
             name (the DNS name may be longer), so that several Machines would have one"
        )
    }
}

/// Checks the name of a MachineSet on `platform`; without a platform, accepts any name that some platform accepts.
///
/// Dots are allowed on AWS only: elsewhere the Machine's name becomes the name of a computer or of a GCP instance,
/// and on GCP it must start with a letter.
///
/// # Errors
/// The rule that the name breaks, with a similar valid name.
///
/// ```
/// use wmco_core::machine_set::{Platform, check_name};
/// assert!(check_name(Some(Platform::VSphere), "winworker").is_ok());
/// let error = check_name(Some(Platform::VSphere), "windows-worker").unwrap_err();
/// assert!(error.to_string().contains("may have 9"));
/// ```
pub fn check_name(platform: Option<Platform>, name: &str) -> Result<(), NameError> {
    let dots = matches!(platform, None | Some(Platform::Aws));
    let letter_first = platform == Some(Platform::Gcp);
    let most = match platform {
        Some(platform) if platform.names_computers() => COMPUTER_NAME_BYTES - MACHINE_SUFFIX_BYTES,
        _ => LABEL_VALUE_BYTES,
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| plain(byte) || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let spelled = if dots { name.split('.').all(label) } else { label(name) };
    let owned = || (name.to_owned(), close_to(name, most));
    if !spelled || (letter_first && !name.starts_with(|first: char| first.is_ascii_lowercase())) {
        let (name, instead) = owned();
        let rule = match (dots, letter_first) {
            (true, _) => "it may have a-z, 0-9, `-` and `.`, each `.` between two of a-z and 0-9",
            (false, true) => "it may have a-z, 0-9 and `-`, with a letter first and no `-` last",
            (false, false) => "it may have a-z, 0-9 and `-`, with no `-` at its ends",
        };
        return Err(NameError::Characters { name, rule, instead });
    }
    match platform {
        _ if name.len() <= most => Ok(()),
        Some(platform) if platform.names_computers() => {
            let (name, instead) = owned();
            Err(NameError::Computer { name, platform, most, instead })
        }
        _ => {
            let (name, instead) = owned();
            Err(NameError::Label { name, instead })
        }
    }
}

const fn plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// A name similar to `name` that every platform accepts.
fn close_to(name: &str, most: usize) -> String {
    let letters = name.chars().map(|letter| letter.to_ascii_lowercase());
    let spelled: String = letters
        .map(|letter| if u8::try_from(letter).is_ok_and(plain) { letter } else { '-' })
        .skip_while(|letter| !letter.is_ascii_lowercase())
        .take(most)
        .collect();
    let trimmed = spelled.trim_end_matches('-');
    if trimmed.is_empty() { SHORT_NAME.to_owned() } else { trimmed.to_owned() }
}
