//! Exchanges the operator's key on a host that has no other work.
//!
//! A key counts as accepted only after a login with that key alone, and the former key is removed only after
//! another such login, so that a host always keeps a key of ours.

use jiff::Timestamp;

use super::work::{Grounds, HostWork};
use super::{Action, Because, Desired, Observed, Plan, Step, agent_for_work, answering};
use crate::login_keys::KeyExchange;
use crate::protocol::{HostStep, Probe};

/// Returns `plan`, or the steps of the key exchange if `plan` has no work now.
pub(super) fn unless_busy(
    plan: Plan,
    desired: &Desired,
    observed: &Observed,
    now: Timestamp,
) -> Plan {
    let Some(exchange) = desired.exchange.as_ref().filter(|_| plan.steps.is_empty()) else {
        return plan;
    };
    match answering(desired, observed, now) {
        Ok(probe) if observed.known_closed => steps(exchange, desired, probe),
        Ok(_) | Err(_) => plan,
    }
}

fn steps(exchange: &KeyExchange, desired: &Desired, probe: &Probe) -> Plan {
    let key = exchange.add.hash();
    let step = |action| Step { action, because: Because::KeyExchange };
    let login = step(Action::ProveKey(key));
    let work = HostStep::EnsureAuthorizedKeys {
        add: [exchange.add.clone()].into(),
        remove: exchange.remove.iter().cloned().collect(),
    };
    let agent = agent_for_work(desired, probe);
    let work = HostWork::new(vec![work], Grounds::Harmless);
    let apply = work.map(|work| step(Action::Apply { agent, work }));
    let steps = match &exchange.remove {
        None => apply.into_iter().chain([login]).collect(),
        Some(removed) => {
            let record = step(Action::ProveKeyRemoved(removed.hash()));
            std::iter::once(login).chain(apply).chain([record]).collect()
        }
    };
    Plan { steps, next: super::Next::Now }
}
