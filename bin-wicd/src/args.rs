//! What was typed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};
use jiff::SignedDuration;
use wmco_core::names::host;
use wmco_core::winpath::{BadPath, WindowsPath};
use wmco_services::limits;

/// Brings a Windows host to what the cluster asks of it, and keeps it there.
///
/// Source: `spec/wicd.md`, section 2.
#[derive(Clone, Debug, Parser)]
#[command(name = "wicd", version = crate::VERSION, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Log more; twice: everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Describe this host in one line of JSON.
    Probe,
    /// Carry out a plan of the operator; one line of JSON for each event.
    Apply {
        /// The plan, as the operator staged it.
        plan: WindowsPath,
    },
    /// Create and start the bootstrap services of one services ConfigMap.
    Bootstrap {
        /// How to reach the cluster.
        #[command(flatten)]
        cluster: Cluster,
        /// Version that ends the name of the ConfigMap.
        #[arg(long)]
        desired_version: String,
    },
    /// Take away what bootstrap and controller did. A restart is asked for on the Node; without a Node
    /// by exit code 3010.
    Cleanup {
        /// How to reach the cluster.
        #[command(flatten)]
        cluster: Cluster,
    },
    /// Keep the host as its Node's desired version says, until stopped.
    Controller(Box<Controller>),
}

/// How to reach the cluster.
#[derive(Arguments, Clone, Debug)]
pub struct Cluster {
    /// Kubeconfig with the needed rights.
    #[arg(long, value_parser = absolute)]
    pub kubeconfig: WindowsPath,
    /// Namespace of the services ConfigMaps.
    #[arg(long)]
    pub namespace: String,
}

/// What the controller is told.
#[derive(Arguments, Clone, Debug)]
pub struct Controller {
    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// Speak the protocol of Windows services.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub windows_service: bool,
    /// Folder for log files; standard error without it.
    #[arg(long, value_parser = non_empty)]
    pub log_dir: Option<Text<PathBuf>>,
    /// Megabytes of a log file before a new one is begun; 0: no limit.
    #[arg(long, value_parser = megabytes)]
    pub log_file_max_size: Option<Text<u64>>,
    /// PEM bundle of roots to trust; without it, those imported before are removed.
    #[arg(long, value_parser = windows_path)]
    pub ca_bundle: Option<Text<WindowsPath>>,
    /// Folder of the client certificates.
    #[arg(long, default_value = host::WICD_CERTIFICATES, value_parser = absolute)]
    pub cert_dir: WindowsPath,
    /// Life to ask for in certificate requests, at least 10 minutes.
    #[arg(long, default_value = "1h", value_parser = lifetime)]
    pub cert_duration: SignedDuration,
}

/// The value of a flag; `None` when the flag is given and empty, which means the same as leaving it
/// out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Text<T>(pub Option<T>);

impl Controller {
    /// Folder of the log files.
    pub fn log_folder(&self) -> Option<&PathBuf> {
        self.log_dir.as_ref()?.0.as_ref()
    }

    /// Megabytes of a log file.
    pub fn log_megabytes(&self) -> Option<u64> {
        self.log_file_max_size.as_ref()?.0
    }

    /// The bundle of roots.
    pub fn bundle(&self) -> Option<&WindowsPath> {
        self.ca_bundle.as_ref()?.0.as_ref()
    }
}

