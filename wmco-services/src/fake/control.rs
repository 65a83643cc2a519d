//! Controls of a fake host for tests and simulations.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::protocol::{Access, FeatureState};
use wmco_core::winpath::WindowsPath;

use super::{Call, Content, FakeWindows, Fault, Node, Snapshot, State, Tree, lock, snapshot};
use crate::windows::{DefaultRoute, HttpAnswer, HttpRequest, Interface, ScriptOutput};

impl FakeWindows {
    /// Sets the function that answers every script. Until then every script fails as unknown.
    pub fn set_powershell(&self, answer: impl Fn(&str) -> ScriptOutput + Send + Sync + 'static) {
        *lock(&self.shared.powershell) = Arc::new(answer);
    }

    /// Makes each script that contains a given text succeed with the output beside it; others fail.
    pub fn answer_scripts(&self, answers: &[(&str, &str)]) {
        let answers: Vec<(String, String)> =
            answers.iter().map(|(part, out)| ((*part).to_owned(), (*out).to_owned())).collect();
        self.set_powershell(move |script| {
            match answers.iter().find(|(part, _)| script.contains(part)) {
                Some((_, stdout)) => ScriptOutput { stdout: stdout.clone(), ..Default::default() },
                None => ScriptOutput {
                    code: 1,
                    stderr: "no answer is prepared for this script".to_owned(),
                    ..Default::default()
                },
            }
        });
    }

    /// Makes the next `times` calls of this kind fail, if `object` is part of their object's name.
    pub fn fail(&self, call: Call, object: &str, times: usize, fault: Fault) {
        self.state().faults.plan(call, object, times, fault);
    }

    /// Lets `changes` more changing calls succeed; in the next one the process dies half way, and every later call
    /// fails until [`Self::heal`].
    pub fn cut_after(&self, changes: usize) {
        self.state().faults.cut_after(changes);
    }

    /// Whether the process has died as [`Self::cut_after`] planned.
    pub fn is_cut(&self) -> bool {
        self.state().faults.is_cut()
    }

    /// Removes all planned faults.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// Returns the changing calls that succeeded so far, each with its object, in order.
    pub fn changes(&self) -> Vec<(Call, String)> {
        self.state().faults.log.clone()
    }

    /// Empties the list of [`Self::changes`].
    pub fn clear_changes(&self) {
        self.state().faults.log.clear();
    }

    /// Changes the file tree directly, as an SFTP server or a person at the host would.
    pub fn with_tree<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> T {
        work(&mut self.state().tree)
    }

    /// Creates a file and its parent folders, without faults and limits.
    pub fn put_file(&self, path: &WindowsPath, bytes: impl Into<Vec<u8>>) {
        self.with_tree(|tree| {
            if let Some(parent) = path.parent() {
                tree.make_folders(&parent);
            }
            tree.insert(path.clone(), Content::File(Arc::new(bytes.into())), Access::Inherited);
        });
    }

    /// Returns the bytes of a file.
    pub fn file(&self, path: &WindowsPath) -> Option<Arc<Vec<u8>>> {
        self.with_tree(|tree| tree.file(path).cloned())
    }

    /// Limits the bytes of all files together; `None`: no limit.
    pub fn set_disk_bytes(&self, bytes: Option<u64>) {
        self.state().tree.disk_bytes = bytes;
    }

    /// Returns the bytes of all files together.
    pub fn used_bytes(&self) -> u64 {
        self.with_tree(|tree| {
            let size = |(_, node): (&WindowsPath, &Node)| match &node.content {
                Content::File(bytes) => bytes.len() as u64,
                Content::Directory | Content::Link(_) => 0,
            };
            tree.nodes().map(size).sum()
        })
    }

    /// Lets everybody write to a file, until its access is restricted.
    pub fn open_to_all(&self, path: &WindowsPath) {
        self.state().tree.open.insert(path.clone());
    }

    /// Makes another program hold or release a file.
    pub fn set_locked(&self, path: &WindowsPath, locked: bool) {
        let mut state = self.state();
        if locked {
            state.tree.locked.insert(path.clone());
        } else {
            state.tree.locked.remove(path);
        }
    }

    /// Sets the modification time of written files.
    pub fn set_now(&self, now: Timestamp) {
        self.state().tree.now = now;
    }

    /// Returns the single addresses that the host has routes to. A restart removes them.
    pub fn host_routes(&self) -> BTreeSet<Ipv4Addr> {
        self.state().host_routes.clone()
    }

