//! Changes of what is kept of hosts.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

use super::HostRecord;
use crate::digest::Sha256;
use crate::host_key::HostKey;
use crate::instances::Instance;
use crate::limits::SSH_PORT;
use crate::names::objects::HOST_KEYS_CONFIG_MAP;
use crate::protocol::RootAccess;

/// One change of what is kept of a host. It names only the fields that it is about, so that writers
/// that know different things do not undo each other's work, whoever comes first.
///
/// ```
/// use std::collections::BTreeMap;
/// use wmco_core::host_record::{KnownHosts, RecordChange};
///
/// let mut data = BTreeMap::from([("10.0.0.5_host".to_owned(), r#"{"node": "win-1"}"#.to_owned())]);
/// RecordChange::RemovalConfirmed(true).apply("10.0.0.5", &mut data)?;
/// let known = KnownHosts::read(&data);
/// let record = known.record("10.0.0.5").unwrap();
/// assert!(record.removal_confirmed && record.node.is_some());
/// # Ok::<(), wmco_core::host_record::RecordRefused>(())
/// ```
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordChange {
    /// What is known of a listed host. It makes the record if there is none.
    Listed(ListedHost),
    /// A host that the Go operator configured and that nobody lists: all that is known comes from its
    /// Node. Nothing that is on record already is changed.
    Adopted {
        /// Address of the Node.
        ipv4: Ipv4Addr,
        /// Its name.
        node: String,
        /// The encrypted user of its annotation.
        username: String,
    },
    /// Whether its removal may go on.
    RemovalConfirmed(bool),
    /// The MachineSet in which its Machine is replaced; none when it is not any more.
    ReplacedIn(Option<String>),
    /// The keys that were shown and accepted at a login.
    Pinned {
        /// The host's.
        #[schemars(with = "String")]
        key: HostKey,
        /// That of its jump host, after the name under which it is kept.
        #[schemars(with = "Option<(String, String)>")]
        jump: Option<(String, HostKey)>,
    },
    /// What an agent of ours said of the host that shows this key.
    Seen {
        /// The host's key.
        #[schemars(with = "String")]
        key: HostKey,
        /// Its name.
        host_name: Option<String>,
        /// Who may write below its root.
        root: RootAccess,
    },
    /// The host let us in with this key alone; none when it does not any more, with the one on record.
    LetsIn(Option<Sha256>),
    /// This key of ours was taken off the host.
    KeyRemoved(Sha256),
    /// The host is as it was before us: its key and its record go.
    Forgotten,
}

/// What its entry, the cluster and the host itself tell of a listed host.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHost {
    /// What its address resolves to.
    pub ipv4: Ipv4Addr,
    /// SSH user, encrypted; none of a Machine's host, whose user its platform tells.
    pub username: Option<String>,
    /// TCP port of its SSH server.
    pub port: u16,
    /// Jump host, as in the entry.
    pub via: Option<String>,
    /// The Node that stands for it beyond doubt, if there is one.
    pub node: Option<String>,
    /// The name that it reported, if it was asked.
    pub host_name: Option<String>,
    /// Addresses under which the same host was on record before, and is still.
    pub formerly: Vec<String>,
    /// UID of its Machine. What is on record of another one with that name is forgotten.
    pub machine: Option<String>,
}

/// Why a change was not made. The next pass decides anew from what is there then.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordRefused {
    /// The record that was to be changed cannot be read.
    #[error("its record in ConfigMap {HOST_KEYS_CONFIG_MAP} cannot be read, remove it")]
    Damaged,
    /// The host was forgotten meanwhile.
    #[error("it is not on record any more")]
    Gone,
    /// The API server does not take it.
    #[error(
        "the api server does not take it, see whether ConfigMap {HOST_KEYS_CONFIG_MAP} is full (1 MiB) or \
         the address is too long for a key"
    )]
    NotTaken,
    /// The new record has no JSON form.
    #[error("its record has no json form, this is a mistake in the operator")]
    NoJson,
}

