//! The Machines of all passes.

use std::sync::Arc;

use wmco_core::machines::Machines;

use super::MachineInventory;

/// The Machines as they were read last.
#[derive(Default)]
pub struct SeenMachines {
    inventory: Arc<MachineInventory>,
    platform: String,
    machines: Arc<Machines>,
}

impl SeenMachines {
    /// All Machines of a cluster on this platform, read anew when anything changed.
    pub fn update(&mut self, inventory: Arc<MachineInventory>, platform: String) -> Arc<Machines> {
        if !Arc::ptr_eq(&inventory, &self.inventory) || platform != self.platform {
            let MachineInventory { machines, sets } = &*inventory;
            let (machines, sets) = (machines.iter().cloned(), sets.iter().cloned());
            self.machines = Arc::new(Machines::read(machines, sets, &platform));
            (self.inventory, self.platform) = (inventory, platform);
        }
        Arc::clone(&self.machines)
    }
}
