//! Finds a containerd or a kubelet on the host that we did not install.

use wmco_core::names::host;
use wmco_core::protocol::ForeignService;
use wmco_core::winpath::WindowsPath;

use crate::windows::Service;

/// File name of containerd's program.
const CONTAINERD: &str = "containerd.exe";

/// File name of the kubelet's program.
const KUBELET: &str = "kubelet.exe";

/// End of the name of the pipe that our containerd listens on; it is containerd's default.
const PIPE: &str = r"\pipe\containerd-containerd";

/// Returns the first service that collides with our containerd: by its name, or by the pipe that its program listens
/// on. A service whose program lies below our root is ours, also when its creation was cut short.
pub(super) fn containerd(services: &[Service]) -> Option<ForeignService> {
    first(services, host::CONTAINERD_SERVICE, |command| {
        runs(command, CONTAINERD) && listens_on_our_pipe(command)
    })
}

/// Returns the first service that collides with our kubelet: by its name, or since it runs another kubelet.
pub(super) fn kubelet(services: &[Service]) -> Option<ForeignService> {
    first(services, host::KUBELET_SERVICE, |command| runs(command, KUBELET))
}

/// Returns the first service that is not ours and has this name or a conflicting command line.
fn first(
    services: &[Service],
    name: &str,
    in_the_way: impl Fn(&str) -> bool,
) -> Option<ForeignService> {
    let found = services.iter().find(|service| {
        let command = &service.config.command;
        let ours =
            service.config.description.starts_with(host::SERVICE_TAG) || is_below_root(command);
        !ours && (service.name.as_str().eq_ignore_ascii_case(name) || in_the_way(command))
    })?;
    Some(ForeignService { name: found.name.to_string(), command: found.config.command.clone() })
}

/// Returns the program that a command line runs.
fn program(command: &str) -> &str {
    let command = command.trim_start();
    if let Some(quoted) = command.strip_prefix('"') {
        return quoted.split('"').next().unwrap_or_default();
    }
    // Windows accepts an unquoted path with spaces.
    let end = command.to_ascii_lowercase().find(".exe").map(|at| at + ".exe".len());
    end.and_then(|end| command.get(..end)).unwrap_or(command)
}

fn is_below_root(command: &str) -> bool {
    // A service whose creation was cut short has an empty command.
    let path = program(command).parse::<WindowsPath>();
    let root = host::ROOT.parse::<WindowsPath>();
    command.trim().is_empty()
        || matches!((path, root), (Ok(path), Ok(root)) if path.is_within(&root))
}

/// Whether the program of a command line has this file name.
fn runs(command: &str, file: &str) -> bool {
    let name = program(command).rsplit(['\\', '/']).next().unwrap_or_default();
    name.eq_ignore_ascii_case(file)
}

/// Whether the command line names our pipe or no address. The configuration file is not read.
fn listens_on_our_pipe(command: &str) -> bool {
    let mut words = command.split([' ', '=']).map(|word| word.trim_matches('"'));
    let address = words.find(|word| matches!(*word, "--address" | "-a" | "-address"));
    let ours = |given: &str| given.replace('/', "\\").to_ascii_lowercase().ends_with(PIPE);
    address.and_then(|_| words.next()).is_none_or(ours)
}
