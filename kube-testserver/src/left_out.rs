//! Resources of real servers that this server does not have: they get 501, not 404.

use super::route::ResourcePath;

/// Group, versions and plurals. Source: the API reference of Kubernetes 1.36.
const LEFT_OUT: &[(&str, &[&str], &[&str])] = &[
    (
        "",
        &["v1"],
        &[
            "componentstatuses",
            "endpoints",
            "limitranges",
            "persistentvolumeclaims",
            "persistentvolumes",
            "podtemplates",
            "replicationcontrollers",
            "resourcequotas",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &["v1"],
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    ),
    ("apiregistration.k8s.io", &["v1"], &["apiservices"]),
    ("apps", &["v1"], &["controllerrevisions"]),
    ("autoscaling", &["v1", "v2"], &["horizontalpodautoscalers"]),
    ("batch", &["v1"], &["cronjobs", "jobs"]),
    ("flowcontrol.apiserver.k8s.io", &["v1"], &["flowschemas", "prioritylevelconfigurations"]),
    (
        "networking.k8s.io",
        &["v1"],
        &["ingressclasses", "ingresses", "ipaddresses", "networkpolicies", "servicecidrs"],
    ),
    ("node.k8s.io", &["v1"], &["runtimeclasses"]),
    (
        "resource.k8s.io",
        &["v1"],
        &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"],
    ),
    ("scheduling.k8s.io", &["v1"], &["priorityclasses"]),
    (
        "storage.k8s.io",
        &["v1"],
        &[
            "csidrivers",
            "csinodes",
            "csistoragecapacities",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
        ],
    ),
];

/// Resources of the feature `admission-policy`.
#[cfg(not(feature = "admission-policy"))]
const WITHOUT_POLICIES: &[&str] =
    &["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
#[cfg(feature = "admission-policy")]
const WITHOUT_POLICIES: &[&str] = &[];

/// Whether a real server has the resource of this path.
pub(crate) fn is_left_out(path: &ResourcePath) -> bool {
    let is_of = |group: &str, versions: &[&str], plurals: &[&str]| {
        path.group == group
            && versions.contains(&path.version.as_str())
            && plurals.contains(&path.plural.as_str())
    };
    LEFT_OUT.iter().any(|(group, versions, plurals)| is_of(group, versions, plurals))
        || is_of("admissionregistration.k8s.io", &["v1"], WITHOUT_POLICIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Group, versions and plurals of each row of the README's table.
    fn documented() -> Vec<[String; 3]> {
        let readme = include_str!("../README.md");
        let (_, table) =
            readme.split_once("| Group | Versions | Resources |\n|---|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let row = |line: &str| {
            let cells: Vec<_> = line.trim_matches(['|', ' ']).split(" | ").collect();
            let [group, versions, plurals] = cells.try_into().unwrap();
            [if group == "core" { "" } else { group }, versions, plurals].map(str::to_owned)
        };
        rows.map(row).collect()
    }

    #[test]
    fn the_readme_lists_what_is_left_out() {
        let left_out = LEFT_OUT.iter().map(|(group, versions, plurals)| {
            [(*group).to_owned(), versions.join(", "), plurals.join(", ")]
        });
        assert_eq!(documented(), left_out.collect::<Vec<_>>());
    }
}
