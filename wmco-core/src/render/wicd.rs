//! Command line of WICD's Windows service.

use crate::names::host;
use crate::text::is_dns_label;
use crate::units::{GoDuration, Quantity, QuantityError};

/// Lifetime that WICD requests for its certificates, in the notation of its flag.
const CERTIFICATE_LIFETIME: &str = "1h";

/// Why the arguments cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WicdArgumentsError {
    /// The age of logs is not a duration in Go's notation.
    #[error("log file age `{text}` is no duration of 0s or more, write for example 168h")]
    LogAge {
        /// The input.
        text: String,
    },
    /// The log size is not a Kubernetes quantity of bytes.
    #[error("log file size `{text}` {problem}")]
    LogSize {
        /// The input.
        text: String,
        /// Why the quantity is invalid.
        problem: QuantityError,
    },
    /// Not a valid namespace; other text might need quoting on a command line.
    #[error("`{text}` is no namespace, write lower-case letters, digits and `-`")]
    Namespace {
        /// The input.
        text: String,
    },
}

/// Arguments after the executable's path, none of which needs quoting.
///
/// `namespace` is the operator's. `log_file_size` is a Kubernetes quantity of bytes; blank text counts as `None`.
/// Source: `docs/contract/node-files.md`, FILE15. `log_file_age` is a duration in Go's notation; its flag is ours.
///
/// ```
/// use wmco_core::render::wicd_arguments;
///
/// let arguments = wicd_arguments("winc", Some("100Mi"), None)?;
/// assert!(arguments.join(" ").ends_with(r"--ca-bundle C:\k\ca-bundle.crt --log-file-max-size 105"));
/// Ok::<(), wmco_core::render::WicdArgumentsError>(())
/// ```
///
/// # Errors
/// The namespace, the size or the age is invalid.
pub fn wicd_arguments(
    namespace: &str,
    log_file_size: Option<&str>,
    log_file_age: Option<&str>,
) -> Result<Vec<String>, WicdArgumentsError> {
    if !is_dns_label(namespace) {
        return Err(WicdArgumentsError::Namespace { text: namespace.to_owned() });
    }
    let mut arguments = [
        "controller",
        "--windows-service",
        "--log-dir",
        host::WICD_LOGS,
        "--namespace",
        namespace,
        "--kubeconfig",
        host::WICD_KUBECONFIG,
        "--cert-dir",
        host::WICD_CERTIFICATES,
        "--cert-duration",
        CERTIFICATE_LIFETIME,
        "--ca-bundle",
        host::CA_BUNDLE,
    ]
    .map(str::to_owned)
    .to_vec();
    if let Some(size) = given(log_file_size) {
        arguments
            .extend(["--log-file-max-size".to_owned(), size_of(size)?.megabytes().to_string()]);
    }
    if let Some(age) = given(log_file_age) {
        // Converted to seconds, because the original text may need quoting on a command line.
        arguments.extend(["--log-file-age".to_owned(), format!("{}s", seconds_of(age)?)]);
    }
    Ok(arguments)
}

/// The text, unless it is blank.
fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn size_of(text: &str) -> Result<Quantity, WicdArgumentsError> {
    text.parse().map_err(|problem| WicdArgumentsError::LogSize { text: text.to_owned(), problem })
}

fn seconds_of(text: &str) -> Result<u64, WicdArgumentsError> {
    let age = text.parse::<GoDuration>().ok().and_then(GoDuration::seconds);
    age.ok_or_else(|| WicdArgumentsError::LogAge { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_size_is_told() {
        let error = wicd_arguments("winc", Some("-1M"), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "log file size `-1M` is negative, write a quantity of 0 or more"
        );
    }

    #[test]
    fn the_line_is_that_of_the_original() {
        let line = wicd_arguments("winc", None, None).unwrap().join(" ");
        insta::assert_snapshot!(line, @r"controller --windows-service --log-dir C:\var\log\wicd --namespace winc --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 1h --ca-bundle C:\k\ca-bundle.crt");
    }

    #[test]
    fn an_age_of_logs_is_written_in_seconds() {
        let line = |age| Some(wicd_arguments("winc", None, Some(age)).ok()?.join(" "));
        assert!(line("168h").unwrap().ends_with(r" C:\k\ca-bundle.crt --log-file-age 604800s"));
        assert!(line("0").unwrap().ends_with(" 0s") && line("5µs").unwrap().ends_with(" 1s"));
        assert_eq!((line("-1s"), line("7d")), (None, None));
    }

    #[test]
    fn a_blank_size_is_none() {
        assert_eq!(wicd_arguments("winc", Some(" "), Some("")), wicd_arguments("winc", None, None));
    }

    #[test]
    fn what_is_no_namespace_never_reaches_a_command_line() {
        for text in ["", "a b", "a&b", "A", "-a", "a-", "a.b", "ä", &"a".repeat(64)] {
            assert!(wicd_arguments(text, None, None).is_err(), "{text}");
        }
    }
}
