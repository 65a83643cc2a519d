//! The input of a decision, as tests write it.

use super::*;
use crate::digest::Sha256;
use crate::fleet::memory::Remembered;

/// What there is and what is asked for.
#[derive(Clone, Default)]
pub(super) struct Case {
    pub(super) listed: Vec<Listed>,
    /// `names=` of entries, by address.
    pub(super) also: Vec<(&'static str, &'static str)>,
    pub(super) nodes: Vec<NodeFacts>,
    pub(super) claims: Vec<&'static str>,
    pub(super) granted: Vec<&'static str>,
    /// Data of the ConfigMap of host keys.
    pub(super) host_keys: Vec<(&'static str, &'static str)>,
    /// Names of hosts, by address as listed.
    pub(super) host_names: Vec<(&'static str, &'static str)>,
    /// Entries that nobody has tried to look at.
    pub(super) never_contacted: Vec<&'static str>,
    pub(super) budget: usize,
    pub(super) blocked: bool,
    pub(super) guard: RemovalGuard,
    pub(super) list_absent: bool,
    pub(super) machines: Vec<MachineFacts>,
    pub(super) sets: Vec<MachineSetFacts>,
    /// Names of Machines that were given a permit.
    pub(super) replaced: Vec<&'static str>,
    /// Names and UIDs of Machines that were given one before.
    pub(super) replacing: Vec<(&'static str, &'static str)>,
    /// Names of Machines that have had no ready Node for long.
    pub(super) unready: Vec<&'static str>,
    /// Names of Machines whose hosts refuse our key.
    pub(super) refused: Vec<&'static str>,
    /// What instances are known by whose hosts do not answer.
    pub(super) unanswered: Vec<&'static str>,
    /// `None`: they have had our key for long.
    pub(super) user_data: Option<UserData>,
    pub(super) keys: Option<LoginKeys>,
}

impl Case {
    /// Three listed nodes that all claim the only slot.
    pub(super) fn three() -> Self {
        Self {
            listed: vec![entry(1), entry(2), entry(3)],
            nodes: vec![node(1), node(2), node(3)],
            claims: vec!["win-1", "win-2", "win-3"],
            budget: 1,
            ..Self::default()
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// What people wrote. Two entries for one host have different ports, or one would be refused.
    pub(super) fn entries(&self) -> Entries {
        let mut names = Resolutions::default();
        let mut data = Vec::new();
        let mut sorted: Vec<&Listed> = self.listed.iter().collect();
        sorted.sort_by_key(|entry| &entry.address);
        for (number, Listed { address, ipv4 }) in sorted.into_iter().enumerate() {
            names.insert(address, ipv4.ok_or(Unresolved::NoSuchName));
            let value = ipv4.map(|_| format!("username=core\nport={}", 22 + number));
            let mut value = value.unwrap_or_default();
            let also = self.also.iter().filter(|(of, _)| of == address);
            also.for_each(|(_, also)| value.extend(["\nnames=", also]));
            data.push((address, value));
        }
        parse(data, &names)
    }

    pub(super) fn look<T>(&self, at: impl FnOnce(Assignments<'_>) -> T) -> T {
        self.inputs(|desired, observed| at(decide(desired, observed, &self.memory())))
    }

    /// The same, with what is asked for and what there is.
    pub(super) fn inputs<T>(&self, at: impl FnOnce(&Desired<'_>, &Observed<'_>) -> T) -> T {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names =
            self.host_names.iter().map(|(address, name)| ((*address).to_owned(), set(&[name])));
        let entries = self.entries();
        let (machines, sets) = (self.machines.iter().cloned(), self.sets.iter().cloned());
        at(
            &Desired {
                entries: (!self.list_absent).then_some(&entries),
                machines: &Machines::read(machines, sets, platforms::AWS),
                version: VERSION,
                budget: self.budget,
                blocked: self.blocked,
                guard: self.guard,
                keys: self.keys.as_ref().or(Some(&LoginKeys::one(Sha256::of(b"ours")))),
            },
            &Observed {
                claims: &set(&self.claims),
                hosts: &KnownHosts::read(self.host_keys.iter().copied()),
                host_names: &names.collect(),
                never_contacted: &set(&self.never_contacted),
                ..Observed::new(&self.nodes)
            },
        )
    }

    /// What passes before left.
    fn memory(&self) -> Memory {
        let Self { granted, replaced, replacing, unready, refused, unanswered, .. } = self;
        let user_data = self.user_data.unwrap_or(UserData::Settled);
        Remembered { granted, replaced, replacing, unready, refused, unanswered, user_data }
            .memory()
    }

    /// Node names with a permit.
    pub(super) fn permits(&self) -> String {
        self.look(|out| {
            let permits = out.instances.iter().filter_map(|i| i.intent.permit());
            permits.map(DisruptionPermit::node).collect::<Vec<_>>().join(" ")
        })
    }

    /// The reported notices, without that of nodes that wait for their turn, as most do for a moment.
    pub(super) fn told(&self) -> String {
        let is_told = |it: &&Notice| !matches!(it, Notice::SlotAwaited { .. });
        self.look(|out| lines(out.notices.iter().filter(is_told)))
    }

    /// Addresses of records that are changed.
    pub(super) fn changes(&self) -> String {
        self.look(|out| out.changes.into_keys().collect::<Vec<_>>().join(" "))
    }

    /// One line per instance.
    pub(super) fn lines(&self) -> String {
        self.look(|out| lines(&out.instances))
    }
}
