//! What an administrator can do about an instance that is left alone.

use crate::fleet::{Because, Held};
use crate::host_record::HostRecord;
use crate::instances::Called;
use crate::limits;
use crate::machines::Unfit;
use crate::names;
use crate::names::objects::{
    HOST_KEYS_CONFIG_MAP, PRIVATE_KEY_KEY, PRIVATE_KEY_SECRET, USER_DATA_SECRET,
};

/// Advice about an instance that is left alone; `None` if there is nothing to do, or if another notice covers it.
pub(super) fn next_step(because: &Because, node: Option<&str>) -> Option<String> {
    let claimant = node;
    let node = node.unwrap_or("that stands for it");
    Some(match because {
        Because::Contested { .. } => {
            "delete those whose host is gone or that show a wrong address".to_owned()
        }
        Because::AddressShared { node: other } => {
            format!("delete node {node} or {other}, whichever has no host any more")
        }
        Because::SameNode { .. } => "remove one of both entries".to_owned(),
        Because::OtherSystem | Because::MachineBehind => {
            format!("remove the entry that leads there, if there is one, or delete node {node} if its host is gone")
        }
        Because::LookDue { address } => {
            format!("see why entry {address} cannot be looked at, or remove it")
        }
        Because::NodeDeleted => {
            format!("see what the finalizers of node {node} wait for, and take them off if that is over")
        }
        Because::MayBeListed { .. } => may_be_listed(claimant),
        Because::AddressOfMachine { machine } => format!(
            "if machine {machine} is the same host, label it {}=true or remove the entry, if there is \
             one; otherwise delete whichever is gone",
            names::IGNORE_LABEL
        ),
        Because::AddressListed { address } => format!(
            "remove entry {address}, or label the machine {}=true if people are to list its host",
            names::IGNORE_LABEL
        ),
        Because::AddressOnRecord { address } => format!(
            "if host {address} is gone, remove `{}` and `{address}` from ConfigMap {HOST_KEYS_CONFIG_MAP}",
            HostRecord::key_name(address)
        ),
        Because::OtherNode { .. } | Because::NodeNotTold => {
            "see why the machine api does not refer to the node of its host".to_owned()
        }
        Because::NodeShared { with } => {
            format!("delete the machine that has no host any more, or see to {}", Called(with))
        }
        Because::Unfit(Unfit::Phase(phase)) if !is_passing(phase) => {
            "see what the machine says in its status".to_owned()
        }
        Because::Unfit(Unfit::NoAddress | Unfit::NoPhase) => {
            "see why the machine api does not tell it".to_owned()
        }
        Because::Unfit(Unfit::LongName) => format!(
            "give its machineset a name of at most {} characters",
            limits::COMPUTER_NAME_BYTES - limits::MACHINE_SUFFIX_BYTES
        ),
        Because::ReplacementHeld(held) => match held {
            Held::NobodyMakesAnother => {
                "put our public key on its host, or delete the machine yourself".to_owned()
            }
            Held::KeyLost { .. } => format!(
                "write that key to `{PRIVATE_KEY_KEY}` of secret {PRIVATE_KEY_SECRET}, or delete the machine \
                 yourself"
            ),
            Held::WrongTemplate { .. } => {
                "correct the machineset, then it is replaced by itself".to_owned()
            }
            Held::UserDataDue => format!("see why secret {USER_DATA_SECRET} is not changed"),
            Held::UserDataFresh => format!("see who else writes secret {USER_DATA_SECRET}"),
            Held::SuccessorsFailed { .. } => {
                "see whether the image of its machineset runs the user data that it is given, then delete those \
                 of the machineset that are not ready"
                    .to_owned()
            }
            Held::TooMany | Held::TooFew => "it goes on when that is over".to_owned(),
            Held::Unhealthy { first } => format!("see what is told of {}", Called(first)),
            Held::ReplacedFirst { first } => format!("see why {} is not yet", Called(first)),
            Held::MayRecover => "see why its node is not ready".to_owned(),
            Held::Budget => {
                format!(
                    "see which nodes are cordoned by the operator or have label {}, which machines it has replaced, and what \
                     they wait for",
                    names::UPGRADING_LABEL
                )
            }
            // The findings about the cluster are reported on their own.
            Held::ClusterUnfit | Held::RecordDue => return None,
        },
        Because::Unfit(Unfit::Phase(_) | Unfit::Ignored | Unfit::Deleted)
        | Because::ClusterUnfit
        | Because::LoginRefused
        | Because::Provisioned
        | Because::Listed
        | Because::EntryBroken
        | Because::NamePending
        | Because::Unlisted
        | Because::ListAbsent
        | Because::RecordDamaged { .. }
        | Because::RecordDue
        | Because::Unconfirmed => return None,
    })
}

fn may_be_listed(node: Option<&str>) -> String {
    let own =
        node.map(|node| format!(", or annotation {} of node {node}", names::INSTANCE_ANNOTATION));
    let goes = node.map(|node| format!("delete node {node} and "));
    format!(
        "correct what both have in common, a name or an address{}; if its host is gone, {}take what there is of it out of \
         ConfigMap {HOST_KEYS_CONFIG_MAP}",
        own.unwrap_or_default(),
        goes.unwrap_or_default()
    )
}

/// Whether a Machine in this phase is being provisioned or deleted.
fn is_passing(phase: &str) -> bool {
    ["Provisioning", "Deleting"].contains(&phase)
}
