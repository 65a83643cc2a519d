//! Columns of the built-in kinds. Source: Kubernetes' `pkg/printers/internalversion`.

use crate::cluster::resources::Resource;

type Columns = &'static [(&'static str, &'static str, i64)];

const S: &str = "string";
const I: &str = "integer";

/// Name, type and priority of each column.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(super) fn columns(resource: &Resource) -> Columns {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps") => &[("Name", S, 0), ("Data", S, 0), ("Age", S, 0)],
        ("" | "events.k8s.io", "events") => &[
            ("Last Seen", S, 0),
            ("Type", S, 0),
            ("Reason", S, 0),
            ("Object", S, 0),
            ("Subobject", S, 1),
            ("Source", S, 1),
            ("Message", S, 0),
            ("First Seen", S, 1),
            ("Count", S, 1),
            ("Name", S, 1),
        ],
        ("", "namespaces") => &[("Name", S, 0), ("Status", S, 0), ("Age", S, 0)],
        ("", "nodes") => &[
            ("Name", S, 0),
            ("Status", S, 0),
            ("Roles", S, 0),
            ("Age", S, 0),
            ("Version", S, 0),
            ("Internal-IP", S, 1),
            ("External-IP", S, 1),
            ("OS-Image", S, 1),
            ("Kernel-Version", S, 1),
            ("Container-Runtime", S, 1),
        ],
        ("", "pods") => &[
            ("Name", S, 0),
            ("Ready", S, 0),
            ("Status", S, 0),
            ("Restarts", S, 0),
            ("Age", S, 0),
            ("IP", S, 1),
            ("Node", S, 1),
            ("Nominated Node", S, 1),
            ("Readiness Gates", S, 1),
        ],
        ("", "secrets") => &[("Name", S, 0), ("Type", S, 0), ("Data", S, 0), ("Age", S, 0)],
        ("", "services") => &[
            ("Name", S, 0),
            ("Type", S, 0),
            ("Cluster-IP", S, 0),
            ("External-IP", S, 0),
            ("Port(s)", S, 0),
            ("Age", S, 0),
            ("Selector", S, 1),
        ],
        ("apps", "deployments") => &[
            ("Name", S, 0),
            ("Ready", S, 0),
            ("Up-to-date", I, 0),
            ("Available", I, 0),
            ("Age", S, 0),
            ("Containers", S, 1),
            ("Images", S, 1),
            ("Selector", S, 1),
        ],
        ("apps", "daemonsets") => &[
            ("Name", S, 0),
            ("Desired", I, 0),
            ("Current", I, 0),
            ("Ready", I, 0),
            ("Up-to-date", I, 0),
            ("Available", I, 0),
            ("Node Selector", S, 0),
            ("Age", S, 0),
            ("Containers", S, 1),
            ("Images", S, 1),
            ("Selector", S, 1),
        ],
        ("policy", "poddisruptionbudgets") => &[
            ("Name", S, 0),
            ("Min Available", S, 0),
            ("Max Unavailable", S, 0),
            ("Allowed Disruptions", I, 0),
            ("Age", S, 0),
        ],
        ("coordination.k8s.io", "leases") => &[("Name", S, 0), ("Holder", S, 0), ("Age", S, 0)],
        ("certificates.k8s.io", _) => &[
            ("Name", S, 0),
            ("Age", S, 0),
            ("SignerName", S, 0),
            ("Requestor", S, 0),
            ("RequestedDuration", S, 0),
            ("Condition", S, 0),
        ],
        ("discovery.k8s.io", _) => &[
            ("Name", S, 0),
            ("AddressType", S, 0),
            ("Ports", S, 0),
            ("Endpoints", S, 0),
            ("Age", S, 0),
        ],
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => &[
            ("Name", S, 0),
            ("Role", S, 0),
            ("Age", S, 0),
            ("Users", S, 1),
            ("Groups", S, 1),
            ("ServiceAccounts", S, 1),
        ],
        ("rbac.authorization.k8s.io" | "apiextensions.k8s.io", _) => {
            &[("Name", S, 0), ("Created At", "date", 0)]
        }
        _ => &[("Name", S, 0), ("Age", S, 0)],
    }
}
