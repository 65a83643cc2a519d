//! The order in which services can be started.

use std::collections::BTreeMap;

use super::{ManifestError, Service};
use crate::windows::ServiceName;

/// Places in `services` in start order, by Kahn's algorithm: of all services whose needs are met the
/// first in the given order comes next. Needs outside the list count as met.
///
/// # Errors
/// [`ManifestError::Cycle`] with one whole circle, which does not depend on the order of the list.
pub(super) fn start_order(services: &[Service]) -> Result<Vec<usize>, ManifestError> {
    let places: BTreeMap<&ServiceName, usize> =
        services.iter().enumerate().map(|(place, service)| (&service.name, place)).collect();
    let mut needs: Vec<Vec<usize>> = services
        .iter()
        .map(|service| {
            let mut needs: Vec<usize> =
                service.dependencies.iter().filter_map(|name| places.get(name).copied()).collect();
            needs.sort_unstable();
            needs.dedup();
            needs
        })
        .collect();
    let mut order = Vec::with_capacity(services.len());
    let mut left: Vec<usize> = (0..services.len()).collect();
    while let Some(next) =
        left.iter().position(|place| needs.get(*place).is_some_and(Vec::is_empty))
    {
        let place = left.remove(next);
        order.push(place);
        for others in &mut needs {
            others.retain(|need| *need != place);
        }
    }
    if left.is_empty() { Ok(order) } else { Err(cycle(services, &needs, &left)) }
}

/// Walks from need to need among what is left; since each has one, the walk must come back.
fn cycle(services: &[Service], needs: &[Vec<usize>], left: &[usize]) -> ManifestError {
    let name = |place: &usize| services.get(*place).map(|service| service.name.clone());
    // Where the walk starts and which need it follows goes by name, not by place in the list.
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
    walk.extend(walk.first().copied());
    ManifestError::Cycle {
        path: walk.iter().filter_map(name).map(|name| name.to_string()).collect(),
    }
}