impl RecordChange {
    /// Changes `data` of the ConfigMap of host keys for the host listed as `address`.
    ///
    /// # Errors
    /// [`RecordRefused`]; `data` is unchanged then.
    pub fn apply(
        &self,
        address: &str,
        data: &mut BTreeMap<String, String>,
    ) -> Result<(), RecordRefused> {
        let record = read(data, address)?;
        let there = || record.clone().ok_or(RecordRefused::Gone);
        let changed = match self {
            Self::Listed(host) => {
                let former = host.formerly.iter().map(|name| read(data, name));
                let former: Vec<_> = former.collect::<Result<_, _>>()?;
                if record.as_ref().is_some_and(|record| record.machine != host.machine) {
                    data.remove(address);
                }
                host.record(record.as_ref(), former.iter().flatten())
            }
            Self::Adopted { ipv4, node, username } => {
                record.clone().unwrap_or_else(|| HostRecord {
                    ipv4: Some(*ipv4),
                    node: Some(node.clone()),
                    username: Some(username.clone()),
                    ..HostRecord::default()
                })
            }
            Self::RemovalConfirmed(removal_confirmed) => {
                HostRecord { removal_confirmed: *removal_confirmed, ..there()? }
            }
            Self::LetsIn(key) => {
                let before = there()?;
                // What was taken off while another key let us in may be there again.
                let key_removed = before.key_removed.filter(|_| before.lets_in == *key);
                HostRecord { lets_in: *key, key_removed, ..before }
            }
            Self::KeyRemoved(key) => HostRecord { key_removed: Some(*key), ..there()? },
            Self::ReplacedIn(set) => HostRecord { replaced_in: set.clone(), ..there()? },
            Self::Pinned { key, jump } => {
                let mut changed = there()?.showing(key);
                if let Some((name, key)) = jump {
                    changed.jump_pinned = Some((name.clone(), key.fingerprint()));
                }
                changed
            }
            Self::Seen { key, host_name, root } => {
                let before = there()?;
                HostRecord {
                    closed_for: (*root == RootAccess::Closed).then(|| key.fingerprint()),
                    host_name: host_name.clone().or(before.host_name.clone()),
                    // It may have been pinned only by this connection.
                    ..before.showing(key)
                }
            }
            Self::Forgotten => {
                data.remove(address);
                data.remove(&HostRecord::key_name(address));
                return Ok(());
            }
        };
        let json = serde_json::to_string(&changed).map_err(|_| RecordRefused::NoJson)?;
        data.insert(HostRecord::key_name(address), json);
        if let Self::Pinned { key, jump } = self {
            data.insert(address.to_owned(), key.to_string());
            data.extend(jump.iter().map(|(name, key)| (name.clone(), key.to_string())));
        }
        Ok(())
    }
}

impl ListedHost {
    /// From its entry.
    pub fn of(instance: &Instance, username: &str) -> Self {
        Self {
            ipv4: instance.ipv4,
            username: instance.machine.is_none().then(|| username.to_owned()),
            port: instance.port,
            via: instance.via.as_ref().map(ToString::to_string),
            node: None,
            host_name: None,
            formerly: Vec::new(),
            machine: instance.machine.as_ref().map(|machine| machine.uid.clone()),
        }
    }

    /// The record that it is to have; `own` is what is on record of it, `former` what was kept of the
    /// same host under other addresses.
    pub fn record<'a>(
        &self,
        own: Option<&'a HostRecord>,
        former: impl Iterator<Item = &'a HostRecord>,
    ) -> HostRecord {
        let told = HostRecord {
            ipv4: Some(self.ipv4),
            node: self.node.clone(),
            host_name: self.host_name.clone(),
            username: self.username.clone(),
            machine: self.machine.clone(),
            port: (self.port != SSH_PORT).then_some(self.port),
            via: self.via.clone(),
            ..HostRecord::default()
        };
        let own = own.filter(|own| own.machine == self.machine);
        // Machines of one image show one key, so at another address it may be another host.
        let is_there = |it: &HostRecord| {
            self.machine.is_none() || it.ipv4.is_none_or(|ipv4| ipv4 == self.ipv4)
        };
        let is_way = |it: &HostRecord| it.ipv4 == Some(self.ipv4) && it.via == self.via;
        own.into_iter().chain(former).fold(told, |known, before| HostRecord {
            node: known.node.or_else(|| before.node.clone()),
            host_name: known.host_name.or_else(|| before.host_name.clone()),
            pinned: known.pinned.or_else(|| before.pinned.clone()),
            jump_pinned: known.jump_pinned.or_else(|| before.jump_pinned.clone()),
            closed_for: known
                .closed_for
                .or_else(|| before.closed_for.clone().filter(|_| is_there(before))),
            replaced_in: known.replaced_in.or_else(|| before.replaced_in.clone()),
            // At another address another host may answer, another jump host may refuse the key, and it
            // is cheap to prove again.
            lets_in: known.lets_in.or(before.lets_in.filter(|_| is_way(before))),
            key_removed: known.key_removed.or(before.key_removed.filter(|_| is_way(before))),
            ..known
        })
    }
}

