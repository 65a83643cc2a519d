//! What earlier passes left, as tests tell it.

use std::time::Duration;

use super::grants::Grants;
use super::{LoginResult, LoginTry, Memory, USER_DATA, UserData};
use crate::fleet::Replacement;
use crate::login_keys::LoginKeys;
use crate::machines::key;

/// The names of what is remembered.
pub(in crate::fleet) struct Remembered<'a> {
    /// Nodes with a permit.
    pub(in crate::fleet) granted: &'a [&'static str],
    /// Machines with a permit of the last pass.
    pub(in crate::fleet) replaced: &'a [&'static str],
    /// Machines with one of an earlier pass, each with its UID.
    pub(in crate::fleet) replacing: &'a [(&'static str, &'static str)],
    /// Machines that have had no ready Node for long.
    pub(in crate::fleet) unready: &'a [&'static str],
    /// Machines whose hosts refuse our key.
    pub(in crate::fleet) refused: &'a [&'static str],
    /// What instances are known by whose hosts do not answer.
    pub(in crate::fleet) unanswered: &'a [&'static str],
    pub(in crate::fleet) user_data: UserData,
}

impl Remembered<'_> {
    pub(in crate::fleet) fn memory(&self) -> Memory {
        let now = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), Duration::ZERO)).collect()
        };
        let begun = self.replacing.iter().map(|(name, uid)| {
            let (set, uid) = ("win".to_owned(), Some((*uid).to_owned()));
            ((*name).to_owned(), Replacement { set, uid, of: None })
        });
        let since = |name: &&str| ((*name).to_owned(), (String::new(), Duration::ZERO));
        let mut memory = Memory::of_nothing();
        if self.user_data != UserData::Settled {
            // Other ones, and nobody has looked long enough.
            let right = (self.user_data == UserData::Fresh).then_some((USER_DATA, "other"));
            memory.user_data.update(right, memory.now);
        }
        memory.grants =
            Grants { nodes: now(self.granted), machines: now(self.replaced), ..Grants::default() };
        memory.unready.0 = self.unready.iter().map(since).collect();
        memory.replacing = begun.collect();
        let refused = self.refused.iter().map(|name| key(name));
        memory.logins.have_failed(refused, LoginResult::Refused);
        let unanswered = self.unanswered.iter().map(|address| (*address).to_owned());
        memory.logins.have_failed(unanswered, LoginResult::Unanswered);
        // Somebody else answers.
        let other = LoginTry { at: [10, 0, 0, 99].into(), keys: LoginKeys::id(&[]) };
        let tried = Duration::ZERO..Duration::ZERO;
        memory.logins.note("other", other, LoginResult::Accepted, &tried);
        memory
    }
}