    /// Sets the addresses of the host's first interface, which has the default route.
    pub fn set_addresses(&self, addresses: Vec<Ipv4Addr>) {
        self.state().addresses = addresses;
    }

    /// Sets the IPv6 addresses of that interface; none by default.
    pub fn set_ipv6(&self, addresses: Vec<Ipv6Addr>) {
        self.state().ipv6 = addresses;
    }

    /// Sets the makers that the firmware names, for example `Amazon EC2`.
    pub fn set_firmware(&self, makers: &str) {
        makers.clone_into(&mut self.state().firmware);
    }

    /// Adds an interface.
    pub fn add_interface(&self, interface: Interface) {
        self.state().more_interfaces.push(interface);
    }

    /// Sets the default routes. Until then there is one with all addresses.
    pub fn set_default_routes(&self, routes: Vec<DefaultRoute>) {
        self.state().routes = Some(routes);
    }

    /// Sets the free bytes of the disk; 64 GiB by default.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.state().free_bytes = bytes;
    }

    /// Sets whether programs run with the rights of an administrator, as they do by default.
    pub fn set_administrator(&self, is_administrator: bool) {
        self.state().is_administrator = is_administrator;
    }

    /// Makes a foreign program listen on the TCP port.
    pub fn listen(&self, port: u16) {
        self.state().listening.insert(port);
    }

    /// Sets the state of the containers feature.
    pub fn set_containers(&self, state: FeatureState) {
        self.state().containers = state;
    }

    /// Makes Windows unable to decode the certificate with this digest of its DER form.
    pub fn refuse_root(&self, sha256: Sha256) {
        self.state().refused_roots.insert(sha256);
    }

    /// Sets or removes a system-wide variable, as a person or another program does.
    pub fn change_variable(&self, name: &str, value: Option<&str>) {
        let mut state = self.state();
        match value {
            None => state.environment.remove(&name.to_uppercase()),
            Some(value) => {
                let entry = (name.to_owned(), value.to_owned());
                state.environment.insert(name.to_uppercase(), entry)
            }
        };
    }

    /// Sets the value of a variable that services inherit, whatever is set and however often the host restarts.
    pub fn give_services(&self, name: &str, value: Option<&str>) {
        let value = value.map(str::to_owned);
        self.state().environment_given.insert(name.to_uppercase(), value);
    }

    /// Sets a system-wide variable to a value that is no text.
    pub fn set_variable_unreadable(&self, name: &str) {
        self.state().environment.insert(name.to_uppercase(), (name.to_owned(), String::new()));
    }

    /// Adds an HNS network.
    pub fn add_network(&self, name: &str) {
        self.state().networks.insert(name.to_owned());
    }

    /// Adds a process that belongs to no service.
    pub fn add_process(&self, image: WindowsPath) {
        self.state().processes.push(image);
    }

    /// Returns the images of the processes that belong to no service.
    pub fn processes(&self) -> Vec<WindowsPath> {
        self.state().processes.clone()
    }

    /// Sets the function that answers all HTTP requests; `None` is no answer. Until then all are answered with 200 and
    /// an empty body.
    pub fn set_http(
        &self,
        answer: impl Fn(&HttpRequest<'_>) -> Option<HttpAnswer> + Send + Sync + 'static,
    ) {
        *lock(&self.shared.http) = Arc::new(answer);
    }

    /// Sets the answer to requests for `port`: `status`, or none; other requests are answered as before.
    pub fn set_http_status(&self, port: u16, status: Option<u16>) {
        let others = Arc::clone(&lock(&self.shared.http));
        self.set_http(move |request| {
            if request.address.port() == port {
                status.map(|status| HttpAnswer { status, body: String::new() })
            } else {
                others(request)
            }
        });
    }

    /// Sets whether a restart is only reported to observers, which call [`Self::power_off`] and [`Self::boot`]
    /// themselves. Otherwise it happens at once.
    pub fn set_restart_by_hand(&self, by_hand: bool) {
        self.state().restart_by_hand = by_hand;
    }

    /// Switches the host off: every process and service ends.
    pub fn power_off(&self) {
        self.act_freely(State::power_off);
    }

    /// Starts the host: pending changes take effect, automatic services start.
    pub fn boot(&self) {
        self.act_freely(State::boot);
    }

    /// Whether the host is switched on.
    pub fn is_up(&self) -> bool {
        self.state().up
    }

    /// Returns everything that a program could have left on the host.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(&self.state())
    }
}
