//! Derives the effects of user data on a new machine: who can log in with which keys, and whether its SSH server runs.
//!
//! The effects follow from the commands that the script runs: a command in a comment, in a text or in a function that
//! is never called has no effect. Source: `docs/contract/user-data.md`, UD7.

mod powershell;

use std::collections::BTreeSet;

use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::names::{host, platforms};
use wmco_core::render::user_data_keys;

use powershell::Command;

/// Commands that write a file.
const WRITES: [&str; 4] = ["Add-Content", "New-Item", "Out-File", "Set-Content"];

/// Commands that start a service.
const STARTS: [&str; 2] = ["Restart-Service", "Start-Service"];

/// Commands that set who may write to a file.
const RIGHTS: [&str; 2] = ["icacls", "icacls.exe"];

/// End of the path of the authorized keys file; scripts may name the folder before it in several ways.
const KEYS_FILE: &str = r"\ssh\administrators_authorized_keys";

/// A machine after its first start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Booted {
    /// The only user who can log in.
    pub(super) user: &'static str,
    /// Authorized keys.
    pub(super) keys: BTreeSet<AuthorizedKey>,
    /// Whether its SSH server runs.
    pub(super) answers: bool,
}

impl Booted {
    /// Derives the state of a machine that a cloud has started with this user data.
    pub(super) fn with(platform: &str, user_data: &str) -> Self {
        let script = script(platform, user_data);
        let commands = script.and_then(powershell::commands).unwrap_or_default();
        let any = |test: &dyn Fn(&Command) -> bool| commands.iter().any(test);
        let answers = any(&|command| {
            command.is(&["Add-WindowsCapability"]) && command.has(host::SSH_CAPABILITY)
        }) && any(&|command| command.is(&STARTS) && command.has(host::SSH_SERVICE));
        let enabled = has_enabled_user(platform)
            || any(&|command| {
                command.is(&["Enable-LocalUser"]) && command.has(host::ADMINISTRATOR)
            });
        // sshd ignores a file that others than administrators may write to.
        let opens = any(&|command| command.is(&WRITES) && command.has_ending(KEYS_FILE))
            && any(&|command| {
                command.is(&["Set-Acl"]) || command.is(&RIGHTS) && command.has_ending(KEYS_FILE)
            });
        let keys = if enabled && opens {
            user_data_keys(script.unwrap_or_default())
        } else {
            BTreeSet::new()
        };
        Self { user: user(platform), keys, answers }
    }
}

/// Returns the part of user data that the cloud's agent runs.
fn script<'a>(platform: &str, user_data: &'a str) -> Option<&'a str> {
    if platform == platforms::GCP {
        return Some(user_data);
    }
    let (_, rest) = user_data.split_once("<powershell>")?;
    rest.split_once("</powershell>").map(|(script, _)| script)
}

/// Returns the administrator of new machines.
fn user(platform: &str) -> &'static str {
    if platform == platforms::AZURE { host::AZURE_USER } else { host::ADMINISTRATOR }
}

/// Whether that user can log in before any user data has run.
fn has_enabled_user(platform: &str) -> bool {
    platform != platforms::GCP
}

#[cfg(test)]
mod tests {
    use wmco_core::render::user_data;

    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    const NEXT: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn keys(lines: &[&str]) -> BTreeSet<AuthorizedKey> {
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    fn rendered(platform: &str) -> String {
        user_data(platform, &KEY.parse().unwrap(), Some(&NEXT.parse().unwrap()))
    }

    /// Replaces `from`, which must occur, in the user data of a platform.
    #[track_caller]
    fn changed(platform: &str, from: &str, to: &str) -> Booted {
        let text = rendered(platform);
        assert!(text.contains(from), "{from}");
        Booted::with(platform, &text.replace(from, to))
    }

    #[test]
    fn our_user_data_lets_the_operator_in_on_each_platform() {
        for platform in platforms::ALL {
            let user =
                if platform == platforms::AZURE { host::AZURE_USER } else { host::ADMINISTRATOR };
            let expected = Booted { user, keys: keys(&[KEY, NEXT]), answers: true };
            assert_eq!(Booted::with(platform, &rendered(platform)), expected, "{platform}");
        }
    }

    /// A different script with the effects of `docs/contract/user-data.md`, UD7.
    #[test]
    fn other_scripts_with_the_same_effect_count() {
        let text = format!(
            "<powershell>\n$file = \"$env:ProgramData\\ssh\\administrators_authorized_keys\"\n\
             Add-WindowsCapability -Online -Name {}\nStart-Service sshd\n\
             New-Item -Force $file\n\"{KEY}`n\" | Out-File $file -Encoding ascii\n\
             $acl = Get-Acl $file\n$acl | Set-Acl\n</powershell>\n",
            host::SSH_CAPABILITY
        );
        let booted = Booted::with(platforms::AWS, &text);
        assert_eq!((booted.keys, booted.answers), (keys(&[KEY]), true));
    }

    #[test]
    fn no_server_answers_where_none_is_installed() {
        let booted = changed(platforms::NONE, "Add-WindowsCapability", "Write-Output");
        assert_eq!((booted.keys, booted.answers), (keys(&[KEY, NEXT]), false));
    }

    #[test]
    fn no_server_answers_where_none_is_started() {
        // A changed configuration restarts the server, too.
        let text = rendered(platforms::NONE).replace("Restart-Service", "Write-Output");
        let text = text.replace("Start-Service", "Write-Output");
        assert!(!Booted::with(platforms::NONE, &text).answers);
    }

    #[test]
    fn no_key_opens_what_others_may_write_to() {
        let booted = changed(platforms::AWS, "icacls.exe", "# icacls.exe");
        assert_eq!(booted.keys, keys(&[]));
        assert!(booted.answers);
    }

    #[test]
    fn keys_that_are_not_written_to_the_file_open_nothing() {
        let booted = changed(platforms::AWS, "Set-Content -Path $authorizedKeys", "Write-Output");
        assert_eq!(booted.keys, keys(&[]));
    }

    #[test]
    fn a_disabled_administrator_does_not_come_in() {
        for (platform, opens) in [(platforms::GCP, false), (platforms::AWS, true)] {
            let booted = changed(platform, "Enable-LocalUser", "Write-Output");
            assert_eq!(booted.keys.is_empty(), !opens, "{platform}");
        }
    }

    #[test]
    fn a_script_in_the_form_of_another_cloud_does_not_run() {
        for (platform, other) in
            [(platforms::AWS, platforms::GCP), (platforms::GCP, platforms::AZURE)]
        {
            let booted = Booted::with(platform, &rendered(other));
            assert_eq!((booted.keys, booted.answers), (keys(&[]), false), "{platform}");
        }
    }

    #[test]
    fn nothing_runs_of_a_script_with_an_error() {
        let booted = changed(platforms::NONE, "$ErrorActionPreference = 'Continue'", "if (");
        assert_eq!((booted.keys, booted.answers), (keys(&[]), false));
    }
}
