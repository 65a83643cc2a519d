//! Hosts of one image that swap their addresses.

use wmco_core::names::host;

use super::World;

impl World {
    /// These hosts were installed from one image, so they have one key.
    pub(crate) fn are_of_one_image(&mut self, numbers: [usize; 2]) {
        for number in numbers {
            self.hosts[number].image = 7;
        }
    }

    /// Two hosts swap their addresses. Kubelets that run tell the new ones.
    pub(crate) fn swap_hosts(&mut self, one: usize, other: usize) {
        let addresses =
            [one, other].map(|it| (self.hosts[it].address, self.hosts[it].other_address));
        for (number, addresses) in [other, one].into_iter().zip(addresses) {
            let host = &mut self.hosts[number];
            (host.address, host.other_address) = addresses;
            let shown = host.true_addresses();
            if host.runs(host::KUBELET_SERVICE)
                && let Some(node) = self.api.nodes.get_mut(&host.name)
            {
                node.facts.addresses = shown;
            }
        }
    }
}
