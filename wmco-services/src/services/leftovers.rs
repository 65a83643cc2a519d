//! Which programs a service may have left running when it does not run itself.
//!
//! A service whose program starts another one (the log runner starts the kubelet) can end without it. What
//! is left holds ports and files, and no process of the Service Control Manager leads to it; so it is
//! known by its program's path.
//!
//! Source: `spec/wicd.md`, section 23.6, row 52.

use std::collections::BTreeSet;

use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use crate::manifest::Manifest;
use crate::windows::{Service, ServiceName};

/// The command lines of all services, as they are on the host and as manifests have them.
pub(super) struct Commands<'a>(Vec<(&'a ServiceName, &'a str)>);

impl<'a> Commands<'a> {
    pub(super) fn new(
        services: &'a [Service],
        manifests: impl IntoIterator<Item = &'a Manifest>,
    ) -> Self {
        let seen = services.iter().map(|seen| (&seen.name, seen.config.command.as_str()));
        let wanted = manifests
            .into_iter()
            .flat_map(Manifest::services)
            .map(|wanted| (&wanted.name, wanted.command.as_str()));
        Self(seen.chain(wanted).collect())
    }

    /// Programs that are this service's and nobody else's, so that a process that runs one while the
    /// service does not is left over. Only what lies below our root counts, and nothing that another
    /// service, running or not, has anywhere on its command line.
    pub(super) fn own(&self, service: &ServiceName) -> BTreeSet<WindowsPath> {
        let Ok(root) = host::ROOT.parse::<WindowsPath>() else { return BTreeSet::new() };
        let of = |mine: bool| self.0.iter().filter(move |(name, _)| (*name == service) == mine);
        let others: BTreeSet<WindowsPath> = of(false)
            .flat_map(|(_, command)| mentioned(command))
            .chain(host::AGENT.parse().ok())
            .collect();
        of(true)
            .flat_map(|(_, command)| run(command))
            .filter(|program| program.is_within(&root) && !others.contains(program))
            .collect()
    }
}

/// Programs that a command line runs: the first word, and what the log runner wraps.
fn run(command: &str) -> Vec<WindowsPath> {
    let mut words = command.split_whitespace().map(|word| word.trim_matches('"'));
    let first = words.next().and_then(program);
    let wraps = first.as_ref().is_some_and(|first| {
        host::LOG_RUNNER.parse().is_ok_and(|runner: WindowsPath| runner == *first)
    });
    let wrapped = words.find(|word| wraps && !word.starts_with('-')).and_then(program);
    first.into_iter().chain(wrapped).collect()
}

/// Programs that a command line names in any way.
fn mentioned(command: &str) -> Vec<WindowsPath> {
    let words = command.split(|c: char| c.is_whitespace() || "=\"',;".contains(c));
    words.filter_map(|word| program(&word.replace('/', "\\"))).collect()
}

fn program(word: &str) -> Option<WindowsPath> {
    let path: WindowsPath = word.parse().ok()?;
    path.file_name().to_ascii_lowercase().ends_with(".exe").then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a service `x` owns that runs `command`, beside a service `y` that runs `other`.
    fn own(command: &str, other: &str) -> Vec<String> {
        let (x, y) = ("x".parse().unwrap(), "y".parse().unwrap());
        let commands = Commands(vec![(&x, command), (&y, other)]);
        commands.own(&"X".parse().unwrap()).into_iter().map(|path| path.to_string()).collect()
    }

    const RUNNER: &str = r"C:\k\kube-log-runner.exe -log-file=C:\x.log";
    const NONE: [&str; 0] = [];

    #[test]
    fn row_52_a_program_of_ours_is_its_services() {
        assert_eq!(own(r"C:\k\a.exe --with C:\k\b.exe", "y"), [r"C:\k\a.exe"]);
        assert_eq!(own(r#""C:\k\a.exe" -v"#, ""), [r"C:\k\a.exe"]);
    }

    #[test]
    fn row_52_a_wrapped_program_is_its_services_and_the_wrapper_only_if_nobody_else_has_it() {
        let command = format!(r"{RUNNER} C:\k\a.exe --with C:\k\b.exe");
        assert_eq!(own(&command, "y"), [r"C:\k\a.exe", r"C:\k\kube-log-runner.exe"]);
        assert_eq!(own(&command, &format!(r"{RUNNER} C:\k\b.exe")), [r"C:\k\a.exe"]);
    }

    #[test]
    fn row_52_what_another_service_names_in_any_way_is_not_its_own() {
        for other in [
            r"C:\k\A.EXE",
            r#""C:\k\a.exe" -v"#,
            r"cmd.exe /c C:/k/a.exe",
            r"y.exe --child=C:\k\a.exe",
            r"y.exe --children=z,C:\k\a.exe",
        ] {
            assert_eq!(own(r"C:\k\a.exe", other), NONE, "{other}");
        }
    }

    #[test]
    fn row_52_programs_of_others_and_the_agent_are_nobodys() {
        for command in [
            r"C:\Windows\System32\svchost.exe -k netsvcs",
            r"C:\kube\a.exe",
            r"C:\k\..\a.exe",
            "a.exe",
            r"C:\k\a",
            "\"\"",
            "",
            r"C:\other\runner.exe -x C:\k\a.exe",
            host::AGENT,
        ] {
            assert_eq!(own(command, ""), NONE, "{command}");
        }
        assert_eq!(own(&format!("{RUNNER} {}", host::AGENT), RUNNER), NONE);
    }
}
