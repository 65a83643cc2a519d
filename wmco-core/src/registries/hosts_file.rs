//! The file that containerd reads for one registry.
//!
//! # Source
//! containerd's documentation of `hosts.toml`; the form is that of `docs/contract/registries.md`, REG11.

use toml_edit::{Array, Decor, DocumentMut, Item, Key, Table, Value, value};
use zeroize::Zeroizing;

use super::endpoint::{Ability, Endpoint, EndpointReason, Transport};
use crate::secret::Secret;

/// The name of the header. containerd writes its tokens under the same key, and keys of another case would stay
/// beside it. Source: `docs/contract/registries.md`, REG11.
const AUTHORIZATION: &str = "Authorization";

/// containerd's whole configuration of one registry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct HostsFile {
    /// The endpoints that are asked first, in order.
    pub(super) endpoints: Vec<Endpoint>,
    /// The endpoint that is asked last. Without it the file is empty, and containerd ignores it.
    pub(super) server: Option<Endpoint>,
}

impl HostsFile {
    /// Whether the source must not be asked.
    pub(super) fn keeps_from_source(&self) -> bool {
        let because = self.server.as_ref().map(|server| &server.because);
        matches!(because, Some(EndpointReason::InPlaceOfSource | EndpointReason::Closed))
    }

    /// Whether a mirror is asked.
    pub(super) fn has_mirror(&self) -> bool {
        self.endpoints.iter().any(|it| matches!(it.because, EndpointReason::Mirror { .. }))
    }

    /// The text of the file. It holds credentials.
    pub(super) fn render(&self) -> Secret {
        let Some(server) = &self.server else { return Secret::default() };
        let mut document = DocumentMut::new();
        let root = document.as_table_mut();
        root.insert("server", value(server.url()));
        insert(root, "\n", "override_path", true.into());
        if server.ability != Ability::PullAndResolve {
            insert(root, "", "capabilities", capabilities(server.ability));
        }
        if server.transport == Transport::AnyCertificate {
            insert(root, "", "skip_verify", true.into());
        }
        if let Some(header) = header(server, "", "\n") {
            root.insert("header", Item::Table(header));
        }
        let mut hosts = Table::new();
        hosts.set_implicit(true);
        for endpoint in &self.endpoints {
            hosts.insert(&endpoint.url(), Item::Table(host(endpoint)));
        }
        root.insert("host", Item::Table(hosts));
        // The document keeps its own copy, which is freed without being wiped.
        Secret::new(Zeroizing::new(document.to_string()).as_bytes())
    }
}

fn host(endpoint: &Endpoint) -> Table {
    let mut table = Table::new();
    insert(&mut table, "  ", "capabilities", capabilities(endpoint.ability));
    insert(&mut table, "  ", "override_path", true.into());
    if endpoint.transport == Transport::AnyCertificate {
        insert(&mut table, "  ", "skip_verify", true.into());
    }
    if let Some(header) = header(endpoint, "  ", "  ") {
        table.insert("header", Item::Table(header));
    }
    table
}

/// The table with the credentials of `endpoint`, indented by `indent` and placed after `before`.
fn header(endpoint: &Endpoint, indent: &str, before: &str) -> Option<Table> {
    let credentials = endpoint.credentials.as_ref()?;
    let text = String::from_utf8_lossy(credentials.header().expose()).into_owned();
    let mut table = Table::new();
    table.decor_mut().set_prefix(before);
    insert(&mut table, &format!("{indent}  "), AUTHORIZATION, text.into());
    Some(table)
}

fn capabilities(ability: Ability) -> Value {
    Value::Array(ability.names().iter().copied().collect::<Array>())
}

fn insert(table: &mut Table, before: &str, key: &str, value: Value) {
    let key = Key::new(key).with_leaf_decor(Decor::new(before, " "));
    table.insert_formatted(&key, Item::Value(value));
}
