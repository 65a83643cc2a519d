//! The simulated daemon's settings, from its command line.

use jiff::SignedDuration;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeWindows;

use super::super::command_line::{self, CommandLineError};

/// The daemon's program.
const PROGRAM: &str = "windows-instance-config-daemon.exe";

/// Why the daemon ends right after its start.
#[derive(Debug, thiserror::Error)]
pub(in crate::host) enum SettingsError {
    /// An argument is missing or invalid.
    #[error("correct --{flag} in the command line of the daemon's service")]
    Argument { flag: &'static str },
    /// The command line starts another program.
    #[error("the daemon cannot start")]
    CommandLine(#[from] CommandLineError),
}

/// The daemon's settings. Source: `docs/contract/wicd.md`, WICD20.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::host) struct Settings {
    pub(in crate::host) namespace: String,
    pub(in crate::host) kubeconfig: WindowsPath,
    pub(in crate::host) certificates: WindowsPath,
    pub(in crate::host) lifetime: SignedDuration,
    pub(in crate::host) ca_bundle: Option<WindowsPath>,
}

impl Settings {
    pub(in crate::host) fn read(
        machine: &FakeWindows,
        command: &str,
    ) -> Result<Self, SettingsError> {
        let flags = command_line::flags(machine, command, PROGRAM)?;
        let wrong = |flag: &'static str| move || SettingsError::Argument { flag };
        let text = |flag| flags.get(flag).filter(|text| !text.is_empty());
        let path = |flag, default: &str| {
            let text = text(flag).map_or(default, String::as_str);
            text.parse::<WindowsPath>().map_err(|_| wrong(flag)())
        };
        let lifetime = text("cert-duration").map_or("1h", String::as_str);
        let ca_bundle = text("ca-bundle").map(|text| text.parse());
        Ok(Self {
            namespace: text("namespace").ok_or_else(wrong("namespace"))?.clone(),
            kubeconfig: path("kubeconfig", host::WICD_KUBECONFIG)?,
            certificates: path("cert-dir", host::WICD_CERTIFICATES)?,
            lifetime: lifetime.parse().map_err(|_| wrong("cert-duration")())?,
            ca_bundle: ca_bundle.transpose().map_err(|_| wrong("ca-bundle")())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> Result<Settings, SettingsError> {
        let machine = FakeWindows::new("winhost");
        machine.put_file(&host::AGENT.parse().unwrap(), "MZ");
        Settings::read(&machine, &format!("{} controller {arguments}", host::AGENT))
    }

    #[test]
    fn the_operators_command_line_is_understood() {
        let settings = read(
            r"--windows-service --log-dir C:\var\log\wicd --namespace ns --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 1h30m0s --ca-bundle C:\k\ca-bundle.crt",
        )
        .unwrap();
        assert_eq!(settings.namespace, "ns");
        assert_eq!(settings.lifetime, SignedDuration::from_mins(90));
        assert_eq!(settings.ca_bundle.unwrap().as_str(), host::CA_BUNDLE);
        assert_eq!(settings.certificates.as_str(), host::WICD_CERTIFICATES);
    }

    #[test]
    fn what_means_nothing_is_named() {
        for (arguments, flag) in
            [("", "--namespace"), ("--namespace ns --cert-duration soon", "--cert-duration")]
        {
            assert!(read(arguments).unwrap_err().to_string().contains(flag), "{arguments}");
        }
    }
}
