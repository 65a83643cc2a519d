//! The keys that let the operator in: what its Secret has, what hosts let in, and what people do with them.

use std::net::Ipv4Addr;

use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::digest::Sha256;
use wmco_core::fleet::{Assignment, Assignments, Because, Held, LoginResult, Notice};
use wmco_core::host_record::RecordChange;
use wmco_core::login_keys::{KeyRotation, LoginKeys};
use wmco_core::node::Outcome;

use super::World;
use super::faults::Stop;
use super::host::{Host, Power};

/// The Secret: keys by number, each made once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Secret {
    current: u8,
    next: Option<u8>,
    /// The current one before the last change.
    before: u8,
    /// How many were made after the first.
    made: u8,
    /// Whether the operator said last that the next one may become the current one.
    may_end: bool,
    /// A key that the operator has said to be needed.
    lost: Option<u8>,
}

/// What people do with the Secret and with the keys on hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyEvent {
    /// The key is another; hosts that there are do not have it.
    Change,
    /// The key is the one before again.
    Return,
    /// A key that comes next is put beside the current one.
    AddNext,
    /// The next key becomes the current one, if the operator has said that it may, or one that it needs.
    UseNext,
    /// The next key is taken out, unless a host has lost the current one to it.
    DropNext,
    /// A person puts the current key on a listed host.
    Authorize(usize),
}

impl Secret {
    fn line(number: u8) -> AuthorizedKey {
        let mut wire = vec![0, 0, 0, 11];
        wire.extend(b"ssh-ed25519\0\0\0\x20");
        wire.extend([number; 32]);
        AuthorizedKey::from_wire(&wire).unwrap()
    }

    fn fresh(&mut self) -> u8 {
        self.made += 1;
        self.made
    }

    fn set(&mut self, current: u8) {
        (self.before, self.current, self.next, self.may_end) = (self.current, current, None, false);
    }

    /// What the operator reads.
    pub(super) fn read(self) -> LoginKeys {
        match self.next {
            Some(next) => {
                let (from, to) = (Self::line(self.current), Self::line(next));
                LoginKeys::rotating(KeyRotation { from, to })
            }
            None => LoginKeys::one(self.current()),
        }
    }

    /// Hash of the current key.
    pub(super) fn current(self) -> Sha256 {
        Self::line(self.current).hash()
    }

    fn next(self) -> Option<Sha256> {
        self.next.map(|next| Self::line(next).hash())
    }

    /// Hashes of all keys in it, which new Machines let in.
    pub(super) fn all(self) -> impl Iterator<Item = Sha256> {
        [Some(self.current()), self.next()].into_iter().flatten()
    }

    /// What is left to be done by people or the operator.
    pub(super) fn unmet(self) -> Option<String> {
        self.next.map(|_| "the next key is not in use yet".to_owned())
    }
}

impl World {
    pub(super) fn happen_to_keys(&mut self, event: KeyEvent) {
        self.excuse();
        match event {
            KeyEvent::Change => {
                let fresh = self.secret.fresh();
                self.secret.set(fresh);
            }
            KeyEvent::Return => self.secret.set(self.secret.before),
            KeyEvent::AddNext if self.secret.next.is_none() => {
                self.secret.next = Some(self.secret.fresh());
                self.secret.may_end = false;
            }
            KeyEvent::UseNext => {
                let next = self.secret.next.filter(|_| self.secret.may_end);
                if let Some(lost) = self.secret.lost.take() {
                    self.secret.set(lost);
                    // Listed hosts that refuse it are reported, too, with the line to add.
                    for at in 0..self.of_entries() {
                        self.happen_to_keys(KeyEvent::Authorize(at));
                    }
                } else if let Some(next) = next {
                    self.secret.set(next);
                }
            }
            KeyEvent::DropNext => {
                let current = self.secret.current();
                let is_lost = |next: Sha256| {
                    let mut hosts = self.hosts.iter();
                    hosts.any(|it| it.accepts.contains(&next) && !it.accepts.contains(&current))
                };
                if !self.secret.next().is_some_and(is_lost) {
                    self.secret.next = None;
                }
            }
            KeyEvent::AddNext => {}
            KeyEvent::Authorize(at) => {
                let at = at % self.of_entries();
                self.hosts[at].accepts.insert(self.secret.current());
            }
        }
    }

