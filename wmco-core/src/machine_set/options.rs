//! The user's options for a new MachineSet.

use std::fmt;

use serde_json::Value;

/// Options for a MachineSet. Values that are not given come from an existing MachineSet or are defaults; values
/// without either are reported as [`MachineSetError::Missing`](super::MachineSetError::Missing).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MachineSetOptions {
    /// Nutanix: name or UUID of the Prism Element cluster.
    pub cluster: Option<String>,
    /// vSphere and Nutanix: number of processors of a machine.
    pub cpus: Option<u32>,
    /// vSphere: data center.
    pub datacenter: Option<String>,
    /// vSphere: datastore.
    pub datastore: Option<String>,
    /// Size of the disk with Windows, in GiB.
    pub disk_gib: Option<u32>,
    /// vSphere: folder of the machines.
    pub folder: Option<String>,
    /// AMI ID on AWS; `PUBLISHER:OFFER:SKU:VERSION` or the ID of an image on Azure; path on GCP; template on
    /// vSphere; name or UUID on Nutanix.
    pub image: Option<String>,
    /// Infrastructure name of the cluster, for example `prod-x7k2p`.
    pub infrastructure: Option<String>,
    /// AWS, Azure and GCP: instance type, for example `m5a.large`.
    pub instance_type: Option<String>,
    /// vSphere and Nutanix: memory of a machine, in MiB.
    pub memory_mib: Option<u32>,
    /// Name of the MachineSet.
    pub name: Option<String>,
    /// Network of GCP and vSphere, virtual network of Azure.
    pub network: Option<String>,
    /// GCP: project.
    pub project: Option<String>,
    /// AWS, Azure and GCP: region.
    pub region: Option<String>,
    /// Number of Machines; one if not given.
    pub replicas: Option<u32>,
    /// Azure: resource group of the machines.
    pub resource_group: Option<String>,
    /// vSphere: resource pool.
    pub resource_pool: Option<String>,
    /// vSphere: the vCenter server.
    pub server: Option<String>,
    /// ID (`subnet-...`) or name of the subnet on AWS, its name on Azure and GCP; name or UUID on
    /// Nutanix.
    pub subnet: Option<String>,
    /// AWS, Azure and GCP: zone.
    pub zone: Option<String>,
}

/// A member of [`MachineSetOptions`]. Displays as its option on the command line, such as `--subnet`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "each is the member of the same name")]
pub enum Setting {
    Cluster,
    Cpus,
    Datacenter,
    Datastore,
    DiskGib,
    Folder,
    Image,
    Infrastructure,
    InstanceType,
    MemoryMib,
    Name,
    Network,
    Project,
    Region,
    Replicas,
    ResourceGroup,
    ResourcePool,
    Server,
    Subnet,
    Zone,
}

impl Setting {
    /// All settings.
    pub const ALL: [Self; 20] = [
        Self::Cluster,
        Self::Cpus,
        Self::Datacenter,
        Self::Datastore,
        Self::DiskGib,
        Self::Folder,
        Self::Image,
        Self::Infrastructure,
        Self::InstanceType,
        Self::MemoryMib,
        Self::Name,
        Self::Network,
        Self::Project,
        Self::Region,
        Self::Replicas,
        Self::ResourceGroup,
        Self::ResourcePool,
        Self::Server,
        Self::Subnet,
        Self::Zone,
    ];

    /// Its option on the command line, without `--`.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Cpus => "cpus",
            Self::Datacenter => "datacenter",
            Self::Datastore => "datastore",
            Self::DiskGib => "disk-gib",
            Self::Folder => "folder",
            Self::Image => "image",
            Self::Infrastructure => "infrastructure",
            Self::InstanceType => "instance-type",
            Self::MemoryMib => "memory-mib",
            Self::Name => "name",
            Self::Network => "network",
            Self::Project => "project",
            Self::Region => "region",
            Self::Replicas => "replicas",
            Self::ResourceGroup => "resource-group",
            Self::ResourcePool => "resource-pool",
            Self::Server => "server",
            Self::Subnet => "subnet",
            Self::Zone => "zone",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}", self.option())
    }
}

impl MachineSetOptions {
    /// The given value of `setting`, in the form of a MachineSet. An empty text counts as not given.
    pub(super) fn value(&self, setting: Setting) -> Option<Value> {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        match setting {
            Setting::Cluster => text(&self.cluster).map(Value::from),
            Setting::Cpus => self.cpus.map(Value::from),
            Setting::Datacenter => text(&self.datacenter).map(Value::from),
            Setting::Datastore => text(&self.datastore).map(Value::from),
            Setting::DiskGib => self.disk_gib.map(Value::from),
            Setting::Folder => text(&self.folder).map(Value::from),
            Setting::Image => text(&self.image).map(Value::from),
            Setting::Infrastructure => text(&self.infrastructure).map(Value::from),
            Setting::InstanceType => text(&self.instance_type).map(Value::from),
            Setting::MemoryMib => self.memory_mib.map(Value::from),
            Setting::Name => text(&self.name).map(Value::from),
            Setting::Network => text(&self.network).map(Value::from),
            Setting::Project => text(&self.project).map(Value::from),
            Setting::Region => text(&self.region).map(Value::from),
            Setting::Replicas => self.replicas.map(Value::from),
            Setting::ResourceGroup => text(&self.resource_group).map(Value::from),
            Setting::ResourcePool => text(&self.resource_pool).map(Value::from),
            Setting::Server => text(&self.server).map(Value::from),
            Setting::Subnet => text(&self.subnet).map(Value::from),
            Setting::Zone => text(&self.zone).map(Value::from),
        }
    }

    /// The given settings.
    pub(super) fn given(&self) -> impl Iterator<Item = Setting> {
        Setting::ALL.into_iter().filter(|setting| self.value(*setting).is_some())
    }
}
