//! Names of the Machine API: labels of MachineSets and Machines, kinds of provider specifications.
//!
//! Source: OpenShift's documentation of compute machine sets, and `docs/contract/machines.md`, MACH17 to MACH19.

/// Kind of MachineSets; group and version are those of [`objects::MACHINE`](super::objects::MACHINE).
pub const MACHINE_SET_KIND: &str = "MachineSet";

/// Label of MachineSets and Machines: infrastructure name of their cluster.
pub const CLUSTER_LABEL: &str = "machine.openshift.io/cluster-api-cluster";

/// Label of Machines: name of their MachineSet.
pub const MACHINE_SET_LABEL: &str = "machine.openshift.io/cluster-api-machineset";

/// Label of Machines: role of the node.
pub const MACHINE_ROLE_LABEL: &str = "machine.openshift.io/cluster-api-machine-role";

/// Label of Machines, like [`MACHINE_ROLE_LABEL`].
pub const MACHINE_TYPE_LABEL: &str = "machine.openshift.io/cluster-api-machine-type";

/// Value of [`MACHINE_ROLE_LABEL`] and [`MACHINE_TYPE_LABEL`].
pub const MACHINE_ROLE_WORKER: &str = "worker";

/// Annotation of MachineSets, written by the Machine API for autoscalers: labels of future nodes, such as
/// `kubernetes.io/arch=arm64`.
pub const CAPACITY_LABELS_ANNOTATION: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";

/// Value of [`CAPACITY_LABELS_ANNOTATION`] for processors that Windows nodes can have.
pub const CAPACITY_AMD64: &str = "kubernetes.io/arch=amd64";

/// Kind of the object with the cluster's platform and infrastructure name.
pub const INFRASTRUCTURE_KIND: &str = "Infrastructure";

/// Version of provider specifications of AWS, Azure, GCP and vSphere.
pub const PROVIDER_VERSION: &str = "machine.openshift.io/v1beta1";

/// Version of Nutanix' provider specification.
pub const NUTANIX_PROVIDER_VERSION: &str = "machine.openshift.io/v1";

/// Kind of AWS' provider specification.
pub const AWS_PROVIDER: &str = "AWSMachineProviderConfig";

/// Kind of Azure's provider specification.
pub const AZURE_PROVIDER: &str = "AzureMachineProviderSpec";

/// Kind of GCP's provider specification.
pub const GCP_PROVIDER: &str = "GCPMachineProviderSpec";

/// Kind of vSphere's provider specification.
pub const VSPHERE_PROVIDER: &str = "VSphereMachineProviderSpec";

/// Kind of Nutanix' provider specification.
pub const NUTANIX_PROVIDER: &str = "NutanixMachineProviderConfig";

/// Secret with the credentials of the Machine API on AWS.
pub const AWS_CREDENTIALS_SECRET: &str = "aws-cloud-credentials";

/// Secret with the credentials of the Machine API on Azure.
pub const AZURE_CREDENTIALS_SECRET: &str = "azure-cloud-credentials";

/// Secret with the credentials of the Machine API on GCP.
pub const GCP_CREDENTIALS_SECRET: &str = "gcp-cloud-credentials";

/// Secret with the credentials of the Machine API on vSphere.
pub const VSPHERE_CREDENTIALS_SECRET: &str = "vsphere-cloud-credentials";

/// Secret with the credentials of the Machine API on Nutanix.
pub const NUTANIX_CREDENTIALS_SECRET: &str = "nutanix-credentials";
