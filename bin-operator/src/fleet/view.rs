//! What people and the Machine API ask for, and what is known of their hosts, in one pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use wmco_core::fleet::{self, RemovalGuard};
use wmco_core::host_record::KnownHosts;
use wmco_core::instances::{self, Entries};
use wmco_core::machines::Machines;

use crate::config::Config;
use crate::host_reports::HostReports;
use crate::machines::SeenMachines;
use crate::problems::Found;
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;

/// What one pass goes by.
pub(super) struct View {
    pub(super) entries: Entries,
    /// Whether there is a list.
    pub(super) is_listed: bool,
    pub(super) guard: RemovalGuard,
    pub(super) machines: Arc<Machines>,
    pub(super) hosts: KnownHosts,
    /// Names that hosts reported, by what their instances are known by.
    pub(super) reported: BTreeMap<String, String>,
    /// Those and others by which hosts are known.
    pub(super) host_names: BTreeMap<String, BTreeSet<String>>,
    pub(super) never_contacted: BTreeSet<String>,
}

impl View {
    /// Looks at the caches; adds their problems to `problems`.
    pub(super) fn of(
        sources: &Sources,
        seen: &mut SeenMachines,
        resolver: &Resolver,
        host_reports: &HostReports,
        config: &Config,
        now: Timestamp,
        problems: &mut Found,
    ) -> Self {
        let list = snapshot::instance_list(sources, &config.namespace);
        let is_listed = list.is_some();
        let list = list.unwrap_or_default();
        let answers = resolver.answers(&list.data, now);
        let cluster = snapshot::cluster_facts(sources);
        let entries = instances::parse(&list.data, &answers).without(&cluster.addresses);
        // What is being looked up is told when it is known.
        let wrong = entries.errors().filter(|error| !error.is_pending());
        problems.extend(wrong.map(|error| (error.to_string().into(), Duration::ZERO)));
        let hosts = snapshot::known_hosts(sources, &config.namespace);
        let platform = snapshot::infrastructure(sources).ok().and_then(|it| it.platform_status);
        let platform = platform.unwrap_or_default().type_;
        let machines = seen.update(sources.machines.inventory().unwrap_or_default(), platform);
        let is_known = |name: &str| {
            let machine = || machines.with_key(name);
            entries.get(name).is_some() || hosts.record(name).is_some() || machine().is_some()
        };
        host_reports.keep_only(is_known);
        let listed = host_reports.of_listed(&entries).into_iter();
        let hosts_of_machines = machines.instances().map(|it| (it.address.clone(), it.ipv4));
        let reports: Vec<_> = listed.chain(host_reports.of_machines(hosts_of_machines)).collect();
        let names = reports.iter().map(|(address, report)| {
            (address.clone(), report.names().map(str::to_owned).collect::<BTreeSet<_>>())
        });
        let names = names.filter(|(_, names)| !names.is_empty()).collect();
        let reported = reports.into_iter().map(|(address, report)| (address, report.host_name));
        let reported = reported.filter(|(_, name)| !name.is_empty()).collect();
        Self {
            is_listed,
            guard: RemovalGuard { most: config.guard_removals, confirmed: list.confirmed },
            host_names: fleet::host_names(&entries, &answers, &names, &hosts),
            never_contacted: host_reports
                .never_contacted(entries.instances().map(|entry| entry.address.as_str())),
            machines,
            reported,
            hosts,
            entries,
        }
    }
}