    /// What people hear of a rotation, and what the operator goes by.
    pub(super) fn heed_rotation(&mut self, assignments: &Assignments<'_>) {
        let tells = |notice: &Notice| matches!(notice, Notice::KeyExchanged { .. });
        self.secret.may_end = assignments.notices.iter().any(tells);
        let lost = assignments.instances.iter().find_map(|it| match it.because {
            Because::ReplacementHeld(Held::KeyLost { key }) => Some(key),
            _ => None,
        });
        self.secret.lost =
            lost.and_then(|key| (0..=self.secret.made).find(|it| Secret::line(*it).hash() == key));
    }

    /// Whether a rotation may wait for a host that did not answer the operator.
    pub(super) fn holds_up_rotation(&self, host: &Host) -> bool {
        host.silent && self.secret.next.is_some()
    }

    /// Whether a host lets the operator in with none of its keys.
    pub(super) fn is_locked(&self, host: &Host) -> bool {
        self.secret.all().all(|key| !host.accepts.contains(&key))
    }

    /// Tries the keys that are offered to the host of an instance, in their order.
    pub(super) fn log_in(&mut self, instance: &Assignment<'_>, index: usize, at: Ipv4Addr) -> bool {
        let known = self.known_hosts();
        let record = instance.record(&known);
        let offered = self.secret.read().offered(record);
        let accepted_key = record.and_then(|record| record.accepted_key);
        let accepts = &self.hosts[index].accepts;
        let accepted = offered.iter().find(|key| accepts.contains(key));
        let Some(accepted) = accepted else {
            self.note_login(instance, at, LoginResult::Refused);
            return false;
        };
        if accepted_key.is_some_and(|key| key != *accepted && offered.contains(&key)) {
            self.change_record(&instance.address, &RecordChange::LetsIn(None));
        }
        self.note_login(instance, at, LoginResult::Accepted);
        true
    }

    /// A login with one key alone.
    pub(super) fn prove_key(
        &mut self,
        key: Sha256,
        instance: &Assignment<'_>,
        index: Option<usize>,
    ) -> Result<Outcome, Stop> {
        self.connect(instance, index).ok_or(Stop::Fail)?;
        let host = &self.hosts[index.unwrap()];
        if host.power == Power::On && host.accepts.contains(&key) {
            self.faults.pass()?;
            self.change_record(&instance.address, &RecordChange::LetsIn(Some(key)));
            return Ok(Outcome::KeyProven(key));
        }
        self.change_record(&instance.address, &RecordChange::LetsIn(None));
        Err(Stop::Fail)
    }

    /// A login with one key alone, which has to fail.
    pub(super) fn prove_key_removed(
        &mut self,
        key: Sha256,
        instance: &Assignment<'_>,
        index: Option<usize>,
    ) -> Result<Outcome, Stop> {
        self.connect(instance, index).ok_or(Stop::Fail)?;
        if self.hosts[index.unwrap()].accepts.contains(&key) {
            return Err(Stop::Fail);
        }
        self.faults.pass()?;
        self.change_record(&instance.address, &RecordChange::KeyRemoved(key));
        Ok(Outcome::KeyRemovalProven(key))
    }

    /// Exchanges the lines of keys on a host. A host that let a key of the Secret in still does, and the
    /// current one goes only when every host that people ask for lets the next one in.
    pub(super) fn exchange_keys<'a>(
        &mut self,
        index: usize,
        add: impl Iterator<Item = &'a AuthorizedKey>,
        remove: impl Iterator<Item = &'a AuthorizedKey>,
    ) {
        let was_locked = self.is_locked(&self.hosts[index]);
        let removed: Vec<_> = remove.map(AuthorizedKey::hash).collect();
        if let Some(next) = self.secret.next().filter(|_| !removed.is_empty()) {
            let seen = self.operator.machines.clone().unwrap_or_default();
            let is_made = |host: &Host| {
                let machine = host.machine.as_ref().and_then(|name| seen.get(name));
                let made = machine.and_then(|machine| machine.instance.as_ref().ok());
                // At another address another host has proven it.
                made.is_some_and(|made| made.ipv4 == host.address)
            };
            let lacks = |host: &&Host| {
                let is_asked_for = self.is_listed(host) && !self.list_absent || is_made(host);
                is_asked_for && !host.accepts.contains(&next)
            };
            let ours = self.hosts.iter().take(self.ours());
            let lacking: Vec<_> = ours.filter(lacks).map(|it| it.address).collect();
            if !lacking.is_empty() {
                self.broken.push(format!("a key goes though {lacking:?} need it"));
            }
        }
        let accepts = &mut self.hosts[index].accepts;
        accepts.extend(add.map(AuthorizedKey::hash));
        accepts.retain(|key| !removed.contains(key));
        if !was_locked && self.is_locked(&self.hosts[index]) {
            self.broken.push(format!("{} is locked", self.hosts[index].address));
        }
    }
}
