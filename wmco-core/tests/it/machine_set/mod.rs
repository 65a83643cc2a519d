//! MachineSets for Windows: what they look like, problems of others, laws of both.
//!
//! `workers/` holds a MachineSet of Linux workers for each platform, in the style of an installed
//! cluster.

mod generated;
mod laws;
mod rows;

use serde_json::Value;
use wmco_core::machine_set::{
    Generated, Inspection, MachineSetOptions, Platform, Worker, generate, inspect,
};

/// MachineSet of Linux workers on `platform`.
fn worker(platform: Platform) -> Value {
    let text = match platform {
        Platform::Aws => include_str!("workers/aws.yaml"),
        Platform::Azure => include_str!("workers/azure.yaml"),
        Platform::Gcp => include_str!("workers/gcp.yaml"),
        Platform::Nutanix => include_str!("workers/nutanix.yaml"),
        Platform::VSphere => include_str!("workers/vsphere.yaml"),
    };
    serde_saphyr::from_str(text).unwrap()
}

fn windows_image(platform: Platform) -> &'static str {
    match platform {
        Platform::Aws => "ami-0123456789abcdef0",
        Platform::Azure => "MicrosoftWindowsServer:WindowsServer:2022-datacenter:latest",
        Platform::Gcp => "projects/windows-cloud/global/images/family/windows-2022-core",
        Platform::Nutanix => "win2022-golden",
        Platform::VSphere => "windows-golden-2022",
    }
}

/// All that `platform` needs without a MachineSet to take over.
fn options(platform: Platform) -> MachineSetOptions {
    let text = |text: &str| Some(text.to_owned());
    let general = MachineSetOptions {
        infrastructure: text("shop-x7k2p"),
        image: text(windows_image(platform)),
        ..MachineSetOptions::default()
    };
    match platform {
        Platform::Aws => MachineSetOptions {
            region: text("eu-central-1"),
            zone: text("eu-central-1a"),
            ..general
        },
        Platform::Azure => {
            MachineSetOptions { region: text("westeurope"), zone: text("1"), ..general }
        }
        Platform::Gcp => MachineSetOptions {
            project: text("shop-project"),
            region: text("europe-west3"),
            zone: text("europe-west3-a"),
            ..general
        },
        Platform::Nutanix => MachineSetOptions {
            cluster: text("pe-1"),
            subnet: text("c7938dc6-7659-453e-a688-e26020c68e43"),
            ..general
        },
        Platform::VSphere => MachineSetOptions {
            server: text("vcenter.shop.example"),
            datacenter: text("dc1"),
            datastore: text("/dc1/datastore/fast"),
            folder: text("/dc1/vm/shop-x7k2p"),
            resource_pool: text("/dc1/host/cluster1/Resources"),
            network: text("VM Network"),
            ..general
        },
    }
}

/// The MachineSet for Windows beside that of [`worker`], with the image alone given.
fn taken_over(platform: Platform, change: impl FnOnce(&mut MachineSetOptions)) -> Generated {
    let image = Some(windows_image(platform).to_owned());
    let mut options = MachineSetOptions { image, ..MachineSetOptions::default() };
    change(&mut options);
    let object = worker(platform);
    let worker = Worker::choose([&object], None).unwrap();
    generate(None, &options, Some(worker)).unwrap()
}

/// A MachineSet with nothing wrong.
fn fine(platform: Platform) -> Value {
    generate(Some(platform), &options(platform), None).unwrap().machine_set
}

fn found(machine_set: &Value) -> Inspection {
    inspect(machine_set).expect("it is meant for Windows")
}
