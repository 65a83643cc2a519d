//! What was typed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};
use jiff::SignedDuration;
use wmco_core::names::host;
use wmco_core::winpath::{BadPath, WindowsPath};
use wmco_services::limits;
use wmco_services::logs::Bounds;

/// Brings a Windows host to what the cluster asks of it, and keeps it there.
///
/// Source: `docs/contract/wicd.md`, WICD1 to WICD6.
#[derive(Clone, Debug, Parser)]
#[command(name = "wicd", version = crate::VERSION, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Log more; given twice, log everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Describe this host in one line of JSON.
    Probe,
    /// Carry out a plan of the operator; prints one line of JSON per event.
    Apply {
        /// File with the staged plan.
        plan: WindowsPath,
    },
    /// Create and start the bootstrap services of one services ConfigMap.
    Bootstrap {
        /// How to reach the cluster.
        #[command(flatten)]
        cluster: Cluster,
        /// Version at the end of the ConfigMap's name.
        #[arg(long)]
        desired_version: String,
    },
    /// Undo the changes of bootstrap and controller. A needed restart is requested on the Node, or by
    /// exit code 3010 without a Node.
    Cleanup {
        /// How to reach the cluster.
        #[command(flatten)]
        cluster: Cluster,
    },
    /// Keep the host at its Node's desired version until stopped.
    Controller(Box<Controller>),
}

/// How to reach the cluster.
#[derive(Arguments, Clone, Debug)]
pub struct Cluster {
    /// Kubeconfig of a user with the rights for WICD.
    #[arg(long, value_parser = absolute)]
    pub kubeconfig: WindowsPath,
    /// Namespace of the services ConfigMaps.
    #[arg(long)]
    pub namespace: String,
}

/// Arguments of the command `controller`.
#[derive(Arguments, Clone, Debug)]
pub struct Controller {
    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// Run as a Windows service.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub windows_service: bool,
    /// Folder of log files; default: standard error.
    #[arg(long, value_parser = non_empty)]
    pub log_dir: Option<Text<PathBuf>>,
    /// Size in MB at which log files of this program and of services are rotated; 0: no limit.
    #[arg(long, value_parser = megabytes)]
    pub log_file_max_size: Option<Text<u64>>,
    /// Age at which rotated log files are removed, such as 168h; 0s: never.
    #[arg(long, value_parser = age)]
    pub log_file_age: Option<Text<SignedDuration>>,
    /// PEM bundle of trusted roots; without it, imported roots are removed.
    #[arg(long, value_parser = windows_path)]
    pub ca_bundle: Option<Text<WindowsPath>>,
    /// Folder of the client certificates.
    #[arg(long, default_value = host::WICD_CERTIFICATES, value_parser = absolute)]
    pub cert_dir: WindowsPath,
    /// Requested lifetime of certificates, at least 10 minutes.
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

    /// How much of logs is kept.
    pub fn log_bounds(&self) -> Bounds {
        let megabytes = self.log_file_max_size.as_ref().and_then(|size| size.0);
        Bounds::new(megabytes, self.log_file_age.as_ref().and_then(|age| age.0))
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

fn age(text: &str) -> Result<Text<SignedDuration>, String> {
    optional(text, |text| {
        let age = text.parse().ok().filter(|age: &SignedDuration| !age.is_negative());
        age.ok_or_else(|| "use a duration of 0s or more, such as 168h".to_owned())
    })
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
        assert_eq!(read.log_bounds(), Bounds { file_bytes: Some(105_000_000), age: None });
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
        let read =
            controller(" --log-dir= --ca-bundle= --log-file-max-size= --log-file-age=").unwrap();
        assert!(read.log_folder().is_none() && read.bundle().is_none());
        assert_eq!(read.log_bounds(), Bounds::default());
    }

    #[test]
    fn an_age_of_logs_is_a_duration_and_0_is_none() {
        let age = |text: &str| {
            Some(controller(&format!(" --log-file-age {text}")).ok()?.log_bounds().age)
        };
        assert_eq!(age("604800s"), Some(Some(SignedDuration::from_hours(168))));
        assert_eq!(age("0s"), Some(None));
        assert_eq!((age("week"), age("-1s")), (None, None));
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
