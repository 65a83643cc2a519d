//! Reads the kubelet's command line from the systemd unit of Linux workers.

use std::collections::BTreeMap;

/// Options of the Linux kubelet that Windows kubelets use, too.
pub const KEPT_OPTIONS: [&str; 2] = ["cloud-provider", "cloud-config"];

/// Prefix of the line with the command.
const EXEC_START: &str = "ExecStart=";

/// Error of a unit without a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the kubelet's systemd unit has no ExecStart line, correct it in the MachineConfig")]
pub struct NoExecStart;

/// Returns the [`KEPT_OPTIONS`] in the first `ExecStart=` line of `unit`, without their dashes.
///
/// The line continues while lines end in a backslash. Words are split at blanks, as systemd does, so several
/// options may share a line; the original expects one per line. A word without `=` is ignored; of a repeated option
/// the last value counts. Source: `docs/contract/node-files.md`, FILE20.
///
/// # Errors
/// [`NoExecStart`].
pub fn kubelet_options(unit: &str) -> Result<BTreeMap<String, String>, NoExecStart> {
    let (_, command) = unit.split_once(EXEC_START).ok_or(NoExecStart)?;
    let mut options = BTreeMap::new();
    let mut first = true;
    for line in command.lines() {
        let line = line.trim_end();
        let (text, goes_on) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        for word in text.split_whitespace() {
            // The program itself.
            if std::mem::take(&mut first) {
                continue;
            }
            let word = unquote(word);
            let Some((name, value)) = word.strip_prefix("--").unwrap_or(word).split_once('=')
            else {
                continue;
            };
            if KEPT_OPTIONS.contains(&name) {
                options.insert(name.to_owned(), unquote(value).to_owned());
            }
        }
        if !goes_on {
            break;
        }
    }
    Ok(options)
}

/// Removes the quotation marks around `text`.
fn unquote(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::vectors::{Case, cases};

    #[derive(Deserialize)]
    struct Input {
        kubelet_unit: String,
    }

    #[derive(Deserialize)]
    struct Expect {
        args: Option<BTreeMap<String, String>>,
    }

    #[test]
    fn the_vectors_hold() {
        let text = include_str!("../tests/vectors/ignition_args.json");
        for Case { name, input, expect } in cases::<Input, Expect>(text, 8) {
            assert_eq!(kubelet_options(&input.kubelet_unit).ok(), expect.args, "{name}");
        }
    }

    #[track_caller]
    fn check(unit: &str, expected: &[(&str, &str)]) {
        let options = kubelet_options(unit).unwrap();
        let options: Vec<_> = options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(options, expected, "{unit}");
    }

    #[test]
    fn options_may_share_a_line() {
        check(
            "ExecStart=/usr/bin/kubelet --v=2 --cloud-provider=external --node-ip=x\n",
            &[("cloud-provider", "external")],
        );
    }

    #[test]
    fn the_command_ends_where_no_backslash_stands() {
        check("ExecStart=/usr/bin/kubelet\nEnvironment=X --cloud-provider=external\n", &[]);
        check(
            "ExecStart=/usr/bin/kubelet \\\r\n  --cloud-config=/x \\\r\n\r\n",
            &[("cloud-config", "/x")],
        );
    }

    #[test]
    fn quotation_marks_are_dropped() {
        check(
            "ExecStart=k \"--cloud-config=/x\" --cloud-provider='a'",
            &[("cloud-config", "/x"), ("cloud-provider", "a")],
        );
    }

    #[test]
    fn a_program_alone_has_no_options() {
        check("ExecStart=", &[]);
        check("ExecStart=--cloud-provider=x", &[]);
    }
}
