//! Dependencies between the services of a host.

use std::collections::{BTreeMap, BTreeSet};

use wmco_core::protocol::ServiceRunState;

use super::{Action, Because, Plan};
use crate::windows::{Service, ServiceName};

/// The services of a host with their dependencies.
pub(super) struct Graph<'a> {
    by_name: BTreeMap<&'a ServiceName, &'a Service>,
    /// Dependents before their dependencies.
    order: Vec<&'a Service>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(services: &'a [Service]) -> Self {
        fn visit<'a>(
            service: &'a Service,
            by_name: &BTreeMap<&'a ServiceName, &'a Service>,
            seen: &mut BTreeSet<&'a ServiceName>,
            order: &mut Vec<&'a Service>,
        ) {
            if seen.insert(&service.name) {
                let needs = service.config.dependencies.iter();
                for need in needs.filter_map(|need| by_name.get(need)) {
                    visit(need, by_name, seen, order);
                }
                order.push(service);
            }
        }
        let by_name = services.iter().map(|service| (&service.name, service)).collect();
        let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
        let sorted: BTreeMap<_, _> = services.iter().map(|s| (&s.name, s)).collect();
        for service in sorted.values() {
            visit(service, &by_name, &mut seen, &mut order);
        }
        order.reverse();
        Self { by_name, order }
    }

    pub(super) fn service(&self, name: &ServiceName) -> Option<&'a Service> {
        self.by_name.get(name).copied()
    }

    pub(super) fn dependents_first(&self) -> impl Iterator<Item = &'a Service> + '_ {
        self.order.iter().copied()
    }

    /// Plans to stop `roots` and all their dependents; returns the services that have to be stopped, in that order.
    pub(super) fn stop(
        &self,
        roots: &BTreeMap<&'a ServiceName, Because>,
        plan: &mut Plan,
    ) -> Vec<&'a ServiceName> {
        // Dependencies come first, so each service finds them already marked.
        let mut because: BTreeMap<&'a ServiceName, Because> = BTreeMap::new();
        for service in self.order.iter().rev() {
            let needs = service.config.dependencies.iter();
            let stops = roots.get(&service.name).cloned().or_else(|| {
                needs
                    .clone()
                    .find(|need| because.contains_key(need))
                    .map(|need| Because::DependsOnStopped { needs: need.clone() })
            });
            if let Some(reason) = stops {
                because.insert(&service.name, reason);
            }
        }
        let mut stopped = Vec::new();
        for service in &self.order {
            if let Some(reason) = because.get(&service.name)
                && service.state != ServiceRunState::Stopped
            {
                plan.push(Action::Stop { service: service.name.clone() }, reason.clone());
                stopped.push(&service.name);
            }
        }
        stopped
    }
}
