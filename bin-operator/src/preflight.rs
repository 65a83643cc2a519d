//! Whether the cluster is fit for Windows nodes, looked at once per change.

use serde_json::{Value, json};
use wmco_core::preflight::{self, ClusterSeen, Finding, NodeSeen, Seen};

use crate::config::Config;
use crate::problems::{About, Found, Problem};
use crate::snapshot;
use crate::sources::Sources;

/// What was seen last, and what was found.
#[derive(Debug, Default)]
pub struct Preflight {
    seen: ClusterSeen,
    findings: Vec<Finding>,
}

impl Preflight {
    /// What was found last.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Looks at the caches, tells what was found, and returns whether new work has to wait.
    pub fn look(&mut self, sources: &Sources, config: &Config, problems: &mut Found) -> bool {
        let seen = seen(sources, config);
        if seen != self.seen {
            self.findings = preflight::cluster(&seen);
            self.seen = seen;
        }
        let told = self.findings.iter().map(|finding| {
            let text = finding.to_string();
            let problem =
                Problem { text, reason: finding.reason(), about: About::Cluster, topic: None };
            (problem, finding.patience().unsigned_abs())
        });
        problems.extend(told);
        self.findings.iter().any(Finding::blocks)
    }
}

fn seen(sources: &Sources, config: &Config) -> ClusterSeen {
    let api_server = sources.api_server.get();
    ClusterSeen {
        server_version: sources.server_version.borrow().clone(),
        infrastructure: sources.infrastructure.seen(),
        cluster_version: sources.cluster_version.seen(),
        network: sources.network.seen(),
        operator_network: sources.operator_network.seen(),
        api_server: api_server.map_or(Seen::Unknown, |spec| Seen::Object(json!({ "spec": spec }))),
        proxy: snapshot::proxy(sources, config).err(),
        worker_pool: sources.pool.seen_as(|_| Value::Null),
        controller_config: sources.controller_config.seen_as(|_| Value::Null),
        nodes: sources.nodes.state().iter().filter_map(|node| NodeSeen::of(node)).collect(),
    }
}
