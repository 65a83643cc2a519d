//! Describes the host as it is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::{
    Access, Agent, FileState, HostFitness, HostState, PROTOCOL, Probe, RebootReason, RootAccess,
    ServiceFacts,
};
use wmco_core::winpath::WindowsPath;
use x509_parser::pem::Pem;
use x509_parser::time::ASN1Time;

use super::{AgentError, foreign, known, root, staging, state};
use crate::limits;
use crate::metadata::Cloud;
use crate::windows::{EntryKind, Files, Machine, Service, Windows, WindowsError};

pub(super) fn probe(
    windows: &dyn Windows,
    version: &str,
    now: Timestamp,
) -> Result<Probe, AgentError> {
    let (files, machine) = (windows.files(), windows.machine());
    let mut state = state::read(windows)?;
    if let Some(state) = &mut state {
        // A removed quarantine folder is no longer reported.
        let there = |folder: &WindowsPath| files.kind(folder).is_ok_and(|kind| kind.is_some());
        state.quarantined.retain(|quarantined| there(&quarantined.folder));
    }
    let files_seen = contents(files, state.as_ref())?;
    let installed = files_seen.get(&known(host::AGENT));
    let installed = installed.filter(|file| !file.doubted).map(|file| file.sha256);
    let sha256 = staging::own_digest(windows)?;
    let (root, staged) = if root::is_closed(files)? {
        (RootAccess::Closed, staging::contents(windows)?)
    } else {
        (RootAccess::Open, BTreeSet::new())
    };
    let services = windows.services().list()?;
    Ok(Probe {
        protocol: PROTOCOL,
        agent: Agent { version: version.to_owned(), sha256, installed },
        host_name: machine.host_name()?,
        os_build: machine.os_build()?,
        addresses: machine.addresses()?,
        ipv6: machine.ipv6()?,
        metadata_name: metadata_name(machine),
        containers: machine.containers()?,
        reboot: reboot(windows)?,
        boot_id: machine.boot_id()?,
        files: files_seen,
        foreign_containerd: foreign::containerd(&services),
        fitness: fitness(windows, &services),
        services: tagged(services),
        environment: environment(windows)?,
        networks: networks(windows)?,
        directories: directories(files)?,
        root,
        staged,
        daemon_certificate_valid: certificate_is_valid(files, now)?,
        state,
    })
}

/// The name in the metadata service of a cloud that names its kubelets so. Without an answer there is none: the daemon
/// tells the reason, for the kubelet does not start then.
fn metadata_name(machine: &dyn Machine) -> Option<String> {
    let cloud = Cloud::of(&machine.firmware().ok()?)?;
    cloud.host_name(machine, limits::METADATA_OF_PROBE).ok().filter(|name| !name.is_empty())
}

/// Reads the facts that decide whether the host can become a node. A fact that cannot be read is left out: most are
/// advice, and a host that is a node already needs none.
fn fitness(windows: &dyn Windows, services: &[Service]) -> HostFitness {
    let machine = windows.machine();
    let is_taken = |port: &u16| machine.is_listening(*port).unwrap_or_default();
    HostFitness {
        default_routes: machine.default_routes().ok().map(|routes| routes.len()),
        installation: machine.installation().ok(),
        is_administrator: machine.is_administrator().ok(),
        free_bytes: machine.free_bytes(&known(host::ROOT)).ok(),
        taken_ports: host::NODE_PORTS.into_iter().filter(is_taken).collect(),
        foreign_kubelet: foreign::kubelet(services),
    }
}

