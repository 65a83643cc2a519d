//! Asks the cluster for what tells which Node is this host's own. `wmco_services::daemon` decides.
//!
//! # Guarantees
//! - A host whose kubelet has a certificate and whose Node has an address of it costs one request for one
//!   Node, however many there are.
//! - Else the Windows Nodes come page by page, and of each only a name and addresses are kept.

use k8s_openapi::api::core::v1::Node;
use kube::api::{GetParams, ListParams, ObjectList};
use kube::core::{Request, Resource as _};
use kube::{Client, Error};
use wmco_core::names;
use wmco_services::daemon::{self, HostIdentity, NodeClaim, NodeSearchError, Search};
use wmco_services::limits;

/// Why it cannot be told which Node is the own one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnNodeError {
    /// The cluster does not answer.
    #[error("the cluster does not tell its nodes")]
    Api(#[from] Error),
    /// The answer is none.
    #[error(transparent)]
    Search(#[from] NodeSearchError),
}

/// Searches for the Node of the host that these marks are of.
///
/// # Errors
/// [`OwnNodeError`]; another search may find it.
pub(crate) async fn search(client: &Client, marks: &HostIdentity) -> Result<Search, OwnNodeError> {
    for name in daemon::names_to_ask(marks) {
        let settled =
            named(client, name).await?.and_then(|node| daemon::search_result_of(&node, marks));
        if let Some(search) = settled {
            return Ok(search);
        }
    }
    Ok(daemon::find_node(windows_nodes(client).await?, marks)?)
}

/// The Node of that name; `None` when there is none.
async fn named(client: &Client, name: &str) -> kube::Result<Option<NodeClaim>> {
    let request = nodes().get(name, &GetParams::default()).map_err(Error::BuildRequest)?;
    match client.request(request).await {
        Err(Error::Api(status)) if status.is_not_found() => Ok(None),
        node => node.map(Some),
    }
}

/// All Windows Nodes. Those of Linux may be many and big, so they stay in the cluster.
async fn windows_nodes(client: &Client) -> kube::Result<Vec<NodeClaim>> {
    let windows = format!("{}={}", names::OS_LABEL, names::OS_WINDOWS);
    let mut page = ListParams::default().labels(&windows).limit(limits::NODE_PAGE);
    let mut all = Vec::new();
    loop {
        let request = nodes().list(&page).map_err(Error::BuildRequest)?;
        let list: ObjectList<NodeClaim> = client.request(request).await?;
        all.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(all),
        }
    }
}

fn nodes() -> Request {
    Request::new(Node::url_path(&(), None))
}
