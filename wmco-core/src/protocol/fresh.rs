//! The folder to which an agent is uploaded on first contact.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::names::host::FRESH_FOLDER_PREFIX;

/// Random bytes in a name, so that no other user can create the folder first.
const RANDOM_BYTES: usize = 16;

/// Name of a folder in the login user's profile. It is used once and holds only the agent,
/// [`UPLOADED_AGENT`](crate::names::host::UPLOADED_AGENT).
///
/// ```
/// use wmco_core::protocol::FreshFolder;
///
/// let folder = FreshFolder::from_random([7; 16]);
/// assert_eq!(folder.to_string().parse(), Ok(folder));
/// assert!("wmco-7".parse::<FreshFolder>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FreshFolder([u8; RANDOM_BYTES]);

/// Error of a name that is not the name of a [`FreshFolder`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is not the name of a folder of ours, leave it alone")]
pub struct NotAFreshFolder;

impl FreshFolder {
    /// Makes a name from unpredictable bytes.
    pub const fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        Self(random)
    }
}

impl fmt::Display for FreshFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FRESH_FOLDER_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for FreshFolder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for FreshFolder {
    type Err = NotAFreshFolder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(FRESH_FOLDER_PREFIX).ok_or(NotAFreshFolder)?;
        let value = u128::from_str_radix(digits, 16).map_err(|_| NotAFreshFolder)?;
        let folder = Self(value.to_be_bytes());
        // Only one spelling is valid: no sign, no upper case, nothing left out.
        if folder.to_string() == text { Ok(folder) } else { Err(NotAFreshFolder) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_spelling_is_a_name_of_ours() {
        let text = FreshFolder::from_random([0xAB; RANDOM_BYTES]).to_string();
        assert_eq!(text.parse::<FreshFolder>().map(|folder| folder.to_string()), Ok(text.clone()));
        let wrong = [
            text.to_uppercase(),
            text.replace("wmco-ab", "wmco-+b"),
            format!("{text}0"),
            text.replace("wmco", "other"),
            r"..\wmco-1".to_owned(),
            String::new(),
        ];
        for wrong in wrong {
            assert_eq!(wrong.parse::<FreshFolder>(), Err(NotAFreshFolder), "{wrong}");
        }
    }
}
