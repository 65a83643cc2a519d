//! One pass of the daemon.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Client;

use super::super::shared::Shared;
use super::{DaemonError, Settings};

pub(super) struct Passes<'a> {
    host: &'a Shared,
    settings: &'a Settings,
    node: &'a str,
    client: &'a Client,
}

impl<'a> Passes<'a> {
    pub(super) fn new(
        host: &'a Shared,
        settings: &'a Settings,
        node: &'a str,
        client: &'a Client,
    ) -> Self {
        Self { host, settings, node, client }
    }

    pub(super) async fn run(&mut self) -> Result<Duration, DaemonError> {
        let _ = (self.host, self.settings, self.node, self.client);
        Ok(Duration::from_secs(120))
    }
}

/// What of a Node a pass depends on.
pub(super) fn concern(node: &Node) -> String {
    format!("{:?}", node.metadata.annotations)
}