/// Returns the state of each file below our root, and of recorded files elsewhere. Staged files are reported by their
/// digests, the quarantine is of no interest, and hashing logs would cost time.
fn contents(
    files: &dyn Files,
    state: Option<&HostState>,
) -> Result<BTreeMap<WindowsPath, FileState>, WindowsError> {
    let (root, staging) = (known(host::ROOT), known(host::STAGING));
    let recorded = state.iter().flat_map(|state| &state.files);
    let mut paths: BTreeSet<WindowsPath> = files
        .walk_around(&root, Some(&known(host::QUARANTINE)))?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File && !entry.path.is_within(&staging))
        .map(|entry| entry.path)
        .collect();
    paths.extend(recorded.filter(|path| !path.is_within(&root)).cloned());
    let mut seen = BTreeMap::new();
    for path in paths {
        let doubted = state.is_some_and(|state| state.doubts(&path));
        match state_of(files, &path, doubted) {
            Ok(Some(state)) => {
                seen.insert(path, state);
            }
            // Deleted meanwhile, or a program is writing to it, so it is no file that we place.
            Ok(None) | Err(WindowsError::Locked { .. } | WindowsError::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

fn state_of(
    files: &dyn Files,
    path: &WindowsPath,
    doubted: bool,
) -> Result<Option<FileState>, WindowsError> {
    let Some(sha256) = files.digest(path)? else { return Ok(None) };
    let protected = files.access(path)? == Access::Administrators;
    Ok(Some(FileState { sha256, protected, doubted }))
}

fn reboot(windows: &dyn Windows) -> Result<BTreeSet<RebootReason>, WindowsError> {
    let mut reasons = windows.machine().pending_reboot()?;
    if !windows.environment().changed_since_boot()?.is_empty() {
        reasons.insert(RebootReason::Environment);
    }
    if windows.roots().changed_since_boot()? {
        reasons.insert(RebootReason::Roots);
    }
    Ok(reasons)
}

/// Services with our tag, including the daemon's.
fn tagged(services: Vec<Service>) -> BTreeMap<String, ServiceFacts> {
    let ours = services
        .into_iter()
        .filter(|service| service.config.description.starts_with(host::SERVICE_TAG));
    let facts = ours.map(|service| {
        let facts = ServiceFacts {
            state: service.state,
            command: service.config.command,
            description: service.config.description,
            dependencies: service.config.dependencies.iter().map(ToString::to_string).collect(),
        };
        (service.name.to_string(), facts)
    });
    facts.collect()
}

fn environment(windows: &dyn Windows) -> Result<BTreeMap<String, Sha256>, WindowsError> {
    let mut digests = BTreeMap::new();
    for name in host::PROXY_VARIABLES {
        if let Some(value) = windows.environment().get(name)? {
            digests.insert(name.to_owned(), Sha256::of(value.as_bytes()));
        }
    }
    Ok(digests)
}

fn networks(windows: &dyn Windows) -> Result<BTreeSet<String>, WindowsError> {
    let mut names = windows.machine().networks()?;
    names.retain(|name| host::HNS_NETWORKS.contains(&name.as_str()));
    Ok(names)
}

/// Our folders that exist and are closed as required.
fn directories(files: &dyn Files) -> Result<BTreeSet<WindowsPath>, WindowsError> {
    let mut there = BTreeSet::new();
    for folder in host::DIRECTORIES.map(known) {
        let right = match Access::of_directory(&folder) {
            Access::Administrators => root::is_closed_folder(files, &folder)?,
            Access::Inherited => files.kind(&folder)? == Some(EntryKind::Directory),
        };
        if right {
            there.insert(folder);
        }
    }
    Ok(there)
}

/// Whether the daemon's certificate is valid at `now`.
fn certificate_is_valid(files: &dyn Files, now: Timestamp) -> Result<bool, WindowsError> {
    let path = known(host::WICD_CURRENT_CERTIFICATE);
    let Some(content) = files.read(&path, limits::JSON_BYTES)? else { return Ok(false) };
    let Ok(now) = ASN1Time::from_timestamp(now.as_second()) else { return Ok(false) };
    let leaf = Pem::iter_from_buffer(&content)
        .filter_map(Result::ok)
        .find(|block| block.label == "CERTIFICATE");
    Ok(leaf.is_some_and(|leaf| {
        leaf.parse_x509().is_ok_and(|certificate| certificate.validity().is_valid_at(now))
    }))
}
