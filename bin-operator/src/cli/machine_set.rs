//! `machineset`: a MachineSet for Windows, from options or from one of the cluster.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use wmco_core::machine_set::{
    Generated, Infrastructure, MachineSetError, MachineSetOptions, Platform, Worker, generate,
};
use wmco_core::names::machine_api::MACHINE_SET_KIND;

use super::{Answer, Output, no, tell};
use crate::input::{Located, Objects, Reader, Selection};

/// Arguments of `machineset`.
#[derive(Args, Debug)]
pub struct MachineSet {
    /// Platform: AWS, Azure, GCP, Nutanix or VSphere; default: that of the objects in -f.
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,
    /// Files with objects of the cluster in YAML or JSON, `-` is standard input: a MachineSet of Linux
    /// workers, whose image, user data, labels and name are replaced, and the
    /// Infrastructure `cluster`.
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    /// Name of the MachineSet in the files to start from, if there are several.
    #[arg(long, value_name = "NAME", requires = "files")]
    from: Option<String>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    output: Output,
}

/// What is to be otherwise than in the files, or stands in none.
#[derive(Args, Debug)]
#[command(next_help_heading = "Settings of the MachineSet")]
struct Settings {
    /// Name of the MachineSet.
    #[arg(long)]
    name: Option<String>,
    /// Infrastructure name of the cluster, for example prod-x7k2p.
    #[arg(long, value_name = "NAME")]
    infrastructure: Option<String>,
    /// Number of Machines.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    replicas: Option<u32>,
    /// Image of Windows: ID of an AMI; PUBLISHER:OFFER:SKU:VERSION or ID on Azure; path on GCP; template
    /// on vSphere; name or UUID on Nutanix.
    #[arg(long)]
    image: Option<String>,
    /// Size of the system disk in GiB.
    #[arg(long, value_name = "GIB")]
    disk_gib: Option<u32>,
    /// Instance type on AWS, VM size on Azure, machine type on GCP.
    #[arg(long, value_name = "TYPE", visible_aliases = ["vm-size", "machine-type"])]
    instance_type: Option<String>,
    /// CPUs of a machine on vSphere and Nutanix.
    #[arg(long, value_name = "NUMBER")]
    cpus: Option<u32>,
    /// Memory of a machine in MiB on vSphere and Nutanix.
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u32>,
    /// Region of AWS, Azure, GCP.
    #[arg(long)]
    region: Option<String>,
    /// Zone of AWS, Azure, GCP.
    #[arg(long)]
    zone: Option<String>,
    /// Network of GCP and vSphere, virtual network of Azure.
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
    /// Subnet of AWS (subnet-ID or name), Azure and GCP (name), Nutanix (name or UUID).
    #[arg(long)]
    subnet: Option<String>,
    /// Resource group of Azure.
    #[arg(long, value_name = "NAME")]
    resource_group: Option<String>,
    /// Project of GCP.
    #[arg(long)]
    project: Option<String>,
    /// vCenter server of vSphere.
    #[arg(long, value_name = "HOST")]
    server: Option<String>,
    /// Data center of vSphere.
    #[arg(long, value_name = "NAME")]
    datacenter: Option<String>,
    /// Datastore of vSphere.
    #[arg(long, value_name = "PATH")]
    datastore: Option<String>,
    /// Folder of vSphere.
    #[arg(long, value_name = "PATH")]
    folder: Option<String>,
    /// Resource pool of vSphere.
    #[arg(long, value_name = "PATH")]
    resource_pool: Option<String>,
    /// Prism Element cluster of Nutanix, its name or UUID.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

impl MachineSet {
    /// Prints the MachineSet; what was left out and what may be a mistake goes to standard error.
    ///
    /// # Errors
    /// The input cannot be read, or an option is missing or of no use.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let objects = Reader::new(std::io::stdin()).objects(&self.files)?;
        let mut options = MachineSetOptions::from(self.settings);
        let mut platform = self.platform;
        for Located { at, object } in &objects.others {
            let Some(infrastructure) = Infrastructure::of(object) else { continue };
            infrastructure.complete(&mut options);
            if let (None, Some(named)) = (platform, infrastructure.platform()) {
                let field = "status.platformStatus.type";
                platform =
                    Some(named.with_context(|| format!("{at}, field {field} cannot be used"))?);
            }
        }
        let worker = worker(&objects, self.from.as_deref())?;
        match generate(platform, &options, worker) {
            Ok(generated) => {
                if generated.is_among(objects.others.iter().map(|other| &other.object)) {
                    let there = "a MachineSet of that name is there, which this one would change";
                    tell("warning", &format!("metadata.name: {there}; choose another --name"));
                }
                let Generated { machine_set, left_out, notes, warnings } = generated;
                for member in left_out {
                    tell("note", &format!("not taken over, for it serves Linux alone: {member}"));
                }
                for note in notes {
                    tell("note", &note);
                }
                for warning in warnings {
                    tell("warning", &warning.to_string());
                }
                let yaml = serde_saphyr::to_string(&machine_set)?;
                self.output.print(&machine_set, || yaml)?;
                Ok(Answer::Yes)
            }
            Err(
                error @ (MachineSetError::Missing { .. }
                | MachineSetError::NoPlatform
                | MachineSetError::OtherPlatform { .. }
                | MachineSetError::Unused { .. }),
            ) => Err(error.into()),
            Err(error) => Ok(no(error)),
        }
    }
}

/// The MachineSet to take over, if the input has any.
fn worker<'a>(objects: &'a Objects, name: Option<&str>) -> anyhow::Result<Option<Worker<'a>>> {
    let sets: Vec<_> = Selection::new(objects, None)?.located_machine_sets().collect();
    if sets.is_empty() && name.is_none() {
        return Ok(None);
    }
    let files: Vec<_> = sets.iter().map(|set| set.at.to_string()).collect();
    let worker = Worker::choose(sets.iter().map(|set| &set.object), name).with_context(|| {
        format!("cannot take over a {MACHINE_SET_KIND} of {}", files.join("; "))
    })?;
    Ok(Some(worker))
}

impl From<Settings> for MachineSetOptions {
    fn from(settings: Settings) -> Self {
        Self {
            cluster: settings.cluster,
            cpus: settings.cpus,
            datacenter: settings.datacenter,
            datastore: settings.datastore,
            disk_gib: settings.disk_gib,
            folder: settings.folder,
            image: settings.image,
            infrastructure: settings.infrastructure,
            instance_type: settings.instance_type,
            memory_mib: settings.memory_mib,
            name: settings.name,
            network: settings.network,
            project: settings.project,
            region: settings.region,
            replicas: settings.replicas,
            resource_group: settings.resource_group,
            resource_pool: settings.resource_pool,
            server: settings.server,
            subnet: settings.subnet,
            zone: settings.zone,
        }
    }
}
