//! Finds unused keys of the ConfigMap of host keys. [`forgotten_jump_keys`](crate::reach::forgotten_jump_keys)
//! handles the keys of jump hosts.

use std::collections::{BTreeSet, HashSet};

use super::identity::Unlisted;
use super::{Assignments, Notice, Observed};
use crate::host_record::HostRecord;
use crate::instances::{AlsoNamed, Jump};
use crate::names;

/// Keys of hosts that are neither listed nor to be cleaned, and of hosts that are listed under another name, once
/// that name has taken them over.
pub(super) fn keys<'a>(
    unlisted: &[Unlisted<'a>],
    observed: &Observed<'a>,
    out: &Assignments<'a>,
) -> BTreeSet<String> {
    let records = unlisted.iter().filter(|it| it.record_goes());
    let mut forgotten: BTreeSet<String> =
        records.map(|it| HostRecord::key_name(it.address)).collect();
    let pinned =
        unlisted.iter().filter(|it| it.kept.pin.is_some() && !Jump::is_key_name(it.address));
    let (taken_over, others): (Vec<_>, Vec<_>) = pinned.partition(|it| it.is_taken_over());
    let is_left_over =
        |it: &&Unlisted<'_>| !it.kept.is_damaged && (it.kept.record.is_none() || it.record_goes());
    let mut left_over: HashSet<&str> =
        others.into_iter().filter(is_left_over).map(|it| it.address).collect();
    if !left_over.is_empty() {
        // While one of its Nodes exists, its host may exist.
        let of_nodes = observed.nodes.iter().flat_map(|node| {
            let shown = node.addresses.iter().map(String::as_str);
            shown.chain(node.annotation(names::INSTANCE_ANNOTATION))
        });
        // It has to be taken over first.
        let formerly = out.instances.iter().flat_map(|instance| &instance.formerly);
        let all = of_nodes.chain(formerly.map(String::as_str));
        let are_needed: HashSet<AlsoNamed> = all.map(AlsoNamed::of).collect();
        left_over.retain(|address| !are_needed.contains(&AlsoNamed::of(address)));
    }
    forgotten.extend(taken_over.into_iter().map(|it| it.address.to_owned()));
    forgotten.extend(left_over.into_iter().map(str::to_owned));
    forgotten
}

/// Tells of pinned keys that go though no login of ours pinned them: a person may have written one before its entry.
pub(super) fn notices<'a>(
    unlisted: &'a [Unlisted<'_>],
    forgotten: &'a BTreeSet<String>,
) -> impl Iterator<Item = Notice> + 'a {
    let goes = unlisted.iter().filter(|it| forgotten.contains(it.address));
    let unknown = goes.filter(|it| it.kept.record.is_none() && !it.is_taken_over());
    unknown.map(|it| Notice::PinUnused { name: it.address.to_owned() })
}
