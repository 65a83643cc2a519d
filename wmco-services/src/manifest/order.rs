//! Computes the start order of services.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::Service;
use crate::windows::ServiceName;

/// Returns indices of `services` in start order, by Kahn's algorithm, which visits each dependency once: of all
/// services whose dependencies are met, the first in the given order comes next. Dependencies outside the list count as
/// met. Services in a cycle, and their dependents, are left out.
pub(super) fn start_order(services: &[Service]) -> Vec<usize> {
    sort(&mut needs(services)).0
}

/// Most cycles that are reported at once. Many services that all depend on each other have far more.
const MOST_CYCLES: usize = 20;

/// Returns cycles of dependencies, each with its first member repeated at the end. Each has a dependency that no other
/// one has. The list does not depend on the order of the services.
pub(super) fn cycles(services: &[Service]) -> Vec<Vec<ServiceName>> {
    let mut needs = needs(services);
    let mut cycles = Vec::new();
    while cycles.len() < MOST_CYCLES {
        let left = sort(&mut needs).1;
        let walk = cycle(services, &needs, &left);
        let (Some(last), Some(first)) = (walk.last(), walk.first()) else { break };
        // Without this dependency the cycle is broken, and the next one can be found.
        if let Some(needs) = needs.get_mut(*last) {
            needs.retain(|need| need != first);
        }
        let closed = walk.iter().chain(walk.first());
        cycles.push(closed.filter_map(|place| Some(services.get(*place)?.name.clone())).collect());
    }
    cycles
}

/// Returns the dependencies of each service, as indices; each once.
fn needs(services: &[Service]) -> Vec<Vec<usize>> {
    let places: BTreeMap<&ServiceName, usize> =
        services.iter().enumerate().map(|(place, service)| (&service.name, place)).collect();
    let needs = services.iter().map(|service| {
        let mut needs: Vec<usize> =
            service.dependencies.iter().filter_map(|name| places.get(name).copied()).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    });
    needs.collect()
}

/// Removes from `needs` the dependencies that can be met; returns their order, and the services that are left.
fn sort(needs: &mut [Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (place, needs) in needs.iter().enumerate() {
        for need in needs {
            if let Some(dependents) = dependents.get_mut(*need) {
                dependents.push(place);
            }
        }
    }
    let mut unmet: Vec<usize> = needs.iter().map(Vec::len).collect();
    let ready = unmet.iter().enumerate().filter(|(_, count)| **count == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.map(|(place, _)| Reverse(place)).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(place)) = ready.pop() {
        order.push(place);
        for dependent in dependents.get(place).into_iter().flatten() {
            if let Some(count) = unmet.get_mut(*dependent) {
                *count -= 1;
                if *count == 0 {
                    ready.push(Reverse(*dependent));
                }
            }
        }
    }
    let is_left = |place: &usize| unmet.get(*place).is_some_and(|count| *count > 0);
    for needs in &mut *needs {
        needs.retain(is_left);
    }
    (order, (0..unmet.len()).filter(is_left).collect())
}

/// Follows dependencies among the services left; since each has one, the path must reach a cycle.
fn cycle(services: &[Service], needs: &[Vec<usize>], left: &[usize]) -> Vec<usize> {
    let name = |place: &usize| services.get(*place).map(|service| &service.name);
    // Names, not positions in the list, decide the start and the next dependency.
    let least = |places: &[usize]| places.iter().copied().min_by_key(|place| name(place));
    let mut walk: Vec<usize> = Vec::new();
    let mut at = least(left);
    while let Some(place) = at {
        if let Some(start) = walk.iter().position(|seen| *seen == place) {
            walk.drain(..start);
            break;
        }
        walk.push(place);
        at = needs.get(place).and_then(|needs| least(needs));
    }
    let first = walk
        .iter()
        .enumerate()
        .min_by_key(|(_, place)| name(place))
        .map_or(0, |(position, _)| position);
    walk.rotate_left(first);
    walk
}