fn read(
    data: &BTreeMap<String, String>,
    address: &str,
) -> Result<Option<HostRecord>, RecordRefused> {
    let Some(text) = data.get(&HostRecord::key_name(address)) else { return Ok(None) };
    HostRecord::parse(text).map(Some).ok_or(RecordRefused::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_record::KnownHosts;

    const ADDRESS: &str = "10.0.0.5";
    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn listed() -> RecordChange {
        RecordChange::Listed(ListedHost {
            ipv4: [10, 0, 0, 5].into(),
            username: Some("sealed".into()),
            port: SSH_PORT,
            via: None,
            node: None,
            host_name: None,
            formerly: Vec::new(),
            machine: None,
        })
    }

    fn pinned() -> RecordChange {
        RecordChange::Pinned { key: KEY.parse().unwrap(), jump: None }
    }

    fn closed() -> RecordChange {
        let (key, host_name) = (KEY.parse().unwrap(), Some("WIN-1".to_owned()));
        RecordChange::Seen { key, host_name, root: RootAccess::Closed }
    }

    /// What is kept after these changes, in any of these orders.
    fn after(changes: &[RecordChange]) -> BTreeMap<String, String> {
        let mut data = BTreeMap::new();
        listed().apply(ADDRESS, &mut data).unwrap();
        for change in changes {
            change.apply(ADDRESS, &mut data).unwrap();
        }
        data
    }

    #[test]
    fn the_order_of_writers_does_not_matter() {
        let node = RecordChange::Listed(ListedHost {
            node: Some("win-1".into()),
            ..match listed() {
                RecordChange::Listed(host) => host,
                other => unreachable!("{other:?}"),
            }
        });
        let changes = [pinned(), closed(), node];
        let all = after(&changes);
        let record = KnownHosts::read(&all).record(ADDRESS).cloned().unwrap();
        assert_eq!(record.node.as_deref(), Some("win-1"));
        assert!(record.pinned.is_some() && record.pinned == record.closed_for);
        assert_eq!(all[ADDRESS], KEY);
        for [a, b, c] in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let turned = [&changes[a], &changes[b], &changes[c]].map(Clone::clone);
            assert_eq!(after(&turned), all);
        }
    }

    #[test]
    fn a_late_write_does_not_bring_a_forgotten_host_back() {
        let mut data = after(&[pinned(), RecordChange::Forgotten]);
        assert_eq!(data, BTreeMap::new());
        let replaced = RecordChange::ReplacedIn(Some("win".into()));
        let keys = [RecordChange::LetsIn(None), RecordChange::KeyRemoved(Sha256::of(b"1"))];
        let others = [pinned(), closed(), RecordChange::RemovalConfirmed(true), replaced];
        for late in others.into_iter().chain(keys) {
            assert_eq!(late.apply(ADDRESS, &mut data), Err(RecordRefused::Gone));
        }
        assert_eq!(data, BTreeMap::new());
    }

    /// Which key the host lets in, and which was taken off, after these changes.
    fn keys_after(changes: &[RecordChange]) -> [Option<Sha256>; 2] {
        let record = KnownHosts::read(&after(changes)).record(ADDRESS).cloned().unwrap();
        [record.lets_in, record.key_removed]
    }

    #[test]
    fn a_key_that_is_let_in_was_not_taken_off() {
        use RecordChange::{KeyRemoved, LetsIn};
        let [one, two, three] = [b"1", b"2", b"3"].map(|key| Sha256::of(key));
        let rotated = [LetsIn(Some(two)), KeyRemoved(one)];
        assert_eq!(keys_after(&rotated), [Some(two), Some(one)]);
        let [a, b] = rotated;
        assert_eq!(keys_after(&[a.clone(), b.clone(), LetsIn(Some(two))]), [Some(two), Some(one)]);
        assert_eq!(keys_after(&[a.clone(), b.clone(), LetsIn(None)]), [None, None]);
        assert_eq!(keys_after(&[a.clone(), b.clone(), LetsIn(Some(three))]), [Some(three), None]);
        assert_eq!(keys_after(&[a, b, LetsIn(Some(one))]), [Some(one), None]);
    }

    /// Whoever answers at another address or with another host key may let in whatever he likes.
    #[test]
    fn which_keys_a_host_lets_in_is_known_of_that_host_only() {
        let proven = || [pinned(), RecordChange::LetsIn(Some(Sha256::of(b"1")))];
        let with = |change| keys_after(&[proven().to_vec(), vec![change]].concat())[0].is_some();
        let RecordChange::Listed(host) = listed() else { unreachable!() };
        assert!(with(listed()) && with(pinned()) && with(closed()));
        assert!(with(RecordChange::Listed(ListedHost { port: 2222, ..host.clone() })));
        let by_jump = ListedHost { via: Some("jump".into()), ..host.clone() };
        assert!(!with(RecordChange::Listed(by_jump)));
        let moved = ListedHost { ipv4: [10, 0, 0, 6].into(), ..host };
        assert!(!with(RecordChange::Listed(moved)));
        let other = KEY.replace("AAIAABA", "AAIAABB").parse().unwrap();
        assert!(!with(RecordChange::Pinned { key: other, jump: None }));
    }

    #[test]
    fn a_record_that_nobody_can_read_is_left_to_a_person() {
        let damaged = BTreeMap::from([(HostRecord::key_name(ADDRESS), "{".to_owned())]);
        let adopted = RecordChange::Adopted {
            ipv4: [10, 0, 0, 5].into(),
            node: "win-1".into(),
            username: "sealed".into(),
        };
        let renamed = RecordChange::Listed(ListedHost {
            formerly: vec![ADDRESS.into()],
            ..match listed() {
                RecordChange::Listed(host) => host,
                other => unreachable!("{other:?}"),
            }
        });
        let mut data = damaged.clone();
        for change in [listed(), pinned(), closed(), adopted, RecordChange::Forgotten] {
            assert_eq!(change.apply(ADDRESS, &mut data), Err(RecordRefused::Damaged));
        }
        assert_eq!(renamed.apply("win-5.example", &mut data), Err(RecordRefused::Damaged));
        assert_eq!(data, damaged);
    }

    #[test]
    fn what_is_on_record_already_is_no_more_believed_of_a_node() {
        let known = after(&[pinned()]);
        let mut data = known.clone();
        let adopted = RecordChange::Adopted {
            ipv4: [10, 0, 0, 66].into(),
            node: "win-66".into(),
            username: "other".into(),
        };
        adopted.apply(ADDRESS, &mut data).unwrap();
        assert_eq!(data, known);
    }

    #[test]
    fn a_host_takes_what_was_kept_under_its_former_address_along() {
        let mut data = after(&[pinned(), closed()]);
        let RecordChange::Listed(host) = listed() else { unreachable!() };
        let renamed = RecordChange::Listed(ListedHost { formerly: vec![ADDRESS.into()], ..host });
        renamed.apply("win-5.example", &mut data).unwrap();
        let known = KnownHosts::read(&data);
        assert_eq!(known.record("win-5.example"), known.record(ADDRESS));
    }

    #[test]
    fn a_machine_at_another_address_is_not_known_to_be_closed() {
        let RecordChange::Listed(host) = listed() else { unreachable!() };
        let at = |last: u8, machine: Option<&str>| {
            let (ipv4, machine) = ([10, 0, 0, last].into(), machine.map(str::to_owned));
            RecordChange::Listed(ListedHost { ipv4, machine, ..host.clone() })
        };
        for (machine, last, expected) in
            [(Some("u-1"), 5, true), (Some("u-1"), 6, false), (None, 6, true)]
        {
            let mut data = BTreeMap::new();
            for change in [at(5, machine), pinned(), closed(), at(last, machine)] {
                change.apply(ADDRESS, &mut data).unwrap();
            }
            let known = KnownHosts::read(&data);
            let record = known.record(ADDRESS).unwrap();
            assert_eq!((record.closed_for.is_some(), record.pinned.is_some()), (expected, true));
        }
    }

    #[test]
    fn a_machine_that_took_the_name_of_another_has_a_host_of_its_own() {
        let of = |uid: &str| match listed() {
            RecordChange::Listed(host) => {
                RecordChange::Listed(ListedHost { machine: Some(uid.into()), ..host })
            }
            other => unreachable!("{other:?}"),
        };
        let mut data = BTreeMap::new();
        for change in [of("u-1"), pinned(), closed(), of("u-1")] {
            change.apply(ADDRESS, &mut data).unwrap();
        }
        let known = KnownHosts::read(&data);
        assert!(known.pin(ADDRESS).is_some() && known.record(ADDRESS).unwrap().pinned.is_some());
        of("u-2").apply(ADDRESS, &mut data).unwrap();
        let known = KnownHosts::read(&data);
        let record = known.record(ADDRESS).unwrap();
        assert_eq!((known.pin(ADDRESS), &record.pinned, &record.host_name), (None, &None, &None));
        assert_eq!(record.machine.as_deref(), Some("u-2"));
    }
}