/// Whether a command line that cannot be read is meant for a service.
pub fn ask_for_a_service(arguments: &[OsString]) -> bool {
    let asks =
        |argument: &OsStr| argument == "--windows-service" || argument == "--windows-service=true";
    arguments.iter().any(|argument| asks(argument))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that clap asks for")]
fn non_empty(text: &str) -> Result<Text<PathBuf>, String> {
    Ok(Text((!text.is_empty()).then(|| text.into())))
}

fn megabytes(text: &str) -> Result<Text<u64>, String> {
    optional(text, |text| text.parse().map_err(|_| "use whole megabytes, such as 100".to_owned()))
}

fn windows_path(text: &str) -> Result<Text<WindowsPath>, String> {
    optional(text, absolute)
}

/// A path, made absolute when this runs on Windows.
fn absolute(text: &str) -> Result<WindowsPath, String> {
    text.parse().or_else(|bad: BadPath| {
        let path = std::path::absolute(text).ok();
        let path = path.as_deref().and_then(|path| path.to_str()).and_then(|t| t.parse().ok());
        path.ok_or_else(|| bad.to_string())
    })
}

fn optional<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Text<T>, String> {
    if text.is_empty() { Ok(Text(None)) } else { read(text).map(|value| Text(Some(value))) }
}

fn lifetime(text: &str) -> Result<SignedDuration, String> {
    let duration: SignedDuration =
        text.parse().map_err(|_| "use a duration such as 1h or 90m".to_owned())?;
    if duration < limits::CERTIFICATE_SHORTEST {
        return Err("certificates live at least 10m".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use wmco_core::digest::Sha256;
    use wmco_core::protocol::{AgentCommand, AgentLocation, Verb};

    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::try_parse_from(line.split(' ')).map_err(|error| error.to_string())
    }

    fn controller(flags: &str) -> Result<Controller, String> {
        let line =
            format!(r"wicd controller --kubeconfig C:\k\wicd-kubeconfig --namespace ns{flags}");
        match parse(&line)?.command {
            Command::Controller(controller) => Ok(*controller),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    #[test]
    fn the_operators_service_command_line_is_understood() {
        let read = controller(
            r" --windows-service --log-dir C:\var\log\wicd --cert-dir C:\k\wicd-certs --cert-duration 1h30m0s --ca-bundle C:\k\ca-bundle.crt --log-file-max-size 105",
        )
        .unwrap();
        assert!(read.windows_service);
        assert_eq!(read.log_folder().unwrap().to_str(), Some(r"C:\var\log\wicd"));
        assert_eq!(read.log_megabytes(), Some(105));
        assert_eq!(read.bundle().unwrap().as_str(), host::CA_BUNDLE);
        assert_eq!(read.cert_duration, SignedDuration::from_mins(90));
        assert_eq!(read.cluster.namespace, "ns");
    }

    #[test]
    fn the_operators_agent_command_lines_are_understood() {
        let digest = Sha256::of(b"plan");
        for verb in [Verb::Probe, Verb::Apply(digest)] {
            let command = AgentCommand { agent: AgentLocation::Staged(digest), verb };
            assert!(parse(&command.to_string()).is_ok(), "{command}");
        }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let read = controller("").unwrap();
        assert_eq!(read.cert_dir.as_str(), host::WICD_CERTIFICATES);
        assert_eq!(read.cert_duration, SignedDuration::from_hours(1));
        assert!(read.log_folder().is_none() && read.bundle().is_none() && !read.windows_service);
    }

    #[test]
    fn a_switch_may_have_a_value() {
        assert!(controller(" --windows-service=true").unwrap().windows_service);
        assert!(!controller(" --windows-service=false").unwrap().windows_service);
    }

    #[test]
    fn empty_values_mean_none() {
        let read = controller(" --log-dir= --ca-bundle= --log-file-max-size=").unwrap();
        assert!(read.log_folder().is_none() && read.bundle().is_none());
        assert_eq!(read.log_megabytes(), None);
    }

    #[test]
    fn short_or_senseless_lifetimes_are_refused() {
        assert!(controller(" --cert-duration 9m").unwrap_err().contains("at least 10m"));
        assert!(controller(" --cert-duration soon").unwrap_err().contains("such as 1h"));
    }

    #[test]
    fn required_flags_are_named() {
        assert!(parse("wicd cleanup --namespace ns").unwrap_err().contains("--kubeconfig"));
        assert!(
            parse(r"wicd bootstrap --kubeconfig C:\k\c --namespace n")
                .unwrap_err()
                .contains("--desired-version")
        );
    }

    #[test]
    fn a_plan_is_an_absolute_path() {
        assert!(parse(r"wicd apply C:\k\staging\plan.json").is_ok());
        assert!(parse("wicd apply plan.json").unwrap_err().contains("windows path"));
    }
}
