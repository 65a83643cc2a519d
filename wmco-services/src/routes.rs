//! Restores the route to the metadata service of Amazon's machines.
//!
//! EC2Launch adds routes to the metadata service when a Windows machine starts. The overlay network takes over the
//! adapter and its addresses, and the route is lost; then the kubelet's request for its host name and the credential
//! provider's requests fail. A manifest whose pre-scripts query the service needs the route, so that is known without a
//! Node, too.
//!
//! # Guarantees
//! - An existing route is never changed, wherever it leads.
//! - A new route lasts until the host restarts, and uses the gateway of the best default route.
//!
//! Source: `docs/contract/services.md`, SVC46.

use wmco_core::text::chain;

use crate::manifest::Manifest;
use crate::scripts::{AWS_HOST_NAME, METADATA_SERVICE};
use crate::windows::{Route, Windows, WindowsError};

/// Whether the route is added.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RouteDecision {
    /// The route exists or is not needed.
    Fine,
    /// The route is missing; add it through the gateway of this default route.
    Add(Route),
    /// The route is missing, and no default route has a gateway.
    NoWayOut,
}

/// Whether the services of the manifest need the route.
pub fn is_needed(manifest: &Manifest) -> bool {
    let scripts = manifest.services().iter().flat_map(|service| &service.powershell_pre_scripts);
    scripts.into_iter().any(|script| script.path == AWS_HOST_NAME)
}

/// Returns all IPv4 routes; `None` if the manifest does not need the route.
///
/// # Errors
/// Returns the error of Windows.
pub fn observe(
    windows: &dyn Windows,
    manifest: &Manifest,
) -> Result<Option<Vec<Route>>, WindowsError> {
    if is_needed(manifest) { windows.machine().routes().map(Some) } else { Ok(None) }
}

/// Decides whether to add the route. `routes` are all routes, or `None` if it is not needed.
///
/// ```
/// use wmco_services::routes::{RouteDecision, reconcile};
///
/// assert_eq!(reconcile(None), RouteDecision::Fine);
/// assert_eq!(reconcile(Some(&[])), RouteDecision::NoWayOut);
/// ```
pub fn reconcile(routes: Option<&[Route]>) -> RouteDecision {
    let Some(routes) = routes else { return RouteDecision::Fine };
    let is_there = |route: &Route| (route.destination, route.prefix) == (METADATA_SERVICE, 32);
    if routes.iter().any(is_there) {
        return RouteDecision::Fine;
    }
    // Between equal metrics the system's order decides.
    let out = routes.iter().filter(|route| route.prefix == 0 && !route.gateway.is_unspecified());
    out.min_by_key(|route| route.metric)
        .cloned()
        .map_or(RouteDecision::NoWayOut, RouteDecision::Add)
}

/// Adds the route if the manifest needs it and it is missing. An error is only logged: programs that need the route
/// report their own failure.
pub fn restore(windows: &dyn Windows, manifest: &Manifest) {
    let done = observe(windows, manifest).and_then(|routes| match reconcile(routes.as_deref()) {
        RouteDecision::Add(via) => windows.machine().add_host_route(METADATA_SERVICE, &via),
        RouteDecision::Fine | RouteDecision::NoWayOut => Ok(()),
    });
    if let Err(error) = done {
        tracing::warn!(error = %chain(&error), "cannot restore the route to {METADATA_SERVICE}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeWindows;
    use crate::generate::{self, ManifestInputs};

    fn route(destination: [u8; 4], prefix: u8, gateway: [u8; 4], metric: u32) -> Route {
        Route {
            destination: destination.into(),
            prefix,
            gateway: gateway.into(),
            interface: metric,
            metric,
        }
    }

    fn out(metric: u32) -> Route {
        route([0, 0, 0, 0], 0, [10, 0, 0, 1], metric)
    }

    #[test]
    fn a_lost_route_goes_the_way_of_the_best_default_route() {
        assert_eq!(reconcile(Some(&[out(30), out(20), out(25)])), RouteDecision::Add(out(20)));
    }

    #[test]
    fn a_route_that_is_there_stays_wherever_it_leads() {
        let there = route([169, 254, 169, 254], 32, [10, 9, 9, 9], 99);
        assert_eq!(reconcile(Some(&[out(20), there])), RouteDecision::Fine);
    }

    #[test]
    fn another_route_that_it_would_fall_under_is_not_enough() {
        let link_local = route([169, 254, 0, 0], 16, [0, 0, 0, 0], 5);
        let neighbour = route([169, 254, 169, 250], 32, [10, 0, 0, 1], 5);
        assert_eq!(reconcile(Some(&[link_local, neighbour, out(20)])), RouteDecision::Add(out(20)));
    }

    #[test]
    fn without_a_gateway_there_is_no_way_out() {
        assert_eq!(
            reconcile(Some(&[route([0, 0, 0, 0], 0, [0, 0, 0, 0], 1)])),
            RouteDecision::NoWayOut
        );
    }

    #[test]
    fn only_where_the_host_name_is_asked_for_it_is_needed() {
        for (platform, needed) in [("AWS", true), ("Azure", false), ("None", false)] {
            let inputs = ManifestInputs {
                platform: platform.to_owned(),
                api_server: "https://api.example.test:6443".to_owned(),
                ..ManifestInputs::default()
            };
            let manifest = generate::manifest(&inputs).unwrap();
            assert_eq!(is_needed(&manifest), needed, "{platform}");
            let host = FakeWindows::new("winhost");
            restore(&host, &manifest);
            assert_eq!(!host.host_routes().is_empty(), needed, "{platform}");
        }
    }
}
