//! Finds members of the provider specification that are missing.
//!
//! What the Machine API fills in by itself is a doubt, for it fills in what suits Linux workers; what it refuses to do
//! without is a problem. Source: OpenShift, the admission of Machines in `machine-api-operator`.

use super::super::platform::Platform;
use super::super::spelling::says_something;
use super::{Inspection, Set, field};

/// What follows from a missing member.
#[derive(Clone, Copy)]
enum Without {
    /// There is no machine.
    NoMachine,
    /// There is no machine if the other member, at this path, is there.
    NoMachineBeside(&'static str),
    /// There may be another machine than was meant.
    Another(&'static str),
}

/// Members that a failure domain brings.
const OF_DOMAIN: [&str; 5] = [
    "/cluster",
    "/network/devices/0/networkName",
    "/subnets",
    "/workspace/datacenter",
    "/workspace/server",
];

/// The Machine API chooses among the types of Linux workers.
const TYPE: Without = Without::Another("the Machine API takes the type of Linux workers");

/// The machine may start all the same.
const SIZE: Without = Without::Another("the machine may be too small to start");

fn members(platform: Platform) -> &'static [(&'static str, Without)] {
    use Without::{Another, NoMachine, NoMachineBeside};
    match platform {
        Platform::Aws => &[
            ("/instanceType", TYPE),
            ("/placement/region", Another("the Machine API takes the region of the cluster")),
            ("/subnet", Another("instances may get into a network from which they do not join")),
        ],
        Platform::Azure => &[
            ("/location", NoMachine),
            ("/osDisk/diskSizeGB", NoMachine),
            ("/subnet", NoMachineBeside("/vnet")),
            ("/vmSize", TYPE),
            ("/vnet", NoMachineBeside("/subnet")),
        ],
        Platform::Gcp => &[
            ("/machineType", TYPE),
            ("/networkInterfaces/0/network", NoMachineBeside("/networkInterfaces/0")),
            ("/networkInterfaces/0/subnetwork", NoMachineBeside("/networkInterfaces/0")),
            ("/region", NoMachine),
            ("/zone", NoMachine),
        ],
        Platform::Nutanix => &[
            ("/cluster", NoMachine),
            ("/memorySize", SIZE),
            ("/subnets", NoMachine),
            ("/vcpuSockets", SIZE),
        ],
        Platform::VSphere => &[
            ("/memoryMiB", SIZE),
            ("/network/devices/0/networkName", NoMachine),
            ("/numCPUs", SIZE),
            ("/workspace/datacenter", Another("there is no machine where there are several")),
            ("/workspace/server", NoMachine),
        ],
    }
}

pub(super) fn check(set: Set<'_>, platform: Platform, found: &mut Inspection) {
    let has = |at: &str| set.provider(at).is_some_and(says_something);
    for (at, without) in members(platform) {
        if has(at) || (has("/failureDomain") && OF_DOMAIN.contains(at)) {
            continue;
        }
        match without {
            Without::NoMachine => found.problem(field(at), MISSING),
            Without::NoMachineBeside(other) if has(other) => found.problem(field(at), MISSING),
            Without::NoMachineBeside(_) => {}
            Without::Another(consequence) => {
                found.warning(field(at), format!("is missing, so {consequence}; write it"));
            }
        }
    }
}

const MISSING: &str =
    "is missing, so the Machine API makes no machine; write it as the workers have it";
